//! Results of conversions.

use crate::{Dialect, json::Json};

/// A node document of another dialect.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted {
    /// The node document: in v2 with `attributes`.
    pub document: Json,
    /// Properties of the original that the dialect cannot represent.
    pub losses: Vec<Loss>,
}

/// A property that is lost in a conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// The location in the original: a JSON pointer into its node document.
    pub pointer: String,
    /// The lost property, which continues "what is lost:".
    pub property: String,
}

/// A dialect that cannot represent an array.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{dialect} cannot represent the array: {pointer} {reason}")]
pub struct Unconvertible {
    /// The dialect.
    pub dialect: Dialect,
    /// The location of the unsupported property in the original: a JSON pointer into its node document.
    pub pointer: String,
    /// The reason, which continues "the member".
    pub reason: String,
}

/// The chunks of a converted array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkPolicy {
    /// The chunks of the original, under the same keys.
    Preserve,
    /// The same bytes under the keys that the dialect prefers, for new or copied chunks.
    Preferred,
    /// Like [`Preferred`](Self::Preferred), except that elements may be divided into other chunks: those in shards, or
    /// of different shapes, if the dialect does not have them. [`keeps_chunks`](super::keeps_chunks) tells which it is.
    Rewritten,
}

/// What the conversion of an array depends on in addition to its document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrayContext {
    /// The array's chunks.
    pub stored: StoredChunks,
    /// True if the array is a member of a group in which arrays have dimension names.
    pub is_in_named_group: bool,
}

/// How many chunks of an array are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StoredChunks {
    /// It is not known, or the array is new.
    #[default]
    Unknown,
    /// All of them.
    All,
    /// Not all, or more than can be counted.
    Some,
}

/// A property that a dialect cannot represent, with its location in the original.
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
