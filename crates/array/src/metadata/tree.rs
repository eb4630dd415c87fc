//! Trees of nodes, stored or planned.

use std::sync::Arc;

use serde_json::json;
use zarrd_meta::{Dialect, NodePath, documents::write::StoredNode, json::Json, zom::Members};
use zarrd_operations::BrokenNode;
use zarrd_store::Prefix;

use super::array_update::stored_array;
pub(crate) use crate::node::kind::NodeKind;
use crate::{
    error::ArrayError,
    node::{
        broken::Broken,
        keys::node_prefix,
        read_set::NodeVersions,
        resolved::{DraftHierarchy, ResolvedArray, ResolvedGroup},
    },
};

/// A node with its descendants.
#[derive(Clone, Debug)]
pub(crate) struct NodeTree {
    pub(crate) path: NodePath,
    pub(crate) dialect: Dialect,
    pub(crate) kind: NodeKind,
    /// Its stored documents; of an implicit group, a document without attributes.
    pub(crate) stored: Arc<StoredNode>,
    /// The versions of its documents; empty for an implicit group.
    pub(crate) own: NodeVersions,
    /// The draft hierarchy that contains it.
    pub(crate) root: Option<Arc<DraftHierarchy>>,
    /// `None` for arrays, and for groups whose members were not read.
    pub(crate) members: Option<Members<NodeTree>>,
    /// The error of its documents, if they cannot be read. The members of such a node are not visited.
    pub(crate) broken: Option<Box<Broken>>,
}

impl NodeTree {
    /// The prefix of the node's keys; of a node of the draft, the prefix of its hierarchy.
    pub(crate) fn key_prefix(&self) -> Result<Prefix, ArrayError> {
        match (&self.root, self.dialect) {
            (Some(root), Dialect::Draft) => Ok(root.prefix.clone()),
            _ => node_prefix(&self.path),
        }
    }

    /// True if it is a group without a document, which exists because there are nodes below it.
    pub(crate) fn is_implicit(&self) -> bool {
        self.own.0.is_empty()
    }

    /// The node without its members.
    pub(crate) fn without_members(&self) -> Self {
        Self {
            path: self.path.clone(),
            dialect: self.dialect,
            kind: self.kind,
            stored: self.stored.clone(),
            own: self.own.clone(),
            root: self.root.clone(),
            members: None,
            broken: self.broken.clone(),
        }
    }

    /// The number of nodes, including this one.
    pub(crate) fn len(&self) -> usize {
        self.members.iter().flat_map(Members::values).map(Self::len).fold(1, usize::saturating_add)
    }

    /// All readable nodes, each after its parent.
    pub(crate) fn readable(&self) -> Vec<&Self> {
        self.all().into_iter().filter(|branch| branch.broken.is_none()).collect()
    }

    /// The broken nodes.
    pub(crate) fn broken(&self) -> Vec<BrokenNode> {
        let broken = |branch: &Self| Some(branch.broken.clone()?.at(branch.path.clone(), branch.dialect));
        self.all().into_iter().filter_map(broken).collect()
    }

    /// All nodes, each after its parent.
    pub(crate) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(branch) = all.get(next).copied() {
            all.extend(branch.members.iter().flat_map(Members::values));
            next += 1;
        }
        all
    }
}

/// A broken node, of which only the versions of the documents are known.
pub(crate) fn broken_tree(
    path: NodePath,
    dialect: Dialect,
    kind: NodeKind,
    own: NodeVersions,
    broken: Broken,
) -> NodeTree {
    NodeTree { broken: Some(Box::new(broken)), ..from_document(path, dialect, kind, StoredNode::default(), own) }
}

/// The documents of a group without attributes.
pub(crate) fn empty_group(dialect: Dialect) -> StoredNode {
    StoredNode::single_document(Json::pretty(&match dialect {
        Dialect::V2 => json!({"zarr_format": 2}),
        Dialect::V3 => json!({"zarr_format": 3, "node_type": "group", "attributes": {}}),
        Dialect::Draft => json!({"extensions": [], "attributes": {}}),
    }))
}

pub(crate) fn array_tree(path: &NodePath, resolved: &ResolvedArray) -> NodeTree {
    let model = resolved.array.model();
    let stored = stored_array(model);
    let branch = from_document(path.clone(), model.dialect, NodeKind::Array, stored, resolved.versions.clone());
    let root = resolved.hierarchy.clone().filter(|_| model.dialect == Dialect::Draft);
    NodeTree { root, broken: resolved.unreadable_attributes.clone().map(Box::new), ..branch }
}

pub(crate) fn group_tree(path: &NodePath, resolved: ResolvedGroup) -> NodeTree {
    let ResolvedGroup { model, dialect, versions: own, hierarchy: root, .. } = resolved;
    let root = root.filter(|_| dialect == Dialect::Draft);
    match model {
        None => implicit(path.clone(), dialect, root),
        Some(model) => {
            let stored = StoredNode::new(dialect, &model.document, &model.attributes);
            NodeTree { root, ..from_document(path.clone(), dialect, NodeKind::Group, stored, own) }
        }
    }
}

pub(crate) fn implicit(path: NodePath, dialect: Dialect, root: Option<Arc<DraftHierarchy>>) -> NodeTree {
    NodeTree { root, ..from_document(path, dialect, NodeKind::Group, empty_group(dialect), NodeVersions::default()) }
}

pub(crate) fn from_document(
    path: NodePath,
    dialect: Dialect,
    kind: NodeKind,
    stored: impl Into<Arc<StoredNode>>,
    own: NodeVersions,
) -> NodeTree {
    let stored = stored.into();
    NodeTree { path, dialect, kind, stored, own, root: None, members: None, broken: None }
}
