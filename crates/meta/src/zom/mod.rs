//! The Zarr Object Model ([ZEP 6](https://zarr.dev/zeps/draft/ZEP0006.html)): the structure of a hierarchy as one tree.
//!
//! A ZOM has one of two formats, v2 or v3. Each node is one JSON object, its *node document*: the `zarr.json` in v3,
//! the `.zarray` or `.zgroup` with the `.zattrs` as its `attributes` in v2. A group also has `members`. Hierarchies of
//! the draft are converted to the format v3.
//!
//! [`Zom::parse`] reads a request: it validates the schema, chooses what arrays leave out (listed in `defaults.rs`),
//! normalizes aliases (listed in `aliases.rs`), and reads each document like a stored one. [`Node::from_array`] and [`Node::group_from_model`] render stored nodes: with
//! `attributes`, and without consolidated metadata.

use std::io;

use bytes::Bytes;
use serde_json::json;

use crate::{
    ArrayModel, Dialect,
    documents::{
        GroupModel,
        write::{join_v2, strip_consolidated},
    },
    json::{Change, Json, SyntaxError},
};

mod aliases;
mod canonical;
mod defaults;
mod differences;
mod member_map;
mod members;
mod read;
mod schema;
#[cfg(test)]
mod tests;

pub use differences::Comparison;
pub use member_map::Members;

/// The format of a ZOM's node documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZomFormat {
    /// Documents of Zarr v2.
    V2,
    /// Documents of Zarr v3.
    V3,
}

/// The structure of a hierarchy or a subtree.
#[derive(Clone, Debug, PartialEq)]
pub struct Zom {
    /// The format of the node documents.
    pub format: ZomFormat,
    /// The topmost node.
    pub root: Node,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// An array: its node document.
    Array(Json),
    /// A group.
    Group(Group),
}

/// A group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// The node document without `members` and consolidated metadata. A member of the document that is itself called
    /// `members` has this name here; in JSON it is `_members`, or has more underscores if necessary.
    pub document: Json,
    /// The members by name; `None` if they are unspecified.
    pub members: Option<Members<Node>>,
}

/// Errors of parsing a ZOM.
#[derive(Debug, thiserror::Error)]
pub enum ZomError {
    /// The text is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// The ZOM violates its schema.
    #[error("{}", first_violation(.violations))]
    Invalid {
        /// The violations: at least one, at most [`MAX_VIOLATIONS`].
        violations: Vec<Violation>,
    },
    /// The ZOM has more nodes than a commit may change.
    #[error("it has more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

/// A violation of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The location: a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901) into the text.
    pub pointer: String,
    /// The error, which continues "the member".
    pub reason: String,
}

/// A difference between two ZOMs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The location: a JSON pointer into the ZOM, `/members/a/shape/0`.
    pub pointer: String,
    /// The value in the request, if any; for a node its node document.
    pub expected: Option<Json>,
    /// The stored value, if any; for a node its node document.
    pub actual: Option<Json>,
}

/// The maximum number of returned violations or differences.
pub const MAX_VIOLATIONS: usize = 100;

/// The maximum number of nodes in a ZOM.
pub const MAX_NODES: usize = 100_000;

/// The member of the topmost group that lists children of another dialect, `{"must_understand": false, "nodes": […]}`.
/// A server adds it to what it answers; [`Zom::parse`] drops it, so that an answer can be declared again.
pub const OTHER_DIALECTS: &str = "other_dialects";

impl ZomFormat {
    /// The format for the hierarchies of a dialect.
    pub fn for_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V2 => Self::V2,
            Dialect::V3 | Dialect::Draft => Self::V3,
        }
    }

    /// The dialect of the node documents.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::V2 => Dialect::V2,
            Self::V3 => Dialect::V3,
        }
    }

    /// The `zarr_format` of the node documents.
    fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

impl Zom {
    /// Parses a ZOM and normalizes aliases. Its `zarr_format` determines the format.
    ///
    /// Validates the schema, the node names, and each document, but not whether codecs are valid together. Groups are
    /// nested at most 63 deep, by the 128 levels of JSON.
    pub fn parse(json: impl Into<Bytes>) -> Result<Self, ZomError> {
        read::zom(json.into())
    }

    /// The ZOM as a JSON text.
    pub fn to_text(&self) -> Json {
        to_json(|to| self.write(to))
    }

    /// Writes the ZOM as JSON on one line, node by node.
    pub fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        self.root.write(to)
    }

    /// Writes a JSON object with the document of every node by its path from the topmost node: empty for that node,
    /// `/a/b` for others.
    pub fn write_flat(&self, to: &mut impl io::Write) -> io::Result<()> {
        to.write_all(b"{")?;
        self.root.write_flat(&mut String::new(), to)?;
        to.write_all(b"}")
    }

    /// The text that [`write_flat`](Self::write_flat) writes.
    pub fn to_flat_text(&self) -> Json {
        to_json(|to| self.write_flat(to))
    }

    /// The structural differences, at most `limit`. The order of names, the notation of numbers and extensions, and
    /// members that the declared ZOM does not list are ignored. ZOMs of different formats differ as a whole.
    pub fn differences(declared: &Self, found: &Self, limit: usize) -> Vec<Difference> {
        differences::between(declared, found, limit)
    }

    /// The number of nodes.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.root.len()
    }
}

impl Node {
    /// Renders a stored array.
    pub fn from_array(model: &ArrayModel) -> Self {
        Self::Array(node_document(model.dialect, &model.document, &model.attributes))
    }

    /// Adds a [listing](OTHER_DIALECTS) of children of another dialect to a group that has no member of this name.
    pub fn list_other_dialects(&mut self, nodes: serde_json::Value) {
        if let Self::Group(group) = self
            && group.document.get(OTHER_DIALECTS).is_none()
        {
            let listing = json!({"must_understand": false, "nodes": nodes});
            group.document = group.document.with(OTHER_DIALECTS, Change::Set(listing));
        }
    }

    /// Renders a stored group with unspecified members.
    pub fn group_from_model(model: &GroupModel) -> Group {
        let document = node_document(model.dialect, &model.document, &model.attributes);
        Group { document: strip_consolidated(&document), members: None }
    }

    /// The node document.
    pub fn document(&self) -> &Json {
        match self {
            Self::Array(document) => document,
            Self::Group(group) => &group.document,
        }
    }

    /// The node without its members.
    #[must_use]
    pub fn without_members(&self) -> Self {
        match self {
            Self::Array(document) => Self::Array(document.clone()),
            Self::Group(group) => Self::Group(Group { document: group.document.clone(), members: None }),
        }
    }

    /// The subtree as a JSON text.
    pub fn to_text(&self) -> Json {
        to_json(|to| self.write(to))
    }

    /// Writes the subtree as JSON.
    pub fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        let document = self.rendered_document().compacted();
        let Self::Group(Group { members: Some(members), .. }) = self else { return document.write(to) };
        let text = document.as_bytes();
        let is_empty = document.members().next().is_none();
        to.write_all(text.strip_suffix(b"}").unwrap_or(text))?;
        to.write_all(if is_empty { b"\"members\":{" } else { b",\"members\":{" })?;
        for (index, (name, node)) in members.iter().enumerate() {
            if index > 0 {
                to.write_all(b",")?;
            }
            Json::string(name).write(to)?;
            to.write_all(b":")?;
            node.write(to)?;
        }
        to.write_all(b"}}")
    }

    /// The number of nodes, including this one.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        match self {
            Self::Array(_) => 1,
            Self::Group(group) => 1 + group.members.iter().flat_map(Members::values).map(Self::len).sum::<usize>(),
        }
    }

    /// The node document in its JSON form.
    pub fn rendered_document(&self) -> Json {
        match self {
            Self::Array(document) => document.clone(),
            Self::Group(group) => members::rename_for_json(&group.document),
        }
    }

    fn write_flat(&self, path: &mut String, to: &mut impl io::Write) -> io::Result<()> {
        Json::string(path).write(to)?;
        to.write_all(b":")?;
        self.rendered_document().compacted().write(to)?;
        let Self::Group(Group { members: Some(members), .. }) = self else { return Ok(()) };
        for (name, node) in members {
            let len = path.len();
            path.push('/');
            path.push_str(name);
            to.write_all(b",")?;
            node.write_flat(path, to)?;
            path.truncate(len);
        }
        Ok(())
    }
}

/// Collects written JSON.
fn to_json(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Json {
    let mut text = Vec::new();
    // Writing to a vector cannot fail, and the output is JSON.
    let _ = write(&mut text);
    Json::trusted(text)
}

/// The node document of a stored node.
fn node_document(dialect: Dialect, document: &Json, attributes: &Json) -> Json {
    match dialect {
        Dialect::V2 => join_v2(document, attributes),
        Dialect::V3 | Dialect::Draft => with_attributes(document),
    }
}

/// Adds empty `attributes` to a node document without any: every node of a ZOM has them.
pub fn with_attributes(document: &Json) -> Json {
    if document.get("attributes").is_some_and(|attributes| !attributes.is_null()) {
        return document.clone();
    }
    document.with("attributes", Change::Set(json!({})))
}

fn first_violation(violations: &[Violation]) -> String {
    violations.first().map_or_else(String::new, |first| format!("{} {}", first.pointer, first.reason))
}
