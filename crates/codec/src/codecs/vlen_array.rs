//! The `vlen-array` codec: stores one-dimensional arrays of variable length.
//!
//! - Kind: array to bytes
//! - Names: `numcodecs.vlen-array` (v3), id `vlen-array` (v2, draft)
//! - Specification: [numcodecs.vlen](https://numcodecs.readthedocs.io/en/stable/other/vlen.html)
//!
//! ## Configuration
//!
//! ```json
//! {"dtype": "<i4"}
//! ```
//!
//! `dtype` is the data type of the inner elements, which have a fixed size.
//!
//! ## Encoded bytes
//!
//! The number of elements, then each element after its length in bytes; all numbers are little-endian `u32`.
//!
//! ## Errors and limits
//!
//! There are exactly as many elements as the chunk has, each with complete inner elements, within the bytes and the
//! memory budget. Bytes after the last element, which numcodecs ignores, are an error.

use serde::Deserialize;
use serde_json::Value;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{V2Context, parse_v2},
};

use super::vlen::{self, ElementKind};
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
        .map_err(|error| invalid_configuration(spec, format!("has an invalid dtype: {error}")))?;
    let size = data_type.fixed_size().filter(|&size| size > 0);
    let size = size.ok_or_else(|| invalid_configuration(spec, format!("does not support arrays of {data_type}")))?;
    vlen::create(NAME, spec, input, ElementKind::Array { size, swap: ByteSwap::new(&data_type, &order) })
}
