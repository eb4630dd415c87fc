//! `packbits`: booleans as bits.
//!
//! Specification: [numcodecs.packbits](https://numcodecs.readthedocs.io/en/stable/filter/packbits.html). No configuration:
//!
//! ```json
//! {}
//! ```
//!
//! The first byte says how many bits of the last are padding; the first boolean is the highest bit. In v3 the encoded array has one dimension.
//! Deviations: padding of 8 bits and more, which numcodecs takes off, is an error. Limits: as many booleans as the chunk has.

use bytes::{BufMut, Bytes, BytesMut};
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel, Side},
    numbers::Dtype,
};
use crate::{
    ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: PackBits::NAME, create }];

#[derive(Debug)]
struct PackBits {
    /// The number of booleans, if it is known.
    elements: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration {} = parse_configuration(spec)?;
    let elements = match input {
        CodecInput::Array(array) if array.data_type().number() != Some(Number::Bool) => {
            return Err(invalid_configuration(
                spec,
                format!("can only be used with booleans, not with {}", array.data_type()),
            ));
        }
        CodecInput::Array(array) => Some(array.num_elements()),
        CodecInput::Bytes(_) => None,
    };
    let side = |number| Side::of(spec, Dtype::little(number));
    filter::create(spec, input, PackBits { elements }, [side(Number::Bool)?, side(Number::UInt8)?])
}

impl PackBits {
    /// The number of booleans packed into these bytes.
    fn elements_of(&self, encoded: &[u8]) -> Result<u64, CodecError> {
        let (&padding, bytes) = encoded.split_first().ok_or_else(malformed)?;
        let bits = bytes.len() as u64 * 8;
        let found = bits.checked_sub(padding.into()).filter(|_| padding < 8).ok_or_else(malformed)?;
        match self.elements {
            Some(expected) if expected != found => {
                Err(CodecError::LengthMismatch { codec: Self::NAME, expected, found })
            }
            _ => Ok(found),
        }
    }
}

fn malformed() -> CodecError {
    CodecError::Malformed { codec: PackBits::NAME, reason: "the number of padding bits is wrong" }
}

/// The number of bytes for packed booleans.
fn packed(elements: u64) -> u64 {
    elements.div_ceil(8) + 1
}

impl Kernel for PackBits {
    const NAME: &'static str = "packbits";

    fn decoded_len(&self, encoded: &[u8], _sides: [&Side; 2]) -> Result<u64, CodecError> {
        self.elements_of(encoded)
    }

    fn encoded_len(&self, decoded: u64, _sides: [&Side; 2]) -> u64 {
        packed(decoded)
    }

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let len = usize::try_from(self.elements_of(&encoded)?).map_err(|_| malformed())?;
        let bits = |&byte: &u8| (0..8).rev().map(move |bit| byte >> bit & 1);
        let mut decoded: Vec<u8> = Vec::with_capacity(encoded.len().saturating_mul(8));
        decoded.extend(encoded.iter().skip(1).flat_map(bits));
        decoded.truncate(len);
        Ok(decoded.into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut out = BytesMut::with_capacity(decoded.len() / 8 + 2);
        out.put_u8((8 - decoded.len() % 8) as u8 % 8);
        let byte = |booleans: &[u8]| {
            let bits = booleans.iter().fold(0, |bits, &boolean| bits << 1 | u8::from(boolean != 0));
            bits << (8 - booleans.len())
        };
        out.extend(decoded.chunks(8).map(byte));
        Ok(out.freeze())
    }

    fn encoded_shape(&self, shape: &[u64]) -> Vec<u64> {
        vec![packed(shape.iter().product())]
    }
}
