//! Encoded chunks: values of the store, or ranges of them.

use std::ops::Range;

use zarrd_store::{Key, ValueMeta, Version};

/// An encoded chunk: a value, or a range of one.
#[derive(Clone, Debug)]
pub(crate) struct EncodedChunk {
    pub(crate) key: Key,
    /// The version of the value; `None` until the first read, which returns it.
    pub(crate) version: Option<Version>,
    pub(crate) range: Range<u64>,
}

/// A chunk at a position of the grid.
#[derive(Debug)]
pub(crate) enum LocatedChunk {
    /// It is stored.
    Stored(EncodedChunk),
    /// It is not stored.
    Missing,
    /// The snapshot does not have the metadata of its key.
    Unknown(Key),
}

impl EncodedChunk {
    /// A value with these metadata.
    pub(crate) fn of_value(key: Key, meta: ValueMeta) -> Self {
        Self { key, version: Some(meta.version), range: 0..meta.size }
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.range.end.saturating_sub(self.range.start)
    }
}
