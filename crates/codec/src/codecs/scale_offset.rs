//! The `scale_offset` codec: stores `(x - offset) * scale`, in the data type of the elements.
//!
//! - Kind: array to array
//! - Names: `scale_offset` (v3)
//! - Specification: [`scale_offset`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/scale_offset)
//!
//! ## Configuration
//!
//! ```json
//! {"offset": 5, "scale": 3}
//! ```
//!
//! Both are written like fill values of the array's data type. As in zarr-python, they default to 0 and 1.
//!
//! ## Encoded bytes
//!
//! One element per element. Floats are computed in their own type; integers are computed exactly.
//!
//! ## Errors and limits
//!
//! A `scale` of 0 is invalid. An integer result that the type cannot hold is an error, and so is a remainder when
//! decoding divides by `scale`. The number of elements does not change.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use zarrd_meta::{
    Dialect,
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Number, StoredOrder},
};

use super::{
    filter::{self, FilterElements, FilterKernel},
    numbers::{Arithmetic, Divisible, Num, map, update, with_divisible, with_number},
};
use crate::{
    ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::V3, name: ScaleOffset::NAME, create }];

#[derive(Debug)]
struct ScaleOffset {
    number: Number,
    /// An element of the array's type.
    offset: Vec<u8>,
    /// An element of the array's type, not 0.
    scale: Vec<u8>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    offset: Option<Value>,
    scale: Option<Value>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let Configuration { offset, scale } = parse_configuration(spec)?;
    let data_type = array.data_type();
    let number = data_type
        .number()
        .filter(|number| !matches!(number, Number::Bool | Number::Complex64 | Number::Complex128))
        .ok_or_else(|| invalid_configuration(spec, format!("only supports integers and floats, not {data_type}")))?;
    let scalar = |given: Option<Value>, default: i64| {
        let value = given.unwrap_or_else(|| default.into());
        let result = data_type.fill_value(&value, Dialect::V3);
        result.map_err(|error| invalid_configuration(spec, format!("has an invalid offset or scale: {error}")))
    };
    let kernel = ScaleOffset { number, offset: scalar(offset, 0)?, scale: scalar(scale, 1)? };
    if data_type.to_f64(&kernel.scale) == Some(0.0) {
        return Err(invalid_configuration(spec, "has a scale of 0"));
    }
    let side = FilterElements::new(spec, data_type.clone(), StoredOrder::Little)?;
    filter::create(spec, input, kernel, [side.clone(), side])
}

/// Widens an integer.
fn exact<T: Num>(value: T, unsigned: bool) -> i128 {
    if unsigned { value.cast::<u64>().into() } else { value.cast::<i64>().into() }
}

/// Narrows an integer; `None` if the type cannot hold it.
fn narrow<T: Num>(value: i128, unsigned: bool) -> Option<T> {
    let narrowed = match unsigned {
        true => T::from_u64(value.try_into().ok()?),
        false => T::from_i64(value.try_into().ok()?),
    };
    (exact(narrowed, unsigned) == value).then_some(narrowed)
}

impl ScaleOffset {
    fn is_float(&self) -> bool {
        matches!(self.number, Number::Float16 | Number::Float32 | Number::Float64)
    }

    /// Maps each integer, with offset and scale. The error is the index of the first element without a result.
    fn map_integers(&self, bytes: &[u8], each: impl Fn(i128, i128, i128) -> Option<i128>) -> Result<Bytes, u64> {
        use Number::{UInt8, UInt16, UInt32, UInt64};
        let unsigned = matches!(self.number, UInt8 | UInt16 | UInt32 | UInt64);
        let (mut first_invalid, mut index) = (None, 0);
        let result = with_number!(self.number, T => {
            let [offset, scale] = [&self.offset, &self.scale].map(|scalar| exact(T::load(scalar), unsigned));
            map(bytes, |value: T| {
                let result = each(exact(value, unsigned), offset, scale).and_then(|result| narrow(result, unsigned));
                if result.is_none() {
                    first_invalid.get_or_insert(index);
                }
                index += 1;
                result.unwrap_or(value)
            })
        });
        first_invalid.map_or_else(|| Ok(result.into()), Err)
    }
}

impl FilterKernel for ScaleOffset {
    const NAME: &'static str = "scale_offset";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        if self.is_float() {
            let mut decoded = encoded.to_vec();
            with_divisible!(self.number, T => {
                let (offset, scale) = (T::load(&self.offset), T::load(&self.scale));
                update(&mut decoded, |value: T| value.divide(scale).add(offset));
            }, else {});
            return Ok(decoded.into());
        }
        let decoded = self.map_integers(&encoded, |value, offset, scale| {
            let quotient = value.checked_div(scale).filter(|quotient| quotient * scale == value)?;
            quotient.checked_add(offset)
        });
        let reason = "an element is none of the type's integers when it is divided";
        decoded.map_err(|_| CodecError::Malformed { codec: Self::NAME, reason })
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        if self.is_float() {
            let mut encoded = decoded.to_vec();
            with_divisible!(self.number, T => {
                let (offset, scale) = (T::load(&self.offset), T::load(&self.scale));
                update(&mut encoded, |value: T| value.diff(offset).multiply(scale));
            }, else {});
            return Ok(encoded.into());
        }
        let encoded = self.map_integers(&decoded, |value, offset, scale| (value - offset).checked_mul(scale));
        let reason = "it becomes none of the type's integers";
        encoded.map_err(|index| CodecError::InvalidElement { codec: Self::NAME, index, reason })
    }

    fn encoded_fill_value(&self, array: &ChunkRepresentation, _encoded: &DataType) -> Result<Bytes, CodecError> {
        self.encode(array.fill_value().clone())
    }
}
