//! Nodes that get documents.

use std::sync::LazyLock;

use zarrd_meta::{documents::write::StoredNode, json::Json};

use crate::{metadata::tree::NodeTree, node::read_set::NodeVersions};

static NO_VERSIONS: LazyLock<NodeVersions> = LazyLock::new(NodeVersions::default);

/// A planned node that gets documents, without its members.
pub(crate) struct NodePlacement<'a> {
    /// The versions of the current documents; empty for a new node.
    pub(crate) before: &'a NodeVersions,
    /// The node.
    pub(crate) node: &'a NodeTree,
    /// The documents, if they are not just the planned ones.
    stored: Option<Box<StoredNode>>,
}

impl<'a> NodePlacement<'a> {
    /// The planned documents of a new node.
    pub(crate) fn new(node: &'a NodeTree) -> Self {
        Self { before: &NO_VERSIONS, node, stored: None }
    }

    /// The documents of an existing node: the planned ones, or others in their final layout.
    pub(crate) fn replacing(before: &'a NodeVersions, node: &'a NodeTree, stored: Option<StoredNode>) -> Self {
        Self { before, node, stored: stored.map(Box::new) }
    }

    /// True if no such node exists yet.
    pub(crate) fn is_new(&self) -> bool {
        self.before.0.is_empty()
    }

    /// The documents, in the layout of new ones. Equal documents of consecutive nodes share their text.
    pub(crate) fn documents(&self, last: &mut LastDocument) -> StoredNode {
        self.stored.as_deref().cloned().unwrap_or_else(|| last.formatted(&self.node.stored))
    }
}

/// The document that was formatted last: most groups of a large tree have the same.
#[derive(Default)]
pub(crate) struct LastDocument(Option<(Json, Json)>);

impl LastDocument {
    fn formatted(&mut self, stored: &StoredNode) -> StoredNode {
        let attributes = stored.attributes.as_ref().map(Json::formatted);
        if let Some((_, document)) = self.0.as_ref().filter(|(last, _)| *last == stored.document) {
            return StoredNode { document: document.clone(), attributes };
        }
        let document = stored.document.formatted();
        self.0 = Some((stored.document.clone(), document.clone()));
        StoredNode { document, attributes }
    }
}
