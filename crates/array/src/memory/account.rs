//! The memory of one piece of work.

use super::{
    claim::{Claim, Permit},
    error::MemoryError,
};

/// The memory that a reading or a writing has.
///
/// It is reserved at the beginning, the least that the work can do with ([`reserve`](Self::reserve)). What it wants beyond, it takes if that is free
/// ([`try_more`](Self::try_more)), and else does without.
#[derive(Debug)]
pub(crate) struct Account {
    claim: Claim,
    permit: Option<Permit>,
}

impl Account {
    /// An account of which nothing is taken yet.
    pub(crate) fn new(claim: Claim) -> Self {
        Self { claim, permit: None }
    }

    /// Makes sure that there are so many bytes, or all that one request can have where that is less.
    pub(crate) async fn reserve(&mut self, bytes: u64) -> Result<(), MemoryError> {
        let bytes = bytes.min(self.claim.budget().max_per_request());
        match &mut self.permit {
            None if bytes == 0 => Ok(()),
            None => {
                self.permit = Some(self.claim.take(bytes).await?);
                Ok(())
            }
            Some(permit) => permit.grow_to(bytes),
        }
    }

    /// Makes sure that there are so many bytes, and as many as `beside` for something else, which are given away.
    pub(crate) async fn reserve_with_extra(&mut self, bytes: u64, beside: u64) -> Result<Permit, MemoryError> {
        let bytes = bytes.min(self.claim.budget().max_per_request());
        let all = bytes.saturating_add(beside);
        let permit = match &mut self.permit {
            None => self.permit.insert(self.claim.take(all).await?),
            Some(permit) => {
                permit.grow_to(all)?;
                permit
            }
        };
        Ok(permit.split(beside))
    }

    /// Takes more if it is free. There has to be something already.
    pub(crate) fn try_more(&mut self, bytes: u64) -> bool {
        self.permit.as_mut().is_some_and(|permit| permit.try_grow(bytes).is_ok())
    }

    /// What was reserved, on its own.
    pub(crate) fn into_permit(self) -> Option<Permit> {
        self.permit
    }
}
