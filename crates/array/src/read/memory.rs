//! The memory of a read: reserved for its plan, and granted for its assembly.

use super::{
    limits::MAX_DISTANT_JOBS,
    needs::{JobSharing, MemoryNeeds},
};
use crate::{
    error::ArrayError,
    memory::{account::Account, claim::Permit, error::MemoryError},
    options::Options,
};

/// The memory of a read, of which the minimum may be reserved already.
#[derive(Debug)]
pub(crate) struct ReadMemory {
    /// The memory that is reserved, at least that of the plan.
    pub(crate) account: Account,
    /// The memory of the plan, in bytes.
    pub(crate) plan: u64,
    pub(crate) needs: MemoryNeeds,
}

/// The memory granted to an assembly.
pub(crate) struct GrantedMemory {
    /// Bytes for slabs.
    pub(crate) assembly: u64,
    /// The number of concurrent jobs.
    pub(crate) parallel: usize,
    /// Bytes for jobs that take what they need.
    pub(crate) jobs: JobMemory,
    /// The permit for all of it.
    pub(crate) memory: Option<Permit>,
}

/// The memory that the jobs of a read share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobMemory {
    /// The bytes for all jobs; `None` if each has its own.
    pub(super) all: Option<u64>,
    /// The most that one takes, in bytes.
    pub(super) most: u64,
}

impl ReadMemory {
    /// The minimum memory, in bytes.
    pub(crate) fn min_bytes(&self, options: &Options) -> u64 {
        self.plan.saturating_add(self.needs.min_bytes(options))
    }

    /// Reserves the minimum, and `bytes` more for something else.
    pub(crate) async fn reserve_with_extra(&mut self, options: &Options, bytes: u64) -> Result<Permit, MemoryError> {
        let least = self.min_bytes(options);
        self.account.reserve_with_extra(least, bytes).await
    }

    pub(crate) async fn take(mut self, options: &Options) -> Result<GrantedMemory, ArrayError> {
        self.account.reserve(self.min_bytes(options)).await?;
        let Self { mut account, needs: MemoryNeeds { assembly, slab, job, jobs, sharing }, .. } = self;
        let assembly = if account.try_more(assembly.saturating_sub(slab)) { assembly } else { slab };
        // Halve the number of additional jobs until their memory is free.
        let mut more = jobs.saturating_sub(1);
        while more > 0 && !account.try_more(job.saturating_mul(more)) {
            more /= 2;
        }
        let granted = more.saturating_add(1);
        let (parallel, all) = match sharing {
            JobSharing::Equal => (granted, None),
            JobSharing::ByNeed => (MAX_DISTANT_JOBS, Some(job.saturating_mul(granted))),
        };
        let parallel = usize::try_from(parallel).unwrap_or(1);
        Ok(GrantedMemory { assembly, parallel, jobs: JobMemory { all, most: job }, memory: account.into_permit() })
    }
}
