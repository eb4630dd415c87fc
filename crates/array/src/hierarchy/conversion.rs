//! Converting the documents of nodes to another dialect.

use std::sync::Arc;

use zarrd_meta::{
    Dialect, NodePath,
    convert::{ArrayContext, ChunkPolicy, Converted, Loss},
    documents::write::StoredNode,
};

use super::array_contexts::ArrayContexts;
use crate::metadata::{
    error::NodeError,
    model::read_model,
    tree::{NodeKind, NodeTree},
};

/// Converts nodes one after the other.
pub(super) struct Conversion {
    pub(super) to: Dialect,
    chunks: ChunkPolicy,
    contexts: Arc<ArrayContexts>,
    /// The topmost node of the contexts.
    top: NodePath,
    /// The last original, and its conversion: many nodes of a large tree have the same documents.
    last: Option<(Arc<StoredNode>, NodeKind, ArrayContext, ConvertedNode)>,
}

/// The documents of a node in another dialect, in the layout of new ones, and what is lost.
pub(super) struct ConvertedNode {
    pub(super) stored: StoredNode,
    pub(super) losses: Vec<Loss>,
}

impl Conversion {
    pub(super) fn new(to: Dialect, chunks: ChunkPolicy, contexts: Arc<ArrayContexts>, top: NodePath) -> Self {
        Self { to, chunks, contexts, top, last: None }
    }

    pub(super) fn convert(&mut self, node: &NodeTree) -> Result<&ConvertedNode, NodeError> {
        let context = self.contexts.at(&node.path, &self.top);
        let is_last = |(stored, kind, of, _): &(Arc<StoredNode>, NodeKind, ArrayContext, ConvertedNode)| {
            Arc::ptr_eq(stored, &node.stored) && *kind == node.kind && *of == context
        };
        let last = match self.last.take().filter(is_last) {
            Some(last) => last,
            None => {
                let converted = read_model(node)?.convert(&node.path, self.to, self.chunks, context)?;
                let Converted { document, losses } = converted;
                let stored = StoredNode::from_node_document(self.to, &document).formatted();
                (node.stored.clone(), node.kind, context, ConvertedNode { stored, losses })
            }
        };
        Ok(&self.last.insert(last).3)
    }
}
