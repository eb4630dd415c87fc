//! The `packbits` codec of v3: stores a range of bits of each number.
//!
//! - Kind: array to bytes
//! - Names: `packbits` (v3); numcodecs has [another codec](super::packbits_numcodecs) of that name
//! - Specification: [`packbits`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits)
//!
//! ## Configuration
//!
//! ```json
//! {"padding_encoding": "first_byte", "first_bit": 0, "last_bit": 11}
//! ```
//!
//! All members are optional or `null`: by default the padding is not stored, and all bits are kept.
//!
//! ## Encoded bytes
//!
//! The bits from `first_bit` to `last_bit` of each number, lowest bit first as in zarrs (the booleans of numcodecs have
//! the opposite order), with the number of padding bits in the first or last byte if `padding_encoding` says so. The
//! two parts of complex numbers are separate numbers, and `int4` and its like have as many bits as their name says.
//! Decoding sets dropped bits to 0, and those above the kept bits of signed integers to the sign.
//!
//! ## Errors and limits
//!
//! Only numbers and booleans are encoded. The encoded size is exact, and the number of padding bits is checked.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use crate::{
    ArrayToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements, EncodedSizeBound,
    FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "packbits";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::V3, name: NAME, create }];

#[derive(Debug)]
struct PackbitsV3 {
    /// The number of values; a complex number has two.
    num_values: u64,
    /// The size of a value in memory, in bytes.
    value_size: usize,
    /// The lowest stored bit.
    first_kept_bit: u32,
    /// The number of stored bits, from 1 to 64.
    kept_bits: u32,
    signed: bool,
    padding: Padding,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Padding {
    FirstByte,
    LastByte,
    #[default]
    None,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    padding_encoding: Option<Padding>,
    first_bit: Option<u32>,
    last_bit: Option<u32>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let Configuration { padding_encoding, first_bit, last_bit } = parse_configuration(spec)?;
    let data_type = array.data_type();
    let number = data_type.number();
    let parts = if matches!(number, Some(Number::Complex64 | Number::Complex128)) { 2 } else { 1 };
    let (value_size, bits) = match (number, data_type.packed_bits()) {
        (Some(Number::Bool), _) => (1, 1),
        (Some(number), _) => (number.size() / parts, 8 * (number.size() / parts) as u32),
        (None, Some(bits)) => (1, bits),
        (None, None) => return Err(invalid_configuration(spec, format!("only supports numbers, not {data_type}"))),
    };
    let (first_kept_bit, last) = (first_bit.unwrap_or(0), last_bit.unwrap_or(bits - 1));
    if last < first_kept_bit || last >= bits {
        return Err(invalid_configuration(spec, format!("cannot keep bits {first_kept_bit} to {last} of {bits}")));
    }
    Ok(Codec::ArrayToBytes(Arc::new(PackbitsV3 {
        num_values: array.num_elements().checked_mul(parts as u64).ok_or(ChainError::ChunkTooLarge)?,
        value_size,
        first_kept_bit,
        kept_bits: last - first_kept_bit + 1,
        signed: matches!(number, Some(Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64)),
        padding: padding_encoding.unwrap_or_default(),
    })))
}

impl PackbitsV3 {
    /// The number of bytes for the stored bits, and the number of padding bits in the last one. It is at most the size
    /// of the values in memory.
    fn packed_size(&self) -> (u64, u8) {
        let bits = u128::from(self.num_values) * u128::from(self.kept_bits);
        let bytes = bits.div_ceil(8);
        (bytes as u64, (bytes * 8 - bits) as u8)
    }

    fn encoded_size(&self) -> u64 {
        self.packed_size().0 + u64::from(self.padding != Padding::None)
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.kept_bits)
    }

    /// The value with these stored bits.
    fn unpack(&self, bits: u64) -> u64 {
        let number = bits << self.first_kept_bit;
        let negative = self.signed && bits >> (self.kept_bits - 1) == 1;
        // Sets the bits above the stored ones to the sign.
        if negative { number | !self.mask() << self.first_kept_bit } else { number }
    }
}

impl ArrayToBytes for PackbitsV3 {
    fn decode(&self, encoded: Bytes, _budget: u64) -> Result<Elements, CodecError> {
        let (expected, found) = (self.encoded_size(), encoded.len() as u64);
        if expected != found {
            return Err(CodecError::LengthMismatch { codec: NAME, expected, found });
        }
        let (declared_padding, bits) = match self.padding {
            Padding::None => (None, &*encoded),
            Padding::FirstByte => encoded
                .split_first()
                .map_or((None, &[][..]), |(declared_padding, bits)| (Some(*declared_padding), bits)),
            Padding::LastByte => {
                encoded.split_last().map_or((None, &[][..]), |(declared_padding, bits)| (Some(*declared_padding), bits))
            }
        };
        if declared_padding.is_some_and(|declared_padding| declared_padding != self.packed_size().1) {
            return Err(CodecError::Malformed { codec: NAME, reason: "the number of padding bits is wrong" });
        }
        let num_values = usize::try_from(self.num_values).unwrap_or(usize::MAX);
        let mut decoded = Vec::with_capacity(num_values.saturating_mul(self.value_size));
        let mut bytes = bits.iter();
        // The bits that were read but not yet used, and their number: less than 8 before each value.
        let (mut buffer, mut buffered_bits) = (0_u128, 0);
        for _ in 0..self.num_values {
            while buffered_bits < self.kept_bits {
                buffer |= u128::from(bytes.next().copied().unwrap_or(0)) << buffered_bits;
                buffered_bits += 8;
            }
            let number = self.unpack(buffer as u64 & self.mask());
            decoded.extend(number.to_le_bytes().iter().take(self.value_size));
            buffer >>= self.kept_bits;
            buffered_bits -= self.kept_bits;
        }
        Ok(Elements::Fixed(decoded.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let Elements::Fixed(decoded) = decoded else {
            return Err(CodecError::Malformed { codec: NAME, reason: "the elements have variable length" });
        };
        let padding = self.packed_size().1;
        let mut encoded = Vec::with_capacity(decoded.len() + 1);
        if self.padding == Padding::FirstByte {
            encoded.push(padding);
        }
        let (mut buffer, mut buffered_bits) = (0_u128, 0);
        for number in decoded.chunks_exact(self.value_size) {
            let mut wide = [0; 8];
            wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
            buffer |= u128::from(u64::from_le_bytes(wide) >> self.first_kept_bit & self.mask()) << buffered_bits;
            buffered_bits += self.kept_bits;
            while buffered_bits >= 8 {
                encoded.push(buffer as u8);
                buffer >>= 8;
                buffered_bits -= 8;
            }
        }
        if buffered_bits > 0 {
            encoded.push(buffer as u8);
        }
        if self.padding == Padding::LastByte {
            encoded.push(padding);
        }
        Ok(encoded.into())
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(8)
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        Some(EncodedSizeBound::Exact(self.encoded_size()))
    }
}
