//! Options and results of operations on hierarchies.

use std::{ops::Deref, sync::Arc};

use zarrd_meta::{Dialect, NodePath};
use zarrd_operations::{IfExists, LossPolicy, NodeInfo};
use zarrd_store::{Precondition, Scanned};

use crate::memory::claim::Permit;

/// A node, and the memory that it takes of the account of all requests.
#[derive(Clone, Debug)]
pub struct DescribedNode {
    /// The node.
    pub info: NodeInfo,
    /// The keys and prefixes directly below a group that belong to no node, in their order: those of a page of members,
    /// if they were requested.
    pub files: Option<Vec<Scanned>>,
    /// The mounts below it whose members are unknown, since their stores have no listings and no document names their
    /// nodes. Of a group, the members are not described; a path without a document is no member at all.
    pub unlisted: Vec<NodePath>,
    /// The memory of all of this.
    #[allow(dead_code, reason = "a permit has an effect when it is dropped")]
    pub(super) memory: Arc<Vec<Permit>>,
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

/// The result of creating a tree.
#[derive(Clone, Debug)]
pub struct CreateOutcome {
    /// The action taken.
    pub action: CreateAction,
    /// The node with everything below it. Its losses include the properties of the ZOM that the dialect cannot
    /// represent.
    pub node: DescribedNode,
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

impl Deref for DescribedNode {
    type Target = NodeInfo;

    fn deref(&self) -> &NodeInfo {
        &self.info
    }
}
