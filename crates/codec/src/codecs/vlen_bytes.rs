//! `vlen-bytes`: byte strings of variable length.
//!
//! Specification: [numcodecs.vlen](https://numcodecs.readthedocs.io/en/stable/other/vlen.html), and for v3 the
//! [registered `vlen-bytes`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/vlen-bytes). No configuration:
//!
//! ```json
//! {}
//! ```
//!
//! The number of elements, then each with its length in bytes before it, all `u32` little-endian. Deviations: bytes after the last element are an error, which
//! numcodecs ignores. Limits: as many elements as the chunk has, within the bytes and the budget.

use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::vlen::{self, Content};
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
    vlen::create(NAME, spec, input, Content::Bytes)
}
