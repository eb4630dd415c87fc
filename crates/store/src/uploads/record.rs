//! The values of the hidden keys of uploads.
//!
//! ```text
//! begun:     owner length u8, owner, note length u8, note
//! completed: the same, digest of the parts u128, version u128 (0 as long as it is not known)
//! ```
//!
//! Numbers are big-endian.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::Xxh3;

use super::{error::UploadsError, names::Names, types::MAX_UPLOAD_NOTE_LEN};
use crate::{Corruption, StoreError, Version};

/// What is known of an upload in addition to its attributes.
pub(super) struct UploadRecord {
    pub(super) owner: String,
    pub(super) note: String,
}

/// What is known of a completed upload.
pub(super) struct CompletedRecord {
    pub(super) upload: UploadRecord,
    /// See [`digest_of`].
    pub(super) digest: u128,
    pub(super) version: Option<Version>,
}

/// A damaged record.
#[derive(Debug, thiserror::Error)]
#[error("the record of the upload is damaged")]
struct Damaged;

/// A hash that differs between lists of parts.
pub(super) fn digest_of(parts: &[(u32, Version)]) -> u128 {
    let mut hash = Xxh3::new();
    for (number, version) in parts {
        hash.update(&number.to_be_bytes());
        hash.update(&version.as_u128().to_be_bytes());
    }
    hash.digest128()
}

impl UploadRecord {
    pub(super) fn encode(owner: &str, note: &str) -> Result<Bytes, UploadsError> {
        let mut bytes = BytesMut::new();
        for text in [owner, note] {
            let len = u8::try_from(text.len()).ok().filter(|len| usize::from(*len) <= MAX_UPLOAD_NOTE_LEN);
            bytes.put_u8(len.ok_or(UploadsError::NoteTooLong)?);
            bytes.put_slice(text.as_bytes());
        }
        Ok(bytes.freeze())
    }

    pub(super) fn decode(mut bytes: Bytes, names: &Names) -> Result<Self, UploadsError> {
        Self::take(&mut bytes).ok_or_else(|| damaged(names))
    }

    fn take(bytes: &mut Bytes) -> Option<Self> {
        let mut text = || {
            let len = usize::from(bytes.try_get_u8().ok()?);
            let text = (len <= bytes.len()).then(|| bytes.split_to(len))?;
            String::from_utf8(text.into()).ok()
        };
        Some(Self { owner: text()?, note: text()? })
    }
}

impl CompletedRecord {
    pub(super) fn encode(&self) -> Bytes {
        // Both were bounded when the upload was begun.
        let upload = UploadRecord::encode(&self.upload.owner, &self.upload.note).unwrap_or_default();
        let mut bytes = BytesMut::from(&*upload);
        bytes.put_u128(self.digest);
        bytes.put_u128(self.version.map_or(0, Version::as_u128));
        bytes.freeze()
    }

    pub(super) fn decode(mut bytes: Bytes, names: &Names) -> Result<Self, UploadsError> {
        let mut take = || {
            let upload = UploadRecord::take(&mut bytes)?;
            let (digest, version) = (bytes.try_get_u128().ok()?, bytes.try_get_u128().ok()?);
            let version = (version != 0).then(|| Version::from_u128(version));
            Some(Self { upload, digest, version })
        };
        take().ok_or_else(|| damaged(names))
    }
}

fn damaged(names: &Names) -> UploadsError {
    StoreError::Corrupt { key: names.key().clone(), cause: Corruption::new(Damaged) }.into()
}
