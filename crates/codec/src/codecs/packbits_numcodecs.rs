//! The `packbits` codec of numcodecs: stores eight booleans per byte.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.packbits` (v3), id `packbits` (v2, draft); the v3 name `packbits` is [another
//!   codec](super::packbits_v3)
//! - Specification: [numcodecs.packbits](https://numcodecs.readthedocs.io/en/stable/filter/packbits.html)
//!
//! ## Configuration
//!
//! ```json
//! {}
//! ```
//!
//! The codec has no configuration.
//!
//! ## Encoded bytes
//!
//! One byte with the number of padding bits, then the booleans, the first one in the highest bit of a byte. In v3 the
//! encoded array is one-dimensional.
//!
//! ## Errors and limits
//!
//! Only booleans are encoded. Eight or more padding bits, which numcodecs removes, are an error, and so is another
//! number of booleans than the chunk has.

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use super::{
    filter::{self, FilterElements, FilterKernel},
    numbers::Dtype,
};
use crate::{
    ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: PackbitsNumcodecs::NAME, create }];

#[derive(Debug)]
struct PackbitsNumcodecs {
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
            return Err(invalid_configuration(spec, format!("only supports booleans, not {}", array.data_type())));
        }
        CodecInput::Array(array) => Some(array.num_elements()),
        CodecInput::Bytes(_) => None,
    };
    let side = |number| FilterElements::from_dtype(spec, Dtype::little(number));
    filter::create(spec, input, PackbitsNumcodecs { elements }, [side(Number::Bool)?, side(Number::UInt8)?])
}

impl PackbitsNumcodecs {
    /// The number of booleans packed into these bytes.
    fn decoded_num_elements(&self, encoded: &[u8]) -> Result<u64, CodecError> {
        let (&padding, bytes) = encoded.split_first().ok_or_else(invalid_padding)?;
        let bits = bytes.len() as u64 * 8;
        let found = bits.checked_sub(padding.into()).filter(|_| padding < 8).ok_or_else(invalid_padding)?;
        match self.elements {
            Some(expected) if expected != found => {
                Err(CodecError::LengthMismatch { codec: Self::NAME, expected, found })
            }
            _ => Ok(found),
        }
    }
}

fn invalid_padding() -> CodecError {
    CodecError::Malformed { codec: PackbitsNumcodecs::NAME, reason: "the number of padding bits is wrong" }
}

/// The encoded size in bytes.
fn packed_size(elements: u64) -> u64 {
    elements.div_ceil(8) + 1
}

impl FilterKernel for PackbitsNumcodecs {
    const NAME: &'static str = "packbits";

    fn decoded_size(&self, encoded: &[u8], _sides: [&FilterElements; 2]) -> Result<u64, CodecError> {
        self.decoded_num_elements(encoded)
    }

    fn encoded_size(&self, decoded: u64, _sides: [&FilterElements; 2]) -> u64 {
        packed_size(decoded)
    }

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let len = usize::try_from(self.decoded_num_elements(&encoded)?).map_err(|_| invalid_padding())?;
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
        vec![packed_size(shape.iter().product())]
    }
}
