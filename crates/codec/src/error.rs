//! What can be wrong with a chain, and with what is stored.

use meta::codecs::CodecSpecError;

/// Why a chain of codecs cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// No such codec is known.
    #[error("there is no codec {codec}")]
    UnknownCodec {
        /// Its name.
        codec: String,
    },
    /// A codec is configured wrongly.
    #[error("the codec {codec} {reason}")]
    Configuration {
        /// Its name.
        codec: String,
        /// What is wrong, as it continues "the codec x".
        reason: String,
    },
    /// A codec's configuration does not have the form that it must have.
    #[error("the configuration of the codec {codec} is not understood")]
    Malformed {
        /// Its name.
        codec: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// An inner codec is no codec.
    #[error("an inner codec of {codec} is not understood")]
    Inner {
        /// The name of the outer codec.
        codec: String,
        /// What is wrong.
        #[source]
        source: CodecSpecError,
    },
    /// A codec is at a place where it is given something that it does not take.
    #[error("the codec {codec} cannot stand here: {reason}")]
    Place {
        /// Its name.
        codec: String,
        /// What is wrong.
        reason: String,
    },
    /// No codec makes bytes of the array.
    #[error("no codec of the chain makes bytes of the array")]
    NoArrayToBytes,
    /// More than [`MAX_CODECS`](meta::limits::MAX_CODECS).
    #[error("the chain has {found} codecs, more than {}", meta::limits::MAX_CODECS)]
    TooManyCodecs {
        /// How many.
        found: usize,
    },
    /// Shards nested deeper than [`MAX_SHARD_DEPTH`](meta::limits::MAX_SHARD_DEPTH).
    #[error("shards are nested deeper than {}", meta::limits::MAX_SHARD_DEPTH)]
    TooDeep,
    /// A chunk is larger than [`MAX_CHUNK_SIZE`](meta::limits::MAX_CHUNK_SIZE).
    #[error("a chunk is larger than {} bytes", meta::limits::MAX_CHUNK_SIZE)]
    ChunkTooLarge,
}

/// Why a chunk is not decoded, or not encoded.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// What was decoded is longer than it can be.
    #[error("{codec} yields more than {limit} bytes")]
    TooLong {
        /// The codec that failed.
        codec: &'static str,
        /// How many bytes there may be.
        limit: u64,
    },
    /// What is stored, or was decoded, has another length than it must have.
    #[error("{codec} has {found} bytes instead of {expected}")]
    Length {
        /// The codec that failed.
        codec: &'static str,
        /// How many bytes there must be.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// Elements of variable length take more memory than the request has.
    #[error("{codec} yields more than the {budget} bytes that the request may take")]
    OverBudget {
        /// The codec that failed.
        codec: &'static str,
        /// How many bytes there may be.
        budget: u64,
    },
    /// A checksum does not fit.
    #[error("the checksum of {codec} does not fit")]
    Checksum {
        /// The codec that failed.
        codec: &'static str,
    },
    /// The bytes are not what the codec writes.
    #[error("{codec}: {reason}")]
    Malformed {
        /// The codec that failed.
        codec: &'static str,
        /// What is wrong.
        reason: &'static str,
    },
    /// The bytes are not what the codec writes, as its library says.
    #[error("{codec} cannot read the bytes")]
    Library {
        /// The codec that failed.
        codec: &'static str,
        /// What its library says.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The codec decodes chunks of the array, and encodes none.
    #[error("{codec} {reason}")]
    DecodesOnly {
        /// The codec that failed.
        codec: &'static str,
        /// Why, as it continues the codec's name.
        reason: String,
    },
    /// An element cannot be encoded.
    #[error("{codec} cannot encode the element {index}: {reason}")]
    Element {
        /// The codec that failed.
        codec: &'static str,
        /// Which element, in C order.
        index: u64,
        /// What is wrong.
        reason: &'static str,
    },
}

impl CodecError {
    /// The name of the codec that failed.
    pub fn codec(&self) -> &'static str {
        match self {
            Self::TooLong { codec, .. }
            | Self::Length { codec, .. }
            | Self::OverBudget { codec, .. }
            | Self::Checksum { codec }
            | Self::Malformed { codec, .. }
            | Self::Library { codec, .. }
            | Self::DecodesOnly { codec, .. }
            | Self::Element { codec, .. } => codec,
        }
    }
}
