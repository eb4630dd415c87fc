//! `astype`: the elements in another type.
//!
//! Specification: [numcodecs.astype](https://numcodecs.readthedocs.io/en/stable/filter/astype.html).
//!
//! ```json
//! {"encode_dtype": "<f4", "decode_dtype": "<f8"}
//! ```
//!
//! `decode_dtype` is the array's where it is left out and the array is known. Datetimes and timedeltas are converted as
//! the `int64` that counts their units, as in NumPy: "not a time" is the least of these. Deviations: only numbers, booleans and times are converted, not texts;
//! and times of one kind not to another unit, since NumPy's answer depends on its version. Limits: nothing but the number of elements, which stays.

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel},
    filter_dtype::{Countable, is_moment},
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
    decode: Number,
    encode: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    encode_dtype: Countable,
    decode_dtype: Option<Countable>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { encode_dtype, decode_dtype } = parse_configuration(spec)?;
    let decode_dtype = Countable::or_of(decode_dtype, spec, input)?;
    if let Some((from, to)) = decode_dtype.as_time().zip(encode_dtype.as_time())
        && is_moment(from) == is_moment(to)
        && from != to
    {
        return Err(invalid_configuration(spec, format!("cannot convert {from} to another unit, {to}")));
    }
    let kernel = AsType { decode: decode_dtype.number(), encode: encode_dtype.number() };
    filter::create(spec, input, kernel, [decode_dtype.side(spec)?, encode_dtype.side(spec)?])
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
