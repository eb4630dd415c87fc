//! `astype`: the elements in another type.
//!
//! Specification: [numcodecs.astype](https://numcodecs.readthedocs.io/en/stable/filter/astype.html).
//!
//! ```json
//! {"encode_dtype": "<f4", "decode_dtype": "<f8"}
//! ```
//!
//! `decode_dtype` is the array's where it is left out and the array is known. Deviations: only numbers and booleans are converted, not texts. Limits: nothing
//! but the number of elements, which stays.

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel, Side, dtype_of},
    numbers::{Dtype, cast},
};
use crate::{ChainError, CodecError, Input, Plugin, Resolved, registry::configuration};

pub(crate) static PLUGINS: &[Plugin] = &[Plugin { namespace: Namespace::Numcodecs, name: AsType::NAME, resolve }];

#[derive(Debug)]
struct AsType {
    decode: Number,
    encode: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    encode_dtype: Dtype,
    decode_dtype: Option<Dtype>,
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    let Configuration { encode_dtype, decode_dtype } = configuration(spec)?;
    let decode_dtype = dtype_of(spec, decode_dtype, input)?;
    let kernel = AsType { decode: decode_dtype.number, encode: encode_dtype.number };
    filter::resolve(spec, input, kernel, [Side::of(spec, decode_dtype)?, Side::of(spec, encode_dtype)?])
}

impl Kernel for AsType {
    const NAME: &'static str = "astype";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&encoded, self.encode, self.decode).into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&decoded, self.decode, self.encode).into())
    }
}
