//! Limits and settings of reading and writing.

/// Limits of all requests together and of each, and how chunks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The memory that all requests together may hold, in bytes: documents, plans, chunks being decoded, elements being
    /// assembled, and whatever else is taken of the same [budget](crate::Arrays::memory). A request that needs more
    /// waits for `memory_timeout` if it holds none, and then fails with a [`MemoryError`](crate::MemoryError).
    pub max_memory: u64,
    /// The capacity of the cache of decoded chunks, in bytes; 0 disables it.
    pub cache_capacity: u64,
    /// The capacity of the cache of results of reductions, statistics and slices of much larger parts of an array, in bytes;
    /// 0 disables it.
    pub result_cache: u64,
    /// The most chunks that one read may touch.
    pub max_chunks: u64,
    /// The memory in which the output of one read is assembled, in bytes. A larger output is returned slab by slab.
    pub slab_memory: u64,
    /// The number of chunks that one read fetches and decodes at a time. All reads together decode two for each core.
    pub parallelism: usize,
    /// The most steps of work that one read or write may take beyond what the elements that it carries or returns
    /// account for: bytes decoded, transformed and encoded, each times the [cost of its codec](zarrd_codec::Cost), and keys
    /// visited.
    pub max_work: u64,
    /// The longest wait for memory.
    pub memory_timeout: std::time::Duration,
    /// True if chunks full of the fill value are stored.
    pub empty_chunks: EmptyChunks,
}

/// True if chunks full of the fill value, bit for bit, are stored. An extension of the array can override this, and all
/// are stored if readers disagree on the value of missing chunks
/// ([`fill_value_is_agreed`](zarrd_meta::ArrayModel::fill_value_is_agreed)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyChunks {
    /// Such chunks are not stored, and erased if they were.
    #[default]
    Omit,
    /// Such chunks are stored like any other.
    Store,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self {
            max_memory: 1 << 30,
            cache_capacity: 160 << 20,
            result_cache: 8 << 20,
            max_chunks: 1 << 18,
            slab_memory: 128 << 20,
            parallelism: cores.saturating_mul(4),
            max_work: 64 << 30,
            memory_timeout: std::time::Duration::from_secs(10),
            empty_chunks: EmptyChunks::default(),
        }
    }
}

impl Options {
    /// The memory of one read's plan and documents, at most, in bytes.
    pub(crate) fn max_plan_memory(&self) -> u64 {
        self.max_memory / 2
    }

    /// The memory of one read in addition to its plan, at most, in bytes.
    pub(crate) fn max_read_memory(&self) -> u64 {
        self.max_memory - self.max_plan_memory()
    }

    /// The memory for decoding one chunk, at most, in bytes.
    pub(crate) fn max_chunk_memory(&self) -> u64 {
        self.max_memory / 2
    }
}
