//! [`DiskCache`].

use std::{
    fmt,
    path::Path,
    pin::pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use foyer::{
    BlockEngineConfig, DefaultHasher, DeviceBuilder, EvictionInfo, EvictionPicker, FifoPicker, FsDeviceBuilder,
    HybridCache, HybridCacheBuilder, HybridCachePolicy, HybridCacheProperties, InvalidRatioPicker, Load,
    PsyncIoEngineConfig, RecoverMode, Spawner, Store,
};
use tokio::{
    runtime,
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    time::timeout,
};
use zarrd_executor::run_blocking;
use zarrd_store::{BoxError, Key, PieceCache, PieceCacheStatus, PieceId, StoreId};

use crate::{
    counters::{Counters, Failures},
    directory::Directory,
    entry::{EntryKey, EntryValue, FirstPiece, OVERHEAD, Settled, Waiting},
    error::OpenError,
    pause::Pause,
};

/// The minimum number of blocks: one that is written, one that is made free, and some that are read.
const MIN_BLOCKS: u64 = 4;

/// The unit in which space in the queue is counted: entries begin at multiples of it.
const PAGE: usize = 4096;

/// The maximum size of pieces that wait to be written, in pages. The buffer below has room for all of them, since the
/// engine leaves out what does not fit.
const MAX_WAITING: usize = (6 << 20) / PAGE;

/// The size of a buffer of pieces that are written at once, in bytes. There are two.
const BUFFER: usize = 8 << 20;

/// The maximum number of pieces that are read at a time.
const MAX_READS: usize = 16;

/// The maximum number of threads that wait for the disk.
const THREADS: usize = 8;

/// The time for which a piece waits for space in the queue while nothing is written, and in which one is read.
const MAX_WAIT: Duration = Duration::from_secs(3);

/// The number of these times that a piece waits while others are written.
const MAX_WAITS: usize = 4;

/// The time in which what waits is written when the cache is closed.
const MAX_FLUSH: Duration = Duration::from_secs(10);

/// The engine needs a part in memory, which nothing is put into.
const MEMORY: usize = 1;

type Engine = HybridCache<EntryKey, EntryValue>;

/// The options of a [`DiskCache`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The maximum size of the files, in bytes. It is rounded down to blocks, of which there are at least four.
    pub size: u64,
    /// The length of a block, in bytes: 64 MiB. It has room for a piece of 1 MiB with its key.
    pub block_len: u64,
}

/// A cache of pieces in a directory.
pub struct DiskCache {
    engine: Engine,
    counters: Arc<Counters>,
    /// A permit for each page in the queue.
    waiting: Arc<Semaphore>,
    writes_paused: Pause,
    reads: Semaphore,
    reads_paused: Pause,
    settled: mpsc::UnboundedSender<Settled>,
    options: Options,
    _directory: Directory,
}

/// Counts the blocks that are full.
#[derive(Debug)]
struct BlockCounter(Arc<Counters>);

impl Options {
    /// A cache of this size in bytes, with blocks of 64 MiB.
    pub const fn new(size: u64) -> Self {
        Self { size, block_len: 64 << 20 }
    }

    /// The number of blocks, each of which is an open file.
    pub fn blocks(self) -> u64 {
        self.size.checked_div(self.block_len).unwrap_or_default()
    }
}

impl DiskCache {
    /// Opens the cache in a directory, which is created if it does not exist, and reserves its space. What was cached there
    /// before is found again.
    pub async fn open(path: &Path, options: Options) -> Result<Self, OpenError> {
        let Options { size, block_len } = options;
        let blocks = options.blocks();
        if blocks < MIN_BLOCKS {
            return Err(OpenError::TooSmall { size, min: MIN_BLOCKS.saturating_mul(block_len) });
        }
        let failed = |source: BoxError| OpenError::Blocks { path: path.to_owned(), source };
        let owned = path.to_owned();
        let directory = run_blocking(move || Directory::open(&owned, blocks, block_len)).await;
        let directory = directory.map_err(|error| failed(error.into()))??;
        let counters = Arc::new(Counters::default());
        let engine = build(&directory, options, &counters).await.map_err(failed)?;
        let (settled, settling) = mpsc::unbounded_channel();
        tokio::spawn(settle(engine.storage().clone(), Arc::clone(&counters), settling));
        Ok(Self {
            engine,
            counters,
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            writes_paused: Pause::default(),
            reads: Semaphore::new(MAX_READS),
            reads_paused: Pause::default(),
            settled,
            options,
            _directory: directory,
        })
    }

    /// Waits until everything is written that was inserted, for at most ten seconds.
    pub async fn flush(&self) {
        let flush = async {
            // All permits are there once nothing waits; the semaphore is never closed.
            let _all = self.waiting.acquire_many(u32::try_from(MAX_WAITING).unwrap_or(u32::MAX)).await;
            self.engine.storage().wait().await;
        };
        if timeout(MAX_FLUSH, flush).await.is_err() {
            self.report(&self.counters.failures, &"the disk is too slow");
        }
    }

    /// Flushes and ends the cache: nothing is cached any more.
    pub async fn close(&self) {
        self.flush().await;
        match timeout(MAX_FLUSH, self.engine.close()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.report(&self.counters.failures, &error),
            Err(_) => self.report(&self.counters.failures, &"the disk is too slow"),
        }
    }

    /// Waits for space in the queue; `None` if there is none in time.
    async fn space(&self, pages: u32) -> Option<OwnedSemaphorePermit> {
        if !self.writes_paused.admits() {
            return Arc::clone(&self.waiting).try_acquire_many_owned(pages).ok();
        }
        let mut permit = pin!(Arc::clone(&self.waiting).acquire_many_owned(pages));
        for _ in 0..MAX_WAITS {
            let written = self.counters.written.load(Relaxed);
            match timeout(MAX_WAIT, &mut permit).await {
                // The semaphore is never closed.
                Ok(permit) => {
                    self.writes_paused.end();
                    return permit.ok();
                }
                Err(_) if self.counters.written.load(Relaxed) == written => break,
                Err(_) => {}
            }
        }
        self.writes_paused.start();
        None
    }

    fn report(&self, failures: &Failures, error: &dyn fmt::Display) {
        if failures.record() {
            tracing::warn!(%error, "the disk cache failed; what it does not have is read from the store (this line is logged once a minute)");
        }
    }

    /// The bytes of a piece, if they are read in time. After one was not, none is read for a minute, since each would take as
    /// long.
    async fn load_in_time(&self, piece: &PieceId) -> Option<Bytes> {
        let Ok(permit) = timeout(MAX_WAIT, self.reads.acquire()).await else {
            self.report(&self.counters.failures, &"the disk is slower than the store");
            return None;
        };
        // The semaphore is never closed.
        let _permit = permit.ok()?;
        if !self.reads_paused.admits() {
            return None;
        }
        let Ok(bytes) = timeout(MAX_WAIT, self.load(piece)).await else {
            self.reads_paused.start();
            self.report(&self.counters.failures, &"the disk does not answer");
            return None;
        };
        bytes
    }

    /// The bytes of a piece, if its entry is whole.
    async fn load(&self, id: &PieceId) -> Option<Bytes> {
        let storage = self.engine.storage();
        let key = EntryKey(id.clone());
        if !storage.may_contains(&key) {
            return None;
        }
        let bytes = match storage.load(&key).await {
            Ok(Load::Entry { value, .. }) => {
                self.reads_paused.end();
                value.checked(id)
            }
            Ok(Load::Piece { piece, .. }) => piece.value().checked(id),
            // The piece of another version has the same hash. The engine forgets an entry that is damaged.
            Ok(Load::Miss) if storage.may_contains(&key) => return None,
            Ok(Load::Miss) => None,
            Ok(Load::Throttled) => return None,
            Err(error) => {
                self.report(&self.counters.failures, &error);
                return None;
            }
        };
        if bytes.is_none() {
            self.report(&self.counters.damaged, &"a cached piece is damaged");
        }
        bytes
    }
}

#[async_trait]
impl PieceCache for DiskCache {
    fn may_contain(&self, piece: &PieceId) -> bool {
        self.engine.storage().may_contains(&EntryKey(piece.clone()))
    }

    fn may_contain_key(&self, store: StoreId, key: &Key) -> bool {
        self.engine.storage().may_contains(&FirstPiece { store, key })
    }

    async fn get(&self, piece: &PieceId) -> Option<Bytes> {
        let bytes = self.load_in_time(piece).await?;
        self.counters.hits.fetch_add(1, Relaxed);
        self.counters.read_bytes.fetch_add(bytes.len() as u64, Relaxed);
        Some(bytes)
    }

    async fn insert(&self, piece: PieceId, bytes: Bytes) {
        self.counters.misses.fetch_add(1, Relaxed);
        let len = bytes.len().saturating_add(piece.key.as_bytes().len()).saturating_add(OVERHEAD);
        let pages = u32::try_from(len.div_ceil(PAGE)).unwrap_or(u32::MAX);
        let Some(permit) = self.space(pages).await else {
            self.report(&self.counters.failures, &"the disk is slower than the store");
            return;
        };
        let key = EntryKey(piece.clone());
        let settled = Settled { key: key.clone(), len: bytes.len() as u64 };
        let waiting = Waiting { settled: self.settled.clone(), piece: Some(settled), _permit: permit };
        let value = EntryValue::new(&piece, bytes, waiting);
        drop(self.engine.storage_writer(key).force().insert(value));
    }

    fn status(&self) -> PieceCacheStatus {
        let Counters { hits, misses, read_bytes, written_bytes, failures, damaged, written, full_blocks } =
            &*self.counters;
        let block_len = self.options.block_len;
        PieceCacheStatus {
            hits: hits.load(Relaxed),
            misses: misses.load(Relaxed),
            read_bytes: read_bytes.load(Relaxed),
            written_bytes: written_bytes.load(Relaxed),
            failures: failures.count(),
            damaged: damaged.count(),
            written: written.load(Relaxed),
            used_bytes: full_blocks.load(Relaxed).saturating_mul(block_len),
            capacity_bytes: self.options.blocks().saturating_mul(block_len),
        }
    }
}

impl fmt::Debug for DiskCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskCache").field("options", &self.options).field("status", &self.status()).finish()
    }
}

/// Opens the blocks of a directory.
async fn build(directory: &Directory, options: Options, counters: &Arc<Counters>) -> Result<Engine, BoxError> {
    let Options { block_len, .. } = options;
    let threads = runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(THREADS)
        .thread_name("disk-cache")
        .enable_time()
        .build()?;
    let capacity = usize::try_from(options.blocks().saturating_mul(block_len))?;
    let device = FsDeviceBuilder::new(&directory.blocks).with_capacity(capacity).build()?;
    let blocks = BlockEngineConfig::new(device)
        .with_block_size(usize::try_from(block_len)?)
        .with_buffer_pool_size(BUFFER)
        .with_submit_queue_size_threshold(BUFFER)
        .with_eviction_pickers(vec![
            Box::new(InvalidRatioPicker::new(0.8)),
            Box::<FifoPicker>::default(),
            Box::new(BlockCounter(Arc::clone(counters))),
        ]);
    let builder = HybridCacheBuilder::new()
        .with_name("zarrd")
        .with_policy(HybridCachePolicy::WriteOnInsertion)
        .with_flush_on_close(false)
        .memory(MEMORY)
        .with_shards(1)
        .storage()
        .with_io_engine_config(PsyncIoEngineConfig::new())
        .with_engine_config(blocks)
        .with_recover_mode(RecoverMode::Quiet)
        .with_spawner(Spawner::from(threads));
    Ok(builder.build().await?)
}

/// Counts the pieces that were written, and those that were not.
async fn settle(
    storage: Store<EntryKey, EntryValue, DefaultHasher, HybridCacheProperties>,
    counters: Arc<Counters>,
    mut settling: mpsc::UnboundedReceiver<Settled>,
) {
    while let Some(Settled { key, len }) = settling.recv().await {
        if storage.may_contains(&key) {
            counters.written.fetch_add(1, Relaxed);
            counters.written_bytes.fetch_add(len, Relaxed);
        } else if counters.failures.record() {
            tracing::warn!("the disk cache could not write a piece (this line is logged once a minute)");
        }
    }
}

impl EvictionPicker for BlockCounter {
    fn pick(&mut self, _: EvictionInfo<'_>) -> Option<u32> {
        None
    }

    fn on_block_evictable(&mut self, _: EvictionInfo<'_>, _: u32) {
        self.0.full_blocks.fetch_add(1, Relaxed);
    }

    fn on_block_evict(&mut self, _: EvictionInfo<'_>, _: u32) {
        self.0.full_blocks.fetch_sub(1, Relaxed);
    }
}
