//! The memory needs of a read.

use codec::CodecChain;
use meta::selection::ResolvedSelection;

use super::slab_buffer::{PERMIT_UNIT, VARIABLE_SLOT_SIZE};
use crate::{error::ArrayError, node::array::Array, options::Options};

/// The memory of a job of small chunks of unknown size, encoded and decoded, in bytes.
const UNKNOWN_JOB_MEMORY: u64 = 8 << 20;

/// The memory of a job that fetches parts of an uncompressed chunk, in bytes.
pub(super) const MAX_PARTIAL_FETCH: u64 = 4 << 20;

/// The memory of concurrent jobs up to which a read decodes several chunks at a time, in bytes, unless its elements take
/// more: a few elements of many large chunks are worth no more memory than a chunk.
const JOBS_MEMORY: u64 = 64 << 20;

/// The memory that a read can use, and its minimum.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryNeeds {
    /// Bytes for two slabs, so that one is assembled while the other is sent; and for one.
    pub(crate) assembly: u64,
    pub(crate) slab: u64,
    /// Bytes for a job, and the number of concurrent jobs.
    pub(crate) job: u64,
    pub(crate) jobs: u64,
}

impl MemoryNeeds {
    /// The needs of a read of `resolved`, which touches at most `chunks` chunks.
    pub(crate) fn of(
        array: &Array,
        options: &Options,
        resolved: &ResolvedSelection,
        chunks: u64,
    ) -> Result<Self, ArrayError> {
        let job = array.largest_chain()?.map_or(UNKNOWN_JOB_MEMORY, |chain| job_memory(options, &chain));
        let size = array.model().data_type.fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64);
        let elements = resolved.elements().unwrap_or(u64::MAX);
        // Each segment is rounded up to whole units.
        let assembled = |most: u64| {
            most.min(elements.saturating_mul(size.saturating_add(size / 8)).saturating_add(PERMIT_UNIT * 64))
        };
        let assembly = assembled(options.slab_memory);
        let jobs_memory = options.max_read_memory().saturating_sub(assembly) / 2;
        let jobs_memory = jobs_memory.min(elements.saturating_mul(size).max(JOBS_MEMORY));
        let jobs = (jobs_memory / job.max(1)).clamp(1, options.parallelism.max(1) as u64).min(chunks.max(1));
        Ok(Self { assembly, slab: assembled(options.slab_memory / 2 + PERMIT_UNIT * 64), job, jobs })
    }

    /// Needs no more than `bytes` bytes of elements do.
    pub(super) fn limit_to(&mut self, bytes: u64) {
        let most = bytes.saturating_add(bytes / 8).saturating_add(PERMIT_UNIT * 64);
        self.assembly = self.assembly.min(most);
        self.slab = self.slab.min(most);
    }

    /// Drops the memory for jobs: none of the chunks is stored, so all elements have the fill value.
    pub(crate) fn expect_no_chunks(&mut self) {
        self.job = 0;
    }

    /// The minimum: one slab and one job. A job larger than the memory fails elsewhere, with an error that names the
    /// limit.
    pub(crate) fn min_bytes(&self, options: &Options) -> u64 {
        self.slab.saturating_add(self.job).min(options.max_read_memory())
    }
}

/// The memory of a job in addition to the slab, at most: encoded and decoded bytes.
fn job_memory(options: &Options, chain: &CodecChain) -> u64 {
    match chain.partial_access() {
        codec::PartialAccess::Shard(sharding) => {
            job_memory(options, sharding.inner_chain()).saturating_add(sharding.index_size())
        }
        codec::PartialAccess::Elements(_) => {
            MAX_PARTIAL_FETCH.min(chain.representation().fixed_size().unwrap_or(MAX_PARTIAL_FETCH)).saturating_mul(2)
        }
        codec::PartialAccess::Full => {
            let decoded = chain.working_memory().unwrap_or(options.slab_memory / 2);
            let encoded = chain.encoded_size().map_or(decoded, codec::EncodedSizeBound::max).min(decoded);
            decoded.saturating_add(encoded)
        }
    }
}
