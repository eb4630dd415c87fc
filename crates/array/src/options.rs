//! How much reading and writing may take, and how it is done.

/// How much reading and writing may take, of all that do so at a time and of each, and how chunks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The bytes of memory that all requests together may hold: for documents, plans, chunks being decoded and elements being assembled, and for whatever else is
    /// taken of the same [budget](crate::Arrays::memory). A request that would go beyond waits for `patience` if it has none, and is then refused with a
    /// [`MemoryError`](crate::MemoryError).
    pub max_memory: u64,
    /// The bytes of decoded chunks that are kept for the next who asks.
    pub cache_capacity: u64,
    /// The most chunks that one reading may concern.
    pub max_chunks: u64,
    /// The bytes of memory in which one reading is assembled. Answers larger than half of it are yielded slab by slab.
    pub slab_memory: u64,
    /// How many chunks are fetched and decoded at a time for one reading; for all together, two for each core are decoded.
    pub parallelism: usize,
    /// How many steps of work one reading or writing may take beyond what it carries or yields: bytes decoded, transformed and encoded, each times what its
    /// [codec costs](codec::Cost), and keys that are visited.
    pub max_work: u64,
    /// How long a request waits for memory.
    pub memory_timeout: std::time::Duration,
    /// What becomes of chunks that are full of the fill value.
    pub empty_chunks: EmptyChunks,
}

/// What becomes of chunks that are full of the fill value, bit for bit. Arrays can have an extension that says so themselves, and where readers do not agree on what missing
/// chunks are full of ([`fill_value_is_agreed`](meta::ArrayModel::fill_value_is_agreed)), all are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyChunks {
    /// They are not stored.
    #[default]
    Omit,
    /// They are stored like all others.
    Store,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self {
            max_memory: 1 << 30,
            cache_capacity: 256 << 20,
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
    /// How many bytes of memory the plan of one reading may take, and the documents that it is found in.
    pub(crate) fn max_plan_memory(&self) -> u64 {
        self.max_memory / 2
    }

    /// How many bytes of memory one reading may take beside its plan.
    pub(crate) fn max_read_memory(&self) -> u64 {
        self.max_memory - self.max_plan_memory()
    }

    /// How many bytes of memory the decoding of one chunk may take.
    pub(crate) fn max_chunk_memory(&self) -> u64 {
        self.max_memory / 2
    }
}
