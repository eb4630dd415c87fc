//! The memory of one write.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    error::ArrayError,
    memory::{account::Account, claim::Permit, error::MemoryError},
};

/// How much is reserved for the parts of the least being rounded.
const ROUNDING: u64 = 2 << 10;

/// The memory of one write: the least that it can go on with, reserved at once before anything is taken in, and what more is free at a time. Clones are the same.
///
/// The least is there for one window and for the chunks that are made at a time. Either is lent to one user after the other; what its user has made of it never needs more to be
/// finished, so that it comes back.
#[derive(Clone, Debug)]
pub(crate) struct WriteMemory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// What more is taken is taken beside this.
    rest: Mutex<Permit>,
    window: Mutex<Option<Permit>>,
    encoder: Mutex<Option<Permit>>,
}

/// The least that a write can do with, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinMemory {
    /// For elements on their way in.
    pub(crate) window: u64,
    /// For chunks being made.
    pub(crate) encoder: u64,
    /// For what is known of chunks that were made, to the end.
    pub(crate) made: u64,
}

/// What a part of the least is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUse {
    /// Elements on their way in.
    Window,
    /// Chunks being made.
    Making,
}

/// Some of the memory; it goes back when this is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    permit: Option<Permit>,
    home: Option<(WriteMemory, MemoryUse)>,
}

impl WriteMemory {
    /// Waits for the least, if `account` may still wait.
    pub(crate) async fn open(mut account: Account, least: MinMemory) -> Result<Self, ArrayError> {
        let MinMemory { window, encoder, made } = least;
        // Each part is rounded up when it is split off.
        account.reserve(window.saturating_add(encoder).saturating_add(made).saturating_add(ROUNDING)).await?;
        let mut rest = account.into_permit().ok_or(ArrayError::Busy)?;
        let encoder = rest.split(encoder);
        let window = rest.split(window);
        Ok(Self(Arc::new(Inner {
            rest: Mutex::new(rest),
            window: Mutex::new(Some(window)),
            encoder: Mutex::new(Some(encoder)),
        })))
    }

    /// Memory for something: of the least if that is there and enough, else beside it if it is free.
    pub(crate) fn take(&self, what: MemoryUse, bytes: u64) -> Result<MemoryShare, MemoryError> {
        let mut slot = self.slot(what).lock();
        match slot.take_if(|permit| permit.bytes() >= bytes) {
            Some(permit) => Ok(MemoryShare { permit: Some(permit), home: Some((self.clone(), what)) }),
            None => {
                drop(slot);
                self.more(bytes)
            }
        }
    }

    /// Memory beside the least, if it is free.
    pub(crate) fn more(&self, bytes: u64) -> Result<MemoryShare, MemoryError> {
        let mut rest = self.0.rest.lock();
        rest.try_grow(bytes)?;
        Ok(MemoryShare { permit: Some(rest.split(bytes)), home: None })
    }

    fn slot(&self, what: MemoryUse) -> &Mutex<Option<Permit>> {
        match what {
            MemoryUse::Window => &self.0.window,
            MemoryUse::Making => &self.0.encoder,
        }
    }
}

impl MemoryShare {
    /// Whether it is of the least, and so has to come back before the write goes on.
    pub(crate) fn is_least(&self) -> bool {
        self.home.is_some()
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        if let Some((memory, what)) = &self.home {
            *memory.slot(*what).lock() = self.permit.take();
        }
    }
}

/// How many bytes of chunks are made together.
pub(crate) const BATCH: u64 = 256 << 10;

/// How many bytes of memory are reserved at a time.
pub(crate) const RESERVATION_STEP: u64 = 4 << 20;
