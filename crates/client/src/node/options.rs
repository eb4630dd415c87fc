//! Arguments and results of the node client.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use zarrd_meta::{
    Dialect, NodePath,
    data_type::Casting,
    json::Json,
    zom::{Difference, Node, Zom},
};
use zarrd_operations::{IfExists, LossPolicy, NodeInfo, PatchMode};
use zarrd_store::{Cursor, Precondition, Version};
use zarrd_wire::query::Decode;

use crate::{precondition, retry::Idempotency};

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

/// Options of [`append`](crate::NodeClient::append).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppendOptions {
    /// The conversions of types that differ from those of the arrays.
    pub casting: Casting,
    /// The conventions by which the elements are encoded. Without any they are stored as they are, but for times.
    pub decode: Option<Decode>,
}

/// Options of [`create`](crate::NodeClient::create).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The treatment of an existing node that differs.
    pub if_exists: IfExists,
    /// The treatment of properties that the dialect cannot represent.
    pub losses: LossPolicy,
    /// The precondition on the version of the node.
    pub precondition: Precondition,
}

/// Result of [`create`](crate::NodeClient::create).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOutcome {
    /// The state of the node before.
    pub status: CreateStatus,
    /// The node with its descendants.
    pub node: UpdatedNode,
}

/// The state of a node before [`create`](crate::NodeClient::create).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateStatus {
    /// The node did not exist.
    Created,
    /// The node existed: it is equal, and unchanged; or it differed, and was replaced.
    Existed,
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
    /// True if creating the hierarchy would change nothing.
    pub unchanged: bool,
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
    /// The mode where several documents change in a store that is written key by key, such as a bucket: attributes and shape
    /// of v2, or a node of two dialects. By default such an update is not made.
    pub mode: PatchMode,
}

/// A node with one page of its members.
#[derive(Clone, Debug)]
pub struct Members {
    /// The node, with the members of the page.
    pub node: NodeInfo,
    /// The cursor of the next page; `None` if this is the last.
    pub next: Option<Cursor>,
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

/// The nodes below a node, as far as they are included, sorted by path.
pub(super) fn into_entries(info: NodeInfo) -> Vec<NodeEntry> {
    let mut entries: Vec<NodeEntry> = Vec::new();
    let mut pending = vec![(info.path, &info.zom.root)];
    while let Some((path, node)) = pending.pop() {
        let Node::Group(group) = node else { continue };
        for (name, node) in group.members.iter().flatten() {
            // An invalid name cannot be part of a key either.
            let Ok(path) = NodePath::parse(&format!("{path}/{name}").replace("//", "/")) else { continue };
            entries.push(NodeEntry { path: path.clone(), dialect: info.dialect, kind: Some(NodeKind::of(node)) });
            pending.push((path, node));
        }
    }
    entries.extend(info.other_dialects.into_iter().map(|(path, dialect)| NodeEntry { path, dialect, kind: None }));
    entries.sort_unstable();
    entries
}

impl CreateOptions {
    pub(super) fn idempotency(&self) -> Idempotency {
        match self.if_exists {
            IfExists::Fail | IfExists::Adopt => precondition::idempotency(&self.precondition),
            // Another client may have replaced the node in the meantime.
            IfExists::Replace => Idempotency::NotIdempotent,
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
    pub(super) fn idempotency(&self, precondition: &Precondition) -> Idempotency {
        if self.shape.is_some() { Idempotency::NotIdempotent } else { precondition::idempotency(precondition) }
    }
}
