//! The operations on hierarchies.

use std::sync::Arc;

use meta::{
    Dialect, NodePath,
    documents::Changes,
    zom::{Difference, Zom},
};
use store::{ErasedKeys, Precondition, StoreError};

use super::{
    convert, copy,
    create::{self, Attempt},
    describe::describe,
    differences::differences,
    erase,
    intents::{self, SettledIntents},
    options::{ConversionReport, ConvertOptions, CreateOptions, CreateOutcome, Depth, NodeInfo},
    patch,
    walk::{
        mode::DialectMode,
        walker::{Walk, walk},
    },
};
use crate::{
    context::Context,
    locks::path::Scope,
    memory::claim::Permit,
    metadata::error::{NodeError, too_many_conflicts},
    retry::MAX_ATTEMPTS,
};

/// The hierarchies of a store. Clones share its caches.
///
/// Changes of the same node, or of one and those above it, come one after the other. Each is one commit, with the consolidated metadata above it, and with the documents that a node has in other dialects.
#[derive(Clone, Debug)]
pub struct Hierarchies(pub(crate) Arc<Context>);

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
