//! How much memory a reading wants.

use codec::Chain;
use meta::selection::Resolved;

use super::slab_buffer::{PERMIT_UNIT, VARIABLE_SLOT_SIZE};
use crate::{error::ArrayError, node::array::Array, options::Options};

/// How many bytes of encoded and decoded chunks a job takes that is made of small ones, where nothing else is known.
const UNKNOWN_JOB_MEMORY: u64 = 8 << 20;

/// How many bytes of an uncompressed chunk a job takes: a chunk that is fetched whole, or else what is fetched together.
const MAX_PARTIAL_FETCH: u64 = 4 << 20;

/// How much memory a reading wants, and how little it can do with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryNeeds {
    /// Bytes for two slabs, so that one is assembled while the other is sent; and for one.
    pub(crate) assembly: u64,
    pub(crate) slab: u64,
    /// Bytes for a job, and how many there may be at a time.
    pub(crate) job: u64,
    pub(crate) jobs: u64,
}

impl MemoryNeeds {
    /// What is wanted for elements of an array that are in at most `chunks` chunks.
    pub(crate) fn of(array: &Array, options: &Options, resolved: &Resolved, chunks: u64) -> Result<Self, ArrayError> {
        let job = array.largest_chain()?.map_or(UNKNOWN_JOB_MEMORY, |chain| job_memory(options, &chain));
        let size = array.model().data_type.fixed_size().map_or(VARIABLE_SLOT_SIZE, |size| size as u64);
        let elements = resolved.elements().unwrap_or(u64::MAX);
        // Each lane is counted in whole units.
        let assembled = |most: u64| {
            most.min(elements.saturating_mul(size.saturating_add(size / 8)).saturating_add(PERMIT_UNIT * 64))
        };
        let assembly = assembled(options.slab_memory);
        let room = options.max_read_memory().saturating_sub(assembly);
        let jobs = (room / 2 / job.max(1)).clamp(1, options.parallelism.max(1) as u64).min(chunks.max(1));
        Ok(Self { assembly, slab: assembled(options.slab_memory / 2 + PERMIT_UNIT * 64), job, jobs })
    }

    /// Wants no memory for chunks, since none that is concerned is stored: their elements have the fill value.
    pub(crate) fn expect_no_chunks(&mut self) {
        self.job = 0;
    }

    /// The least: one slab and one job. A single job that is larger than the memory has failed, or will, with an error that says so.
    pub(crate) fn min_bytes(&self, options: &Options) -> u64 {
        self.slab.saturating_add(self.job).min(options.max_read_memory())
    }
}

/// How many bytes one job takes beside the slab, at the most: what is fetched and what is decoded at a time.
fn job_memory(options: &Options, chain: &Chain) -> u64 {
    match chain.access() {
        codec::Access::Shard(sharding) => job_memory(options, sharding.inner()).saturating_add(sharding.index_len()),
        codec::Access::Elements(_) => {
            MAX_PARTIAL_FETCH.min(chain.array().fixed_len().unwrap_or(MAX_PARTIAL_FETCH)).saturating_mul(2)
        }
        codec::Access::Whole => {
            let decoded = chain.working_len().unwrap_or(options.slab_memory / 2);
            let encoded = chain.encoded_len().map_or(decoded, codec::EncodedLen::max).min(decoded);
            decoded.saturating_add(encoded)
        }
    }
}
