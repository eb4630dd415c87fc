//! What is asked of nodes, and what is told of them.

use meta::{
    Dialect, NodePath,
    json::Json,
    zom::{Difference, Node, Zom},
};
use operations::{IfExists, LossPolicy, NodeInfo};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use store::{Cursor, Precondition, Version};

use crate::{failure::Repeat, write};

/// The documents of nodes, by path.
#[derive(Clone, Debug, PartialEq)]
pub struct Flat {
    /// In which dialect they are stored.
    pub dialect: Dialect,
    /// The version of the topmost node; `None` for an implicit group.
    pub version: Option<Version>,
    /// The documents: the empty text names the topmost node, `/a/b` others.
    pub documents: BTreeMap<String, Json>,
}

/// A node below another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Child {
    /// Its path.
    pub path: NodePath,
    /// In which dialect it is stored.
    pub dialect: Dialect,
    /// What it is; `None` for a node of another dialect than the one it was found from, which is to be asked for by itself.
    pub kind: Option<Kind>,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An array.
    Array,
    /// A group.
    Group,
}

/// Options of creating a hierarchy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CreateOptions {
    /// The treatment of an existing node that differs.
    pub if_exists: IfExists,
    /// The treatment of properties that the dialect cannot represent.
    pub losses: LossPolicy,
    /// The precondition on the node's version.
    pub precondition: Precondition,
}

/// The result of creating a hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateOutcome {
    /// True if the node existed before.
    pub status: CreateStatus,
    /// The node with everything below it.
    pub node: Changed,
}

/// The state of the node before it was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateStatus {
    /// The node did not exist.
    Created,
    /// The node existed: it is equal, and unchanged; or it differed, and was replaced.
    Existed,
}

/// A node as it is after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// In which dialect it is stored.
    pub dialect: Dialect,
    /// Its version now; `None` for an implicit group.
    pub version: Option<Version>,
    /// What it is.
    pub zom: Zom,
}

/// What comparing a hierarchy with a tree found.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// True if creating the hierarchy would change nothing.
    pub unchanged: bool,
    /// The differences.
    pub differences: Vec<Difference>,
    /// True if there may be more differences than these.
    pub truncated: bool,
}

/// What is to change of a node; `None` leaves something as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patch {
    /// A merge patch ([RFC 7396](https://www.rfc-editor.org/rfc/rfc7396)) of the attributes: `null` takes one away.
    pub attributes: Option<Map<String, Value>>,
    /// The shape of an array.
    pub shape: Option<Vec<u64>>,
    /// The names of its dimensions; `Some(None)` takes them away.
    pub dimension_names: Option<Option<Vec<Option<String>>>>,
}

impl Kind {
    /// What a node is.
    pub fn of(node: &Node) -> Self {
        match node {
            Node::Array(_) => Self::Array,
            Node::Group(_) => Self::Group,
        }
    }
}

/// A node with a page of its members.
#[derive(Clone, Debug)]
pub struct Members {
    /// The node, with the members of the page.
    pub node: NodeInfo,
    /// The cursor for the next page, or `None` where this is the last.
    pub next: Option<Cursor>,
}

/// All nodes below a node, as far as it was described, sorted by path.
pub(super) fn children_of(info: NodeInfo) -> Vec<Child> {
    let mut found: Vec<Child> = Vec::new();
    let mut open = vec![(info.path, &info.zom.root)];
    while let Some((path, node)) = open.pop() {
        let Node::Group(group) = node else { continue };
        for (name, node) in group.members.iter().flatten() {
            // What is no name could not have been a part of a key either.
            let Ok(path) = NodePath::parse(&format!("{path}/{name}").replace("//", "/")) else { continue };
            found.push(Child { path: path.clone(), dialect: info.dialect, kind: Some(Kind::of(node)) });
            open.push((path, node));
        }
    }
    found.extend(info.other_dialects.into_iter().map(|(path, dialect)| Child { path, dialect, kind: None }));
    found.sort_unstable();
    found
}

impl CreateOptions {
    pub(super) fn repeat(&self) -> Repeat {
        match self.if_exists {
            IfExists::Fail | IfExists::Adopt => write::repeat(&self.precondition),
            // Somebody may have replaced it again meanwhile.
            IfExists::Replace => Repeat::IfNotDone,
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

    /// Chunks that a smaller shape erases may have been written again meanwhile.
    pub(super) fn repeat(&self, condition: &Precondition) -> Repeat {
        if self.shape.is_some() { Repeat::IfNotDone } else { write::repeat(condition) }
    }
}
