//! `vlen-array`: one-dimensional arrays of variable length.
//!
//! Specification: [numcodecs.vlen](https://numcodecs.readthedocs.io/en/stable/other/vlen.html).
//!
//! ```json
//! {"dtype": "<i4"}
//! ```
//!
//! The number of elements, then each with its length in bytes before it, all `u32` little-endian. Deviations: bytes after the last element are an error, which
//! numcodecs ignores. Limits: as many elements as the chunk has, each a whole number of elements of its own, within the bytes and the budget.

use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{V2Context, parse_v2},
};
use serde::Deserialize;
use serde_json::Value;

use super::vlen::{self, Content};
use crate::{
    ByteSwap, ChainError, Codec, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "vlen-array";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dtype: Value,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { dtype } = parse_configuration(spec)?;
    let (data_type, order) = parse_v2(&dtype, V2Context::default())
        .map_err(|error| invalid_configuration(spec, format!("has no dtype: {error}")))?;
    let size = data_type.fixed_size().filter(|&size| size > 0);
    let size = size.ok_or_else(|| invalid_configuration(spec, format!("cannot be used with arrays of {data_type}")))?;
    vlen::create(NAME, spec, input, Content::Array { size, swap: ByteSwap::new(&data_type, &order) })
}
