//! `bitround`: floating-point numbers with so many bits of their mantissa.
//!
//! Specification: [numcodecs.bitround](https://numcodecs.readthedocs.io/en/stable/filter/bitround.html), which is also what the
//! [registered `bitround`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround) does to `float16`, `float32` and `float64`.
//!
//! ```json
//! {"keepbits": 10}
//! ```
//!
//! What is lost in encoding is lost: decoding does nothing, whatever the elements are, and however many bits are said to be kept. So arrays of every data type of a fixed size are
//! read. Encoded are floats that have the bits that are to be kept; all else is refused, as numcodecs does. Deviations: of the registered codec's types, integers, complex numbers
//! and times are not encoded. Limits: nothing but the number of elements, which stays.

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Number, StoredOrder},
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel, Side},
    numbers::Dtype,
};
use crate::{ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext, factory::parse_configuration};

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::Numcodecs, name: BitRound::NAME, create },
    CodecFactory { namespace: Namespace::V3, name: BitRound::NAME, create },
];

#[derive(Debug)]
struct BitRound {
    rounding: Result<Rounding, NoRounding>,
}

/// The operation of encoding.
#[derive(Clone, Copy, Debug)]
struct Rounding {
    float: Number,
    /// The number of bits of the mantissa to drop.
    drop: u32,
}

/// The reason why elements cannot be encoded, which continues the codec's name.
#[derive(Clone, Debug)]
struct NoRounding(String);

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
        || Err(NoRounding("cannot encode bytes, only floating-point numbers of 16 to 64 bits".to_owned())),
        |(data_type, _)| rounding(data_type, keepbits),
    );
    let side = match items {
        Some((data_type, order)) => Side::new(spec, data_type, order)?,
        None => Side::of(spec, Dtype::little(Number::UInt8))?,
    };
    filter::create(spec, input, BitRound { rounding }, [side.clone(), side])
}

fn rounding(data_type: &DataType, keepbits: u32) -> Result<Rounding, NoRounding> {
    let (float, mantissa) = match data_type.number() {
        Some(float @ Number::Float16) => (float, 10),
        Some(float @ Number::Float32) => (float, 23),
        Some(float @ Number::Float64) => (float, 52),
        _ => {
            let reason = format!("cannot encode {data_type}, only floating-point numbers of 16 to 64 bits");
            return Err(NoRounding(reason));
        }
    };
    let too_many = || NoRounding(format!("cannot keep {keepbits} bits of {data_type}, which has {mantissa}"));
    let drop = u32::checked_sub(mantissa, keepbits).ok_or_else(too_many)?;
    Ok(Rounding { float, drop })
}

impl Kernel for BitRound {
    const NAME: &'static str = "bitround";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(encoded)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let Rounding { float, drop } = match &self.rounding {
            Ok(rounding) => *rounding,
            Err(NoRounding(reason)) => {
                return Err(CodecError::EncodingUnsupported { codec: Self::NAME, reason: reason.clone() });
            }
        };
        if drop == 0 {
            return Ok(decoded);
        }
        let mut rounded = decoded.to_vec();
        match float {
            Number::Float16 => round::<2>(&mut rounded, drop),
            Number::Float32 => round::<4>(&mut rounded, drop),
            _ => round::<8>(&mut rounded, drop),
        }
        Ok(rounded.into())
    }
}

/// Rounds each word of `N` bytes to a multiple of `2^drop`, halves to the even one. The carry goes into the exponent, as it has to.
fn round<const N: usize>(bytes: &mut [u8], drop: u32) {
    let almost_half = (1_u64 << (drop - 1)) - 1;
    for word in bytes.as_chunks_mut::<N>().0 {
        let mut wide = [0; 8];
        wide.iter_mut().zip(&*word).for_each(|(to, from)| *to = *from);
        let bits = u64::from_le_bytes(wide);
        let rounded = bits.wrapping_add(((bits >> drop) & 1) + almost_half) & (u64::MAX << drop);
        word.iter_mut().zip(rounded.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
}
