//! The model of a node, read from its documents.

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    convert::{self, ArrayContext, ChunkPolicy, Converted},
    documents::{DocumentError, GroupModel, draft, v2, v3, write::StoredNode},
    relation::ComparedNode,
};

use super::{
    error::{NodeError, OtherArrays},
    tree::{NodeKind, NodeTree},
};
use crate::{
    error::ArrayError,
    node::{
        broken::{Broken, read_v3},
        keys::invalid_document,
    },
};

/// The model of a node.
pub(crate) enum NodeModel {
    Array(Box<ArrayModel>),
    Group(GroupModel),
}

impl NodeModel {
    /// Reads the documents of a node; those of the draft need the path `below` the hierarchy's root.
    pub(crate) fn read(
        dialect: Dialect,
        kind: NodeKind,
        stored: &StoredNode,
        below: &str,
    ) -> Result<Self, DocumentError> {
        let array = |model| Self::Array(Box::new(model));
        let document = stored.document.clone();
        let attributes = || stored.attributes.clone().unwrap_or_default();
        match (dialect, kind) {
            (Dialect::V3, _) => read_v3(document).map(|node| match node {
                v3::Node::Array(model) => Self::Array(model),
                v3::Node::Group(model) => Self::Group(model),
            }),
            (Dialect::Draft, NodeKind::Array) => draft::read_array(document, below).map(array),
            (Dialect::Draft, NodeKind::Group) => draft::read_group(document).map(Self::Group),
            (Dialect::V2, NodeKind::Array) => v2::read_array(document, attributes()).map(array),
            (Dialect::V2, NodeKind::Group) => v2::read_group(document, attributes()).map(Self::Group),
        }
    }

    /// The node as it is compared with another one.
    pub(crate) fn compared(&self) -> ComparedNode<'_> {
        match self {
            Self::Array(model) => ComparedNode::Array(model),
            Self::Group(model) => ComparedNode::Group(model),
        }
    }

    /// The node's document in another dialect.
    pub(crate) fn convert(
        &self,
        path: &NodePath,
        to: Dialect,
        chunks: ChunkPolicy,
        context: ArrayContext,
    ) -> Result<Converted, NodeError> {
        match self {
            Self::Array(model) => convert::array(model, to, chunks, context).map_err(|source| {
                let (path, others) = (path.clone(), OtherArrays::default());
                NodeError::Unconvertible { path, source, others }
            }),
            Self::Group(model) => Ok(convert::group(model, to)),
        }
    }
}

/// Reads the model of a node.
pub(crate) fn read_model(branch: &NodeTree) -> Result<NodeModel, NodeError> {
    if let Some(broken) = &branch.broken {
        return Err(ArrayError::Broken(Broken::clone(broken)).into());
    }
    let below = branch.root.as_ref().and_then(|root| branch.path.relative_to(&root.path)).unwrap_or_default();
    NodeModel::read(branch.dialect, branch.kind, &branch.stored, below).map_err(|source| match branch.own.0.first() {
        Some((key, _)) => invalid_document(key, source).into(),
        None => ArrayError::NoSuchNode { path: branch.path.clone() }.into(),
    })
}
