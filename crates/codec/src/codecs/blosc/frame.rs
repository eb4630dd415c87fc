//! The header of a frame, and the division of blocks into streams.

use crate::CodecError;

/// The name of the codec.
pub(super) const NAME: &str = "blosc";

/// The size of the header in bytes.
pub(super) const HEADER_SIZE: usize = 16;

/// The format versions of the container and of the compressors' output.
const FORMAT: u8 = 2;
const COMPRESSOR_FORMAT: u8 = 1;

/// Flags; the upper three bits are the compressor.
const BYTE_SHUFFLE: u8 = 1;
const UNCOMPRESSED: u8 = 2;
const BIT_SHUFFLE: u8 = 4;
const RESERVED_FLAG: u8 = 8;
const NOT_SPLIT: u8 = 16;
const COMPRESSOR_SHIFT: u32 = 5;

/// A block is split into one stream per byte of an element if elements have at most `MAX_SPLITS` bytes and each stream
/// has at least `MIN_STREAM_SIZE` bytes.
const MAX_SPLITS: usize = 16;
pub(super) const MIN_STREAM_SIZE: usize = 128;

/// Compressors, by their numbers in the header. LZ4HC has the format of LZ4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    BloscLz,
    Lz4,
    Snappy,
    Zlib,
    Zstd,
}

/// The transformation of a block before compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shuffle {
    None,
    Bytes,
    Bits,
}

/// The fields of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) compressor: Compressor,
    pub(super) shuffle: Shuffle,
    /// True if the bytes are stored without compression.
    pub(super) is_uncompressed: bool,
    pub(super) split: bool,
    /// The size of an element in bytes.
    pub(super) type_size: usize,
    /// The decoded size in bytes, and the size of each block except for a shorter last one.
    pub(super) len: usize,
    pub(super) block_size: usize,
}

impl Frame {
    /// Parses the header of `encoded`. Returns it with the length of the frame, after which there may be more bytes.
    pub(super) fn parse(encoded: &[u8]) -> Result<(Self, usize), CodecError> {
        let (header, _) =
            encoded.split_first_chunk::<HEADER_SIZE>().ok_or_else(|| malformed("the header is truncated"))?;
        let [format, compressor_format, flags, type_size, numbers @ ..] = header;
        let mut numbers = numbers.as_chunks::<4>().0.iter().map(|bytes| i32::from_le_bytes(*bytes));
        let mut number = || usize::try_from(numbers.next()?).ok();
        let (len, block_size, encoded_len) = (number(), number(), number());
        if *format != FORMAT || flags & RESERVED_FLAG != 0 {
            return Err(malformed("unsupported format version"));
        }
        let encoded_len = encoded_len.filter(|len| (HEADER_SIZE..=encoded.len()).contains(len));
        let encoded_len = encoded_len.ok_or_else(|| malformed("the length does not match the header"))?;
        let (Some(len), Some(block_size)) = (len, block_size) else {
            return Err(malformed("a length is negative"));
        };
        let compressor = match flags >> COMPRESSOR_SHIFT {
            0 => Compressor::BloscLz,
            1 => Compressor::Lz4,
            2 => Compressor::Snappy,
            3 => Compressor::Zlib,
            4 => Compressor::Zstd,
            _ => return Err(malformed("unknown compressor")),
        };
        let is_uncompressed = flags & UNCOMPRESSED != 0;
        if *compressor_format != COMPRESSOR_FORMAT && !is_uncompressed {
            return Err(malformed("unsupported compressor version"));
        }
        if *type_size == 0 || (len > 0 && (block_size == 0 || block_size > len)) {
            return Err(malformed("invalid element or block size"));
        }
        let shuffle = match flags & (BYTE_SHUFFLE | BIT_SHUFFLE) {
            0 => Shuffle::None,
            BIT_SHUFFLE => Shuffle::Bits,
            _ => Shuffle::Bytes,
        };
        let split = flags & NOT_SPLIT == 0;
        let type_size = usize::from(*type_size);
        Ok((Self { compressor, shuffle, is_uncompressed, split, type_size, len, block_size }, encoded_len))
    }

    /// Serializes the header of a frame of `encoded_len` bytes; `None` if a number does not fit.
    pub(super) fn header(&self, encoded_len: usize) -> Option<[u8; HEADER_SIZE]> {
        let mut flags = (self.compressor as u8) << COMPRESSOR_SHIFT;
        flags |= match self.shuffle {
            Shuffle::None => 0,
            Shuffle::Bytes => BYTE_SHUFFLE,
            Shuffle::Bits => BIT_SHUFFLE,
        };
        flags |= if self.is_uncompressed { UNCOMPRESSED } else { 0 };
        flags |= if self.split { 0 } else { NOT_SPLIT };
        let mut header = [FORMAT, COMPRESSOR_FORMAT, flags, u8::try_from(self.type_size).ok()?].to_vec();
        for number in [self.len, self.block_size, encoded_len] {
            header.extend_from_slice(&i32::try_from(number).ok()?.to_le_bytes());
        }
        header.try_into().ok()
    }

    /// The number of equally long streams in a block.
    pub(super) fn num_streams(&self, block: usize) -> usize {
        if self.split && block == self.block_size && can_split(self.type_size, block) { self.type_size } else { 1 }
    }

    /// The transformation of a block.
    pub(super) fn shuffle_for_block(&self, block: usize) -> Shuffle {
        match self.shuffle {
            Shuffle::Bytes if self.type_size > 1 => Shuffle::Bytes,
            Shuffle::Bits if block >= self.type_size => Shuffle::Bits,
            _ => Shuffle::None,
        }
    }
}

/// True if blocks of this size can be split into one stream per byte of an element.
pub(super) fn can_split(type_size: usize, block: usize) -> bool {
    type_size <= MAX_SPLITS && block.checked_div(type_size).is_some_and(|stream| stream >= MIN_STREAM_SIZE)
}

pub(super) fn malformed(reason: &'static str) -> CodecError {
    CodecError::Malformed { codec: NAME, reason }
}
