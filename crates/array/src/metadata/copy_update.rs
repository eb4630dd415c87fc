//! Updates of consolidated metadata: which copies change, and by which nodes.

use std::sync::Arc;

use parking_lot::Mutex;
use zarrd_meta::{Dialect, NodePath, documents::write::StoredNode};
use zarrd_store::Key;

/// The change of a node of v2 or v3.
#[derive(Clone, Debug)]
pub(crate) struct NodeChange {
    pub(crate) path: NodePath,
    pub(crate) dialect: Dialect,
    /// Its new documents; `None` if it is erased with everything below it.
    pub(crate) node: Option<StoredNode>,
}

/// The consolidated metadata of a group.
#[derive(Clone, Debug)]
pub(crate) struct ConsolidatedCopy {
    pub(crate) group: NodePath,
    pub(crate) dialect: Dialect,
    pub(crate) key: Key,
}

/// The consolidated metadata that a change set updates, and what changes in it.
#[derive(Clone, Debug)]
pub(crate) struct ConsolidatedUpdate {
    /// The copies, whose documents the change set changes in no other way.
    pub(crate) copies: Vec<ConsolidatedCopy>,
    /// The keys of copies that the change set removes, since they would be too large.
    pub(crate) removed: Vec<Key>,
    pub(crate) node_changes: Vec<NodeChange>,
    /// The attributes of v2 that exist, and were not read.
    pub(crate) unread: Vec<Key>,
}

/// The keys of consolidated metadata that the changes of a request removed, since it would have been too large, and that
/// it could not bring up to date.
#[derive(Clone, Debug, Default)]
pub struct RemovedCopies(Arc<Mutex<LostCopies>>);

#[derive(Debug, Default)]
struct LostCopies {
    removed: Vec<Key>,
    stale: Vec<Key>,
}

impl RemovedCopies {
    /// Takes note of keys.
    pub(crate) fn extend(&self, keys: &[Key]) {
        self.0.lock().removed.extend_from_slice(keys);
    }

    /// Records a key whose copies are not up to date.
    pub(crate) fn add_stale(&self, key: &Key) {
        self.0.lock().stale.push(key.clone());
    }

    /// The keys of removed copies, in the order of the changes.
    pub fn keys(&self) -> Vec<Key> {
        self.0.lock().removed.clone()
    }

    /// The keys of copies that are not up to date, in a store that is written key by key.
    pub fn stale(&self) -> Vec<Key> {
        self.0.lock().stale.clone()
    }
}
