//! Merging partially written chunks with what is stored.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use zarrd_store::{Key, Version, until_unchanged};

use super::{
    chunk_encoder::ChunkEncoder,
    encode::{BaseContent, EncodeJob, StagedChunk, WriteContext},
    error::WriteError,
    layout::{ChunkPart, Coverage},
    memory::WriteMemory,
    pending::{PendingPart, PendingParts},
};

/// The number of parts of one chunk that are fetched concurrently.
const FETCH_CONCURRENCY: usize = 4;

/// Chunks merged from stored and received elements.
pub(crate) struct MergedChunks {
    pub(crate) chunks: Vec<StagedChunk>,
    /// Their memory, unless they are small.
    memory: Option<WriteMemory>,
}

impl MergedChunks {
    /// The chunks; their memory is released.
    pub(crate) fn into_chunks(self) -> Vec<StagedChunk> {
        self.chunks
    }
}

/// Merges all chunks of which parts are pending.
pub(crate) async fn merge_partial_chunks(
    target: &Arc<WriteContext>,
    pending: &PendingParts,
    memory: Option<WriteMemory>,
) -> Result<MergedChunks, WriteError> {
    merge_selected(target, pending, memory, |_| Ok(true)).await
}

/// Merges those chunks again that changed in the store meanwhile; returns their number.
pub(crate) async fn retry_conflicting(
    target: &Arc<WriteContext>,
    pending: &PendingParts,
    merged: &mut MergedChunks,
) -> Result<u64, WriteError> {
    let keys: Vec<Key> = merged.chunks.iter().flat_map(StagedChunk::keys).cloned().collect();
    if keys.is_empty() {
        return Ok(0);
    }
    let snapshot = target.context.store.snapshot(&keys).await?;
    let mut stale = std::collections::HashSet::new();
    let mut current = Vec::with_capacity(merged.chunks.len());
    for chunk in std::mem::take(&mut merged.chunks) {
        let mut versions: Vec<Option<Version>> = Vec::with_capacity(chunk.keys().len());
        for key in chunk.keys() {
            versions.push(snapshot.meta(key).await?.map(|info| info.version));
        }
        match chunk.is_based_on(&versions) {
            true => current.push(chunk),
            false => stale.extend(chunk.keys().first().cloned()),
        }
    }
    let renewed = merge_selected(target, pending, merged.memory.take(), |part| {
        let keys = target.keys(&part.position)?;
        Ok(keys.first().is_some_and(|key| stale.contains(key)))
    });
    let MergedChunks { chunks: staged, memory } = renewed.await?;
    current.extend(staged);
    *merged = MergedChunks { chunks: current, memory };
    Ok(stale.len() as u64)
}

async fn merge_selected(
    target: &Arc<WriteContext>,
    pending: &PendingParts,
    memory: Option<WriteMemory>,
    wanted: impl Fn(&ChunkPart) -> Result<bool, WriteError>,
) -> Result<MergedChunks, WriteError> {
    // Small parts took no reservation, so nothing is held yet.
    let account = memory.is_none().then(|| target.context.account());
    let mut encoder = ChunkEncoder::new(target.clone(), account, memory);
    let mut finder = pending.cursor();
    let window = if pending.is_empty() { None } else { Some(target.layout.full_window()) };
    for part in window.iter().flat_map(|window| target.layout.parts(window)) {
        let waiting = finder.next(&part);
        if waiting.is_empty() || !wanted(&part)? {
            continue;
        }
        let share = encoder.reserve_chunk(&part.shape).await?;
        let target = target.clone();
        encoder.spawn(share, async move { merge_chunk(&target, part, waiting).await }).await?;
    }
    let (staged, memory) = encoder.finish().await?;
    Ok(MergedChunks { chunks: staged, memory })
}

async fn merge_chunk(
    target: &Arc<WriteContext>,
    part: ChunkPart,
    waiting: Vec<PendingPart>,
) -> Result<Vec<StagedChunk>, WriteError> {
    let under = match part.coverage {
        Coverage::Full => BaseContent::Nothing,
        Coverage::Array | Coverage::Partial => BaseContent::Stored(until_unchanged(|| target.read(&part)).await?),
    };
    let patches = stream::iter(waiting).map(|waiting| waiting.fetch(target));
    let patches = patches.buffered(FETCH_CONCURRENCY).try_collect().await?;
    target.encode_chunks(vec![EncodeJob { position: part.position, shape: part.shape, under, patches }]).await
}
