//! Options and results of operations on hierarchies.

use std::sync::Arc;

use meta::{Dialect, NodePath, convert::Loss, extensions::Link, zom::Zom};
use store::{Precondition, Version};

use crate::{memory::claim::Permit, node::broken::BrokenNode};

/// The maximum depth of a described subtree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Descendants up to so many levels down; 0 omits the members.
    Levels(u32),
    /// All descendants, down to 64 levels, the depth to which JSON readers can follow.
    All,
}

/// A node as of one commit.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Its path.
    pub path: NodePath,
    /// The dialect that it is stored in.
    pub dialect: Dialect,
    /// True if it is a group without a document, which exists because there are nodes below it.
    pub implicit: bool,
    /// The version of the node, which changes whenever one of its own documents does; `None` for an implicit group.
    pub version: Option<Version>,
    /// The node in the Zarr Object Model.
    pub zom: Zom,
    /// The children that are nodes of another dialect, and so not among the members. Empty if the node was described in
    /// another dialect's model, which has them as members.
    pub other_dialects: Vec<(NodePath, Dialect)>,
    /// The nodes below it that are left out because their documents cannot be read or, described in another dialect's
    /// model, ask for something that is not supported.
    pub broken: Vec<BrokenNode>,
    /// Properties that the described dialect cannot represent, with the path of their node.
    pub losses: Vec<(NodePath, Loss)>,
    /// The arrays that extensions of the group link to, and whether they exist.
    pub links: Vec<(Link, LinkTarget)>,
    /// The memory of all of this.
    #[allow(dead_code, reason = "it is held, not looked at")]
    pub(super) memory: Arc<Vec<Permit>>,
}

/// The target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// An array.
    Array,
    /// A group, or nothing.
    Missing,
}

/// Options of creating a tree.
#[derive(Clone, Debug, Default)]
pub struct CreateOptions {
    /// The dialect to store it in. By default that of the existing node, or of the surrounding hierarchy, if the ZOM
    /// has its model; otherwise that of the ZOM.
    pub dialect: Option<Dialect>,
    /// The treatment of an existing node that differs.
    pub if_exists: IfExists,
    /// The precondition on the node's version.
    pub precondition: Precondition,
    /// The treatment of properties that the dialect cannot represent.
    pub losses: LossPolicy,
}

/// The treatment of an existing node that differs, and of stray keys at the place of a new array.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IfExists {
    /// Fail with the differences, or with a stray key.
    #[default]
    Fail,
    /// Replace the node, with everything below it. An array keeps its chunks if only its attributes and dimension names
    /// differ. Stray keys are erased.
    Replace,
    /// As [`Fail`](Self::Fail), but stray keys stay, and those named like chunks become chunks of the new array.
    Adopt,
}

/// The treatment of properties that cannot be represented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LossPolicy {
    /// Fail, with the list of losses.
    #[default]
    Reject,
    /// Drop it, and report it.
    Allow,
}

/// The result of creating a tree.
#[derive(Clone, Debug)]
pub struct CreateOutcome {
    /// The action taken.
    pub action: CreateAction,
    /// The node with everything below it. Its losses include the properties of the ZOM that the dialect cannot
    /// represent.
    pub node: NodeInfo,
}

/// The action that a creation took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateAction {
    /// The node did not exist, and was created.
    Created,
    /// The node existed and is equal; nothing was changed.
    Unchanged,
    /// The node existed and was replaced.
    Replaced,
}

/// Options of converting a hierarchy. The original stays, so losses are reported and are no error.
#[derive(Clone, Debug)]
pub struct ConvertOptions {
    /// The dialect to convert to.
    pub dialect: Dialect,
    /// The path to copy to; `None` writes documents over the same chunks.
    pub target: Option<NodePath>,
}

/// The result of a conversion.
#[derive(Clone, Debug)]
pub struct ConversionReport {
    /// The number of nodes converted.
    pub nodes: u64,
    /// The number of chunks copied.
    pub chunks: u64,
    /// Properties that were lost, with the path of their node.
    pub losses: Vec<(NodePath, Loss)>,
}
