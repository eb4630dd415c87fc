//! The traits of codecs.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, StoredOrder},
};

use crate::{ChainError, ChunkRepresentation, CodecError, Elements, ShardingCodec};

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
pub trait ArrayToBytes: fmt::Debug + Send + Sync {
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

    /// The sharding, if its output is a shard, whose inner chunks can be read on their own.
    fn as_sharding(&self) -> Option<&ShardingCodec> {
        None
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

/// The size of encoded bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedSizeBound {
    /// So long, whatever they are made of.
    Exact(u64),
    /// At most so long.
    AtMost(u64),
}

/// The input of a codec at its position in a chain.
#[derive(Clone, Copy, Debug)]
pub enum CodecInput<'a> {
    /// An array.
    Array(&'a ChunkRepresentation),
    /// Bytes.
    Bytes(&'a BytesRepresentation),
}

/// Properties of the bytes between codecs from bytes to bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct BytesRepresentation {
    /// Their items, if they are consecutive elements: a type and its stored byte order. Filters of numcodecs compute
    /// with them, and compressors shuffle by their size.
    pub stored_elements: Option<(DataType, StoredOrder)>,
    /// The bounds of their length; `None` if elements of variable length leave it open.
    pub size: Option<EncodedSizeBound>,
}

/// A codec made for its place in a chain.
#[derive(Debug)]
pub enum Codec {
    /// From arrays to arrays, and what it makes of the array that it is given.
    ArrayToArray(Arc<dyn ArrayToArray>, ChunkRepresentation),
    /// From an array to bytes.
    ArrayToBytes(Arc<dyn ArrayToBytes>),
    /// From bytes to bytes.
    BytesToBytes(Arc<dyn BytesToBytes>),
}

/// A codec's entry in the registry: its name, and how it is made of its configuration.
#[derive(Clone, Copy)]
pub struct CodecFactory {
    /// Whose name it is.
    pub namespace: Namespace,
    /// The name.
    pub name: &'static str,
    /// Makes the codec for its place. `depth` counts the shards around it.
    pub create: fn(spec: &CodecSpec, input: CodecInput<'_>, depth: usize) -> Result<Codec, ChainError>,
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

impl EncodedSizeBound {
    /// The longest.
    pub fn max(self) -> u64 {
        match self {
            Self::Exact(len) | Self::AtMost(len) => len,
        }
    }

    /// The length, if it is exact.
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(len) => Some(len),
            Self::AtMost(_) => None,
        }
    }
}

impl<'a> CodecInput<'a> {
    /// The array, or an error that says that the codec takes no bytes.
    pub fn array(self, spec: &CodecSpec) -> Result<&'a ChunkRepresentation, ChainError> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Bytes(_) => Err(ChainError::InvalidPosition {
                codec: spec.full_name(),
                reason: "it is given bytes instead of an array".into(),
            }),
        }
    }

    /// The bytes, or an error that says that the codec takes no array.
    pub fn bytes(self, spec: &CodecSpec) -> Result<&'a BytesRepresentation, ChainError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Array(_) => Err(ChainError::InvalidPosition {
                codec: spec.full_name(),
                reason: "it is given an array instead of bytes".into(),
            }),
        }
    }
}

impl fmt::Debug for CodecFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.namespace, self.name)
    }
}
