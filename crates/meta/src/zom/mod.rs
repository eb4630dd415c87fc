//! The Zarr Object Model ([ZEP 6](https://zarr.dev/zeps/draft/ZEP0006.html)): a hierarchy's structure as one tree.
//!
//! There are two models, that of v2 and that of v3. A node of either is one JSON object, its *node document*: in v3 the `zarr.json`, in v2 the `.zarray` or
//! `.zgroup` with the `.zattrs` as its `attributes`. A group has its `members` beside that. Hierarchies of the draft are shown by the model of v3.
//!
//! [`Zom::parse`] reads what somebody declares: it is checked, what is written in another way is normalised (the list is in `aliases.rs`), and then it is
//! read as the documents are read that are stored. Nodes that are stored are shown as they are, but that all have `attributes` and none has consolidated metadata:
//! [`Node::of_array`], [`Node::of_group`].

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
mod differences;
mod member_map;
mod members;
mod read;
mod schema;
#[cfg(test)]
mod tests;

pub use member_map::Members;

/// Whose documents a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ZomFormat {
    /// Those of Zarr v2.
    V2,
    /// Those of Zarr v3.
    V3,
}

/// A hierarchy's structure, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Zom {
    /// Whose documents the nodes have.
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
    /// Its node document, without `members` and without consolidated metadata. A member of the document that is itself called `members` is `members` here too;
    /// as JSON it is `_members`, or with as many more underscores as it takes.
    pub document: Json,
    /// The nodes directly below it, by name; `None` where nothing is said of them.
    pub members: Option<Members<Node>>,
}

/// The reason why a JSON text is no ZOM.
#[derive(Debug, thiserror::Error)]
pub enum ZomError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(#[source] SyntaxError),
    /// It breaks its schema.
    #[error("{}", first_violation(.violations))]
    Invalid {
        /// The violations; at least one, at most [`MAX_VIOLATIONS`].
        violations: Vec<Violation>,
    },
    /// It has more nodes than a commit has changes.
    #[error("it has more than {limit} nodes")]
    TooManyNodes {
        /// The limit.
        limit: usize,
    },
}

/// A place at which a JSON text breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The location: a [JSON pointer](https://www.rfc-editor.org/rfc/rfc6901) into the text.
    pub pointer: String,
    /// The error, which continues "the member".
    pub reason: String,
}

/// A place at which two structures differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The location: a JSON pointer into the ZOM, `/members/a/shape/0`.
    pub pointer: String,
    /// The value in the request, if any. Of a node it is the node document.
    pub expected: Option<Json>,
    /// The stored value, if any. Of a node it is the node document.
    pub actual: Option<Json>,
}

/// The most violations or differences that are returned.
pub const MAX_VIOLATIONS: usize = 100;

/// The most nodes of one ZOM.
pub const MAX_NODES: usize = 100_000;

impl ZomFormat {
    /// The model by which a dialect's hierarchies are shown.
    pub fn for_dialect(dialect: Dialect) -> Self {
        match dialect {
            Dialect::V2 => Self::V2,
            Dialect::V3 | Dialect::Draft => Self::V3,
        }
    }

    /// The dialect whose documents these are.
    pub fn dialect(self) -> Dialect {
        match self {
            Self::V2 => Dialect::V2,
            Self::V3 => Dialect::V3,
        }
    }

    /// The `zarr_format` of its documents.
    fn number(self) -> u8 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
        }
    }
}

impl Zom {
    /// Reads a ZOM, normalising aliases. Its `zarr_format` determines the model.
    ///
    /// Checks the schema and the names of the nodes, and that every document can be read into its model; not whether
    /// its codecs are valid together. Groups are nested as deep as the 128 levels of JSON allow: 63 of them.
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

    /// Writes every node's document by its path from the topmost node, as one JSON object: the empty text for that one, `/a/b` for others.
    pub fn write_flat(&self, to: &mut impl io::Write) -> io::Result<()> {
        to.write_all(b"{")?;
        self.root.write_flat(&mut String::new(), to)?;
        to.write_all(b"}")
    }

    /// The text that [`write_flat`](Self::write_flat) writes.
    pub fn to_flat_text(&self) -> Json {
        to_json(|to| self.write_flat(to))
    }

    /// The differences in structure, at most `limit`. The order of names, and the notation of numbers and extensions,
    /// make no difference, and neither do members that the declared ZOM does not list. Two of different versions differ
    /// as a whole.
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
    /// An array as it is stored.
    pub fn from_array(model: &ArrayModel) -> Self {
        Self::Array(node_document(model.dialect, &model.document, &model.attributes))
    }

    /// A group as it is stored, of whose members nothing is said.
    pub fn group_from_model(model: &GroupModel) -> Group {
        let document = node_document(model.dialect, &model.document, &model.attributes);
        Group { document: strip_consolidated(&document), members: None }
    }

    /// Its node document.
    pub fn document(&self) -> &Json {
        match self {
            Self::Array(document) => document,
            Self::Group(group) => &group.document,
        }
    }

    /// The node and all that is below it as a JSON text.
    pub fn to_text(&self) -> Json {
        to_json(|to| self.write(to))
    }

    /// Writes the node and all that is below it as JSON.
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

    /// Its node document as JSON shows it.
    fn rendered_document(&self) -> Json {
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

/// The written bytes, as one text.
fn to_json(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Json {
    let mut text = Vec::new();
    // A vector takes every byte, and what is written is JSON.
    let _ = write(&mut text);
    Json::trusted(text)
}

/// The node document of a node that is stored.
fn node_document(dialect: Dialect, document: &Json, attributes: &Json) -> Json {
    match dialect {
        Dialect::V2 => join_v2(document, attributes),
        Dialect::V3 | Dialect::Draft => with_attributes(document),
    }
}

/// A node document with empty `attributes` if it has none: every node of a ZOM has them.
pub fn with_attributes(document: &Json) -> Json {
    if document.get("attributes").is_some_and(|attributes| !attributes.is_null()) {
        return document.clone();
    }
    document.with("attributes", Change::Set(json!({})))
}

fn first_violation(violations: &[Violation]) -> String {
    violations.first().map_or_else(String::new, |first| format!("{} {}", first.pointer, first.reason))
}
