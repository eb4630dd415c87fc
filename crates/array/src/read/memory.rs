//! The memory that a read needs, and what it was granted.

use super::needs::MemoryNeeds;
use crate::{
    error::ArrayError,
    memory::{account::Account, claim::Permit, error::MemoryError},
    options::Options,
};

/// The memory for a reading, of which the least may be there already.
#[derive(Debug)]
pub(crate) struct ReadMemory {
    /// What is reserved so far, at least what the plan takes.
    pub(crate) account: Account,
    /// How much the plan takes.
    pub(crate) plan: u64,
    pub(crate) needs: MemoryNeeds,
}

/// What a reading may take.
pub(crate) struct GrantedMemory {
    /// Bytes for slabs.
    pub(super) assembly: u64,
    /// Jobs at a time.
    pub(super) parallel: usize,
    /// All of it.
    pub(super) memory: Option<Permit>,
}

impl ReadMemory {
    /// How much there has to be before anything is read.
    pub(crate) fn min_bytes(&self, options: &Options) -> u64 {
        self.plan.saturating_add(self.needs.min_bytes(options))
    }

    /// Reserves the least, and beside it so much for something else.
    pub(crate) async fn reserve_with_extra(&mut self, options: &Options, bytes: u64) -> Result<Permit, MemoryError> {
        let least = self.min_bytes(options);
        self.account.reserve_with_extra(least, bytes).await
    }

    pub(crate) async fn take(mut self, options: &Options) -> Result<GrantedMemory, ArrayError> {
        self.account.reserve(self.min_bytes(options)).await?;
        let Self { mut account, needs: MemoryNeeds { assembly, slab, job, jobs }, .. } = self;
        let assembly = if account.try_more(assembly.saturating_sub(slab)) { assembly } else { slab };
        // As many at a time as there is memory for.
        let mut more = jobs.saturating_sub(1);
        while more > 0 && !account.try_more(job.saturating_mul(more)) {
            more /= 2;
        }
        let parallel = usize::try_from(more.saturating_add(1)).unwrap_or(1);
        Ok(GrantedMemory { assembly, parallel, memory: account.into_permit() })
    }
}
