//! What all the jobs of one reading share.

use std::{ops::Range, sync::Arc, time::Instant};

use bytes::Bytes;
use codec::{Chain, CodecError, Sharding};
use store::{ByteRange, Key, Snapshot};
use tokio_util::task::AbortOnDropHandle;

use super::{encoded_chunk::EncodedChunk, metrics::ReadMetrics, plan::ReadPlan, slab_buffer::VARIABLE_SLOT_SIZE};
use crate::{
    cache::{CacheKey, CacheKind, Cached, ChunkCache},
    context::Context,
    error::ArrayError,
    grid::projection::ElementSelection,
    node::array::Array,
    work::WorkBudget,
};

/// The array and its chunks as of one commit, and what is used to read them.
pub(crate) struct ReadContext {
    pub(crate) array: Array,
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) context: Arc<Context>,
    pub(crate) metrics: ReadMetrics,
    /// At most how many chunks there are to read.
    pub(crate) chunks: u64,
    /// Whether what is decoded is kept for others: not where one reading would push out everything else.
    pub(crate) caching: bool,
    /// How much it may do.
    pub(crate) work_budget: WorkBudget,
}

impl ReadContext {
    /// An array whose chunks, those that `prepared` concerns, are in a snapshot.
    pub(crate) fn new(
        array: Array,
        snapshot: Box<dyn Snapshot>,
        context: Arc<Context>,
        prepared: &ReadPlan,
        work: WorkBudget,
    ) -> Result<Self, ArrayError> {
        let chunks = prepared.keys.len() as u64;
        let caching = prepared.decoded_len(&array)? <= u128::from(context.cache.capacity() / 4);
        Ok(Self { array, snapshot, context, metrics: ReadMetrics::default(), chunks, caching, work_budget: work })
    }

    /// The value of a chunk; `None` where it is not there.
    pub(crate) fn locate_chunk(&self, position: &[u64]) -> Result<Option<EncodedChunk>, ArrayError> {
        for key in self.array.chunk_keys(position) {
            if let Some(info) = self.snapshot.head(&key)? {
                return Ok(Some(EncodedChunk { key, version: info.version, range: 0..info.size }));
            }
        }
        Ok(None)
    }

    /// Some bytes of a value.
    pub(crate) async fn fetch(&self, key: &Key, range: Range<u64>) -> Result<Bytes, ArrayError> {
        let Ok(wanted) = ByteRange::bounded(range.start, range.end) else { return Ok(Bytes::new()) };
        let start = Instant::now();
        let value = self.snapshot.get(key, Some(wanted)).await?;
        let value = value.ok_or_else(|| store::StoreError::NotInSnapshot { key: key.clone() })?;
        let bytes = value.bytes().await?;
        self.metrics.fetched(start.elapsed());
        Ok(bytes)
    }

    /// Decodes something, and counts it.
    pub(crate) fn measure_decode<T>(&self, decode: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = decode();
        self.metrics.decoded(start.elapsed());
        result
    }

    pub(crate) fn cache(&self) -> &ChunkCache {
        &self.context.cache
    }

    pub(crate) fn cache_key(&self, part: &EncodedChunk, start: u64, kind: CacheKind) -> CacheKey {
        CacheKey { key: part.key.clone(), version: part.version, start, kind, metadata: self.array.metadata_hash() }
    }

    /// What is in the cache, or is made and kept there; made in a task of its own, since others may wait for it whose readers are quicker than ours.
    pub(crate) async fn cached(
        &self,
        key: CacheKey,
        make: impl Future<Output = Result<Cached, ArrayError>> + Send + 'static,
    ) -> Result<Cached, ArrayError> {
        if let Some(cached) = self.cache().get(&key) {
            return Ok(cached);
        }
        let context = self.context.clone();
        let task = tokio::spawn(async move { context.cache.get_or_insert_with(&key, make).await });
        AbortOnDropHandle::new(task).await.unwrap_or(Err(ArrayError::ShuttingDown))
    }

    /// How many bytes elements of variable length may take.
    pub(crate) fn variable_length_budget(&self) -> u64 {
        self.context.options.slab_memory / 2
    }

    /// How many bytes of an answer these elements have.
    pub(crate) fn bytes_of(&self, selection: &ElementSelection) -> u64 {
        selection.len().saturating_mul(self.element_size())
    }

    /// How many bytes of memory an element takes in an answer; of variable length, without its own.
    pub(crate) fn element_size(&self) -> u64 {
        self.array.model().data_type.fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64)
    }

    /// Fails where a chunk is too large to be decoded at all.
    pub(crate) fn check_chunk_size(&self, chain: &Chain, encoded: u64) -> Result<(), ArrayError> {
        self.check_size(chain.working_len().unwrap_or_else(|| self.variable_length_budget()).saturating_add(encoded))
    }

    /// Fails where the index of a shard is too large.
    pub(crate) fn check_index_size(&self, sharding: &Sharding) -> Result<(), ArrayError> {
        self.check_size(sharding.index_len().saturating_mul(3))
    }

    /// The error for a chunk that cannot be decoded.
    pub(crate) fn chunk_error(&self, part: &EncodedChunk, source: CodecError) -> ArrayError {
        match source {
            CodecError::OverBudget { budget, .. } => ArrayError::OverBudget { budget },
            source => ArrayError::Chunk { key: part.key.clone(), source },
        }
    }

    fn check_size(&self, size: u64) -> Result<(), ArrayError> {
        let limit = self.context.options.max_chunk_memory();
        if size <= limit {
            Ok(())
        } else {
            Err(ArrayError::ChunkTooLarge { path: self.array.path().clone(), size, limit })
        }
    }
}

impl std::fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").field("array", &self.array).finish_non_exhaustive()
    }
}
