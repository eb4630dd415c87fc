//! How much reading and writing may take, and how it is done.

/// How much reading and writing may take, of all that do so at a time and of each, and how chunks are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The bytes of memory that all requests together may hold: for documents, plans, chunks being decoded and elements being assembled, and for whatever else is
    /// taken of the same [budget](crate::Arrays::memory). A request that would go beyond waits for `patience` if it has none, and is then refused with a
    /// [`MemoryError`](crate::MemoryError).
    pub memory: u64,
    /// The bytes of decoded chunks that are kept for the next who asks.
    pub cache: u64,
    /// The most chunks that one reading may concern.
    pub chunks: u64,
    /// The bytes of memory in which one reading is assembled. Answers larger than half of it are yielded slab by slab.
    pub assembly: u64,
    /// How many chunks are fetched and decoded at a time for one reading; for all together, two for each core are decoded.
    pub parallelism: usize,
    /// How many steps of work one reading or writing may take beyond what it carries or yields: bytes decoded, transformed and encoded, each times what its
    /// [codec costs](codec::Cost), and keys that are visited.
    pub work: u64,
    /// How long a request waits for memory.
    pub patience: std::time::Duration,
    /// What becomes of chunks that are full of the fill value.
    pub empty_chunks: EmptyChunks,
}

/// What becomes of chunks that are full of the fill value, bit for bit. Arrays can have an extension that says so themselves, and where readers do not agree on what missing
/// chunks are full of ([`fill_value_is_agreed`](meta::ArrayModel::fill_value_is_agreed)), all are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyChunks {
    /// They are not stored.
    #[default]
    Skip,
    /// They are stored like all others.
    Store,
}

impl Default for Options {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self {
            memory: 1 << 30,
            cache: 256 << 20,
            chunks: 1 << 18,
            assembly: 128 << 20,
            parallelism: cores.saturating_mul(4),
            work: 64 << 30,
            patience: std::time::Duration::from_secs(10),
            empty_chunks: EmptyChunks::default(),
        }
    }
}

impl Options {
    /// How many bytes of memory the plan of one reading may take, and the documents that it is found in.
    pub(crate) fn plan_memory(&self) -> u64 {
        self.memory / 2
    }

    /// How many bytes of memory one reading may take beside its plan.
    pub(crate) fn reading_memory(&self) -> u64 {
        self.memory - self.plan_memory()
    }

    /// How many bytes of memory the decoding of one chunk may take.
    pub(crate) fn chunk_memory(&self) -> u64 {
        self.memory / 2
    }
}
