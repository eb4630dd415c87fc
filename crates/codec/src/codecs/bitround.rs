//! `bitround`: floating-point numbers with so many bits of their mantissa.
//!
//! Specification: [numcodecs.bitround](https://numcodecs.readthedocs.io/en/stable/filter/bitround.html), which is also what the
//! [registered `bitround`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/bitround) does to `float16`, `float32` and `float64`.
//!
//! ```json
//! {"keepbits": 10}
//! ```
//!
//! What is lost in encoding is lost: decoding does nothing. Deviations: of the registered codec's types, integers, complex numbers and times are refused.
//! Limits: nothing but the number of elements, which stays.

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{Number, StoredOrder},
};
use serde::Deserialize;

use super::filter::{self, Kernel, Side};
use crate::{
    ChainError, CodecError, Input, Plugin, Resolved,
    registry::{configuration, refused},
};

pub(crate) static PLUGINS: &[Plugin] = &[
    Plugin { namespace: Namespace::Numcodecs, name: BitRound::NAME, resolve },
    Plugin { namespace: Namespace::V3, name: BitRound::NAME, resolve },
];

#[derive(Debug)]
struct BitRound {
    float: Number,
    /// How many bits of the mantissa are dropped.
    drop: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    keepbits: u32,
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    let Configuration { keepbits } = configuration(spec)?;
    let items = match input {
        Input::Array(array) => Some((array.data_type().clone(), StoredOrder::Little)),
        Input::Bytes(bytes) => bytes.items.clone(),
    };
    let floats = items.and_then(|(data_type, order)| {
        let number = data_type.number()?;
        let mantissa = match number {
            Number::Float16 => 10,
            Number::Float32 => 23,
            Number::Float64 => 52,
            _ => return None,
        };
        Some((number, mantissa, data_type, order))
    });
    let (float, mantissa, data_type, order) =
        floats.ok_or_else(|| refused(spec, "can only be used with floating-point numbers"))?;
    let drop = u32::checked_sub(mantissa, keepbits)
        .ok_or_else(|| refused(spec, format!("cannot keep {keepbits} bits of {data_type}, which has {mantissa}")))?;
    let side = Side::new(spec, data_type, order)?;
    filter::resolve(spec, input, BitRound { float, drop }, [side.clone(), side])
}

impl Kernel for BitRound {
    const NAME: &'static str = "bitround";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(encoded)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        if self.drop == 0 {
            return Ok(decoded);
        }
        let mut rounded = decoded.to_vec();
        match self.float {
            Number::Float16 => round::<2>(&mut rounded, self.drop),
            Number::Float32 => round::<4>(&mut rounded, self.drop),
            _ => round::<8>(&mut rounded, self.drop),
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
