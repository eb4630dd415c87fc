//! The memory of one operation.

use super::{
    claim::{Claim, Permit},
    error::MemoryError,
};

/// The memory of a read or a write.
///
/// Its minimum is reserved at the start ([`reserve`](Self::reserve)). Beyond that it takes what is free
/// ([`try_more`](Self::try_more)), or does without.
#[derive(Debug)]
pub(crate) struct Account {
    claim: Claim,
    permit: Option<Permit>,
}

impl Account {
    /// An empty account.
    pub(crate) fn new(claim: Claim) -> Self {
        Self { claim, permit: None }
    }

    /// Reserves `bytes` in all, or the most that one request can have if that is less.
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

    /// Reserves `bytes` in all, and `beside` more for something else, which are returned.
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

    /// True if nothing is reserved.
    pub(crate) fn is_empty(&self) -> bool {
        self.permit.is_none()
    }

    /// Takes more if it is free; false if it is not, or if nothing is reserved yet.
    pub(crate) fn try_more(&mut self, bytes: u64) -> bool {
        self.permit.as_mut().is_some_and(|permit| permit.try_grow(bytes).is_ok())
    }

    /// The reserved memory.
    pub(crate) fn into_permit(self) -> Option<Permit> {
        self.permit
    }
}
