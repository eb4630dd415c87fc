//! `packbits` of the registry of v3: some bits of each number, one after the other.
//!
//! Specification: [`packbits`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/packbits).
//!
//! ```json
//! {"padding_encoding": "first_byte", "first_bit": 0, "last_bit": 11}
//! ```
//!
//! All may be left out or `null`: then nothing tells the padding, and all bits are kept. The parts of complex numbers are numbers each; bits that
//! are not kept are 0, or above those of signed integers their highest. The first bit of a byte is its lowest, as zarrs has it: of booleans that is the other way round than in
//! numcodecs' codec of this name. Limits: only the plain numbers and booleans; a chunk is exactly as long as its bits and the byte that tells the padding, which has to be right.

use std::sync::Arc;

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use crate::{
    ArrayToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements, EncodedSizeBound,
    FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "packbits";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::V3, name: NAME, create }];

#[derive(Debug)]
struct BitPacking {
    /// The number of numbers; a complex one counts twice.
    numbers: u64,
    /// The size of each in memory.
    size: usize,
    /// The lowest bit that is kept.
    first: u32,
    /// The number of bits to keep, from 1 to 64.
    kept: u32,
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
    let number = array.data_type().number().ok_or_else(|| {
        invalid_configuration(spec, format!("can only be used with numbers, not with {}", array.data_type()))
    })?;
    let parts = if matches!(number, Number::Complex64 | Number::Complex128) { 2 } else { 1 };
    let size = number.size() / parts;
    let bits = if number == Number::Bool { 1 } else { 8 * size as u32 };
    let (first, last) = (first_bit.unwrap_or(0), last_bit.unwrap_or(bits - 1));
    if last < first || last >= bits {
        return Err(invalid_configuration(spec, format!("cannot keep the bits {first} to {last} of {bits}")));
    }
    Ok(Codec::ArrayToBytes(Arc::new(BitPacking {
        numbers: array.num_elements().checked_mul(parts as u64).ok_or(ChainError::ChunkTooLarge)?,
        size,
        first,
        kept: last - first + 1,
        signed: matches!(number, Number::Int8 | Number::Int16 | Number::Int32 | Number::Int64),
        padding: padding_encoding.unwrap_or_default(),
    })))
}

impl BitPacking {
    /// The number of bytes for the bits, and the number of padding bits in the last. At most as many as the numbers
    /// have in memory.
    fn packed(&self) -> (u64, u8) {
        let bits = u128::from(self.numbers) * u128::from(self.kept);
        let bytes = bits.div_ceil(8);
        (bytes as u64, (bytes * 8 - bits) as u8)
    }

    fn len(&self) -> u64 {
        self.packed().0 + u64::from(self.padding != Padding::None)
    }

    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.kept)
    }

    /// The number whose kept bits these are.
    fn unpacked(&self, bits: u64) -> u64 {
        let number = bits << self.first;
        let negative = self.signed && bits >> (self.kept - 1) == 1;
        // Bits above the kept ones are those of the sign.
        if negative { number | !self.mask() << self.first } else { number }
    }
}

impl ArrayToBytes for BitPacking {
    fn decode(&self, encoded: Bytes, _budget: u64) -> Result<Elements, CodecError> {
        let (expected, found) = (self.len(), encoded.len() as u64);
        if expected != found {
            return Err(CodecError::LengthMismatch { codec: NAME, expected, found });
        }
        let (told, bits) = match self.padding {
            Padding::None => (None, &*encoded),
            Padding::FirstByte => encoded.split_first().map_or((None, &[][..]), |(told, bits)| (Some(*told), bits)),
            Padding::LastByte => encoded.split_last().map_or((None, &[][..]), |(told, bits)| (Some(*told), bits)),
        };
        if told.is_some_and(|told| told != self.packed().1) {
            return Err(CodecError::Malformed { codec: NAME, reason: "the number of padding bits is wrong" });
        }
        let numbers = usize::try_from(self.numbers).unwrap_or(usize::MAX);
        let mut decoded = Vec::with_capacity(numbers.saturating_mul(self.size));
        let mut bytes = bits.iter();
        // The bits that are read and no number's yet, and how many: less than 8 before each number.
        let (mut rest, mut count) = (0_u128, 0);
        for _ in 0..self.numbers {
            while count < self.kept {
                rest |= u128::from(bytes.next().copied().unwrap_or(0)) << count;
                count += 8;
            }
            let number = self.unpacked(rest as u64 & self.mask());
            decoded.extend(number.to_le_bytes().iter().take(self.size));
            rest >>= self.kept;
            count -= self.kept;
        }
        Ok(Elements::Fixed(decoded.into()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        let Elements::Fixed(numbers) = decoded else {
            return Err(CodecError::Malformed { codec: NAME, reason: "the elements are of variable length" });
        };
        let padding = self.packed().1;
        let mut encoded = Vec::with_capacity(numbers.len() + 1);
        if self.padding == Padding::FirstByte {
            encoded.push(padding);
        }
        let (mut rest, mut count) = (0_u128, 0);
        for number in numbers.chunks_exact(self.size) {
            let mut wide = [0; 8];
            wide.iter_mut().zip(number).for_each(|(to, from)| *to = *from);
            rest |= u128::from(u64::from_le_bytes(wide) >> self.first & self.mask()) << count;
            count += self.kept;
            while count >= 8 {
                encoded.push(rest as u8);
                rest >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            encoded.push(rest as u8);
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
        Some(EncodedSizeBound::Exact(self.len()))
    }
}
