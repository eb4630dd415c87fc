//! The store that a program serves: for reading, and perhaps for writing.

use std::{ops::Deref, sync::Arc};

use crate::{SnapshotStore, StoreError, TransactionalStore};

/// A store that is served: any [`SnapshotStore`] can be read, and a [`TransactionalStore`] can be written as well.
/// Clones share one store.
#[derive(Clone, Debug)]
pub struct ServedStore {
    reads: Arc<dyn SnapshotStore>,
    /// The same store; `None` if it is served for reading only.
    writes: Option<Arc<dyn TransactionalStore>>,
}

impl ServedStore {
    /// A store that is served for reading only: every change of it fails with [`StoreError::Unsupported`].
    pub fn read_only(store: Arc<dyn SnapshotStore>) -> Self {
        Self { reads: store, writes: None }
    }

    /// The store, for reading.
    pub fn reads(&self) -> &Arc<dyn SnapshotStore> {
        &self.reads
    }

    /// The store, for writing. Fails with [`StoreError::Unsupported`] if it cannot be written.
    pub fn writes(&self) -> Result<&Arc<dyn TransactionalStore>, StoreError> {
        self.writes.as_ref().ok_or(StoreError::Unsupported { what: "changes" })
    }

    /// True if the store can be written.
    pub fn is_writable(&self) -> bool {
        self.writes.is_some()
    }
}

/// The store, for reading.
impl Deref for ServedStore {
    type Target = dyn SnapshotStore;

    fn deref(&self) -> &Self::Target {
        &*self.reads
    }
}

impl From<Arc<dyn TransactionalStore>> for ServedStore {
    fn from(store: Arc<dyn TransactionalStore>) -> Self {
        Self { reads: store.clone(), writes: Some(store) }
    }
}

impl<S: TransactionalStore + 'static> From<Arc<S>> for ServedStore {
    fn from(store: Arc<S>) -> Self {
        Self { reads: store.clone(), writes: Some(store) }
    }
}
