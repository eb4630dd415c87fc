//! Results of conversions: documents, losses, and properties that cannot be represented.

use crate::{Dialect, json::Json};

/// A node document of another dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The node document: in v2 with `attributes`.
    pub document: Json,
    /// Properties of the original that it cannot represent.
    pub losses: Vec<Loss>,
}

/// Something that another dialect's document does not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The location in the original: a JSON pointer into its node document.
    pub pointer: String,
    /// The lost property, which continues "what is lost:".
    pub property: String,
}

/// Another dialect has no document for an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} has no such array: {pointer} {reason}")]
pub struct Unconvertible {
    /// The dialect.
    pub dialect: Dialect,
    /// The location in the original of the property that cannot be represented: a JSON pointer into its node document.
    pub pointer: String,
    /// The reason, which continues "the member".
    pub reason: String,
}

/// The chunks that a document is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkKeyPolicy {
    /// The existing ones: same keys, same bytes.
    Preserve,
    /// New ones, or copies, at the keys that the dialect prefers; their bytes are the same.
    Preferred,
}

/// A property that a dialect cannot represent, and its location in the original.
#[derive(Debug)]
pub(super) struct Unrepresentable {
    pub(super) pointer: String,
    pub(super) reason: String,
}

impl Unrepresentable {
    pub(super) fn new(pointer: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), reason: reason.into() }
    }
}
