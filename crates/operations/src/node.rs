//! Nodes as of one commit.

use zarrd_meta::{Dialect, NodePath, convert::Loss, extensions::Link, relation::DialectRelation, zom::Zom};
use zarrd_store::{Key, Version};

/// The maximum depth of a described subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Descendants up to this many levels down; 0 omits the members.
    Levels(u32),
    /// All descendants, down to 64 levels, the depth to which JSON readers can follow.
    All,
}

/// A node as of one commit.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeInfo {
    /// Its path.
    pub path: NodePath,
    /// The dialect that it is stored in.
    pub dialect: Dialect,
    /// True if it is a group without a document, which exists because there are nodes below it.
    pub implicit: bool,
    /// The version of the node, which changes whenever one of its own documents does; `None` for an implicit group.
    pub version: Option<Version>,
    /// The relation of the documents that v2 and v3 have at the path. `None` if one of them has none or if reading them would
    /// take a request; a server also leaves out that they are the same.
    pub relation: Option<DialectRelation>,
    /// The node in the Zarr Object Model, with its members to the requested depth.
    pub zom: Zom,
    /// The nodes of another dialect below it, to the requested depth, which are not among the members. Empty if the
    /// node was described in another dialect's model, which has them as members.
    pub other_dialects: Vec<(NodePath, Dialect)>,
    /// The nodes below it that are left out because their documents cannot be read or, described in another dialect's
    /// model, ask for something that is not supported.
    pub broken: Vec<BrokenNode>,
    /// Properties that the described dialect cannot represent, with the path of their node.
    pub losses: Vec<(NodePath, Loss)>,
    /// The arrays that extensions of the group link to, and whether they exist.
    pub links: Vec<(Link, LinkTarget)>,
}

/// A node that is left out because one of its documents cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenNode {
    /// Its path.
    pub path: NodePath,
    /// The dialect whose documents have that key; v3 if it is not known whether a `zarr.json` belongs to the draft.
    pub dialect: Dialect,
    /// The key of the document.
    pub key: Key,
    /// The error message, truncated.
    pub reason: String,
}

/// The target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An array.
    Array,
    /// A group, or nothing.
    Missing,
}

impl LinkTarget {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Missing => "missing",
        }
    }
}

impl Default for Depth {
    /// The node with its children.
    fn default() -> Self {
        Self::Levels(1)
    }
}
