//! The `fixedscaleoffset` codec: stores `(x - offset) * scale`, rounded, in another data type.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.fixedscaleoffset` (v3), id `fixedscaleoffset` (v2, draft)
//! - Specification:
//!   [numcodecs.fixedscaleoffset](https://numcodecs.readthedocs.io/en/stable/filter/fixedscaleoffset.html)
//!
//! ## Configuration
//!
//! ```json
//! {"offset": 1000, "scale": 10, "dtype": "<f8", "astype": "|u1"}
//! ```
//!
//! `dtype` defaults to the array's data type in v3; it is required after the array-to-bytes codec. `astype` defaults to
//! `dtype`.
//!
//! ## Encoded bytes
//!
//! One number of type `astype` per element, computed as by NumPy 2: integers stay integers, and wrap around, if
//! `offset` and `scale` are written as integers, and become `float64` if they have a decimal point; floats and complex
//! numbers keep their type. Decoding divides, which makes integers `float64`, and does not round. Both parts of complex
//! numbers are rounded; the conversion to a real type drops the imaginary part.
//!
//! ## Errors and limits
//!
//! An integer `offset` or `scale` that the integer type cannot hold is an error. The number of elements does not
//! change.

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use super::{
    filter::{self, FilterElements, FilterKernel, configured_or_input_dtype},
    numbers::{Arithmetic, Divisible, Dtype, Num, cast, update, with_arithmetic, with_divisible},
};
use crate::{ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: FixedScaleOffset::NAME, create }];

/// The number of elements that are computed at a time.
const BLOCK_ELEMENTS: usize = 4096;

#[derive(Debug)]
struct FixedScaleOffset {
    offset: Scalar,
    scale: Scalar,
    dtype: Number,
    astype: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    offset: Scalar,
    scale: Scalar,
    dtype: Option<Dtype>,
    astype: Option<Dtype>,
}

/// A Python number, which has no size.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(untagged)]
enum Scalar {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { offset, scale, dtype, astype } = parse_configuration(spec)?;
    let dtype = configured_or_input_dtype(spec, dtype, input)?;
    let astype = astype.unwrap_or(dtype);
    let kernel = FixedScaleOffset { offset, scale, dtype: dtype.number, astype: astype.number };
    filter::create(
        spec,
        input,
        kernel,
        [FilterElements::from_dtype(spec, dtype)?, FilterElements::from_dtype(spec, astype)?],
    )
}

impl Scalar {
    fn to_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Unsigned(value) => value as f64,
            Self::Float(value) => value,
        }
    }

    /// NumPy's result type of the scalar and elements of a type.
    fn result_type(self, number: Number) -> Number {
        match (number, self) {
            (Number::Float16 | Number::Float32 | Number::Float64 | Number::Complex64 | Number::Complex128, _) => number,
            (_, Self::Float(_)) => Number::Float64,
            (Number::Bool, _) => Number::Int64,
            _ => number,
        }
    }

    /// The scalar as an element of a type. Fails, like NumPy, for integers that the type cannot hold.
    fn to_element<T: Num>(self) -> Result<T, CodecError> {
        let value = match self {
            Self::Integer(value) => T::from_i64(value),
            Self::Unsigned(value) => T::from_u64(value),
            Self::Float(value) => return Ok(T::from_f64(value)),
        };
        let exact = value.cast::<f64>() == self.to_f64();
        // Floats round; for integers the nearest `f64` reveals wrapping.
        if exact || T::from_f64(0.5).cast::<f64>() == 0.5 { Ok(value) } else { Err(out_of_range()) }
    }
}

/// Computes `elements - scalar` or `elements * scalar`.
fn apply(
    (bytes, number): (Vec<u8>, Number),
    scalar: Scalar,
    operation: Operation,
) -> Result<(Vec<u8>, Number), CodecError> {
    let result = scalar.result_type(number);
    let mut bytes = if result == number { bytes } else { cast(&bytes, number, result) };
    with_arithmetic!(result, T => {
        let scalar: T = scalar.to_element()?;
        match operation {
            Operation::Subtract => update(&mut bytes, |value: T| value.diff(scalar)),
            Operation::Multiply => update(&mut bytes, |value: T| value.multiply(scalar)),
        }
    }, else return Err(not_numeric()));
    Ok((bytes, result))
}

#[derive(Clone, Copy)]
enum Operation {
    Subtract,
    Multiply,
}

impl FixedScaleOffset {
    fn decode_block(&self, encoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        let number = match self.astype {
            number @ (Number::Float16 | Number::Float32 | Number::Complex64 | Number::Complex128) => number,
            _ => Number::Float64,
        };
        let mut decoded = cast(encoded, self.astype, number);
        let (scale, offset) = (self.scale.to_f64(), self.offset.to_f64());
        with_divisible!(number, T => {
            let (scale, offset) = (T::from_f64(scale), T::from_f64(offset));
            update(&mut decoded, |value: T| value.divide(scale).add(offset));
        }, else return Err(not_numeric()));
        Ok(if number == self.dtype { decoded } else { cast(&decoded, number, self.dtype) })
    }

    fn encode_block(&self, decoded: &[u8]) -> Result<Vec<u8>, CodecError> {
        let shifted = apply((decoded.to_vec(), self.dtype), self.offset, Operation::Subtract)?;
        let (mut scaled, number) = apply(shifted, self.scale, Operation::Multiply)?;
        with_arithmetic!(number, T => update(&mut scaled, T::around), else return Err(not_numeric()));
        Ok(if number == self.astype { scaled } else { cast(&scaled, number, self.astype) })
    }
}

impl FilterKernel for FixedScaleOffset {
    const NAME: &'static str = "fixedscaleoffset";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        in_blocks(&encoded, [self.astype, self.dtype], |block| self.decode_block(block))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        in_blocks(&decoded, [self.dtype, self.astype], |block| self.encode_block(block))
    }
}

/// Computes elements in blocks, since integers that become `float64` may take eight times their memory. Of elements of
/// one byte, each value is computed only once.
fn in_blocks(
    bytes: &[u8],
    [from, to]: [Number; 2],
    compute: impl Fn(&[u8]) -> Result<Vec<u8>, CodecError>,
) -> Result<Bytes, CodecError> {
    let (from, to) = (from.size().max(1), to.size());
    let block = BLOCK_ELEMENTS.saturating_mul(from);
    if bytes.len() <= block {
        return compute(bytes).map(Bytes::from);
    }
    let mut computed = Vec::with_capacity((bytes.len() / from).saturating_mul(to));
    if from > 1 {
        for block in bytes.chunks(block) {
            computed.extend_from_slice(&compute(block)?);
        }
        return Ok(computed.into());
    }
    let every: Vec<u8> = (0..=u8::MAX).collect();
    let table = compute(&every)?;
    match <&[u8; 256]>::try_from(table.as_slice()) {
        Ok(table) => computed.extend(bytes.iter().map(|byte| table.get(usize::from(*byte)).copied().unwrap_or(0))),
        Err(_) => {
            let results: Vec<&[u8]> = table.chunks(to.max(1)).collect();
            for byte in bytes {
                computed.extend_from_slice(results.get(usize::from(*byte)).copied().unwrap_or_default());
            }
        }
    }
    Ok(computed.into())
}

fn not_numeric() -> CodecError {
    CodecError::Malformed { codec: FixedScaleOffset::NAME, reason: "the elements are not numbers" }
}

fn out_of_range() -> CodecError {
    CodecError::Malformed { codec: FixedScaleOffset::NAME, reason: "the data type cannot hold the offset or scale" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [Number; 13] = [
        Number::Int8,
        Number::Int16,
        Number::Int32,
        Number::Int64,
        Number::UInt8,
        Number::UInt16,
        Number::UInt32,
        Number::UInt64,
        Number::Float16,
        Number::Float32,
        Number::Float64,
        Number::Complex64,
        Number::Complex128,
    ];

    #[test]
    fn long_chunks_are_computed_like_their_parts() {
        let bytes: Vec<u8> = (0..16 * (2 * BLOCK_ELEMENTS + 3)).map(|at| (at * 7 + at / 251) as u8).collect();
        for (dtype, astype) in NUMBERS.iter().flat_map(|dtype| NUMBERS.map(|astype| (*dtype, astype))) {
            let codec = FixedScaleOffset { offset: Scalar::Integer(3), scale: Scalar::Float(1.7), dtype, astype };
            let elements = 2 * BLOCK_ELEMENTS + 3;
            let [decoded, encoded] = [dtype, astype].map(|number| bytes.get(..elements * number.size()).unwrap());
            let parts = |bytes: &[u8], size: usize, part: &dyn Fn(&[u8]) -> Vec<u8>| {
                bytes.chunks(100 * size).flat_map(part).collect::<Vec<u8>>()
            };
            let expected = parts(encoded, astype.size(), &|part| codec.decode_block(part).unwrap());
            assert_eq!(codec.decode(encoded.to_vec().into()).unwrap(), expected, "{astype:?} to {dtype:?}");
            let expected = parts(decoded, dtype.size(), &|part| codec.encode_block(part).unwrap());
            assert_eq!(codec.encode(decoded.to_vec().into()).unwrap(), expected, "{dtype:?} to {astype:?}");
        }
    }
}
