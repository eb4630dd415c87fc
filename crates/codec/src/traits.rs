//! The traits of the three kinds of codecs.

use std::{any::Any, fmt};

use bytes::Bytes;
use zarrd_meta::data_type::{DataType, StoredOrder};

use crate::{CodecError, Elements, EncodedSizeBound};

/// A codec from arrays to arrays, for chunks of one representation.
///
/// It only gets as many elements of that representation as the chunk has; when decoding, those of the encoded
/// representation.
pub trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Inverts [`encode`](Self::encode).
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError>;

    /// Encodes the elements of a chunk.
    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError>;

    /// True if encoding changes neither the elements nor the representation.
    fn is_identity(&self) -> bool {
        false
    }

    /// The order of the input's dimensions in the output, if the codec only transposes. Adjacent ones are merged.
    fn permutation(&self) -> Option<&[usize]> {
        None
    }

    /// The cost per byte of the chunk.
    fn cost(&self) -> Cost {
        Cost::COPY
    }
}

/// A codec from arrays to bytes, for chunks of one representation.
pub trait ArrayToBytes: Any + fmt::Debug + Send + Sync {
    /// Decodes a chunk. Fails unless the bytes have exactly as many elements as the chunk. Elements of variable length
    /// that need more than `budget` bytes of memory fail with [`CodecError::BudgetExceeded`] before they are allocated.
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError>;

    /// Encodes a chunk.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError>;

    /// The bound of the encoded size of a chunk; `None` if elements of variable length leave it open.
    fn encoded_size(&self) -> Option<EncodedSizeBound>;

    /// The data type and byte order of the output, if it is consecutive elements.
    fn stored_elements(&self) -> Option<(DataType, StoredOrder)> {
        None
    }

    /// The byte order of the output, if it is the chunk's elements of a fixed size in C order, each of which can be
    /// read without the rest.
    fn stored_order(&self) -> Option<&StoredOrder> {
        None
    }

    /// The memory for decoding or encoding a chunk in addition to the chunk and its encoded form, in bytes.
    fn working_memory(&self) -> u64 {
        0
    }

    /// The [memory of the encoders](crate::CodecChain::encoder_memory) of one inner chunk, in bytes.
    fn inner_encoder_memory(&self) -> u64 {
        0
    }

    /// The work of decoding inner chunks of `size` bytes in total, in steps.
    fn inner_decode_work(&self, _size: u64) -> u64 {
        0
    }

    /// The work of encoding inner chunks of `size` bytes in total, in steps.
    fn inner_encode_work(&self, _size: u64) -> u64 {
        0
    }

    /// The cost per byte of the chunk.
    fn cost(&self) -> Cost {
        Cost::COPY
    }
}

/// A codec from bytes to bytes.
pub trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes all of `encoded` to at most `limit` bytes; longer output fails with [`CodecError::OutputTooLong`].
    /// Allocates at most `limit` bytes, and in advance only a small multiple of the encoded size plus a fixed working
    /// space. Bytes after the end of the encoded data are an error if the format has an end.
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError>;

    /// Encodes bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;

    /// The bound of any writer's output for at most `decoded` bytes. It is exact if the size does not depend on the
    /// content, which a shard's index requires; otherwise it is generous, because other writers compress worse than
    /// ours.
    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound;

    /// The memory for encoding `decoded` bytes in addition to these and the result, in bytes. By default it is at most a
    /// few MiB, and not counted.
    fn encoder_memory(&self, _decoded: u64) -> u64 {
        0
    }

    /// The cost per byte of the chunk.
    fn cost(&self) -> Cost;

    /// The data type and byte order of the output, given those of the input, if the output is consecutive elements.
    fn stored_elements(&self, _before: Option<&(DataType, StoredOrder)>) -> Option<(DataType, StoredOrder)> {
        None
    }
}

/// The cost of a codec, in steps. A step is the time to copy a byte, about a nanosecond.
///
/// Costs are estimates for the worst content, and their sum over a chain limits the work of a request before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Steps to decode a byte of the chunk.
    pub decode: u64,
    /// Steps to encode a byte of the chunk.
    pub encode: u64,
    /// Steps to begin decoding a chunk, however small it is.
    pub decode_start: u64,
    /// Steps to begin encoding a chunk.
    pub encode_start: u64,
}

impl Cost {
    /// The cost of a copy, and of simple arithmetic.
    pub const COPY: Self = Self::symmetric(1);

    /// The steps to begin with a chunk, for a codec that prepares nothing.
    const START: u64 = 64;

    /// Steps per byte, of a codec that prepares nothing.
    pub const fn per_byte(decode: u64, encode: u64) -> Self {
        Self { decode, encode, decode_start: Self::START, encode_start: Self::START }
    }

    /// The same number of steps per byte in both directions.
    pub const fn symmetric(steps: u64) -> Self {
        Self::per_byte(steps, steps)
    }

    /// The same steps per byte, and these to begin with a chunk.
    pub const fn with_start(self, decode: u64, encode: u64) -> Self {
        Self { decode_start: decode, encode_start: encode, ..self }
    }
}
