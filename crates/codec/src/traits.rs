//! What a codec is.

use std::{fmt, sync::Arc};

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, StoredOrder},
};

use crate::{ChainError, CodecError, Elements, Representation, Sharding};

/// A codec from arrays to arrays, for chunks of one [`Representation`].
///
/// It is only given elements of the representation that it was made for (in decoding, of the one that it answered with), and of their number.
pub trait ArrayToArray: fmt::Debug + Send + Sync {
    /// Undoes [`encode`](Self::encode).
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError>;

    /// Encodes the elements of a chunk.
    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError>;

    /// Whether it changes nothing, neither the elements nor what the array is.
    fn is_identity(&self) -> bool {
        false
    }

    /// The dimensions of the array in the order in which what it makes has them, where that is all that it does. Neighbours that do are made one.
    fn permutation(&self) -> Option<&[usize]> {
        None
    }

    /// What a byte of the chunk costs.
    fn cost(&self) -> Cost {
        Cost::LIGHT
    }
}

/// A codec from an array to bytes, for chunks of one [`Representation`].
pub trait ArrayToBytes: fmt::Debug + Send + Sync {
    /// Decodes a chunk. Fails unless the bytes hold exactly its number of elements. Elements of variable length that would take more
    /// than `budget` bytes of memory fail with [`CodecError::OverBudget`] before they are allocated.
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError>;

    /// Encodes a chunk.
    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError>;

    /// How long what it makes of a chunk can be; `None` where elements of variable length leave that open.
    fn encoded_len(&self) -> Option<EncodedLen>;

    /// What its bytes are to the codecs that follow, where they are still elements one after the other.
    fn items(&self) -> Option<(DataType, StoredOrder)> {
        None
    }

    /// The order in which the words of the elements are stored, where its bytes are the chunk's elements of a fixed size one after the other in C
    /// order: then each can be read without the rest.
    fn stored_order(&self) -> Option<&StoredOrder> {
        None
    }

    /// The shard that it makes, where it does. Its inner chunks can be read without the rest.
    fn as_sharding(&self) -> Option<&Sharding> {
        None
    }

    /// What a byte of the chunk costs.
    fn cost(&self) -> Cost {
        Cost::LIGHT
    }
}

/// A codec from bytes to bytes.
pub trait BytesToBytes: fmt::Debug + Send + Sync {
    /// Decodes all of `encoded`. Yields at most `limit` bytes, and allocates no more than that and what the encoded bytes
    /// justify (a small factor of their length, and a fixed working space); what would be longer fails with [`CodecError::TooLong`].
    /// Bytes after the end of what the codec wrote are an error where the format has an end.
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError>;

    /// Encodes bytes.
    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError>;

    /// How long what any writer makes of at most `decoded` bytes can be. Exact where the length does not depend on the content: only such codecs can
    /// stand in the chain of a shard's index. Generous otherwise, since other writers compress worse than ours.
    fn encoded_len(&self, decoded: u64) -> EncodedLen;

    /// What a byte of the chunk costs.
    fn cost(&self) -> Cost;

    /// What its bytes are to the codecs that follow, given what they were.
    fn items(&self, _before: Option<&(DataType, StoredOrder)>) -> Option<(DataType, StoredOrder)> {
        None
    }
}

/// What a codec costs for each byte of a chunk that is decoded: a step is what a plain copy of the byte takes, about a nanosecond. These are estimates for the worst that
/// anybody can make of a chunk, and are added up over a chain to say how much work a request is before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    /// Steps to decode a byte.
    pub decode: u64,
    /// Steps to encode it.
    pub encode: u64,
}

/// How long encoded bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodedLen {
    /// So long, whatever they are made of.
    Exact(u64),
    /// At most so long.
    AtMost(u64),
}

/// What a codec at its place in a chain is given to encode.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// An array.
    Array(&'a Representation),
    /// Bytes.
    Bytes(&'a Serialized),
}

/// What is known of the bytes between codecs from bytes to bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Serialized {
    /// What they are, where they are elements one after the other: a type and the order in which they are stored. numcodecs' filters calculate
    /// with them, and compressors shuffle by their size.
    pub items: Option<(DataType, StoredOrder)>,
    /// How long they can be; `None` where elements of variable length leave that open.
    pub len: Option<EncodedLen>,
}

/// A codec made for its place in a chain.
#[derive(Debug)]
pub enum Resolved {
    /// From arrays to arrays, and what it makes of the array that it is given.
    ArrayToArray(Arc<dyn ArrayToArray>, Representation),
    /// From an array to bytes.
    ArrayToBytes(Arc<dyn ArrayToBytes>),
    /// From bytes to bytes.
    BytesToBytes(Arc<dyn BytesToBytes>),
}

/// A codec's entry in the registry: its name, and how it is made of its configuration.
#[derive(Clone, Copy)]
pub struct Plugin {
    /// Whose name it is.
    pub namespace: Namespace,
    /// The name.
    pub name: &'static str,
    /// Makes the codec for its place. `depth` counts the shards around it.
    pub resolve: fn(spec: &CodecSpec, input: Input<'_>, depth: usize) -> Result<Resolved, ChainError>,
}

impl Cost {
    /// That of a copy, and of simple arithmetic.
    pub const LIGHT: Self = Self { decode: 1, encode: 1 };

    /// As many steps in both directions.
    pub const fn both(steps: u64) -> Self {
        Self { decode: steps, encode: steps }
    }
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { decode: self.decode.saturating_add(other.decode), encode: self.encode.saturating_add(other.encode) }
    }
}

impl EncodedLen {
    /// The longest.
    pub fn max(self) -> u64 {
        match self {
            Self::Exact(len) | Self::AtMost(len) => len,
        }
    }

    /// The length, where there is only one.
    pub fn exact(self) -> Option<u64> {
        match self {
            Self::Exact(len) => Some(len),
            Self::AtMost(_) => None,
        }
    }
}

impl<'a> Input<'a> {
    /// The array, or an error that says that the codec takes no bytes.
    pub fn array(self, spec: &CodecSpec) -> Result<&'a Representation, ChainError> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Bytes(_) => Err(ChainError::Place {
                codec: spec.full_name(),
                reason: "it is given bytes instead of an array".into(),
            }),
        }
    }

    /// The bytes, or an error that says that the codec takes no array.
    pub fn bytes(self, spec: &CodecSpec) -> Result<&'a Serialized, ChainError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Array(_) => Err(ChainError::Place {
                codec: spec.full_name(),
                reason: "it is given an array instead of bytes".into(),
            }),
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.namespace, self.name)
    }
}
