//! Errors of creating a chain, and of decoding and encoding.

use zarrd_meta::codecs::CodecSpecError;

/// Errors of creating a codec chain.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    /// The codec is unknown.
    #[error("unknown codec {codec}")]
    UnknownCodec {
        /// Its name.
        codec: String,
    },
    /// The codec is known, but not supported.
    #[error("codec {codec} is not supported: {reason}")]
    UnsupportedCodec {
        /// Its name.
        codec: String,
        /// The reason.
        reason: &'static str,
    },
    /// A codec's configuration has an invalid value.
    #[error("codec {codec} {reason}")]
    InvalidConfiguration {
        /// Its name.
        codec: String,
        /// The error, which continues "codec x".
        reason: String,
    },
    /// A codec's configuration cannot be deserialized.
    #[error("the configuration of codec {codec} is malformed")]
    MalformedConfiguration {
        /// Its name.
        codec: String,
        /// The error.
        #[source]
        source: serde_json::Error,
    },
    /// An entry in a codec's list of inner codecs is malformed.
    #[error("an inner codec of {codec} is malformed")]
    MalformedInnerCodec {
        /// The name of the outer codec.
        codec: String,
        /// The error.
        #[source]
        source: CodecSpecError,
    },
    /// A codec has an input of the wrong kind at its position.
    #[error("codec {codec} is not valid at this position: {reason}")]
    InvalidPosition {
        /// Its name.
        codec: String,
        /// The error.
        reason: String,
    },
    /// The chain has no array-to-bytes codec.
    #[error("codec chain has no array-to-bytes codec")]
    NoArrayToBytes,
    /// The chain has more than [`MAX_CODECS`](zarrd_meta::limits::MAX_CODECS) codecs.
    #[error("codec chain has {found} codecs; the limit is {}", zarrd_meta::limits::MAX_CODECS)]
    TooManyCodecs {
        /// Their number.
        found: usize,
    },
    /// Shards are nested deeper than [`MAX_SHARD_DEPTH`](zarrd_meta::limits::MAX_SHARD_DEPTH).
    #[error("shards are nested too deeply; the limit is {} levels", zarrd_meta::limits::MAX_SHARD_DEPTH)]
    ShardsTooDeep,
    /// A chunk is larger than [`MAX_CHUNK_SIZE`](zarrd_meta::limits::MAX_CHUNK_SIZE) bytes.
    #[error("chunk size exceeds the limit of {} bytes", zarrd_meta::limits::MAX_CHUNK_SIZE)]
    ChunkTooLarge,
}

/// Errors of decoding or encoding a chunk.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The decoded data exceeds its limit.
    #[error("{codec}: decoded data exceeds the limit of {limit} bytes")]
    OutputTooLong {
        /// The codec that failed.
        codec: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
    /// The encoded or decoded data has the wrong length.
    #[error("{codec}: expected {expected} bytes, found {found}")]
    LengthMismatch {
        /// The codec that failed.
        codec: &'static str,
        /// The required number of bytes.
        expected: u64,
        /// The actual number of bytes.
        found: u64,
    },
    /// Elements of variable length exceed the memory budget.
    #[error("{codec}: decoded elements exceed the memory budget of {budget} bytes")]
    BudgetExceeded {
        /// The codec that failed.
        codec: &'static str,
        /// The limit in bytes.
        budget: u64,
    },
    /// The checksum does not match the data.
    #[error("{codec}: checksum mismatch")]
    ChecksumMismatch {
        /// The codec that failed.
        codec: &'static str,
    },
    /// The bytes are not valid output of the codec.
    #[error("{codec}: {reason}")]
    Malformed {
        /// The codec that failed.
        codec: &'static str,
        /// The error.
        reason: &'static str,
    },
    /// The codec's library rejects the bytes.
    #[error("{codec}: invalid data")]
    Library {
        /// The codec that failed.
        codec: &'static str,
        /// The library's error.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The codec can decode but not encode chunks of the array.
    #[error("{codec} {reason}")]
    EncodingUnsupported {
        /// The codec that failed.
        codec: &'static str,
        /// The reason, which continues the codec's name.
        reason: String,
    },
    /// An element cannot be encoded.
    #[error("{codec}: cannot encode element {index}: {reason}")]
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
