//! A planned append to a dataset.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use zarrd_meta::{ArrayModel, Dialect, NodePath, zom::Members};
use zarrd_operations::{AppendReport, Depth};
use zarrd_store::{Change, IntentError, Key, Precondition, StoreError};

use super::{coordinate, error::DatasetError};
use crate::{
    context::Context,
    error::ArrayError,
    hierarchy::walk::{mode::WalkOptions, walker::walk},
    memory::claim::Permit,
    metadata::{
        array_update::plan_array_updates,
        model::{NodeModel, read_model},
        shared_commit,
        tree::{NodeKind, NodeTree},
    },
    node::resolved::ResolvedArray,
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
    write::{
        append::{Growth, count_of, growth_patch, spill_key},
        buffered::BufferedElements,
        commit::{WriteTarget, is_current},
        encode::{STAGED_CHUNK_OVERHEAD, StagedChunk, WriteContext},
        error::WriteError,
        layout::ChunkedRegion,
        merge::merge_partial_chunks,
        receive::receive,
        region::check_chunks,
        source::ElementSource,
        split::MAX_CHUNKS,
    },
};

/// The most dimensions that a message lists.
const MAX_LISTED: usize = 64;

/// A planned append to the arrays of a group over a dimension.
#[derive(Debug)]
pub struct DatasetAppend {
    context: Arc<Context>,
    path: NodePath,
    dimension: String,
    arrays: BTreeMap<String, DatasetArray>,
}

/// An array over the dimension.
#[derive(Debug)]
struct DatasetArray {
    target: WriteTarget,
    resolved: Arc<ResolvedArray>,
    /// The number of the dimension.
    axis: usize,
    /// The new elements, once they are received, with their number of steps if it is known.
    elements: Option<(BufferedElements, Option<u64>)>,
}

/// An array, as it is at an attempt.
struct CurrentArray<'a> {
    name: &'a str,
    array: &'a DatasetArray,
    elements: &'a BufferedElements,
    count: Option<u64>,
    resolved: Arc<ResolvedArray>,
}

impl DatasetAppend {
    /// Plans an append to the arrays directly in the group at a path that have a dimension of a name.
    pub(crate) async fn plan(
        context: Arc<Context>,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: &str,
    ) -> Result<Self, DatasetError> {
        context.check_commits(path, "appends to several arrays at once: it is written key by key")?;
        let tree = walk(&context, path, dialect, WalkOptions::new(Depth::Levels(1))).await?.top;
        if tree.kind == NodeKind::Array {
            return Err(DatasetError::NotAGroup { path: path.clone() });
        }
        let mut arrays = BTreeMap::new();
        let mut known = BTreeSet::new();
        for (name, node) in tree.members.iter().flat_map(Members::iter) {
            let Some(axis) = axis_of((path, dimension), name, node, &mut known)? else { continue };
            let target =
                WriteTarget { path: node.path.clone(), dialect: Some(node.dialect), condition: Precondition::none() };
            let resolved = target.resolve(&context).await.map_err(|source| in_array(name, source))?;
            arrays.insert(name.clone(), DatasetArray { target, resolved, axis, elements: None });
        }
        if arrays.is_empty() {
            let name = dimension.chars().take(64).collect();
            let known = known.into_iter().take(MAX_LISTED).collect();
            return Err(DatasetError::UnknownDimension { path: path.clone(), name, known });
        }
        Ok(Self { context, path: path.clone(), dimension: dimension.to_owned(), arrays })
    }

    /// The model of an array over the dimension, with the number of the dimension.
    pub fn array(&self, name: &str) -> Result<(&ArrayModel, usize), DatasetError> {
        match self.arrays.get(name) {
            Some(array) => Ok((array.resolved.array.model(), array.axis)),
            None => {
                let array = name.chars().take(64).collect();
                Err(DatasetError::Unexpected { path: self.path.clone(), name: self.dimension.clone(), array })
            }
        }
    }

    /// Receives the new elements of an array, whose number of steps is `count` if it is known.
    pub async fn receive(
        &mut self,
        name: &str,
        count: Option<u64>,
        elements: ElementSource,
    ) -> Result<(), DatasetError> {
        let unexpected = |dataset: &Self| dataset.array(name).err();
        let Some(array) = self.arrays.get_mut(name) else {
            return unexpected(self).map_or(Ok(()), Err);
        };
        let gathered = async {
            let key = spill_key(&array.resolved)?;
            BufferedElements::gather(&self.context, &key, elements).await
        };
        let elements = gathered.await.map_err(|source| in_array(name, source))?;
        array.elements = Some((elements, count));
        Ok(())
    }

    /// Grows all arrays by the new elements, in one commit.
    pub async fn execute(mut self) -> Result<AppendReport, DatasetError> {
        self.check_complete()?;
        for attempt in 0..MAX_ATTEMPTS {
            let context = self.context.clone();
            let paths: Vec<NodePath> = self.arrays.values().map(|array| array.target.path.clone()).collect();
            let names = || paths.iter().map(|path| path.relative().as_bytes());
            let alone = match attempt >= OPTIMISTIC_ATTEMPTS {
                true => context.document_locks.lock_exclusive(names(), []).await,
                false => Vec::new(),
            };
            let _no_waiting = if alone.is_empty() { None } else { context.no_waiting() };
            match self.attempt(alone.is_empty().then_some(paths.as_slice())).await {
                Ok(Some(report)) => return Ok(AppendReport { conflicts_retried: attempt as u64, ..report }),
                Ok(None) => {}
                Err(DatasetError::Array { source, .. }) if matches!(*source, WriteError::ShapeChanged { .. }) => {}
                // An operation that holds memory does not wait for more: what is buffered is spilled.
                Err(DatasetError::Array { source, .. })
                    if matches!(*source, WriteError::Array(ArrayError::Memory(_))) && self.has_memory() =>
                {
                    self.spill().await?;
                }
                Err(error) => return Err(error),
            }
        }
        Err(ArrayError::TooManyConflicts { path: self.path.clone() }.into())
    }

    /// Fails if the elements of an array were not received.
    fn check_complete(&self) -> Result<(), DatasetError> {
        let missing = self.arrays.iter().filter(|(_, array)| array.elements.is_none());
        let arrays: Vec<String> = missing.map(|(name, _)| name.clone()).collect();
        match arrays.is_empty() {
            true => Ok(()),
            false => Err(DatasetError::Missing { path: self.path.clone(), name: self.dimension.clone(), arrays }),
        }
    }

    /// One attempt; `None` if something that it depends on changed meanwhile. `lock` has the paths to be locked for the
    /// commit, unless they are.
    async fn attempt(&self, lock: Option<&[NodePath]>) -> Result<Option<AppendReport>, DatasetError> {
        let arrays = self.current().await?;
        let before = match self.extent(&arrays) {
            Ok(before) => before,
            // Some array was read before a commit, and another one after it.
            Err(_) if !self.are_current(&arrays).await? => return Ok(None),
            Err(error) => return Err(error),
        };
        let count = self.count(&arrays)?;
        let mut report = self.report(&arrays, before, count);
        if count == 0 {
            return Ok(Some(report));
        }
        if let Some(own) = arrays.iter().find(|array| array.name == self.dimension)
            && own.resolved.array.model().shape.len() == 1
        {
            let of = (&self.path, self.dimension.as_str());
            coordinate::check(&self.context, of, &own.resolved, own.elements).await?;
        }
        let mut growths = Vec::with_capacity(arrays.len());
        for array in &arrays {
            let growth = Growth::new(&array.resolved, array.array.axis, count);
            growths.push(growth.map_err(|source| in_array(array.name, source))?);
        }
        let patches: Vec<_> = arrays
            .iter()
            .zip(&growths)
            .map(|(array, growth)| (&array.array.target.path, &*array.resolved, growth_patch(&growth.shape)))
            .collect();
        let change_set = plan_array_updates(&self.context, &self.path, &patches).await?;
        let consolidated = change_set.consolidated();
        let documents = change_set.stage(&**self.context.writes()?).await?;
        let chunks = self.write(&arrays, growths).await?;
        let staged = || chunks.iter().flat_map(|array| &array.chunks);
        let changes: Vec<Change> = documents.into_iter().chain(staged().flat_map(StagedChunk::changes)).collect();
        for chunk in staged() {
            let counter = if chunk.is_stored() { &mut report.chunks_written } else { &mut report.chunks_erased };
            *counter = counter.saturating_add(1);
        }
        let context = &self.context;
        let _no_waiting = context.no_waiting();
        let names =
            |paths: &[NodePath]| paths.iter().map(|path| path.relative().as_bytes().to_vec()).collect::<Vec<_>>();
        let document_names = lock.map(names).unwrap_or_default();
        let _documents = context.document_locks.lock_shared(document_names.iter().map(Vec::as_slice)).await;
        let keys = staged().flat_map(StagedChunk::keys).map(Key::as_bytes);
        let _together = context.chunk_locks.lock_shared(keys).await;
        let fenced = arrays.iter().map(|array| array.array.target.path.relative().as_bytes());
        let _fence = context.array_locks.lock_shared(fenced).await;
        match shared_commit::commit(context, changes, consolidated.as_ref()).await {
            Ok(_) => Ok(Some(report)),
            Err(StoreError::PreconditionFailed { .. }) => Ok(None),
            Err(StoreError::Intent(IntentError::Excludes { id })) => {
                context.wait_until_settled(&self.path, id).await?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The arrays as they are now.
    async fn current(&self) -> Result<Vec<CurrentArray<'_>>, DatasetError> {
        let mut arrays = Vec::with_capacity(self.arrays.len());
        for (name, array) in &self.arrays {
            let Some((elements, count)) = &array.elements else { continue };
            let resolved = array.target.resolve(&self.context).await.map_err(|source| in_array(name, source))?;
            let (planned, model) = (array.resolved.array.model(), resolved.array.model());
            if planned.shape.len() != model.shape.len() || planned.data_type != model.data_type {
                let source = WriteError::Array(ArrayError::TooManyConflicts { path: array.target.path.clone() });
                return Err(in_array(name, source));
            }
            arrays.push(CurrentArray { name, array, elements, count: *count, resolved });
        }
        Ok(arrays)
    }

    /// True if all arrays are still as they were read, so that there was a commit after which they all were.
    async fn are_current(&self, arrays: &[CurrentArray<'_>]) -> Result<bool, StoreError> {
        for array in arrays {
            if !is_current(&self.context, &array.resolved).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The extent that all arrays have along the dimension.
    fn extent(&self, arrays: &[CurrentArray<'_>]) -> Result<u64, DatasetError> {
        let mut first: Option<(&str, u64)> = None;
        for CurrentArray { name, array, resolved, .. } in arrays {
            let extent = resolved.array.model().view_shape().get(array.axis).copied().unwrap_or(0);
            let (other, other_extent) = *first.get_or_insert((*name, extent));
            if extent != other_extent {
                return Err(DatasetError::UnequalExtents {
                    path: self.path.clone(),
                    name: self.dimension.clone(),
                    array: (*name).to_owned(),
                    extent,
                    other: other.to_owned(),
                    other_extent,
                });
            }
        }
        Ok(first.map_or(0, |(_, extent)| extent))
    }

    /// The number of new steps, which all arrays have.
    fn count(&self, arrays: &[CurrentArray<'_>]) -> Result<u64, DatasetError> {
        let mut first: Option<(&str, u64)> = None;
        for CurrentArray { name, array, elements, count, resolved } in arrays {
            let count = count_of(resolved, array.axis, *count, elements).map_err(|source| in_array(name, source))?;
            let (other, other_count) = *first.get_or_insert((*name, count));
            if count != other_count {
                return Err(DatasetError::UnequalCounts {
                    path: self.path.clone(),
                    name: self.dimension.clone(),
                    array: (*name).to_owned(),
                    count,
                    other: other.to_owned(),
                    other_count,
                });
            }
        }
        Ok(first.map_or(0, |(_, count)| count))
    }

    fn report(&self, arrays: &[CurrentArray<'_>], before: u64, count: u64) -> AppendReport {
        let after = before.saturating_add(count);
        let shape = |array: &CurrentArray<'_>| {
            let mut shape = array.resolved.array.model().view_shape();
            shape.get_mut(array.array.axis).into_iter().for_each(|extent| *extent = after);
            (array.name.to_owned(), shape)
        };
        AppendReport {
            dimension: self.dimension.clone(),
            before,
            after,
            arrays: arrays.iter().map(shape).collect(),
            chunks_written: 0,
            chunks_erased: 0,
            conflicts_retried: 0,
        }
    }

    /// Encodes and stages the chunks of the new elements of all arrays.
    async fn write(&self, arrays: &[CurrentArray<'_>], growths: Vec<Growth>) -> Result<Vec<ArrayChunks>, DatasetError> {
        let mut written = Vec::with_capacity(arrays.len());
        let mut chunks = 0_u64;
        for (array, Growth { array: grown, region, .. }) in arrays.iter().zip(growths) {
            let write = async {
                check_chunks(&grown, &region)?;
                let Some(layout) = ChunkedRegion::new(&region, grown.model()) else { return Ok(None) };
                chunks = chunks.saturating_add(layout.chunks());
                if chunks > MAX_CHUNKS {
                    return Err(ArrayError::TooManyChunks { chunks: chunks.into(), limit: MAX_CHUNKS }.into());
                }
                let empty = array.resolved.empty_chunks(&self.context.options);
                let target = WriteContext::new(self.context.clone(), grown, empty, layout)?;
                let target = Arc::new(target);
                let source = array.elements.source(&self.context)?;
                let received = receive(&target, self.context.account(), source).await?;
                let merged = merge_partial_chunks(&target, &received.pending, received.memory).await?;
                // Only the memory of its staged chunks stays reserved, since the next array takes its own.
                let chunks: Vec<StagedChunk> = received.chunks.into_iter().chain(merged.into_chunks()).collect();
                let size = (chunks.len() as u64).saturating_mul(STAGED_CHUNK_OVERHEAD);
                let memory = self.context.try_reserve_memory(size).ok_or(ArrayError::Busy)?;
                Ok::<_, WriteError>(Some(ArrayChunks { chunks, _memory: memory }))
            };
            written.extend(write.await.map_err(|source| in_array(array.name, source))?);
        }
        Ok(written)
    }

    fn has_memory(&self) -> bool {
        let elements = self.arrays.values().filter_map(|array| array.elements.as_ref());
        { elements }.any(|(elements, _)| elements.has_memory())
    }

    async fn spill(&mut self) -> Result<(), DatasetError> {
        for (name, array) in &mut self.arrays {
            let Some((elements, _)) = &mut array.elements else { continue };
            let key = spill_key(&array.resolved).map_err(|source| in_array(name, source))?;
            if elements.has_memory() {
                elements.spill(&self.context, &key).await?;
            }
        }
        Ok(())
    }
}

/// The staged chunks of an array, with their memory.
struct ArrayChunks {
    chunks: Vec<StagedChunk>,
    _memory: Permit,
}

/// The number of a dimension that a member has; `None` if it is no array over it. The dimensions of arrays become known.
fn axis_of(
    (group, dimension): (&NodePath, &str),
    name: &str,
    node: &NodeTree,
    known: &mut BTreeSet<String>,
) -> Result<Option<usize>, DatasetError> {
    if node.kind != NodeKind::Array || node.broken.is_some() {
        return Ok(None);
    }
    let NodeModel::Array(model) = read_model(node)? else { return Ok(None) };
    let names = || model.dimension_names.iter().map(Option::as_deref);
    known.extend(names().flatten().take(MAX_LISTED).map(str::to_owned));
    let is_over = |(axis, found): (usize, Option<&str>)| (found == Some(dimension)).then_some(axis);
    let mut axes = names().enumerate().filter_map(is_over);
    match (axes.next(), axes.next()) {
        (Some(_), Some(_)) => Err(DatasetError::RepeatedDimension {
            path: group.clone(),
            name: dimension.to_owned(),
            array: name.to_owned(),
        }),
        (Some(axis), None) => Ok(Some(axis)),
        // The coordinate of a dimension may lack its name.
        _ => Ok((name == dimension && model.shape.len() == 1 && names().flatten().next().is_none()).then_some(0)),
    }
}

fn in_array(name: &str, source: WriteError) -> DatasetError {
    DatasetError::Array { array: name.to_owned(), source: Box::new(source) }
}
