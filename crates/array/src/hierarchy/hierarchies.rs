//! The operations on hierarchies.

use std::sync::Arc;

use futures::future::Either;
use tokio::time::Instant;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    documents::NodePatch,
    zom::{Difference, Zom},
};
use zarrd_operations::{ConversionReport, ConvertOptions, Depth, PatchMode};
use zarrd_store::{KeyCount, Precondition, StoreError, not_before, until_unchanged};

use super::{
    convert, copy,
    create::{self, Attempt, AttemptResult},
    create_array::ArrayCreation,
    describe::describe,
    differences::{Declared, differences},
    erase, erase_by_key,
    intents::{self, SettledIntents},
    options::{CreateOptions, CreateOutcome, DescribedNode},
    patch,
    walk::{
        mode::{Below, Caching, DialectMode, FailedMounts, WalkOptions},
        walker::{Walk, walk},
    },
};
use crate::{
    context::Context,
    locks::path::Scope,
    memory::claim::Permit,
    metadata::error::{NodeError, too_many_conflicts},
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
};

/// The hierarchies of a store. Clones share its caches.
///
/// Changes of one node, or of a node and one above it, are serialised. Each is one commit, which includes the
/// consolidated metadata above the node and its documents in other dialects.
#[derive(Clone, Debug)]
pub struct Hierarchies(pub(crate) Arc<Context>);

impl Hierarchies {
    /// Describes the node at a path: in `dialect`, or in the preferred dialect that has a node there. With `mapped` its
    /// structure is described in the model of that dialect.
    pub async fn node(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        depth: Depth,
        mapped: Option<Dialect>,
    ) -> Result<DescribedNode, NodeError> {
        let mode = if mapped.is_some() { DialectMode::Each } else { DialectMode::Same };
        let options = WalkOptions {
            mode,
            below: Below::Copies,
            failed_mounts: FailedMounts::Broken,
            caching: Caching::Documents,
            ..WalkOptions::new(depth)
        };
        let walk = walk(&self.0, path, dialect, options).await?;
        describe(&self.0, walk, mapped).await
    }

    /// Creates a tree at a path, in one commit, with the groups above it that the dialect requires.
    pub async fn create(
        &self,
        path: &NodePath,
        zom: Arc<Zom>,
        declaration: &CreateOptions,
    ) -> Result<CreateOutcome, NodeError> {
        self.0.writes()?;
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self.currently(path, create::attempt(&self.0, path, &zom, declaration)).await?;
            let Some(Attempt { effect, dialect, losses, result }) = attempt else { continue };
            // A large declaration becomes the description, without a copy.
            drop(zom);
            let mut node = match result {
                AttemptResult::Changed(tree) => tree.describe(&self.0).await?,
                AttemptResult::Existing(walk) => describe(&self.0, walk, None).await?,
                AttemptResult::Unknown => {
                    let walk = walk(&self.0, path, Some(dialect), WalkOptions::new(Depth::All)).await?;
                    describe(&self.0, walk, None).await?
                }
            };
            node.info.losses.extend(losses);
            return Ok(CreateOutcome { action: effect, node });
        }
        Err(too_many_conflicts(path))
    }

    /// Plans the creation of an array together with its elements, in one commit. Fails if there is a node at the path
    /// already, also an equal one, unless the options replace it.
    pub async fn create_array(
        &self,
        path: &NodePath,
        zom: Arc<Zom>,
        options: &CreateOptions,
    ) -> Result<ArrayCreation, NodeError> {
        ArrayCreation::plan(self.0.for_operation(), path, zom, options).await
    }

    /// The differences between the hierarchy at a path and a ZOM, at most `limit`. A broken node is a difference.
    pub async fn compare(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        declared: Zom,
        limit: usize,
    ) -> Result<Vec<Difference>, NodeError> {
        zarrd_executor::leave().await;
        let options = WalkOptions { below: Below::Copies, ..WalkOptions::new(Depth::All) };
        let Walk { top, memory, .. } = walk(&self.0, path, dialect, options).await?;
        let bytes = memory.iter().map(Permit::bytes).fold(0, u64::saturating_add);
        let found = self
            .0
            .run(Cost::of(Work::Tree, bytes), move || {
                differences(Declared::Zom(&declared.root), declared.format, &top, limit)
            })
            .await?;
        drop(memory);
        found
    }

    /// Updates the metadata of a node: attributes, and of an array its shape and dimension names. Chunks outside a
    /// smaller shape are erased before this returns, and before the array can grow again. As with other Zarr
    /// implementations, an edge chunk keeps its elements outside the shape.
    pub async fn patch(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        changes: &NodePatch,
        condition: &Precondition,
    ) -> Result<DescribedNode, NodeError> {
        self.patch_in(path, dialect, changes, (condition, PatchMode::Whole)).await
    }

    /// Updates the metadata of a node like [`patch`](Self::patch). In a store that is written key by key, several documents are
    /// changed one after the other in [`PatchMode::Piecewise`]; otherwise that is unsupported.
    pub async fn patch_in(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        changes: &NodePatch,
        given: (&Precondition, PatchMode),
    ) -> Result<DescribedNode, NodeError> {
        self.0.writes()?;
        let _lock = self.0.lock_path(path, Scope::Node).await?;
        let name = path.relative().as_bytes();
        for attempt in 0..MAX_ATTEMPTS {
            let _turn = match attempt >= OPTIMISTIC_ATTEMPTS {
                true => self.0.document_locks.lock_exclusive([name], []).await,
                false => self.0.document_locks.lock_shared([name]).await,
            };
            if let Some(dialect) = self.currently(path, patch::attempt(&self.0, path, dialect, changes, given)).await? {
                return until_unchanged(|| self.node(path, Some(dialect), Depth::Levels(0), None)).await;
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Erases a node and everything below it, metadata first, and returns the number of keys.
    pub async fn erase(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        condition: &Precondition,
    ) -> Result<KeyCount, NodeError> {
        self.0.writes()?;
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            let attempt = match self.0.is_keyed_at(path) {
                true => {
                    Box::pin(self.currently(path, erase_by_key::attempt(&self.0, path, dialect, condition))).await?
                }
                false => erase::attempt(&self.0, path, dialect, condition).await?,
            };
            if let Some(erased) = attempt {
                return Ok(erased);
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Converts a hierarchy to another dialect. Broken nodes are left out, and reported as losses.
    pub async fn convert(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        conversion: &ConvertOptions,
    ) -> Result<ConversionReport, NodeError> {
        zarrd_executor::leave().await;
        if let Some(target) = &conversion.target {
            self.0.writes()?;
            return match self.0.is_keyed_at(target) {
                true => copy::copy_by_key(&self.0, path, dialect, target, conversion).await,
                false => copy::copy(&self.0, path, dialect, target, conversion).await,
            };
        }
        self.0.check_commits(path, "converting in place: it is written key by key")?;
        let _lock = self.0.lock_path(path, Scope::Subtree).await?;
        for _ in 0..MAX_ATTEMPTS {
            if let Some(report) = convert::in_place(&self.0, path, dialect, conversion).await? {
                return Ok(report);
            }
        }
        Err(too_many_conflicts(path))
    }

    /// Makes an attempt to change a node. Where keys change one by one, it uses nothing that was cached before: other processes
    /// change them too, and what it takes for done already would not be compared with what is stored.
    fn currently<F: Future>(&self, path: &NodePath, attempt: F) -> impl Future<Output = F::Output> + use<F> {
        match self.0.is_keyed_at(path) {
            true => Either::Left(not_before(Some(Instant::now()), attempt)),
            false => Either::Right(attempt),
        }
    }

    /// Settles the operations of runs of the store that ended. Running it again changes nothing.
    ///
    /// An operation that cannot be settled, or has a record of a later version, is logged and stays as it is.
    pub async fn settle_intents(&self) -> Result<SettledIntents, StoreError> {
        intents::settle_all(&self.0).await
    }
}
