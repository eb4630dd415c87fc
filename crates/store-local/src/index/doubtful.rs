//! The answers of an index whose damage has no bounds.

use std::sync::Arc;

use bytes::Bytes;

use super::{Index, IndexError, IndexIter};

/// An index that may lack any entry: whatever it does not have, and every listing, is an error.
pub(crate) struct DoubtfulIndex {
    /// `None` if the entries that it has may be stale.
    index: Option<Arc<dyn Index>>,
}

impl DoubtfulIndex {
    /// The answers of an index that was found to be damaged.
    pub(crate) fn new(index: Arc<dyn Index>, damage: &IndexError) -> Self {
        let has_stale_entries = matches!(damage, IndexError::Entries { .. });
        Self { index: (!has_stale_entries).then_some(index) }
    }
}

impl Index for DoubtfulIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        let found = self.index.as_ref().map_or(Ok(None), |index| index.get(key))?;
        found.map(Some).ok_or(IndexError::Unbounded)
    }

    fn iter(&self, _: &[u8]) -> Result<IndexIter<'_>, IndexError> {
        Err(IndexError::Unbounded)
    }

    fn apply(&self, _: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError> {
        Err(IndexError::Unbounded)
    }

    fn sync(&self) -> Result<(), IndexError> {
        Err(IndexError::Unbounded)
    }
}
