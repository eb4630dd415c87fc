//! Why a document is refused.

use std::fmt;

use crate::{
    codecs::CodecSpecError,
    data_type::{TypeError, ValueError},
    json::SyntaxError,
    limits::{MAX_DESCRIPTION, MAX_DOCUMENT},
};

/// Why a document is refused. Names that stem from the document are cut to a length that can be shown.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// It is longer than [`MAX_DOCUMENT`].
    #[error("the document has {size} bytes, more than {MAX_DOCUMENT}")]
    TooLarge {
        /// How many bytes it has.
        size: usize,
    },
    /// The members that describe the node would take more memory than [`MAX_DESCRIPTION`].
    #[error("the values that describe the node take more than {MAX_DESCRIPTION} bytes of memory")]
    TooManyValues,
    /// It is not JSON, or nested too deeply.
    #[error("the document is not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// A number is too large for a float, or a string has a lone surrogate, where a value is needed.
    #[error("the document has a value that cannot be read: {0}")]
    NoValue(#[source] serde_json::Error),
    /// It is JSON, but no object.
    #[error("the document is not an object")]
    NotAnObject,
    /// Its `zarr_format` is another one.
    #[error("zarr_format is {found} where it has to be {expected}")]
    Format {
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// Its `node_type` is neither `array` nor `group`.
    #[error("node_type is {found}, neither \"array\" nor \"group\"")]
    NodeType {
        /// What it is.
        found: String,
    },
    /// A member is missing.
    #[error("{pointer} is missing")]
    Missing {
        /// Where it has to be.
        pointer: String,
    },
    /// A member is not what it has to be.
    #[error("{pointer} {reason}")]
    Invalid {
        /// Where it is; the empty text is the whole document.
        pointer: String,
        /// What is wrong, as it continues "the member".
        reason: String,
    },
    /// The data type is not understood.
    #[error("{pointer}: {source}")]
    DataType {
        /// Where it is.
        pointer: String,
        /// Why.
        source: TypeError,
    },
    /// The fill value is not one of the data type.
    #[error("{pointer}: {source}")]
    FillValue {
        /// Where it is.
        pointer: String,
        /// Why.
        source: ValueError,
    },
    /// An entry of the list of codecs is not understood.
    #[error("{pointer}: {source}")]
    Codec {
        /// Where it is.
        pointer: String,
        /// Why.
        source: CodecSpecError,
    },
    /// An extension, or an unknown member, has to be understood and is not.
    #[error("{pointer}: the extension {name} has to be understood and is not supported")]
    Extension {
        /// Where it is.
        pointer: String,
        /// The extension's name or URI.
        name: String,
    },
    /// A part of the format that others can extend is of a kind that is not supported.
    #[error("{pointer}: the {feature} {name} is not supported")]
    Unsupported {
        /// Where it is.
        pointer: String,
        /// Which part.
        feature: Feature,
        /// The name or URI that it has.
        name: String,
    },
    /// The `.zattrs` beside the document is refused.
    #[error(".zattrs: {0}")]
    Attributes(#[source] Box<DocumentError>),
}

/// The parts of the format that others can extend, apart from data types, codecs and extensions as such.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// How an array is cut into chunks.
    ChunkGrid,
    /// How chunks are named.
    ChunkKeyEncoding,
    /// In which order the elements of a chunk are (draft).
    ChunkMemoryLayout,
    /// The URI of a codec (draft).
    Codec,
    /// How metadata documents are written (draft).
    MetadataEncoding,
    /// What stands between an array and the store.
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
