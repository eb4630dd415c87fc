//! Nodes as they are found, or planned.

use std::sync::Arc;

use meta::{Dialect, NodePath, documents::write::StoredNode, json::Json, zom::Members};
use serde_json::json;

use super::super::documents::stored_array;
use crate::{
    broken::{Broken, BrokenNode},
    find::{DraftRoot, GroupSighting, Own, Sighting},
};

/// A node with those below it.
#[derive(Clone, Debug)]
pub(in crate::hierarchy) struct Branch {
    pub(in crate::hierarchy) path: NodePath,
    pub(in crate::hierarchy) dialect: Dialect,
    pub(in crate::hierarchy) form: Form,
    /// Its documents as they are stored; of an implicit group, what one would say without attributes.
    pub(in crate::hierarchy) stored: StoredNode,
    /// Empty for an implicit group.
    pub(in crate::hierarchy) own: Own,
    /// The hierarchy of the draft that it is in.
    pub(in crate::hierarchy) root: Option<Arc<DraftRoot>>,
    /// `None` for arrays and for groups that were not looked into.
    pub(in crate::hierarchy) members: Option<Members<Branch>>,
    /// The reason why its documents are not told, where they cannot be read. Such a node is not looked into.
    pub(in crate::hierarchy) broken: Option<Broken>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::hierarchy) enum Form {
    Array,
    Group,
}

impl Branch {
    /// Whether it is a group only because there are nodes below it.
    pub(in crate::hierarchy) fn is_implicit(&self) -> bool {
        self.own.0.is_empty()
    }

    /// All nodes that can be read, each after the one that holds it.
    pub(in crate::hierarchy) fn readable(&self) -> Vec<&Self> {
        self.all().into_iter().filter(|branch| branch.broken.is_none()).collect()
    }

    /// The nodes that cannot be read.
    pub(in crate::hierarchy) fn broken(&self) -> Vec<BrokenNode> {
        let broken = |branch: &Self| {
            let problem = branch.broken.clone()?;
            Some(BrokenNode { path: branch.path.clone(), dialect: branch.dialect, problem })
        };
        self.all().into_iter().filter_map(broken).collect()
    }

    /// All nodes, each after the one that holds it.
    pub(in crate::hierarchy) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(branch) = all.get(next).copied() {
            all.extend(branch.members.iter().flat_map(Members::values));
            next += 1;
        }
        all
    }
}

/// A node of which nothing is known but its documents' versions, since one of them cannot be read.
pub(super) fn broken_branch(path: NodePath, dialect: Dialect, form: Form, own: Own, broken: Broken) -> Branch {
    Branch { broken: Some(broken), ..leaf(path, dialect, form, StoredNode::default(), own) }
}

/// The documents of a group that says nothing.
pub(in crate::hierarchy) fn bare_group(dialect: Dialect) -> StoredNode {
    StoredNode::whole(Json::pretty(&match dialect {
        Dialect::V2 => json!({"zarr_format": 2}),
        Dialect::V3 => json!({"zarr_format": 3, "node_type": "group", "attributes": {}}),
        Dialect::Draft => json!({"extensions": [], "attributes": {}}),
    }))
}

pub(super) fn array_branch(path: &NodePath, sighting: &Sighting) -> Branch {
    let model = sighting.array.model();
    let stored = stored_array(model);
    let branch = leaf(path.clone(), model.dialect, Form::Array, stored, sighting.own.clone());
    let root = sighting.root.clone().filter(|_| model.dialect == Dialect::Draft);
    Branch { root, broken: sighting.unread.clone(), ..branch }
}

pub(in crate::hierarchy) fn group_branch(path: &NodePath, sighting: GroupSighting) -> Branch {
    let GroupSighting { model, dialect, own, root, .. } = sighting;
    let root = root.filter(|_| dialect == Dialect::Draft);
    match model {
        None => implicit(path.clone(), dialect, root),
        Some(model) => {
            let stored = StoredNode::new(dialect, &model.document, &model.attributes);
            Branch { root, ..leaf(path.clone(), dialect, Form::Group, stored, own) }
        }
    }
}

pub(super) fn implicit(path: NodePath, dialect: Dialect, root: Option<Arc<DraftRoot>>) -> Branch {
    Branch { root, ..leaf(path, dialect, Form::Group, bare_group(dialect), Own::default()) }
}

pub(super) fn leaf(path: NodePath, dialect: Dialect, form: Form, stored: StoredNode, own: Own) -> Branch {
    Branch { path, dialect, form, stored, own, root: None, members: None, broken: None }
}
