//! Errors of uploads.

use super::{id::UploadId, types::MAX_UPLOAD_NOTE_LEN};
use crate::{Key, KeyError, MAX_PARTS, StoreError};

/// An error of an operation of [`UploadStore`](super::UploadStore).
#[derive(Debug, thiserror::Error)]
pub enum UploadsError {
    /// There is no such upload: it never existed, or has ended.
    #[error("{key} has no upload {id}")]
    NotFound {
        /// The key.
        key: Key,
        /// The id.
        id: UploadId,
    },
    /// The number of a part is out of its range.
    #[error("parts have the numbers 1 to {MAX_PARTS}, not {number}")]
    PartNumber {
        /// The number.
        number: u32,
    },
    /// The upload does not have a part at the version that was named.
    #[error("part {number} is missing, or has another version")]
    InvalidPart {
        /// The number.
        number: u32,
    },
    /// The numbers of the parts do not ascend.
    #[error("the numbers of the parts do not ascend")]
    PartOrder,
    /// An upload was to be completed without parts.
    #[error("an upload is completed with at least one part")]
    NoParts,
    /// An owner or a note is too long.
    #[error("the owner and the note of an upload have at most {MAX_UPLOAD_NOTE_LEN} bytes")]
    NoteTooLong,
    /// The hidden name of the upload is too long, which no valid key causes.
    #[error("the name of the upload is invalid")]
    Name(#[from] KeyError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
