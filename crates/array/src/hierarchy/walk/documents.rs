//! From the documents at one path to the nodes that they describe, broken ones included.

use std::{iter::once, sync::Arc};

use bytes::Bytes;
use zarrd_meta::{
    Dialect, NodePath,
    documents::{DocumentError, draft, parse_object, write::StoredNode},
    json::Json,
    relation::{ComparedNode, DialectRelation},
};
use zarrd_store::{Key, Version};

use crate::{
    metadata::{
        model::NodeModel,
        tree::{NodeKind, NodeTree, broken_tree, from_document},
    },
    node::{
        broken::{Broken, is_unsupported},
        documents::{Documents, PresentDocuments},
        read_set::NodeVersions,
        resolved::DraftHierarchy,
    },
};

/// The thoroughness with which documents are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    /// They must be JSON objects.
    Syntax,
    /// They must be valid metadata of their dialect.
    Model,
}

/// The text of a document, or the reason why it cannot be read.
pub(crate) type Text = Result<Bytes, DocumentError>;

/// A document with its key and version.
pub(crate) type Read = (Key, Version, Text);

impl Documents {
    /// The documents at one path, given the values of its keys in the order of [`NAMES`](crate::metadata::keys::NAMES).
    pub(crate) fn interpret(
        keys: &[Option<Key>; 4],
        [zarr_json, zarray, zgroup, zattrs]: [Option<Read>; 4],
        check: Check,
    ) -> Self {
        let mut documents = Self::default();
        if let Some(read) = zarr_json {
            documents.take_zarr_json(read, check);
        }
        let main = zarray.map(|read| (NodeKind::Array, read)).or_else(|| zgroup.map(|read| (NodeKind::Group, read)));
        if let Some((kind, main)) = main {
            let [.., attributes] = keys;
            documents.v2 = Some(v2(kind, main, (attributes.as_ref(), zattrs), check));
        }
        documents
    }

    fn take_zarr_json(&mut self, (key, version, text): Read, check: Check) {
        let own = NodeVersions(vec![(key.clone(), Some(version))]);
        let document = text.and_then(parse_object);
        let kind = document.as_ref().map_or(NodeKind::Group, form_of);
        match document {
            Ok(document) if draft::has_uri(&document) => {
                let stored = draft::entry_point(document.to_bytes()).map(|_| StoredNode::single_document(document));
                let stored = stored.map_err(|error| Broken::new(&key, &error));
                self.draft = Some(PresentDocuments { kind: NodeKind::Group, own, stored });
            }
            document => {
                let stored = document
                    .and_then(|document| check.stored(Dialect::V3, kind, StoredNode::single_document(document), ""));
                self.v3 =
                    Some(PresentDocuments { kind, own, stored: stored.map_err(|error| Broken::new(&key, &error)) });
            }
        }
    }

    /// The node in a dialect: of v2 and v3 as stored, of the draft only if it cannot be read.
    pub(crate) fn branch(&mut self, path: &NodePath, dialect: Dialect) -> Option<NodeTree> {
        let PresentDocuments { kind, own, stored } = match dialect {
            Dialect::V3 => self.v3.take()?,
            Dialect::V2 => self.v2.take()?,
            Dialect::Draft => self.draft.take_if(|entry| entry.stored.is_err())?,
        };
        Some(match stored {
            Ok(stored) => from_document(path.clone(), dialect, kind, stored, own),
            Err(broken) => broken_tree(path.clone(), dialect, kind, own, broken),
        })
    }

    /// The broken node, if no document at the path can be read.
    pub(crate) fn broken(&self, path: &NodePath) -> Option<NodeTree> {
        if self.readable().next().is_some() {
            return None;
        }
        self.present().find_map(|(dialect, present)| {
            let broken = present.stored.as_ref().err()?.clone();
            Some(broken_tree(path.clone(), dialect, present.kind, present.own.clone(), broken))
        })
    }

    /// The entry point of a draft hierarchy, if it can be read.
    pub(crate) fn entry_point(&self) -> Option<draft::EntryPoint> {
        let stored = self.draft.as_ref()?.stored.as_ref().ok()?;
        draft::entry_point(stored.document.to_bytes()).ok()
    }

    /// The dialects that have a node here, the preferred one first.
    pub(crate) fn dialects(&self) -> Vec<Dialect> {
        self.present().map(|(dialect, _)| dialect).collect()
    }

    /// The dialects that have a readable node here, the preferred one first.
    pub(crate) fn readable(&self) -> impl Iterator<Item = Dialect> {
        self.present().filter(|(_, present)| present.stored.is_ok()).map(|(dialect, _)| dialect)
    }

    /// True if there is an entry point of a draft hierarchy.
    pub(crate) fn has_entry(&self) -> bool {
        self.draft.is_some()
    }

    /// True if there is an array, below which there are no nodes. A `zarr.json` that is not JSON does not count, since
    /// its node type is unknown.
    pub(crate) fn has_array(&self) -> bool {
        self.present().any(|(_, present)| present.kind == NodeKind::Array)
    }

    /// The relation of the documents of v2 and v3, if both are present.
    pub(crate) fn relation(&self) -> Option<DialectRelation> {
        let (v3, v2) = (self.v3.as_ref()?.model(Dialect::V3), self.v2.as_ref()?.model(Dialect::V2));
        let [v3, v2] = [&v3, &v2].map(|model| model.as_ref().map_or(ComparedNode::Unreadable, NodeModel::compared));
        Some(DialectRelation::between(v3, v2))
    }
}

impl PresentDocuments {
    /// The model of the node; `None` if it cannot be read.
    fn model(&self, dialect: Dialect) -> Option<NodeModel> {
        let stored = self.stored.as_ref().ok()?;
        NodeModel::read(dialect, self.kind, stored, "").ok()
    }
}

/// The node of a draft hierarchy with this document.
pub(crate) fn draft_branch(
    path: NodePath,
    root: &Arc<DraftHierarchy>,
    kind: NodeKind,
    (key, version, text): Read,
) -> NodeTree {
    let own = NodeVersions(vec![(key.clone(), Some(version))]);
    let below = path.relative_to(&root.path).unwrap_or_default();
    let stored = text.and_then(parse_object).map(StoredNode::single_document);
    let branch = match stored.and_then(|stored| Check::Model.stored(Dialect::Draft, kind, stored, below)) {
        Ok(stored) => from_document(path, Dialect::Draft, kind, stored, own),
        Err(error) => broken_tree(path, Dialect::Draft, kind, own, Broken::new(&key, &error)),
    };
    NodeTree { root: Some(root.clone()), ..branch }
}

/// A node of v2, whose attributes are a document of their own.
fn v2(
    kind: NodeKind,
    (key, version, text): Read,
    (attributes_key, zattrs): (Option<&Key>, Option<Read>),
    check: Check,
) -> PresentDocuments {
    let attributes = attributes_key.map(|key| (key.clone(), zattrs.as_ref().map(|(_, version, _)| *version)));
    let own = NodeVersions(once((key.clone(), Some(version))).chain(attributes).collect());
    let document = text.and_then(parse_object).map_err(|error| Broken::new(&key, &error));
    let stored = document.and_then(|document| {
        let attributes = match zattrs {
            Some((key, _, text)) => Some(text.and_then(parse_object).map_err(|error| Broken::new(&key, &error))?),
            None => None,
        };
        let stored = StoredNode { document, attributes };
        check.stored(Dialect::V2, kind, stored, "").map_err(|error| Broken::new(&key, &error))
    });
    PresentDocuments { kind, own, stored }
}

impl Check {
    /// The documents of a node, if they pass the check; they may still ask for something that is not supported.
    fn stored(
        self,
        dialect: Dialect,
        kind: NodeKind,
        stored: StoredNode,
        below: &str,
    ) -> Result<StoredNode, DocumentError> {
        if self == Self::Syntax {
            return Ok(stored);
        }
        match NodeModel::read(dialect, kind, &stored, below) {
            Err(error) if !is_unsupported(&error) => Err(error),
            Ok(_) | Err(_) => Ok(stored),
        }
    }
}

fn form_of(document: &Json) -> NodeKind {
    let node_type = document.get("node_type").and_then(|node_type| node_type.to_text());
    if node_type.as_deref() == Some("array") { NodeKind::Array } else { NodeKind::Group }
}
