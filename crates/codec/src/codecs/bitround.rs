//! The `bitround` codec: rounds floating-point numbers to a number of mantissa bits.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `bitround` and `numcodecs.bitround` (v3), id `bitround` (v2, draft)
//! - Specification: [numcodecs.bitround](https://numcodecs.readthedocs.io/en/stable/filter/bitround.html); the
//!   [registered `bitround`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround) does the
//!   same to `float16`, `float32` and `float64`
//!
//! ## Configuration
//!
//! ```json
//! {"keepbits": 10}
//! ```
//!
//! `keepbits` is the number of mantissa bits to keep.
//!
//! ## Encoded bytes
//!
//! The elements, with the other mantissa bits rounded to zero (half to even). Decoding is the identity, so arrays of
//! every data type of a fixed size can be read.
//!
//! ## Errors and limits
//!
//! Encoding supports floats with at least `keepbits` mantissa bits. The integers, complex numbers and times of the
//! registered codec are not encoded. The number of elements does not change.

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Number, StoredOrder},
};

use super::{
    filter::{self, FilterElements, FilterKernel},
    numbers::Dtype,
};
use crate::{ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::Numcodecs, name: BitRound::NAME, create },
    CodecFactory { namespace: Namespace::V3, name: BitRound::NAME, create },
];

#[derive(Debug)]
struct BitRound {
    rounding: Result<Rounding, RoundingUnsupported>,
}

/// The rounding that encoding applies.
#[derive(Clone, Copy, Debug)]
struct Rounding {
    float: Number,
    /// The number of mantissa bits to drop.
    dropped_bits: u32,
}

/// The reason why elements cannot be encoded; it continues the codec's name.
#[derive(Clone, Debug)]
struct RoundingUnsupported(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    keepbits: u32,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { keepbits } = parse_configuration(spec)?;
    let items = match input {
        CodecInput::Array(array) => Some((array.data_type().clone(), StoredOrder::Little)),
        CodecInput::Bytes(bytes) => bytes.stored_elements.clone(),
    };
    let rounding = items.as_ref().map_or_else(
        || Err(RoundingUnsupported("cannot encode bytes, only floating-point numbers of 16 to 64 bits".to_owned())),
        |(data_type, _)| rounding(data_type, keepbits),
    );
    let elements = match items {
        Some((data_type, order)) => FilterElements::new(spec, data_type, order)?,
        None => FilterElements::from_dtype(spec, Dtype::little(Number::UInt8))?,
    };
    filter::create(spec, input, BitRound { rounding }, [elements.clone(), elements])
}

fn rounding(data_type: &DataType, keepbits: u32) -> Result<Rounding, RoundingUnsupported> {
    let (float, mantissa) = match data_type.number() {
        Some(float @ Number::Float16) => (float, 10),
        Some(float @ Number::Float32) => (float, 23),
        Some(float @ Number::Float64) => (float, 52),
        _ => {
            let reason = format!("cannot encode {data_type}, only floating-point numbers of 16 to 64 bits");
            return Err(RoundingUnsupported(reason));
        }
    };
    let too_many = || RoundingUnsupported(format!("cannot keep {keepbits} bits of {data_type}, which has {mantissa}"));
    let dropped_bits = u32::checked_sub(mantissa, keepbits).ok_or_else(too_many)?;
    Ok(Rounding { float, dropped_bits })
}

impl FilterKernel for BitRound {
    const NAME: &'static str = "bitround";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(encoded)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let Rounding { float, dropped_bits } = match &self.rounding {
            Ok(rounding) => *rounding,
            Err(RoundingUnsupported(reason)) => {
                return Err(CodecError::EncodingUnsupported { codec: Self::NAME, reason: reason.clone() });
            }
        };
        if dropped_bits == 0 {
            return Ok(decoded);
        }
        let mut rounded = decoded.to_vec();
        match float {
            Number::Float16 => round::<2>(&mut rounded, dropped_bits),
            Number::Float32 => round::<4>(&mut rounded, dropped_bits),
            _ => round::<8>(&mut rounded, dropped_bits),
        }
        Ok(rounded.into())
    }
}

/// Rounds each word of `N` bytes to a multiple of `2^dropped_bits`, half to even. The carry into the exponent is
/// correct.
fn round<const N: usize>(bytes: &mut [u8], dropped_bits: u32) {
    let below_half = (1_u64 << (dropped_bits - 1)) - 1;
    for word in bytes.as_chunks_mut::<N>().0 {
        let mut wide = [0; 8];
        wide.iter_mut().zip(&*word).for_each(|(to, from)| *to = *from);
        let bits = u64::from_le_bytes(wide);
        let rounded = bits.wrapping_add(((bits >> dropped_bits) & 1) + below_half) & (u64::MAX << dropped_bits);
        word.iter_mut().zip(rounded.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
}
