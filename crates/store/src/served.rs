//! The store that a program serves: for reading, and perhaps for writing.

use std::{ops::Deref, sync::Arc};

use crate::{BatchStore, Pieces, SnapshotStore, StoreError, TransactionalStore};

/// A store that is served: any [`SnapshotStore`] can be read, a [`BatchStore`] can be written as well, and a
/// [`TransactionalStore`] in commits. Clones share one store.
#[derive(Clone, Debug)]
pub struct ServedStore {
    reads: Arc<dyn SnapshotStore>,
    /// The same store; `None` if it is served for reading only.
    writes: Option<Arc<dyn BatchStore>>,
    /// The same store; `None` if it has no commits, or is served for reading only.
    commits: Option<Arc<dyn TransactionalStore>>,
    /// The cache of pieces through which it is read, or a part of it; `None` if there is none.
    pieces: Option<Pieces>,
}

impl ServedStore {
    /// A store that is served for reading only: every change of it fails with [`StoreError::Unsupported`].
    pub fn read_only(store: Arc<dyn SnapshotStore>) -> Self {
        Self { reads: store, writes: None, commits: None, pieces: None }
    }

    /// A store that is written key by key: what needs a commit of several keys fails with [`StoreError::Unsupported`].
    pub fn key_by_key(store: Arc<dyn BatchStore>) -> Self {
        Self { reads: store.clone(), writes: Some(store), commits: None, pieces: None }
    }

    /// The same store, which is read through this cache of pieces, or a part of it is.
    #[must_use]
    pub fn with_pieces(self, pieces: Option<Pieces>) -> Self {
        Self { pieces, ..self }
    }

    /// The cache of pieces through which the store is read, or a part of it; `None` if there is none.
    pub fn pieces(&self) -> Option<&Pieces> {
        self.pieces.as_ref()
    }

    /// The store, for reading.
    pub fn reads(&self) -> &Arc<dyn SnapshotStore> {
        &self.reads
    }

    /// The store, for writing. Fails with [`StoreError::Unsupported`] if it cannot be written.
    pub fn writes(&self) -> Result<&Arc<dyn BatchStore>, StoreError> {
        self.writes.as_ref().ok_or(StoreError::Unsupported { what: "changes" })
    }

    /// The store, for writing in commits. Fails with [`StoreError::Unsupported`] if it has none.
    pub fn commits(&self) -> Result<&Arc<dyn TransactionalStore>, StoreError> {
        self.writes()?;
        self.commits.as_ref().ok_or(StoreError::Unsupported { what: "this change: it is written key by key" })
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

/// A store that is served for reading only.
impl From<Arc<dyn SnapshotStore>> for ServedStore {
    fn from(store: Arc<dyn SnapshotStore>) -> Self {
        Self::read_only(store)
    }
}

impl From<Arc<dyn TransactionalStore>> for ServedStore {
    fn from(store: Arc<dyn TransactionalStore>) -> Self {
        Self { reads: store.clone(), writes: Some(store.clone()), commits: Some(store), pieces: None }
    }
}

impl<S: TransactionalStore + 'static> From<Arc<S>> for ServedStore {
    fn from(store: Arc<S>) -> Self {
        Self { reads: store.clone(), writes: Some(store.clone()), commits: Some(store), pieces: None }
    }
}
