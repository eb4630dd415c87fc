//! Mounted stores that fail or do not answer: trees of the root show them as broken nodes instead of failing.

use std::collections::BTreeMap;

use zarrd_meta::{Dialect, NodePath};
use zarrd_store::{Key, MountFailure, Prefix};

use crate::{
    error::ArrayError,
    metadata::{
        error::NodeError,
        keys::NAMES,
        tree::{NodeKind, NodeTree, broken_tree},
    },
    node::{
        broken::Broken,
        keys::{join_key, node_prefix},
        read_set::NodeVersions,
    },
    unavailable_mounts::UnavailableMounts,
};

/// The mounts that a walk leaves out, each with the reason.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeftOut(BTreeMap<Prefix, String>);

impl LeftOut {
    /// The mounts that failed lately.
    pub(super) fn of(lately: &UnavailableMounts) -> Self {
        Self(lately.current())
    }

    /// True if a prefix is that of a mount that is left out, or below it.
    pub(super) fn covers(&self, prefix: &str) -> bool {
        self.0.keys().any(|mount| prefix.starts_with(mount.as_str()))
    }

    /// Adds the mount whose failure an error is, and those that failed with it; false if it is another error, or the
    /// mount is left out already.
    pub(super) fn add(&mut self, error: &NodeError, lately: &UnavailableMounts) -> bool {
        let (NodeError::Store(error) | NodeError::Array(ArrayError::Store(error))) = error else { return false };
        let Some(failure) = error.backend_source::<MountFailure>() else { return false };
        if self.0.contains_key(failure.prefix()) {
            return false;
        }
        lately.record(error);
        self.0.extend(lately.current());
        true
    }

    /// The broken node of a mount that is left out.
    pub(super) fn node(&self, path: &NodePath) -> Option<NodeTree> {
        // Almost always: it is asked for every child of a tree.
        if self.0.is_empty() {
            return None;
        }
        let prefix = node_prefix(path).ok()?;
        let reason = self.0.get(&prefix)?.clone();
        // The dialect is unknown, as are the documents.
        let key: Key = join_key(&prefix, NAMES[0])?;
        let broken = Broken { key, reason };
        Some(broken_tree(path.clone(), Dialect::V3, NodeKind::Group, NodeVersions::default(), broken))
    }
}
