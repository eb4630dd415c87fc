//! Commits of writes.

use std::sync::Arc;

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    documents::{ElementImpact, NodePatch},
    extensions::survives_write,
    selection::{ReadRequest, ResolvedSelection},
};
use zarrd_operations::WriteReport;
use zarrd_store::{Change, ChangeOutcome, IntentError, Key, Precondition, StoreError, Version};

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
    metadata::{array_update::ArrayMetadataUpdate, copy_update::ConsolidatedUpdate, shared_commit},
    node::resolved::ResolvedArray,
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
};

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
        let resolved = self.resolve_current(context).await?;
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
    mut resolved: Arc<ResolvedArray>,
    kind: &WriteKind<'_>,
    received: ReceivedChunks,
) -> Result<WriteReport, WriteError> {
    let ReceivedChunks { chunks: made, pending, memory } = received;
    let context = &target.context;
    let mut merged = match merge::merge_partial_chunks(target, &pending, memory).await {
        Ok(merged) => merged,
        Err(error) => return Err(unless_changed(context, place, &resolved, error).await),
    };
    let mut repeated = 0;
    // From here on locks are held, so memory is not waited for.
    let _no_waiting = context.no_waiting();
    for attempt in 0..MAX_ATTEMPTS {
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
        let documents = documents(context, place, &resolved, kind).await?;
        let all = || made.iter().chain(&merged.chunks);
        let changes = documents.changes.iter().cloned().chain(all().flat_map(StagedChunk::changes)).collect();
        let fence = context.array_locks.lock_shared([place.path.relative().as_bytes()]).await;
        let committed = shared_commit::commit(context, changes, documents.consolidated()).await;
        drop((alone, together, fence));
        match committed {
            Ok(outcomes) => return Ok(with_counts(documents.report(&resolved, kind, &outcomes), all(), repeated)),
            // The documents that an append changes were planned before its chunks, so both are planned again.
            Err(StoreError::PreconditionFailed { key, .. }) if documents.are_lent_with(&key) => {
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

/// The error of a chunk that cannot be decoded; or, if the array changed meanwhile, that it did, since the chunk
/// belongs to the new array.
async fn unless_changed(
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
    match shared_commit::commit(context, documents.changes.clone(), documents.consolidated()).await {
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
struct Documents<'a> {
    changes: Vec<Change>,
    node: Option<Node<'a>>,
}

/// The change of the node itself.
enum Node<'a> {
    Own(ArrayMetadataUpdate),
    Lent(&'a ArrayMetadataUpdate),
}

/// The document changes of a write: preconditions, and changes if the array grows or has statistics that the write
/// invalidates.
async fn documents<'a>(
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
    fn consolidated(&self) -> Option<&Arc<ConsolidatedUpdate>> {
        self.node.as_ref()?.get().consolidated.as_ref()
    }

    /// True if a key is that of a document of an append.
    fn are_lent_with(&self, key: &Key) -> bool {
        matches!(&self.node, Some(Node::Lent(_))) && self.changes.iter().any(|change| change.key() == Some(key))
    }

    /// The report of a commit that had these changes first, without its chunks.
    fn report(&self, resolved: &ResolvedArray, kind: &WriteKind<'_>, outcomes: &[ChangeOutcome]) -> WriteReport {
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

/// The report with the number of chunks.
fn with_counts<'a>(
    mut report: WriteReport,
    chunks: impl Iterator<Item = &'a StagedChunk>,
    conflicts_retried: u64,
) -> WriteReport {
    for chunk in chunks {
        match chunk.is_stored() {
            true => report.chunks_written += 1,
            false => report.chunks_erased += 1,
        }
    }
    WriteReport { conflicts_retried, ..report }
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
    let resolved = target.context.resolve_array(&place.path, place.dialect).await?;
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
