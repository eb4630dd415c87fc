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

use super::{
    bytes::Swap,
    vlen::{self, Content},
};
use crate::{
    ChainError, Input, Plugin, Resolved,
    registry::{configuration, refused},
};

const NAME: &str = "vlen-array";

pub(crate) static PLUGINS: &[Plugin] = &[Plugin { namespace: Namespace::Numcodecs, name: NAME, resolve }];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dtype: Value,
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    let Configuration { dtype } = configuration(spec)?;
    let (data_type, order) =
        parse_v2(&dtype, V2Context::default()).map_err(|error| refused(spec, format!("has no dtype: {error}")))?;
    let size = data_type.fixed_size().filter(|&size| size > 0);
    let size = size.ok_or_else(|| refused(spec, format!("cannot be used with arrays of {data_type}")))?;
    vlen::resolve(NAME, spec, input, Content::Array { size, swap: Swap::new(&data_type, &order) })
}
