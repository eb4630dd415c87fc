//! Nodes as they are found, or planned.

use std::{collections::BTreeMap, sync::Arc};

use meta::{Dialect, NodePath, documents::write::join_v2};
use serde_json::{Map, Value};

use super::super::documents::node_document;
use crate::find::{DraftRoot, GroupSighting, Own, Sighting};

/// A node with those below it.
#[derive(Clone, Debug)]
pub(in crate::hierarchy) struct Branch {
    pub(in crate::hierarchy) path: NodePath,
    pub(in crate::hierarchy) dialect: Dialect,
    pub(in crate::hierarchy) form: Form,
    /// Its node document as it is stored; of an implicit group, what one would say without attributes.
    pub(in crate::hierarchy) document: Map<String, Value>,
    /// Empty for an implicit group.
    pub(in crate::hierarchy) own: Own,
    /// The hierarchy of the draft that it is in.
    pub(in crate::hierarchy) root: Option<Arc<DraftRoot>>,
    /// `None` for arrays and for groups that were not looked into.
    pub(in crate::hierarchy) members: Option<BTreeMap<String, Branch>>,
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

    /// All nodes, each after the one that holds it.
    pub(in crate::hierarchy) fn all(&self) -> Vec<&Self> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(branch) = all.get(next).copied() {
            all.extend(branch.members.iter().flat_map(BTreeMap::values));
            next += 1;
        }
        all
    }
}

/// A node of which nothing is known but its documents' versions.
pub(in crate::hierarchy) fn unread(path: NodePath, dialect: Dialect, form: Form, own: Own) -> Branch {
    leaf(path, dialect, form, Map::new(), own)
}

/// The document of a group that says nothing.
pub(in crate::hierarchy) fn bare_group(dialect: Dialect) -> Map<String, Value> {
    let mut document = Map::new();
    match dialect {
        Dialect::V2 => drop(document.insert("zarr_format".to_owned(), 2.into())),
        Dialect::V3 => {
            document.insert("zarr_format".to_owned(), 3.into());
            document.insert("node_type".to_owned(), "group".into());
            document.insert("attributes".to_owned(), Value::Object(Map::new()));
        }
        Dialect::Draft => {
            document.insert("extensions".to_owned(), Value::Array(Vec::new()));
            document.insert("attributes".to_owned(), Value::Object(Map::new()));
        }
    }
    document
}

pub(super) fn array_branch(path: &NodePath, sighting: &Sighting) -> Branch {
    let model = sighting.array.model();
    let document = node_document(model);
    let branch = leaf(path.clone(), model.dialect, Form::Array, document, sighting.own.clone());
    Branch { root: sighting.root.clone().filter(|_| model.dialect == Dialect::Draft), ..branch }
}

pub(in crate::hierarchy) fn group_branch(path: &NodePath, sighting: GroupSighting) -> Branch {
    let GroupSighting { model, dialect, own, root, .. } = sighting;
    let root = root.filter(|_| dialect == Dialect::Draft);
    match model {
        None => implicit(path.clone(), dialect, root),
        Some(model) => {
            let document = match dialect {
                Dialect::V2 => join_v2(&model.document, &model.attributes),
                Dialect::V3 | Dialect::Draft => model.document,
            };
            Branch { root, ..leaf(path.clone(), dialect, Form::Group, document, own) }
        }
    }
}

pub(super) fn implicit(path: NodePath, dialect: Dialect, root: Option<Arc<DraftRoot>>) -> Branch {
    Branch { root, ..leaf(path, dialect, Form::Group, bare_group(dialect), Own::default()) }
}

pub(super) fn leaf(path: NodePath, dialect: Dialect, form: Form, document: Map<String, Value>, own: Own) -> Branch {
    Branch { path, dialect, form, document, own, root: None, members: None }
}
