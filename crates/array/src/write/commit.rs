//! Commits of writes.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;
use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    documents::{ElementImpact, NodePatch},
    extensions::survives_write,
    selection::{ReadRequest, ResolvedSelection},
};
use zarrd_operations::WriteReport;
use zarrd_store::{
    Batch, Change, ChangeOutcome, IntentError, Key, Precondition, StoreError, Version, not_before, until_unchanged,
};

use super::{
    encode::{StagedChunk, WriteContext},
    error::WriteError,
    merge,
    receive::ReceivedChunks,
    split,
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{array_update::ArrayMetadataUpdate, copy_update::ConsolidatedUpdate, keyed_commit, shared_commit},
    node::resolved::ResolvedArray,
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
};

/// The number of chunks whose state is requested at a time.
pub(super) const CONCURRENT: usize = 32;

/// The target of a write: the path of an array, and the precondition on its version.
#[derive(Clone, Debug)]
pub(crate) struct WriteTarget {
    pub(crate) path: NodePath,
    pub(crate) dialect: Option<Dialect>,
    pub(crate) condition: Precondition,
}

impl WriteTarget {
    /// Resolves the array for a change; fails if the precondition does.
    pub(crate) async fn resolve(&self, context: &Context) -> Result<Arc<ResolvedArray>, WriteError> {
        let resolved = until_unchanged(|| self.resolve_current(context)).await?;
        self.check_precondition(&resolved)?;
        Ok(resolved.for_change()?)
    }

    /// Resolves the array.
    pub(crate) async fn resolve_current(&self, context: &Context) -> Result<Arc<ResolvedArray>, ArrayError> {
        match context.cached_array(&self.path, self.dialect) {
            Some(resolved) if is_current(context, &resolved).await? => Ok(resolved),
            _ => context.resolve_array(&self.path, self.dialect).await,
        }
    }

    fn check_precondition(&self, resolved: &ResolvedArray) -> Result<(), WriteError> {
        if self.condition == Precondition::none() {
            return Ok(());
        }
        let current = Some(resolved.version());
        if self.condition.is_met_by(current) {
            return Ok(());
        }
        Err(WriteError::PreconditionFailed { path: self.path.clone(), current })
    }
}

/// True if the documents are still current. One may change while the next is checked, which the commit will detect.
pub(crate) async fn is_current(context: &Context, resolved: &ResolvedArray) -> Result<bool, StoreError> {
    for (key, version) in resolved.read_set.versions() {
        if context.store.head(key).await?.map(|info| info.version) != *version {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The input that a write was planned against, in addition to the array's documents.
pub(crate) enum WriteKind<'a> {
    /// A selection, and what it resolved to.
    Region(&'a ReadRequest, &'a ResolvedSelection),
    /// An append, which grows the array to a shape.
    Append {
        /// The changed documents.
        documents: &'a ArrayMetadataUpdate,
        /// The new shape of the view.
        shape: &'a [u64],
    },
}

/// Commits the received elements of a region.
pub(crate) async fn commit(
    target: &Arc<WriteContext>,
    place: &WriteTarget,
    resolved: Arc<ResolvedArray>,
    kind: &WriteKind<'_>,
    received: ReceivedChunks,
) -> Result<WriteReport, WriteError> {
    let mut stored = StoredChunks::default();
    let committed = commit_chunks(target, place, resolved, kind, received, &mut stored).await;
    committed.map_err(|error| stored.failed(place, kind, error))
}

async fn commit_chunks(
    target: &Arc<WriteContext>,
    place: &WriteTarget,
    mut resolved: Arc<ResolvedArray>,
    kind: &WriteKind<'_>,
    received: ReceivedChunks,
    stored: &mut StoredChunks,
) -> Result<WriteReport, WriteError> {
    let ReceivedChunks { chunks: mut made, pending, memory } = received;
    let context = &target.context;
    let is_keyed = context.is_keyed_at(&place.path);
    let mut merged = match merge::merge_partial_chunks(target, &pending, memory).await {
        Ok(merged) => merged,
        Err(error) => return Err(unless_changed(context, place, &resolved, error).await),
    };
    let mut repeated = 0;
    // From here on locks are held, so memory is not waited for.
    let _no_waiting = context.no_waiting();
    let name = place.path.relative().as_bytes();
    for attempt in 0..MAX_ATTEMPTS {
        // Where keys change one by one, this lock comes first: an append, which holds it alone, takes the others then.
        let keyed_fence = match (is_keyed, kind) {
            (true, WriteKind::Region(..)) => context.array_locks.lock_shared([name]).await,
            _ => Vec::new(),
        };
        let alone = match attempt >= OPTIMISTIC_ATTEMPTS {
            true => Some(context.chunk_locks.lock_exclusive(keys(&merged.chunks), keys(&made)).await),
            false => None,
        };
        if attempt > 0 {
            resolved = replan(target, place, resolved, kind).await?;
            repeated += match merge::retry_conflicting(target, &pending, &mut merged).await {
                Ok(repeated) => repeated,
                Err(error) => return Err(unless_changed(context, place, &resolved, error).await),
            };
        }
        let together = match alone {
            Some(_) => None,
            None => Some(context.chunk_locks.lock_shared(keys(&made).chain(keys(&merged.chunks))).await),
        };
        if is_keyed && !are_absent(context, &merged.chunks).await? {
            continue;
        }
        let documents = documents(context, place, &resolved, kind).await?;
        let all = || made.iter().chain(&merged.chunks);
        let batch =
            Batch { documents: documents.changes.clone(), chunks: all().flat_map(StagedChunk::changes).collect() };
        let committed = match is_keyed {
            true => keyed_commit::apply(context, batch, documents.consolidated()).await,
            false => {
                let _fence = context.array_locks.lock_shared([name]).await;
                shared_commit::commit(context, batch.into_changes(), documents.consolidated()).await
            }
        };
        drop((alone, together, keyed_fence));
        match committed {
            Ok(outcomes) => {
                stored.count(all());
                return Ok(stored.with_counts(documents.report(&resolved, kind, &outcomes), repeated));
            }
            Err(StoreError::PartlyApplied { applied, of, conflicts, source }) => {
                stored.keep(applied, of);
                match *source {
                    // Only the chunks that another write changed are made again.
                    StoreError::PreconditionFailed { .. } if !conflicts.is_empty() => {
                        stored.count(all().filter(|chunk| !chunk.is_among(&conflicts)));
                        made.retain(|chunk| chunk.is_among(&conflicts));
                        merged.chunks.retain(|chunk| chunk.is_among(&conflicts));
                    }
                    StoreError::PreconditionFailed { .. } if matches!(kind, WriteKind::Append { .. }) => {
                        return Err(WriteError::ShapeChanged { path: place.path.clone() });
                    }
                    error => return Err(error.into()),
                }
            }
            // The documents that an append changes were planned before its chunks, so both are planned again.
            Err(StoreError::PreconditionFailed { key, .. }) if documents.are_of_append_with(&key) => {
                return Err(WriteError::ShapeChanged { path: place.path.clone() });
            }
            Err(StoreError::PreconditionFailed { .. }) => {}
            // The array may only grow once the chunks outside of its shape are erased.
            Err(StoreError::Intent(IntentError::Excludes { id })) => {
                context.wait_until_settled(&place.path, id).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Err(ArrayError::TooManyConflicts { path: place.path.clone() }.into())
}

/// True if the chunks that a write leaves absent are absent by now, whatever is cached: a store that is written key by key
/// compares nothing of them.
async fn are_absent(context: &Context, chunks: &[StagedChunk]) -> Result<bool, StoreError> {
    let keys = chunks.iter().filter(|chunk| chunk.is_left_absent()).flat_map(StagedChunk::keys);
    let found = keys.map(|key| not_before(Some(Instant::now()), context.store.head(key)));
    let mut found = stream::iter(found.collect::<Vec<_>>()).buffer_unordered(CONCURRENT);
    while let Some(found) = found.try_next().await? {
        if found.is_some() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The error of a chunk that cannot be decoded; or, if the array changed meanwhile, that it did, since the chunk
/// belongs to the new array.
pub(super) async fn unless_changed(
    context: &Context,
    place: &WriteTarget,
    resolved: &ResolvedArray,
    error: WriteError,
) -> WriteError {
    if !matches!(error, WriteError::Array(ArrayError::Chunk { .. })) {
        return error;
    }
    match is_current(context, resolved).await {
        Ok(false) => WriteError::ShapeChanged { path: place.path.clone() },
        Ok(true) => error,
        Err(failed) => failed.into(),
    }
}

/// Commits a change of documents without chunks.
pub(crate) async fn documents_only(
    context: &Context,
    place: &WriteTarget,
    resolved: &ResolvedArray,
    kind: &WriteKind<'_>,
) -> Result<WriteReport, WriteError> {
    let documents = documents(context, place, resolved, kind).await?;
    let committed = match context.is_keyed_at(&place.path) {
        true => {
            let batch = Batch::of_documents(documents.changes.clone());
            keyed_commit::apply(context, batch, documents.consolidated()).await
        }
        false => shared_commit::commit(context, documents.changes.clone(), documents.consolidated()).await,
    };
    match committed {
        Ok(outcomes) => Ok(documents.report(resolved, kind, &outcomes)),
        Err(StoreError::PreconditionFailed { .. }) => Err(WriteError::ShapeChanged { path: place.path.clone() }),
        Err(StoreError::Intent(IntentError::Excludes { id })) => {
            context.wait_until_settled(&place.path, id).await?;
            Err(WriteError::ShapeChanged { path: place.path.clone() })
        }
        Err(error) => Err(error.into()),
    }
}

/// The report of a write without elements.
pub(crate) fn empty_report(resolved: &ResolvedArray) -> WriteReport {
    let shape = resolved.array.model().view_shape();
    report_without_chunks(resolved, Some(resolved.version()), shape)
}

fn report_without_chunks(resolved: &ResolvedArray, version: Option<Version>, shape: Vec<u64>) -> WriteReport {
    let relation = resolved.relation();
    WriteReport { version, shape, chunks_written: 0, chunks_erased: 0, conflicts_retried: 0, relation }
}

fn keys(made: &[StagedChunk]) -> impl Iterator<Item = &[u8]> {
    made.iter().flat_map(StagedChunk::keys).map(Key::as_bytes)
}

/// The changes and preconditions of documents in a commit.
pub(super) struct Documents<'a> {
    pub(super) changes: Vec<Change>,
    node: Option<Node<'a>>,
}

/// The change of the node itself.
enum Node<'a> {
    Own(ArrayMetadataUpdate),
    Lent(&'a ArrayMetadataUpdate),
}

/// The document changes of a write: preconditions, and changes if the array grows or has statistics that the write
/// invalidates.
pub(super) async fn documents<'a>(
    context: &Context,
    place: &WriteTarget,
    resolved: &ResolvedArray,
    kind: &WriteKind<'a>,
) -> Result<Documents<'a>, WriteError> {
    let counted = |model: &ArrayModel| model.extensions.iter().any(|extension| !survives_write(&extension.name));
    let node = match kind {
        WriteKind::Append { documents, .. } => Node::Lent(documents),
        WriteKind::Region(..) if resolved.has_two_shapes() || resolved.models().any(counted) => {
            let changes = NodePatch { element_impact: ElementImpact::Changed, ..NodePatch::default() };
            Node::Own(ArrayMetadataUpdate::of_array(context, &place.path, resolved, &changes).await?)
        }
        WriteKind::Region(..) => return Ok(Documents { changes: resolved.read_set.preconditions(), node: None }),
    };
    Ok(Documents { changes: node.get().changes.clone(), node: Some(node) })
}

impl Node<'_> {
    fn get(&self) -> &ArrayMetadataUpdate {
        match self {
            Self::Own(changes) => changes,
            Self::Lent(changes) => changes,
        }
    }
}

impl Documents<'_> {
    /// The update of consolidated metadata that some of the changes make.
    pub(super) fn consolidated(&self) -> Option<&Arc<ConsolidatedUpdate>> {
        self.node.as_ref()?.get().consolidated.as_ref()
    }

    /// True if a key is that of a document of an append.
    pub(super) fn are_of_append_with(&self, key: &Key) -> bool {
        matches!(&self.node, Some(Node::Lent(_))) && self.changes.iter().any(|change| change.key() == Some(key))
    }

    /// The report of a commit that had these changes first, without its chunks.
    pub(super) fn report(
        &self,
        resolved: &ResolvedArray,
        kind: &WriteKind<'_>,
        outcomes: &[ChangeOutcome],
    ) -> WriteReport {
        let of_documents = outcomes.get(..self.changes.len()).unwrap_or_default();
        let version = match &self.node {
            Some(node) => node.get().version_after(of_documents),
            None => Some(resolved.version()),
        };
        let shape = match kind {
            WriteKind::Region(..) => resolved.array.model().view_shape(),
            WriteKind::Append { shape, .. } => shape.to_vec(),
        };
        report_without_chunks(resolved, version, shape)
    }
}

/// The chunks that a write has stored, and the keys that it has changed of those that it changes: all at once in a
/// commit, and before it fails only where keys change one by one.
#[derive(Debug, Default)]
pub(super) struct StoredChunks {
    written: u64,
    erased: u64,
    keys: u64,
    of: u64,
}

impl StoredChunks {
    pub(super) fn count<'a>(&mut self, chunks: impl Iterator<Item = &'a StagedChunk>) {
        for chunk in chunks {
            match chunk.is_stored() {
                true => self.written += 1,
                false => self.erased += 1,
            }
        }
    }

    /// Records the keys that a batch changed before it failed.
    fn keep(&mut self, applied: u64, of: u64) {
        self.keys = self.keys.saturating_add(applied);
        self.of = self.of.max(of);
    }

    /// The report with the number of chunks.
    pub(super) fn with_counts(&self, report: WriteReport, conflicts_retried: u64) -> WriteReport {
        WriteReport { chunks_written: self.written, chunks_erased: self.erased, conflicts_retried, ..report }
    }

    /// The error of the write. An append that failed has no effect: its elements are outside of the array.
    fn failed(&self, place: &WriteTarget, kind: &WriteKind<'_>, error: WriteError) -> WriteError {
        match kind {
            WriteKind::Region(..) if self.keys > 0 => {
                let (written, of) = (self.keys, self.of.max(self.keys));
                WriteError::PartlyWritten { path: place.path.clone(), written, of, source: Box::new(error) }
            }
            _ => error,
        }
    }
}

/// Re-resolves the array, and its region. Fails if its shape or data type changed since the write was planned.
async fn replan(
    target: &WriteContext,
    place: &WriteTarget,
    before: Arc<ResolvedArray>,
    kind: &WriteKind<'_>,
) -> Result<Arc<ResolvedArray>, WriteError> {
    if is_current(&target.context, &before).await? {
        return Ok(before);
    }
    let resolved = until_unchanged(|| target.context.resolve_array(&place.path, place.dialect)).await?;
    place.check_precondition(&resolved)?;
    let resolved = resolved.for_change()?;
    let (old, new) = (before.array.model(), resolved.array.model());
    let still = || {
        // An append starts at the end of the array when it was planned, as do the documents it writes.
        let WriteKind::Region(request, selection) = kind else { return None };
        let now = request.resolve(&new.view_shape()).ok()?.shifted(&new.view_offset);
        (stores_alike(old, new) && now == **selection).then(|| Arc::new(now))
    };
    let layout = match still() {
        Some(now) => split::layout(&target.context, &resolved.array, &now).await?,
        None => None,
    };
    match layout {
        Some(layout) if layout.covers_as(&target.layout) => Ok(resolved),
        _ => Err(WriteError::ShapeChanged { path: place.path.clone() }),
    }
}

/// True if two arrays store elements in the same way at the same keys, whatever their shapes.
pub(crate) fn stores_alike(one: &ArrayModel, other: &ArrayModel) -> bool {
    one.data_type == other.data_type
        && one.fill_value == other.fill_value
        && one.fill_value_is_agreed() == other.fill_value_is_agreed()
        && one.grid == other.grid
        && one.chunk_keys == other.chunk_keys
        && one.chunk_prefix == other.chunk_prefix
        && one.codecs == other.codecs
        && one.skips_empty_chunks() == other.skips_empty_chunks()
}
