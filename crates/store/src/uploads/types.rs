//! The types of uploads.

use std::time::{Duration, SystemTime};

use super::id::UploadId;
use crate::{Attributes, Checksum, Key, Precondition, Prefix, Version};

/// The maximum length of an upload's owner, and of its note, in bytes.
pub const MAX_UPLOAD_NOTE_LEN: usize = 128;
/// The time for which a completed upload is known, so that completing it can be repeated.
pub const COMPLETION_MEMORY: Duration = Duration::from_secs(24 * 3600);
/// The time after which an upload without new parts counts as abandoned.
pub const UPLOAD_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// A new upload.
#[derive(Clone, Debug, Default)]
pub struct NewUpload {
    /// The attributes that the value gets. Their checksum is [`Completion::checksum`].
    pub attributes: Attributes,
    /// Who begins it, for the caller to compare: at most [`MAX_UPLOAD_NOTE_LEN`] bytes.
    pub owner: String,
    /// What the caller needs to know when it continues, such as the algorithm of checksums: as long as the owner.
    pub note: String,
}

/// An upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// The key that its value gets.
    pub key: Key,
    /// The id.
    pub id: UploadId,
    /// Whether it is under way.
    pub state: UploadState,
    /// Who began it.
    pub owner: String,
    /// What its maker noted.
    pub note: String,
    /// When it started, or was completed.
    pub since: SystemTime,
    /// The attributes that the value gets; none of a completed upload.
    pub attributes: Attributes,
}

/// The state of an upload that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadState {
    /// It takes parts.
    Begun,
    /// It was completed in the last [`COMPLETION_MEMORY`].
    Completed,
}

/// A part of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The number, from 1 to [`MAX_PARTS`](crate::MAX_PARTS).
    pub number: u32,
    /// The size in bytes.
    pub size: u64,
    /// The version, which changes when the part is uploaded again.
    pub version: Version,
    /// The time of its upload.
    pub modified: SystemTime,
    /// The checksum that it was put with.
    pub checksum: Option<Checksum>,
}

/// Parts in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPage {
    /// The parts.
    pub parts: Vec<Part>,
    /// True if there are more, after the last one.
    pub more: bool,
}

/// Uploads that are under way, in the order of their keys and ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadPage {
    /// The uploads.
    pub uploads: Vec<Upload>,
    /// True if there are more, after the last one.
    pub more: bool,
}

/// Where a page of uploads begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadsAfter<'a> {
    /// At the first.
    Nothing,
    /// After all uploads of keys up to this text.
    Key(&'a str),
    /// After an upload of a key.
    Upload(&'a str, UploadId),
    /// After all uploads of keys below a prefix.
    Below(&'a Prefix),
}

/// What an upload is completed with.
#[derive(Clone, Debug, Default)]
pub struct Completion<'a> {
    /// The parts whose bytes the value has, in ascending order of their numbers, with the versions that they must have.
    pub parts: &'a [(u32, Version)],
    /// The condition on the key.
    pub precondition: Precondition,
    /// The checksum of the value: an attribute, which is not compared.
    pub checksum: Option<Checksum>,
}
