//! The `astype` codec: converts elements to another data type.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.astype` (v3), id `astype` (v2, draft)
//! - Specification: [numcodecs.astype](https://numcodecs.readthedocs.io/en/stable/filter/astype.html)
//!
//! ## Configuration
//!
//! ```json
//! {"encode_dtype": "<f4", "decode_dtype": "<f8"}
//! ```
//!
//! `decode_dtype` defaults to the array's data type in v3; it is required after the array-to-bytes codec.
//!
//! ## Encoded bytes
//!
//! The elements as NumPy's `astype` converts them. Datetimes and timedeltas are converted as the `int64` that counts
//! their units; "not a time" is the smallest `int64`.
//!
//! ## Errors and limits
//!
//! Only numbers, booleans and times are converted, not strings. Times are not converted to another unit of the same
//! kind, because NumPy's result depends on its version. The number of elements does not change.

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use super::{
    filter::{self, FilterKernel},
    filter_dtype::{FilterDtype, is_datetime},
    numbers::cast,
};
use crate::{
    ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: AsType::NAME, create }];

#[derive(Debug)]
struct AsType {
    decoded: Number,
    encoded: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    encode_dtype: FilterDtype,
    decode_dtype: Option<FilterDtype>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { encode_dtype, decode_dtype } = parse_configuration(spec)?;
    let decode_dtype = FilterDtype::configured_or_input(decode_dtype, spec, input)?;
    if let Some((from, to)) = decode_dtype.as_time().zip(encode_dtype.as_time())
        && is_datetime(from) == is_datetime(to)
        && from != to
    {
        return Err(invalid_configuration(spec, format!("cannot convert {from} to the unit of {to}")));
    }
    let kernel = AsType { decoded: decode_dtype.number(), encoded: encode_dtype.number() };
    filter::create(spec, input, kernel, [decode_dtype.elements(spec)?, encode_dtype.elements(spec)?])
}

impl FilterKernel for AsType {
    const NAME: &'static str = "astype";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&encoded, self.encoded, self.decoded).into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&decoded, self.decoded, self.encoded).into())
    }
}
