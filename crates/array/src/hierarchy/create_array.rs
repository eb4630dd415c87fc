//! Creating an array together with its elements, in one commit.

use std::sync::Arc;

use zarrd_meta::{ArrayModel, NodePath, selection::Region, zom::Zom};
use zarrd_operations::{IfExists, NodeRejection, WriteReport};
use zarrd_store::{Batch, Change, ChangeOutcome, IntentError, Key, Precondition, StoreError, Version};

use super::{
    create::{PlannedChange, plan_change},
    options::{CreateAction, CreateOptions},
};
use crate::{
    context::Context,
    error::ArrayError,
    growth::creation::{CreationClaim, claim_key},
    locks::path::Scope,
    metadata::{
        copy_update::ConsolidatedUpdate,
        error::{NodeError, too_many_conflicts},
        keyed_commit,
        model::{NodeModel, read_model},
        shared_commit,
        tree::NodeTree,
    },
    node::{
        array::Array,
        read_set::{NodeVersions, ReadSet},
        resolved::ResolvedArray,
    },
    retry::MAX_ATTEMPTS,
    write::{
        commit::stores_alike,
        encode::{StagedChunk, WriteContext},
        error::WriteError,
        layout::ChunkedRegion,
        merge::merge_partial_chunks,
        receive::{expect_no_elements, receive},
        region::check_chunks,
        source::ElementSource,
    },
};

/// A planned creation of an array together with its elements.
#[derive(Debug)]
pub struct ArrayCreation {
    context: Arc<Context>,
    path: NodePath,
    zom: Arc<Zom>,
    options: CreateOptions,
    /// The array, as it will be.
    array: Array,
}

/// The chunks of a new array.
struct NewChunks {
    changes: Vec<Change>,
    written: u64,
    erased: u64,
}

impl ArrayCreation {
    /// Plans the creation of the array that a ZOM declares. Fails if there is a node already, unless the options replace
    /// it.
    pub(crate) async fn plan(
        context: Arc<Context>,
        path: &NodePath,
        zom: Arc<Zom>,
        options: &CreateOptions,
    ) -> Result<Self, NodeError> {
        context.writes()?;
        let PlannedChange { effect, plan, .. } = plan_change(&context, path, &zom, options).await?;
        check_effect(path, effect, options)?;
        if context.is_keyed_at(path) && effect != CreateAction::Created {
            return Err(StoreError::Unsupported { what: "replacing a node: it is written key by key" }.into());
        }
        let array = planned_array(&plan.top)?;
        Ok(Self { context, path: path.clone(), zom, options: options.clone(), array })
    }

    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.array.model()
    }

    /// Creates the array with its elements, in one commit.
    pub async fn execute(self, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let shape = self.model().view_shape();
        let (chunks, _memory) = self.chunks(elements).await?;
        let _lock = self.context.lock_path(&self.path, Scope::Subtree).await?;
        for attempt in 0..MAX_ATTEMPTS {
            let planned = plan_change(&self.context, &self.path, &self.zom, &self.options).await?;
            check_effect(&self.path, planned.effect, &self.options)?;
            let is_keyed = self.context.is_keyed_at(&self.path);
            if is_keyed && planned.effect != CreateAction::Created {
                return Err(too_many_conflicts(&self.path).into());
            }
            let existing = planned.existing().filter(|_| planned.effect == CreateAction::Unchanged).cloned();
            let PlannedChange { change_set, plan, .. } = planned;
            if !stores_alike(planned_array(&plan.top)?.model(), self.model()) {
                return Err(WriteError::ShapeChanged { path: self.path.clone() });
            }
            let consolidated = change_set.consolidated();
            let claim = self.context.needs_claim(&self.path).then(|| claim_key(&plan.top, self.model())).transpose()?;
            let mut documents = change_set.stage(&**self.context.writes()?).await.map_err(WriteError::from)?;
            documents.extend(existing.iter().flat_map(unchanged));
            let own = existing.unwrap_or(plan.top.own);
            let own_positions = positions(&own, &documents);
            let batch = Batch { documents, chunks: chunks.changes.clone() };
            let fence = self.context.array_locks.lock_shared([self.path.relative().as_bytes()]).await;
            let committed = match is_keyed {
                true => Box::pin(self.apply_by_key(claim, batch, consolidated.as_ref())).await,
                false => shared_commit::commit(&self.context, batch.into_changes(), consolidated.as_ref()).await,
            };
            drop(fence);
            match committed {
                Ok(outcomes) => return Ok(chunks.report((own, own_positions), &outcomes, (shape, attempt as u64))),
                Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => {}
                Err(StoreError::Intent(IntentError::Excludes { .. })) => {
                    return Err(ArrayError::Unfinished { path: self.path.clone() }.into());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(too_many_conflicts(&self.path).into())
    }

    /// Creates the array where keys change one by one, under the claim with this key if other servers change them too.
    async fn apply_by_key(
        &self,
        claim: Option<Key>,
        mut batch: Batch,
        consolidated: Option<&Arc<ConsolidatedUpdate>>,
    ) -> Result<Vec<ChangeOutcome>, StoreError> {
        let Some(key) = claim else { return keyed_commit::apply_tree(&self.context, batch, consolidated).await };
        let claim = CreationClaim::acquire(&self.context, &self.path, key).await?;
        let created = async {
            claim.check_empty(&mut batch.documents).await?;
            keyed_commit::apply_tree(&self.context, batch, consolidated).await
        };
        let created = created.await;
        claim.settle(&created).await;
        created
    }

    /// Encodes and stages all chunks; returns them with the memory that they take until the commit.
    async fn chunks(&self, elements: ElementSource) -> Result<(NewChunks, impl Send + use<>), WriteError> {
        let region = Region::full(&self.model().shape);
        check_chunks(&self.array, &region)?;
        let Some(layout) = ChunkedRegion::new(&region, self.model()) else {
            expect_no_elements(elements).await?;
            return Ok((NewChunks { changes: Vec::new(), written: 0, erased: 0 }, None));
        };
        let alone = ResolvedArray {
            array: self.array.clone(),
            read_set: ReadSet::default(),
            versions: Default::default(),
            hierarchy: None,
            unreadable_attributes: None,
            counterpart: None,
            document_shape: None,
            times: None,
        };
        let empty = alone.empty_chunks(&self.context.options);
        let target = Arc::new(WriteContext::new(self.context.clone(), self.array.clone(), empty, layout)?);
        let received = receive(&target, self.context.account(), elements).await?;
        let merged = merge_partial_chunks(&target, &received.pending, received.memory).await?;
        let all = || received.chunks.iter().chain(&merged.chunks);
        let written = all().filter(|chunk| chunk.is_stored()).count() as u64;
        let erased = (all().count() as u64).saturating_sub(written);
        let changes = all().flat_map(StagedChunk::changes).collect();
        Ok((NewChunks { changes, written, erased }, Some(merged)))
    }
}

impl NewChunks {
    /// The report of a commit, in which the changes of the array's own documents have these positions.
    fn report(
        &self,
        (mut versions, positions): (NodeVersions, Vec<Option<usize>>),
        outcomes: &[ChangeOutcome],
        (shape, conflicts_retried): (Vec<u64>, u64),
    ) -> WriteReport {
        versions.advance(positions.into_iter().map(|position| outcomes.get(position?)));
        let (chunks_written, chunks_erased) = (self.written, self.erased);
        let version = Some(versions.version());
        WriteReport { version, shape, chunks_written, chunks_erased, conflicts_retried, relation: None }
    }
}

/// Fails if a node exists that is not replaced. An equal one has other elements, so it counts.
fn check_effect(path: &NodePath, effect: CreateAction, options: &CreateOptions) -> Result<(), NodeError> {
    match (effect, options.if_exists) {
        (CreateAction::Unchanged, IfExists::Replace) => Ok(()),
        (CreateAction::Unchanged, _) => {
            Err(NodeRejection::NodeConflict { path: path.clone(), differences: Vec::new() }.into())
        }
        (CreateAction::Created | CreateAction::Replaced, _) => Ok(()),
    }
}

/// The array of a planned tree.
fn planned_array(top: &NodeTree) -> Result<Array, NodeError> {
    let NodeModel::Array(model) = read_model(top)? else {
        return Err(ArrayError::NotAnArray { path: top.path.clone() }.into());
    };
    Ok(Array::new(*model, top.path.clone(), &top.key_prefix()?, 0)?)
}

/// The positions of the changes of documents.
fn positions(own: &NodeVersions, changes: &[Change]) -> Vec<Option<usize>> {
    own.keys().map(|key| changes.iter().position(|change| change.key() == Some(key))).collect()
}

/// The conditions that documents are unchanged.
fn unchanged(own: &NodeVersions) -> Vec<Change> {
    let check = |(key, version): &(Key, Option<Version>)| Change::Check {
        key: key.clone(),
        precondition: Precondition::unchanged(*version),
    };
    own.0.iter().map(check).collect()
}
