//! The memory needs of a read.

use zarrd_codec::CodecChain;
use zarrd_compute::SPILL_MEMORY;
use zarrd_meta::selection::ResolvedSelection;

use super::{
    consumer::ResultCost,
    limits::{LOOKAHEAD_MEMORY, MAX_DISTANT_FETCH, MAX_DISTANT_GAP, MAX_DISTANT_JOBS, MAX_PARTIAL_FETCH},
    slab_buffer::{PERMIT_UNIT, VARIABLE_SLOT_SIZE},
};
use crate::{context::Context, error::ArrayError, node::array::Array, options::Options};

/// The memory of a job of small chunks of unknown size, encoded and decoded, in bytes.
const UNKNOWN_JOB_MEMORY: u64 = 8 << 20;

/// The memory of a result's state up to which each job has one of its own, in bytes.
pub(crate) const SMALL_STATE: u64 = 1 << 20;

/// The memory of concurrent jobs up to which a read decodes several chunks at a time, in bytes, unless its elements
/// take more: a few elements of many large chunks are worth no more memory than a chunk.
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
    /// The division of memory among jobs.
    pub(crate) sharing: JobSharing,
}

/// The division of memory among jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobSharing {
    /// Each has the memory of the largest one, since it keeps a core busy.
    Equal,
    /// Each takes what it needs, up to [`MAX_DISTANT_JOBS`] of them, since most wait for an answer.
    ByNeed,
}

impl MemoryNeeds {
    /// The needs of a read of `resolved`, which touches at most `chunks` chunks.
    pub(crate) fn of(
        array: &Array,
        context: &Context,
        resolved: &ResolvedSelection,
        chunks: u64,
    ) -> Result<Self, ArrayError> {
        let options = &context.options;
        let chain = array.largest_chain()?;
        let job = chain.as_ref().map_or(UNKNOWN_JOB_MEMORY, |chain| job_memory(options, chain));
        let size = array.model().data_type.fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64);
        let elements = resolved.elements().unwrap_or(u64::MAX);
        let (sharing, job, most) = match context.guarantees_at(array.path()).near {
            true => (JobSharing::Equal, job, (options.parallelism.max(1) as u64).min(chunks.max(1))),
            false => {
                let (shard, fetches) = chain.map_or((0, 0), |chain| shard_needs(&chain, chunks, elements));
                (JobSharing::ByNeed, job.saturating_add(shard), MAX_DISTANT_JOBS.min(chunks.max(fetches).max(1)))
            }
        };
        // Each segment is rounded up to whole units.
        let assembled = |most: u64| {
            most.min(elements.saturating_mul(size.saturating_add(size / 8)).saturating_add(PERMIT_UNIT * 64))
        };
        let assembly = assembled(options.slab_memory);
        let jobs_memory = options.max_read_memory().saturating_sub(assembly) / 2;
        let jobs_memory = jobs_memory.min(elements.saturating_mul(size).max(JOBS_MEMORY));
        let jobs = (jobs_memory / job.max(1)).clamp(1, most);
        let slab = assembled(options.slab_memory / 2 + PERMIT_UNIT * 64);
        Ok(Self { assembly, slab, job, jobs, sharing })
    }

    /// Needs the memory of a state instead of that of the elements.
    pub(super) fn reduce_to(&mut self, cost: &ResultCost, options: &Options) {
        let slots = self.job.saturating_mul(self.jobs);
        let own_state = if cost.state <= SMALL_STATE + SPILL_MEMORY { cost.state } else { 0 };
        self.job = self.job.saturating_mul(cost.decoded_per_byte.saturating_add(1)).saturating_add(own_state);
        self.slab = cost.state;
        let free = options.max_read_memory().saturating_sub(self.slab).saturating_sub(self.job);
        self.assembly = cost.state.saturating_mul(if own_state > 0 { 1 } else { 2 }).min(free.max(self.slab));
        self.jobs = (slots.max(JOBS_MEMORY) / self.job.max(1)).clamp(1, self.jobs.max(1));
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

/// The memory for shards of a distant store, in which inner chunks are fetched together and indexes are read ahead, if
/// `elements` elements of `chunks` shards are read; and the number of fetches, about. 0 for other chunks.
fn shard_needs(chain: &CodecChain, chunks: u64, elements: u64) -> (u64, u64) {
    let zarrd_codec::PartialAccess::Shard(sharding) = chain.partial_access() else { return (0, 0) };
    let bound = |chain: &CodecChain| chain.encoded_size().map_or(u64::MAX, zarrd_codec::EncodedSizeBound::max);
    let apart = elements.saturating_mul(bound(sharding.inner_chain()).saturating_add(MAX_DISTANT_GAP));
    let fetched = bound(chain).min(apart).min(MAX_DISTANT_FETCH);
    let indexes = sharding.index_size().saturating_mul(2).saturating_mul(chunks.min(MAX_DISTANT_JOBS));
    let size = chain.representation().data_type().fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64);
    let fetches = elements.saturating_mul(size).div_ceil(MAX_DISTANT_FETCH);
    (fetched.saturating_add(indexes.min(LOOKAHEAD_MEMORY)), fetches)
}

/// The memory of a job in addition to the slab, at most: encoded and decoded bytes.
fn job_memory(options: &Options, chain: &CodecChain) -> u64 {
    match chain.partial_access() {
        zarrd_codec::PartialAccess::Shard(sharding) => {
            job_memory(options, sharding.inner_chain()).saturating_add(sharding.index_size())
        }
        zarrd_codec::PartialAccess::Elements(_) => {
            MAX_PARTIAL_FETCH.min(chain.representation().fixed_size().unwrap_or(MAX_PARTIAL_FETCH)).saturating_mul(2)
        }
        zarrd_codec::PartialAccess::Full => {
            let decoded = chain.working_memory().unwrap_or(options.slab_memory / 2);
            let encoded = chain.encoded_size().map_or(decoded, zarrd_codec::EncodedSizeBound::max).min(decoded);
            decoded.saturating_add(encoded)
        }
    }
}
