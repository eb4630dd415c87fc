//! The context that all jobs of one read share.

use std::{
    ops::Range,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Instant,
};

use bytes::Bytes;
use tokio_util::task::AbortOnDropHandle;
use zarrd_codec::{CodecChain, CodecError, EncodedSizeBound, PartialAccess, ShardingCodec};
use zarrd_store::{ByteRange, CachedMeta, GetResult, Guarantees, Key, KeyTurn, Prefetch, Snapshot, StoreError};

use super::{
    chunk_keys::StoredChunks,
    encoded_chunk::{EncodedChunk, LocatedChunk},
    metrics::ReadMetrics,
    plan::ReadPlan,
    slab_buffer::VARIABLE_SLOT_SIZE,
};
use crate::{
    cache::{CacheKey, CacheKind, Cached, ChunkCache},
    context::Context,
    error::ArrayError,
    grid::projection::ElementSelection,
    node::array::Array,
    running_decodes::Scan,
    work::WorkBudget,
};

/// The size of elements up to which chunks are cached although their reader keeps what it makes of them, in bytes.
const MAX_KEPT_TWICE: u64 = 8 << 20;

/// An array and its chunks as of one commit, with the resources to read them.
pub(crate) struct ReadContext {
    pub(crate) array: Array,
    pub(crate) snapshot: Box<dyn Snapshot>,
    pub(crate) context: Arc<Context>,
    /// The guarantees of the array's store.
    pub(crate) store: Guarantees,
    pub(crate) metrics: ReadMetrics,
    /// The number of chunks to read, at most.
    pub(crate) chunks: u64,
    /// True if decoded chunks are cached: not if they could not be there when the read is repeated, and not if many are
    /// kept by its caller.
    caching: bool,
    /// True if the chunks are cached as long as another read scans the array.
    scanning: bool,
    /// The scan, once it runs.
    scan: OnceLock<Scan>,
    /// True while the chunks that are decoded will be read again by this read.
    rereads: AtomicBool,
    /// The bytes of decoded chunks that are cached for it, at most.
    cacheable: u64,
    /// The bytes that are decoded, about.
    pub(crate) decoded_len: u128,
    /// The work that the read may do.
    pub(crate) work_budget: WorkBudget,
}

impl ReadContext {
    /// The context of a read of `prepared`, whose chunks are in the snapshot.
    pub(crate) fn new(
        array: Array,
        snapshot: Box<dyn Snapshot>,
        context: Arc<Context>,
        prepared: &ReadPlan,
        (found, work): (&StoredChunks, WorkBudget),
    ) -> Result<Self, ArrayError> {
        let chunks = found.touched;
        let largest = context.cache.largest_read();
        let largest = if prepared.keeps_elements() { largest.min(MAX_KEPT_TWICE) } else { largest };
        let decoded_len = prepared.decoded_len(&array, found)?;
        let caching = decoded_len <= u128::from(largest);
        let scanning = !caching && largest > 0 && !prepared.keeps_elements();
        let (store, metrics, scan) = (context.guarantees_at(array.path()), ReadMetrics::default(), OnceLock::new());
        Ok(Self {
            array,
            snapshot,
            context,
            store,
            metrics,
            chunks,
            caching,
            scanning,
            scan,
            rereads: AtomicBool::new(false),
            cacheable: largest,
            decoded_len: found.stored_part(decoded_len),
            work_budget: work,
        })
    }

    /// Starts the scan, if the read is one. Other scans of the array make that its chunks are cached, and so it does for
    /// theirs: what several reads want at the same time is worth caching, unlike what one sweeps through.
    pub(crate) fn start_scan(&self) {
        if self.scanning {
            let array = || (self.array.path().clone(), self.array.metadata_hash());
            self.scan.get_or_init(|| self.context.decodes.start_scan(array()));
        }
    }

    /// True if decoded chunks are cached at the moment.
    pub(crate) fn caches(&self) -> bool {
        self.caching || self.rereads.load(Relaxed) || self.scan.get().is_some_and(Scan::has_company)
    }

    /// The chunk that another scan of the array has reached, from where on both can be passed the same chunks.
    pub(crate) fn running_scan(&self) -> Option<Vec<u64>> {
        self.scan.get().filter(|scan| scan.has_company()).and_then(Scan::position)
    }

    /// Records that the scan, if the read is one, has reached a chunk.
    pub(crate) fn reach(&self, chunk: &[u64]) {
        if let Some(scan) = self.scan.get() {
            scan.reach(chunk);
        }
    }

    /// Caches the chunks of a scan from now on, or no longer, since the read will read them again.
    pub(crate) fn set_rereads(&self, rereads: bool) {
        self.rereads.store(rereads && self.scanning, Relaxed);
    }

    /// The number of chunks that are cached of a scan if they will be read again.
    pub(crate) fn cacheable_chunks(&self) -> u64 {
        let chunk = self.decoded_len.div_ceil(u128::from(self.chunks.max(1))).max(1);
        u64::try_from(u128::from(self.cacheable) / chunk).unwrap_or(u64::MAX)
    }

    /// The chunk at a position of the grid. No store is asked for it unless it may be stored under several keys.
    pub(crate) async fn locate_chunk(&self, position: &[u64]) -> Result<LocatedChunk, ArrayError> {
        let mut keys = self.array.chunk_keys(position).peekable();
        let mut is_first = true;
        while let Some(key) = keys.next() {
            let meta = match self.snapshot.cached(&key)? {
                CachedMeta::Known(meta) => meta,
                CachedMeta::Unknown if is_first && keys.peek().is_none() => return Ok(LocatedChunk::Unknown(key)),
                CachedMeta::Unknown => self.snapshot.stat(&key, Prefetch::Nothing).await?,
            };
            if let Some(meta) = meta {
                return Ok(LocatedChunk::Stored(EncodedChunk::of_value(key, meta)));
            }
            is_first = false;
        }
        Ok(LocatedChunk::Missing)
    }

    /// Fetches a range of a value, in bytes.
    pub(crate) async fn fetch(&self, key: &Key, range: Range<u64>) -> Result<Bytes, ArrayError> {
        let Ok(wanted) = ByteRange::bounded(range.start, range.end) else { return Ok(Bytes::new()) };
        let value = self.open(key, Some(wanted)).await?;
        self.receive(value.ok_or_else(|| StoreError::NotInSnapshot { key: key.clone() })?).await
    }

    /// Begins to fetch a value, or a range of one; `None` if there is no value.
    pub(crate) async fn open(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let start = Instant::now();
        let value = self.snapshot.get(key, range).await.inspect_err(|error| {
            if matches!(error, StoreError::Changed { .. }) {
                self.context.listing_failed();
            }
        })?;
        self.metrics.fetched(start.elapsed());
        Ok(value)
    }

    /// Fetches the rest of a value.
    pub(crate) async fn receive(&self, value: GetResult) -> Result<Bytes, ArrayError> {
        let start = Instant::now();
        let bytes = value.bytes().await?;
        self.metrics.fetched(start.elapsed());
        Ok(bytes)
    }

    /// Waits until no other read requests the key for the first time: afterwards its version may be cached, and its chunk
    /// too. Does not wait if the store caches nothing.
    pub(crate) async fn first_request(&self, key: &Key) -> Option<KeyTurn> {
        match self.context.first_requests() {
            Some(turns) => Some(turns.take(key).await),
            None => None,
        }
    }

    /// Runs a decoder, and adds its time to the metrics.
    pub(crate) fn measure_decode<T>(&self, decode: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = decode();
        self.metrics.decoded(start.elapsed());
        result
    }

    pub(crate) fn cache(&self) -> &ChunkCache {
        &self.context.cache
    }

    /// The key of a chunk or index in the cache; `None` as long as its version is not known.
    pub(crate) fn cache_key(&self, part: &EncodedChunk, start: u64, kind: CacheKind) -> Option<CacheKey> {
        let version = part.version?;
        Some(CacheKey { key: part.key.clone(), version, start, kind, metadata: self.array.metadata_hash() })
    }

    /// The cached entry, or the result of `make`, which is cached. `make` runs on a task of its own, since other reads
    /// may wait for it whose clients are faster.
    pub(crate) async fn cached(
        &self,
        key: Option<CacheKey>,
        make: impl Future<Output = Result<Cached, ArrayError>> + Send + 'static,
    ) -> Result<Cached, ArrayError> {
        let Some(key) = key else { return make.await };
        if let Some(cached) = self.cache().get(&key) {
            return Ok(cached);
        }
        let (context, near) = (self.context.clone(), self.store.near);
        let task = tokio::spawn(async move {
            let cached = context.cache.get_or_insert_with(&key, make).await?;
            if !near {
                context.cache.note_latest(&key);
            }
            Ok(cached)
        });
        AbortOnDropHandle::new(task).await.unwrap_or(Err(ArrayError::ShuttingDown))
    }

    /// The memory for elements of variable length, in bytes.
    pub(crate) fn variable_length_budget(&self) -> u64 {
        self.context.options.slab_memory / 2
    }

    /// The size of these elements in the output, in bytes.
    pub(crate) fn bytes_of(&self, selection: &ElementSelection) -> u64 {
        selection.len().saturating_mul(self.element_size())
    }

    /// The size of an element in the output, in bytes; of variable length, that of its slot.
    pub(crate) fn element_size(&self) -> u64 {
        self.array.model().data_type.fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64)
    }

    /// Fails if a chunk does not have the encoded size that parts of it are found by.
    pub(crate) fn check_uncompressed_size(&self, part: &EncodedChunk, chain: &CodecChain) -> Result<(), ArrayError> {
        let (PartialAccess::Elements(_), Some(expected)) =
            (chain.partial_access(), chain.representation().fixed_size())
        else {
            return Ok(());
        };
        match part.len() {
            found if found == expected => Ok(()),
            found => Err(self.chunk_error(part, CodecError::LengthMismatch { codec: "bytes", expected, found })),
        }
    }

    /// Fails if the encoded form of a chunk is longer than its codecs allow, or if it is too large to be decoded.
    pub(crate) fn check_chunk_size(&self, part: &EncodedChunk, chain: &CodecChain) -> Result<(), ArrayError> {
        let encoded = part.len();
        if let Some(limit) = chain.encoded_size().map(EncodedSizeBound::max).filter(|&limit| encoded > limit) {
            return Err(self.chunk_error(part, CodecError::OutputTooLong { codec: "the stored chunk", limit }));
        }
        self.check_size(chain.working_memory().unwrap_or_else(|| self.variable_length_budget()).saturating_add(encoded))
    }

    /// Fails if a shard's index is too large.
    pub(crate) fn check_index_size(&self, sharding: &ShardingCodec) -> Result<(), ArrayError> {
        self.check_size(sharding.index_size().saturating_mul(3))
    }

    /// The error of a chunk that cannot be decoded.
    pub(crate) fn chunk_error(&self, part: &EncodedChunk, source: CodecError) -> ArrayError {
        match source {
            CodecError::BudgetExceeded { budget, .. } => ArrayError::OverBudget { budget },
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
        f.debug_struct("ReadContext").field("array", &self.array).finish_non_exhaustive()
    }
}
