//! Errors of codec chains, and of decoding and encoding.

use meta::codecs::CodecSpecError;

/// The reason why a codec chain is invalid.
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
    InvalidConfiguration {
        /// Its name.
        codec: String,
        /// The error, which continues "the codec x".
        reason: String,
    },
    /// A codec's configuration does not have the form that it must have.
    #[error("the configuration of the codec {codec} is not understood")]
    MalformedConfiguration {
        /// Its name.
        codec: String,
        /// The error.
        #[source]
        source: serde_json::Error,
    },
    /// An inner codec is no codec.
    #[error("an inner codec of {codec} is not understood")]
    MalformedInnerCodec {
        /// The name of the outer codec.
        codec: String,
        /// The error.
        #[source]
        source: CodecSpecError,
    },
    /// A codec is at a position where its input has the wrong kind.
    #[error("the codec {codec} cannot stand here: {reason}")]
    InvalidPosition {
        /// Its name.
        codec: String,
        /// The error.
        reason: String,
    },
    /// No codec makes bytes of the array.
    #[error("no codec of the chain makes bytes of the array")]
    NoArrayToBytes,
    /// More than [`MAX_CODECS`](meta::limits::MAX_CODECS).
    #[error("the chain has {found} codecs, more than {}", meta::limits::MAX_CODECS)]
    TooManyCodecs {
        /// Their number.
        found: usize,
    },
    /// Shards nested deeper than [`MAX_SHARD_DEPTH`](meta::limits::MAX_SHARD_DEPTH).
    #[error("shards are nested deeper than {}", meta::limits::MAX_SHARD_DEPTH)]
    ShardsTooDeep,
    /// A chunk is larger than [`MAX_CHUNK_SIZE`](meta::limits::MAX_CHUNK_SIZE).
    #[error("a chunk is larger than {} bytes", meta::limits::MAX_CHUNK_SIZE)]
    ChunkTooLarge,
}

/// An error of decoding or encoding a chunk.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The decoded data exceeds its limit.
    #[error("{codec} yields more than {limit} bytes")]
    OutputTooLong {
        /// The codec that failed.
        codec: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The encoded or decoded data has the wrong length.
    #[error("{codec} has {found} bytes instead of {expected}")]
    LengthMismatch {
        /// The codec that failed.
        codec: &'static str,
        /// The required number of bytes.
        expected: u64,
        /// The actual number of bytes.
        found: u64,
    },
    /// Elements of variable length take more memory than the request has.
    #[error("{codec} yields more than the {budget} bytes that the request may take")]
    BudgetExceeded {
        /// The codec that failed.
        codec: &'static str,
        /// The limit in bytes.
        budget: u64,
    },
    /// A checksum does not fit.
    #[error("the checksum of {codec} does not fit")]
    ChecksumMismatch {
        /// The codec that failed.
        codec: &'static str,
    },
    /// The bytes are not what the codec writes.
    #[error("{codec}: {reason}")]
    Malformed {
        /// The codec that failed.
        codec: &'static str,
        /// The error.
        reason: &'static str,
    },
    /// The bytes are not what the codec writes, as its library says.
    #[error("{codec} cannot read the bytes")]
    Library {
        /// The codec that failed.
        codec: &'static str,
        /// The library's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The codec decodes chunks of the array, and encodes none.
    #[error("{codec} {reason}")]
    EncodingUnsupported {
        /// The codec that failed.
        codec: &'static str,
        /// The reason, which continues the codec's name.
        reason: String,
    },
    /// An element cannot be encoded.
    #[error("{codec} cannot encode the element {index}: {reason}")]
    InvalidElement {
        /// The codec that failed.
        codec: &'static str,
        /// The index of the element, in C order.
        index: u64,
        /// The error.
        reason: &'static str,
    },
}

impl CodecError {
    /// The name of the codec that failed.
    pub fn codec(&self) -> &'static str {
        match self {
            Self::OutputTooLong { codec, .. }
            | Self::LengthMismatch { codec, .. }
            | Self::BudgetExceeded { codec, .. }
            | Self::ChecksumMismatch { codec }
            | Self::Malformed { codec, .. }
            | Self::Library { codec, .. }
            | Self::EncodingUnsupported { codec, .. }
            | Self::InvalidElement { codec, .. } => codec,
        }
    }
}
