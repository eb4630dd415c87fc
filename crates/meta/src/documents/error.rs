//! Errors of documents.

use std::fmt;

use crate::{
    codecs::CodecSpecError,
    data_type::{TypeError, ValueError},
    json::SyntaxError,
    limits::{MAX_DOCUMENT_MEMORY, MAX_DOCUMENT_SIZE},
};

/// Errors of documents. Names from the document are truncated.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The document is larger than [`MAX_DOCUMENT_SIZE`].
    #[error("document has {size} bytes; the limit is {MAX_DOCUMENT_SIZE}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// The parsed members would take more memory than [`MAX_DOCUMENT_MEMORY`].
    #[error("the metadata exceeds the limit of {MAX_DOCUMENT_MEMORY} bytes of memory")]
    TooMuchMemory,
    /// The document is not JSON, or nested too deeply.
    #[error("the document is not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// A value cannot be represented: a number is too large for a float, or a string has a lone surrogate.
    #[error("the document has an unsupported value: {0}")]
    UnreadableValue(#[source] serde_json::Error),
    /// The document is JSON, but not an object.
    #[error("the document is not an object")]
    NotAnObject,
    /// The `zarr_format` is that of another dialect.
    #[error("zarr_format is {found}, expected {expected}")]
    WrongFormat {
        /// The required type.
        expected: &'static str,
        /// The actual type.
        found: String,
    },
    /// The `node_type` is neither `array` nor `group`.
    #[error("node_type is {found}, neither \"array\" nor \"group\"")]
    WrongNodeType {
        /// The actual value.
        found: String,
    },
    /// A member is missing.
    #[error("{pointer} is missing")]
    Missing {
        /// The required location.
        pointer: String,
    },
    /// A member is invalid.
    #[error("{pointer} {reason}")]
    Invalid {
        /// The location; empty for the document.
        pointer: String,
        /// The error, which continues "the member".
        reason: String,
    },
    /// The data type is unknown or invalid.
    #[error("{pointer}: {source}")]
    DataType {
        /// The location.
        pointer: String,
        /// The error.
        source: TypeError,
    },
    /// The fill value is not an element of the data type.
    #[error("{pointer}: {source}")]
    FillValue {
        /// The location.
        pointer: String,
        /// The error.
        source: ValueError,
    },
    /// An entry of the list of codecs is malformed.
    #[error("{pointer}: {source}")]
    Codec {
        /// The location.
        pointer: String,
        /// The error.
        source: CodecSpecError,
    },
    /// An extension or unknown member must be understood, but is not supported.
    #[error("{pointer}: the extension {name} must be understood but is not supported")]
    Extension {
        /// The location.
        pointer: String,
        /// The extension's name or URI.
        name: String,
    },
    /// An extension point has an unsupported value.
    #[error("{pointer}: the {feature} {name} is not supported")]
    Unsupported {
        /// The location.
        pointer: String,
        /// The feature.
        feature: Feature,
        /// The name or URI of the value.
        name: String,
    },
    /// The `.zattrs` of the node is invalid.
    #[error(".zattrs: {0}")]
    Attributes(#[source] Box<DocumentError>),
}

/// Extension points other than data types, codecs and extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// The chunk grid.
    ChunkGrid,
    /// The chunk key encoding.
    ChunkKeyEncoding,
    /// The memory order of chunks (draft).
    ChunkMemoryLayout,
    /// The URI of a codec (draft).
    Codec,
    /// The encoding of metadata documents (draft).
    MetadataEncoding,
    /// A storage transformer between an array and the store.
    StorageTransformer,
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ChunkGrid => "chunk grid",
            Self::ChunkKeyEncoding => "chunk key encoding",
            Self::ChunkMemoryLayout => "chunk memory layout",
            Self::Codec => "codec",
            Self::MetadataEncoding => "metadata encoding",
            Self::StorageTransformer => "storage transformer",
        })
    }
}
