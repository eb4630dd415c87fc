//! How nodes are read, created and converted, and what these operations return.

use std::sync::Arc;

use meta::{Dialect, NodePath, convert::Loss, extensions::Link, zom::Zom};
use store::{Precondition, Version};

use crate::{memory::claim::Permit, node::broken::BrokenNode};

/// How deep a node is looked into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// So many levels below it; with 0 its members are not told.
    Levels(u32),
    /// All, but for what is deeper than JSON can be nested: below 64 levels, members are not told.
    All,
}

/// A node that was found, as of one commit.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Its path.
    pub path: NodePath,
    /// In which dialect it is stored.
    pub dialect: Dialect,
    /// Whether it is a group because there are nodes below it, and for no other reason.
    pub implicit: bool,
    /// Another one whenever its own documents are others; `None` for an implicit group.
    pub version: Option<Version>,
    /// What it is.
    pub zom: Zom,
    /// The children that are of another dialect, by path: these are not among the members. Empty where they were asked for as one dialect, since they are then.
    pub other_dialects: Vec<(NodePath, Dialect)>,
    /// The nodes below it, as deep as was asked, that are not in the ZOM because their documents cannot be read; told by another dialect's model, also those that ask for what is not
    /// supported.
    pub broken: Vec<BrokenNode>,
    /// What the ZOM does not say because it is of another dialect, with the path of the node.
    pub losses: Vec<(NodePath, Loss)>,
    /// The arrays that extensions of the group name, each with whether there is one.
    pub links: Vec<(Link, LinkTarget)>,
    /// The memory that all of this is allowed to take.
    #[allow(dead_code, reason = "it is held, not looked at")]
    pub(super) memory: Arc<Vec<Permit>>,
}

/// What is at the path that an extension names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An array.
    Array,
    /// A group, or nothing.
    Missing,
}

/// How a tree is declared.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// In which dialect it is stored. Where none is said, that of the node that is there, or else of the hierarchy around it, if the ZOM is of its model; otherwise that of the ZOM.
    pub dialect: Option<Dialect>,
    /// What becomes of a node that is there and differs.
    pub if_exists: IfExists,
    /// Must hold of the node's version.
    pub precondition: Precondition,
    /// What happens where the dialect cannot say all that the ZOM says.
    pub losses: LossPolicy,
}

/// What becomes of a node that is there and differs, and of keys where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// A node that differs stays, and the declaration fails with the differences. It fails as well if there are keys at the place of a new array.
    #[default]
    Fail,
    /// A node that differs is replaced, with everything below it. Chunks of arrays stay where the array at the same path is declared with the same document but for attributes and names of
    /// dimensions. Keys at the place of a new array are erased.
    Replace,
    /// As [`Keep`](Self::Keep), but keys at the place of a new array stay, and those that are named as its chunks are its chunks.
    Adopt,
}

/// What happens where something would be lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// It fails, and tells what.
    #[default]
    Reject,
    /// It is lost, and told.
    Allow,
}

/// What a declaration did.
#[derive(Clone, Debug)]
pub struct CreateOutcome {
    /// What it did.
    pub action: CreateAction,
    /// The node as it is now, with all that is below it. Among its losses is what the dialect does not say of what was declared.
    pub node: NodeInfo,
}

/// What a declaration did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAction {
    /// The node was not there.
    Created,
    /// It was there and equal; nothing was changed.
    Unchanged,
    /// It was there and was replaced.
    Replaced,
}

/// A conversion. What was there stays, so whatever the other dialect cannot say is told, and nothing is refused for it.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// Into which dialect.
    pub dialect: Dialect,
    /// Where to; `None` for the same place: documents over the same chunks.
    pub target: Option<NodePath>,
}

/// What a conversion did.
#[derive(Clone, Debug)]
pub struct ConversionReport {
    /// How many nodes were converted.
    pub nodes: u64,
    /// How many chunks were copied.
    pub chunks: u64,
    /// What was lost, with the path of the node.
    pub losses: Vec<(NodePath, Loss)>,
}
