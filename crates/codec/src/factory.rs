//! Construction of codecs from their configurations.

use std::{fmt, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::Value;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    limits::MAX_SHARD_DEPTH,
};

use crate::{
    ArrayToArray, ArrayToBytes, BytesRepresentation, BytesToBytes, ChainError, ChunkRepresentation, CodecChain,
};

/// A codec's entry in the registry: its name, and the function that creates it from a configuration.
#[derive(Clone, Copy)]
pub struct CodecFactory {
    /// The namespace of the name.
    pub namespace: Namespace,
    /// The name.
    pub name: &'static str,
    /// Creates the codec for its position in a chain.
    pub create: fn(spec: &CodecSpec, input: CodecInput<'_>, context: &FactoryContext) -> Result<Codec, ChainError>,
}

/// A codec that was created for its position in a chain.
#[derive(Debug)]
pub enum Codec {
    /// An array-to-array codec, and the representation of the array that it encodes to.
    ArrayToArray(Arc<dyn ArrayToArray>, ChunkRepresentation),
    /// An array-to-bytes codec.
    ArrayToBytes(Arc<dyn ArrayToBytes>),
    /// A bytes-to-bytes codec.
    BytesToBytes(Arc<dyn BytesToBytes>),
}

/// The decoded side of a codec at its position in a chain.
#[derive(Clone, Copy, Debug)]
pub enum CodecInput<'a> {
    /// An array.
    Array(&'a ChunkRepresentation),
    /// Bytes.
    Bytes(&'a BytesRepresentation),
}

/// Builds the chains inside of a codec: those of a shard's inner chunks and of its index.
#[derive(Clone, Copy, Debug)]
pub struct FactoryContext {
    /// The number of shards around the codec.
    depth: usize,
    build_chain: ChainBuilder,
}

/// Creates the codecs of a chain in a context.
pub(crate) type ChainBuilder = fn(&[CodecSpec], ChunkRepresentation, &FactoryContext) -> Result<CodecChain, ChainError>;

impl FactoryContext {
    /// The context of a chain that is in no shard.
    pub(crate) fn new(build_chain: ChainBuilder) -> Self {
        Self { depth: 0, build_chain }
    }

    /// The context of the chains inside of a shard. Fails beyond [`MAX_SHARD_DEPTH`].
    pub(crate) fn inside_shard(&self) -> Result<Self, ChainError> {
        match self.depth {
            ..MAX_SHARD_DEPTH => Ok(Self { depth: self.depth.saturating_add(1), ..*self }),
            _ => Err(ChainError::ShardsTooDeep),
        }
    }

    /// Creates the codecs of a chain.
    pub(crate) fn chain(
        &self,
        specs: &[CodecSpec],
        representation: ChunkRepresentation,
    ) -> Result<CodecChain, ChainError> {
        (self.build_chain)(specs, representation, self)
    }
}

impl<'a> CodecInput<'a> {
    /// The array; an error for a codec that follows the array-to-bytes codec.
    pub fn array(self, spec: &CodecSpec) -> Result<&'a ChunkRepresentation, ChainError> {
        match self {
            Self::Array(array) => Ok(array),
            Self::Bytes(_) => Err(ChainError::InvalidPosition {
                codec: spec.full_name(),
                reason: "its input is bytes, not an array".into(),
            }),
        }
    }

    /// The bytes; an error for a codec before the array-to-bytes codec.
    pub fn bytes(self, spec: &CodecSpec) -> Result<&'a BytesRepresentation, ChainError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Array(_) => Err(ChainError::InvalidPosition {
                codec: spec.full_name(),
                reason: "its input is an array, not bytes".into(),
            }),
        }
    }
}

impl fmt::Debug for CodecFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}", self.namespace, self.name)
    }
}

/// Deserializes a codec's configuration.
pub(crate) fn parse_configuration<T: DeserializeOwned>(spec: &CodecSpec) -> Result<T, ChainError> {
    serde_json::from_value(Value::Object(spec.configuration.clone()))
        .map_err(|source| ChainError::MalformedConfiguration { codec: spec.full_name(), source })
}

/// The error for an invalid configuration; `reason` continues "codec x".
pub(crate) fn invalid_configuration(spec: &CodecSpec, reason: impl Into<String>) -> ChainError {
    ChainError::InvalidConfiguration { codec: spec.full_name(), reason: reason.into() }
}
