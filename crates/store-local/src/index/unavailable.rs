//! The answers of an index that is being opened again, or whose damage has no bounds.

use std::sync::Arc;

use bytes::Bytes;

use super::{Index, IndexError, IndexIter};

/// An index that fails with one error, except for entries of another one that are right.
pub(crate) struct UnavailableIndex {
    entries: Option<Arc<dyn Index>>,
    error: fn() -> IndexError,
}

impl UnavailableIndex {
    /// The answers while an index is being opened again.
    pub(crate) fn reopening() -> Self {
        Self { entries: None, error: || IndexError::Reopening }
    }

    /// The answers of a damaged index that may lack any entry. None of its entries is right if some may be stale.
    pub(crate) fn damaged(index: Arc<dyn Index>, damage: &IndexError) -> Self {
        let has_stale_entries = matches!(damage, IndexError::Entries { .. });
        Self { entries: (!has_stale_entries).then_some(index), error: || IndexError::Unbounded }
    }
}

impl Index for UnavailableIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        let found = self.entries.as_ref().map_or(Ok(None), |index| index.get(key))?;
        found.map(Some).ok_or_else(self.error)
    }

    fn iter(&self, _: &[u8]) -> Result<IndexIter<'_>, IndexError> {
        Err((self.error)())
    }

    fn apply(&self, _: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError> {
        Err((self.error)())
    }

    fn sync(&self) -> Result<(), IndexError> {
        Err((self.error)())
    }
}
