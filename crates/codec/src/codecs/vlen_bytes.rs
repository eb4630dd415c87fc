//! The `vlen-bytes` codec: stores byte strings of variable length.
//!
//! - Kind: array to bytes
//! - Names: `vlen-bytes` and `numcodecs.vlen-bytes` (v3), id `vlen-bytes` (v2, draft)
//! - Specification: [numcodecs.vlen](https://numcodecs.readthedocs.io/en/stable/other/vlen.html), [registered
//!   `vlen-bytes`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes)
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
//! The number of elements, then each element after its length in bytes; all numbers are little-endian `u32`.
//!
//! ## Errors and limits
//!
//! There are exactly as many elements as the chunk has, within the bytes and the memory budget. Bytes after the last
//! element, which numcodecs ignores, are an error.

use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::vlen::{self, ElementKind};
use crate::{ChainError, Codec, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

const NAME: &str = "vlen-bytes";

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration {} = parse_configuration(spec)?;
    vlen::create(NAME, spec, input, ElementKind::Bytes)
}
