//! Making the documents of a node say something new.

use meta::{NodePath, documents::Changes};
use store::{Change, Outcome, Version};

use super::NodeError;
use crate::{find::Sighting, shared::Shared};

/// The part of a commit that makes the documents of a node say something new.
#[derive(Debug)]
pub(crate) struct DocumentChanges {
    /// What is set, each with the precondition that it is still what it was, and what is only checked. No key is named twice.
    pub(crate) changes: Vec<Change>,
}

impl DocumentChanges {
    /// The changes for an array: of its own documents, of those of a twin (the same array over the same chunks in another dialect), and of the consolidated metadata in the groups above it.
    /// Everything that the sighting depends on is among the preconditions.
    pub(crate) async fn of_array(
        shared: &Shared,
        path: &NodePath,
        sighting: &Sighting,
        changes: &Changes,
    ) -> Result<Self, NodeError> {
        let _ = (shared, path, sighting, changes);
        todo!()
    }

    /// The version that the node has when the commit is made, given the outcomes of [`changes`](Self::changes) in their order.
    pub(crate) fn version_after(&self, outcomes: &[Outcome]) -> Option<Version> {
        let _ = outcomes;
        todo!()
    }
}
