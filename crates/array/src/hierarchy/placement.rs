//! Nodes that get documents.

use meta::documents::write::StoredNode;

use crate::{metadata::tree::NodeTree, node::read_set::NodeVersions};

/// A planned node that gets documents, without its members.
pub(crate) struct NodePlacement<'a> {
    /// The versions of the current documents; empty for a new node.
    pub(crate) before: NodeVersions,
    /// The node.
    pub(crate) node: &'a NodeTree,
    /// The documents, if they are not just the planned ones.
    stored: Option<StoredNode>,
}

impl<'a> NodePlacement<'a> {
    /// The planned documents of a node.
    pub(crate) fn new(before: NodeVersions, node: &'a NodeTree) -> Self {
        Self { before, node, stored: None }
    }

    /// Other documents, in their final layout.
    pub(crate) fn with_documents(before: NodeVersions, node: &'a NodeTree, stored: StoredNode) -> Self {
        Self { before, node, stored: Some(stored) }
    }

    /// True if no such node exists yet.
    pub(crate) fn is_new(&self) -> bool {
        self.before.0.is_empty()
    }

    /// Moves the documents out, in the layout of new ones. Equal documents of consecutive nodes share their text.
    pub(crate) fn take_documents(&mut self, last: &mut LastDocuments) -> StoredNode {
        self.stored.take().unwrap_or_else(|| last.formatted(&self.node.stored))
    }
}

/// The documents that were formatted last: most groups of a large tree have the same.
#[derive(Default)]
pub(crate) struct LastDocuments(Option<(StoredNode, StoredNode)>);

impl LastDocuments {
    fn formatted(&mut self, stored: &StoredNode) -> StoredNode {
        match &self.0 {
            Some((last, formatted)) if last == stored => formatted.clone(),
            _ => {
                let formatted = stored.formatted();
                self.0 = Some((stored.clone(), formatted.clone()));
                formatted
            }
        }
    }
}
