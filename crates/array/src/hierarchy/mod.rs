//! Hierarchies: what nodes there are, and changing that.

mod change_set;
mod consolidated;
mod convert;
mod copy;
mod create;
mod describe;
mod differences;
pub(crate) mod documents;
mod erase;
mod error;
mod intents;
mod keys;
mod members;
mod parent;
mod patch;
mod plan;
mod replace;
mod shrink;
mod stray_keys;
mod walk;

pub use error::NodeError;
pub use intents::SettledIntents;
pub use members::{MAX_MEMBERS, MemberPage, Members};

use std::sync::Arc;

use meta::{
    Dialect, NodePath,
    convert::Loss,
    documents::Changes,
    extensions::Link,
    zom::{Difference, Zom},
};
use store::{ErasedKeys, Precondition, StoreError, Version};

use self::{
    create::Attempt,
    describe::describe,
    differences::differences,
    walk::{DialectMode, Walk, walk},
};
use crate::{
    MAX_ATTEMPTS, context::Context, error::ArrayError, locks::path::Scope, memory::Permit, node::broken::BrokenNode,
};

/// The hierarchies of a store. Clones share its caches.
///
/// Changes of the same node, or of one and those above it, come one after the other. Each is one commit, with the consolidated metadata above it, and with the documents that a node has in other dialects.
#[derive(Clone, Debug)]
pub struct Hierarchies(pub(crate) Arc<Context>);

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
    memory: Arc<Vec<Permit>>,
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

impl Hierarchies {
    /// The node at a path; in `dialect` if only that is meant. With `mapped` its structure, whatever it is stored as, is told by that dialect's model.
    pub async fn node(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        depth: Depth,
        mapped: Option<Dialect>,
    ) -> Result<NodeInfo, NodeError> {
        let mode = if mapped.is_some() { DialectMode::Each } else { DialectMode::Same };
        let walk = walk(&self.0, path, dialect, depth, mode).await?;
        describe(&self.0, walk, mapped).await
    }

    /// Declares a tree at a path: creates it in one commit, with the groups above it where the dialect wants them.
    pub async fn create(
        &self,
        path: &NodePath,
        zom: &Arc<Zom>,
        declaration: &CreateOptions,
    ) -> Result<CreateOutcome, NodeError> {
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            let attempt = create::attempt(&self.0, path, zom, declaration).await?;
            let Some(Attempt { effect, dialect, losses, known }) = attempt else { continue };
            let walk = match known {
                Some(top) => Walk { top, other: Vec::new(), memory: Vec::new() },
                None => walk(&self.0, path, Some(dialect), Depth::All, DialectMode::Same).await?,
            };
            let mut node = describe(&self.0, walk, None).await?;
            node.losses.extend(losses);
            return Ok(CreateOutcome { action: effect, node });
        }
        Err(too_many_conflicts(path))
    }

    /// Where the hierarchy at a path differs from a ZOM, at most `limit` places. A broken node below it is a difference.
    pub async fn compare(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        declared: Zom,
        limit: usize,
    ) -> Result<Vec<Difference>, NodeError> {
        let Walk { top, memory, .. } = walk(&self.0, path, dialect, Depth::All, DialectMode::Same).await?;
        let bytes = memory.iter().map(Permit::bytes).fold(0, u64::saturating_add);
        let found = self.0.run_on_documents(bytes, move || differences(&declared, top, limit)).await?;
        drop(memory);
        found
    }

    /// Changes what is said of a node: attributes, and of an array its shape and the names of its dimensions. Chunks that a smaller shape leaves outside are erased before this returns, and
    /// before the array can grow again; a chunk at the edge keeps what it has beyond the new shape, as with other writers of Zarr.
    pub async fn patch(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        changes: &Changes,
        condition: &Precondition,
    ) -> Result<NodeInfo, NodeError> {
        let _lock = self.0.lock_path(path, Scope::Node).await?;
        if changes.shape.is_some() {
            self.0.wait_until_shrunk(path).await?;
        }
        for _ in 0..MAX_ATTEMPTS {
            if let Some(dialect) = patch::attempt(&self.0, path, dialect, changes, condition).await? {
                return self.node(path, Some(dialect), Depth::Levels(0), None).await;
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Erases a node and all below it, metadata first, and gives the number of its keys.
    pub async fn erase(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        condition: &Precondition,
    ) -> Result<ErasedKeys, NodeError> {
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(erased) = erase::attempt(&self.0, path, dialect, condition).await? {
                return Ok(erased);
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Converts a hierarchy. Broken nodes are left out, and told among the losses.
    pub async fn convert(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        conversion: &ConvertOptions,
    ) -> Result<ConversionReport, NodeError> {
        if let Some(target) = &conversion.target {
            return copy::copy(&self.0, path, dialect, target, conversion).await;
        }
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(report) = convert::in_place(&self.0, path, dialect, conversion).await? {
                return Ok(report);
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Undoes what operations have left that were interrupted when the store was last used. Done before anything else changes
    /// hierarchies; doing it again changes nothing.
    ///
    /// What cannot be undone, or was begun by a version that this one does not understand, is logged and stays as it is.
    pub async fn settle_intents(&self) -> Result<SettledIntents, StoreError> {
        intents::settle_all(&self.0).await
    }
}

fn too_many_conflicts(path: &NodePath) -> NodeError {
    ArrayError::TooManyConflicts { path: path.clone() }.into()
}
