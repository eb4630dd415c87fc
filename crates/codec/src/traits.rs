//! The traits of codecs.

use std::{any::Any, fmt};

use bytes::Bytes;
use meta::data_type::{DataType, StoredOrder};

use crate::{CodecError, Elements, EncodedSizeBound};

/// A codec from arrays to arrays, for chunks of one [`Representation`].
///
/// It is only given elements of the representation that it was made for (in decoding, of the one that it answered with), and of their number.
pub trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Undoes [`encode`](Self::encode).
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError>;

    /// Encodes the elements of a chunk.
    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError>;

    /// True if it changes nothing, neither the elements nor the representation.
    fn is_identity(&self) -> bool {
        false
    }

    /// The order of the array's dimensions in the output, if the codec does nothing but transpose. Neighbouring ones
    /// are merged.
    fn permutation(&self) -> Option<&[usize]> {
        None
    }

    /// The cost for each byte of the chunk.
    fn cost(&self) -> Cost {
        Cost::COPY
    }
}

/// A codec from an array to bytes, for chunks of one [`Representation`].
pub trait ArrayToBytes: Any + fmt::Debug + Send + Sync {
    /// Decodes a chunk. Fails unless the bytes hold exactly its number of elements. Elements of variable length that would take more
    /// than `budget` bytes of memory fail with [`CodecError::OverBudget`] before they are allocated.
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError>;

    /// Encodes a chunk.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError>;

    /// The bounds of the encoded size of a chunk; `None` if elements of variable length leave it open.
    fn encoded_size(&self) -> Option<EncodedSizeBound>;

    /// The items of its output for the codecs that follow, if these are still consecutive elements.
    fn stored_elements(&self) -> Option<(DataType, StoredOrder)> {
        None
    }

    /// The order in which the words of the elements are stored, where its bytes are the chunk's elements of a fixed size one after the other in C
    /// order: then each can be read without the rest.
    fn stored_order(&self) -> Option<&StoredOrder> {
        None
    }

    /// The memory for decoding or encoding a chunk in addition to the chunk and its encoded form, in bytes.
    fn working_memory(&self) -> u64 {
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

    /// The cost for each byte of the chunk.
    fn cost(&self) -> Cost {
        Cost::COPY
    }
}

/// A codec from bytes to bytes.
pub trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes all of `encoded`. Returns at most `limit` bytes, and allocates no more than that and what the encoded
    /// bytes justify (a small factor of their length, and a fixed working space); longer output fails with
    /// [`CodecError::TooLong`]. Bytes after the end of the encoded data are an error if the format has an end.
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError>;

    /// Encodes bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;

    /// The bounds of any writer's output for at most `decoded` bytes. Exact if the length does not depend on the
    /// content: only such codecs can be in the chain of a shard's index. Generous otherwise, since other writers
    /// compress worse than ours.
    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound;

    /// The cost for each byte of the chunk.
    fn cost(&self) -> Cost;

    /// The items of its output for the codecs that follow, given those of its input.
    fn stored_elements(&self, _before: Option<&(DataType, StoredOrder)>) -> Option<(DataType, StoredOrder)> {
        None
    }
}

/// The cost of a codec for each byte of a decoded chunk, in steps: a step is the time to copy a byte, about a
/// nanosecond. Costs are estimates of the worst case that a chunk can be made to be, and are summed over a chain to
/// bound the work of a request before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Steps to decode a byte.
    pub decode: u64,
    /// Steps to encode it.
    pub encode: u64,
}

impl Cost {
    /// That of a copy, and of simple arithmetic.
    pub const COPY: Self = Self { decode: 1, encode: 1 };

    /// As many steps in both directions.
    pub const fn symmetric(steps: u64) -> Self {
        Self { decode: steps, encode: steps }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { decode: self.decode.saturating_add(other.decode), encode: self.encode.saturating_add(other.encode) }
    }
}
