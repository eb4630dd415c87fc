//! The `vlen-utf8` codec: stores strings of variable length.
//!
//! - Kind: array to bytes
//! - Names: `vlen-utf8` and `numcodecs.vlen-utf8` (v3), id `vlen-utf8` (v2, draft)
//! - Specification: [numcodecs.vlen](https://numcodecs.readthedocs.io/en/stable/other/vlen.html), [registered
//!   `vlen-utf8`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-utf8)
//!
//! ## Configuration
//!
//! ```json
//! {}
//! ```
//!
//! The codec has no configuration.
//!
//! ## Encoded bytes
//!
//! The number of elements, then each element in UTF-8 after its length in bytes; all numbers are little-endian `u32`.
//!
//! ## Errors and limits
//!
//! There are exactly as many elements as the chunk has, each of them valid UTF-8, within the bytes and the memory
//! budget. Bytes after the last element, which numcodecs ignores, are an error.

use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::vlen::{self, ElementKind};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "vlen-utf8";

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration {} = parse_configuration(spec)?;
    vlen::create(NAME, spec, input, ElementKind::Text)
}
