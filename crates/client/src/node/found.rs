//! Arguments and results of the node client.

use meta::{
    Dialect, NodePath,
    convert::Loss,
    extensions::Link,
    json::Json,
    zom::{Difference, Node, Zom},
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{Cursor, Key, Precondition, Version};
use wire::{
    node::LinkTarget,
    query::{Existing, Losses},
};

use crate::{precondition, retry::Idempotency};

/// A node that was found, as of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundNode {
    /// Its path.
    pub path: NodePath,
    /// In which dialect it is stored.
    pub dialect: Dialect,
    /// True if it is a group because there are nodes below it, and for no other reason.
    pub implicit: bool,
    /// Another one whenever its own documents are others; `None` for an implicit group. It is what conditions compare.
    pub version: Option<Version>,
    /// What it is, with its members as deep as was asked.
    pub zom: Zom,
    /// The nodes below it, as deep as was asked, that are of another dialect: these are not among the members. Empty where it was asked for by
    /// one model, since they are then.
    pub other: Vec<(NodePath, Dialect)>,
    /// The nodes below it, as deep as was asked, that are not in the ZOM because one of their documents cannot be read.
    pub broken: Vec<BrokenNode>,
    /// What the ZOM does not say because it is of another dialect, with the path of the node.
    pub losses: Vec<(NodePath, Loss)>,
    /// What extensions of the group name, each with whether there is an array.
    pub links: Vec<(Link, LinkTarget)>,
}

/// A node of which a document cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenNode {
    /// Its path.
    pub path: NodePath,
    /// The dialect whose documents have that key; v3, where a `zarr.json` does not show whether it is the draft's.
    pub dialect: Dialect,
    /// The key of the document.
    pub key: Key,
    /// What is wrong with it.
    pub reason: String,
}

/// Metadata documents of a hierarchy, by relative path.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDocuments {
    /// Dialect of the documents.
    pub dialect: Dialect,
    /// Version of the top node; `None` for an implicit group.
    pub version: Option<Version>,
    /// The documents, by path relative to the top node: the empty string for the node itself, `/a/b` for a descendant.
    pub documents: BTreeMap<String, Json>,
}

/// A node in a listing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeEntry {
    /// Path of the node.
    pub path: NodePath,
    /// Dialect of the node.
    pub dialect: Dialect,
    /// Kind of the node; `None` for a node of another dialect than the listed hierarchy, which must be requested by
    /// itself.
    pub kind: Option<NodeKind>,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeKind {
    /// An array.
    Array,
    /// A group.
    Group,
}

/// How a tree is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declaration {
    /// What becomes of a node that is there and differs.
    pub existing: Existing,
    /// What happens where the dialect cannot say all that the tree says.
    pub losses: Losses,
    /// Must hold of the node's version.
    pub condition: Precondition,
}

/// What a declaration did.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// What it did.
    pub effect: Effect,
    /// The node as it is now, with all that is below it.
    pub node: UpdatedNode,
}

/// What a declaration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The node was not there.
    Created,
    /// It was there: equal, and left as it is; or another, and replaced where that was asked for.
    Present,
}

/// A node after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatedNode {
    /// Dialect of the node.
    pub dialect: Dialect,
    /// New version of the node; `None` for an implicit group.
    pub version: Option<Version>,
    /// The node and its descendants.
    pub zom: Zom,
}

/// Comparison of a stored hierarchy with a given one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// True if the hierarchies are equal in structure.
    pub equal: bool,
    /// The differences.
    pub differences: Vec<Difference>,
    /// True if there may be more differences.
    pub truncated: bool,
}

/// An update of the metadata of a node. Members that are `None` are not changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of the attributes, in which `null` removes an
    /// attribute.
    pub attributes: Option<Map<String, Value>>,
    /// New shape of an array.
    pub shape: Option<Vec<u64>>,
    /// New dimension names of an array; `Some(None)` removes them.
    pub dimension_names: Option<Option<Vec<Option<String>>>>,
}

/// A conversion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// Into which dialect.
    pub into: Dialect,
    /// Where to; `None` for the same place: documents over the same chunks.
    pub to: Option<NodePath>,
}

/// What a conversion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConversionReport {
    /// How many nodes were converted.
    pub nodes: u64,
    /// How many chunks were copied.
    pub chunks: u64,
    /// What was lost, with the path of the node.
    pub losses: Vec<(NodePath, Loss)>,
}

impl NodeKind {
    /// The kind of a node.
    pub fn of(node: &Node) -> Self {
        match node {
            Node::Array(_) => Self::Array,
            Node::Group(_) => Self::Group,
        }
    }
}

/// A node with one page of its members.
#[derive(Clone, Debug)]
pub struct Members {
    /// The node, with the members of the page.
    pub node: FoundNode,
    /// The cursor of the next page; `None` if this is the last.
    pub next: Option<Cursor>,
}

impl FoundNode {
    /// The nodes below it that are included, sorted by path.
    pub(super) fn into_entries(self) -> Vec<NodeEntry> {
        let mut entries: Vec<NodeEntry> = Vec::new();
        let mut pending = vec![(self.path, &self.zom.root)];
        while let Some((path, node)) = pending.pop() {
            let Node::Group(group) = node else { continue };
            for (name, node) in group.members.iter().flatten() {
                // An invalid name cannot be part of a key either.
                let Ok(path) = NodePath::parse(&format!("{path}/{name}").replace("//", "/")) else { continue };
                entries.push(NodeEntry { path: path.clone(), dialect: self.dialect, kind: Some(NodeKind::of(node)) });
                pending.push((path, node));
            }
        }
        entries.extend(self.other.into_iter().map(|(path, dialect)| NodeEntry { path, dialect, kind: None }));
        entries.sort_unstable();
        entries
    }
}

impl Declaration {
    pub(super) fn idempotency(&self) -> Idempotency {
        match self.existing {
            Existing::Keep | Existing::Adopt => precondition::idempotency(&self.condition),
            // Another client may have replaced the node in the meantime.
            Existing::Replace => Idempotency::NotIdempotent,
        }
    }
}

impl Patch {
    pub(super) fn to_json(&self) -> Value {
        let attributes = self.attributes.as_ref().map(|attributes| ("attributes", json!(attributes)));
        let shape = self.shape.as_ref().map(|shape| ("shape", json!(shape)));
        let names = self.dimension_names.as_ref().map(|names| ("dimension_names", json!(names)));
        let members = [attributes, shape, names].into_iter().flatten();
        Value::Object(members.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// A resize is not idempotent: chunks that it erased may have been written again by another client.
    pub(super) fn idempotency(&self, condition: &Precondition) -> Idempotency {
        if self.shape.is_some() { Idempotency::NotIdempotent } else { precondition::idempotency(condition) }
    }
}
