//! The memory of one write.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    error::ArrayError,
    memory::{account::Account, claim::Permit, error::MemoryError},
};

/// The bytes reserved for rounding up the parts of the minimum.
const ROUNDING: u64 = 2 << 10;

/// The memory of one write: its minimum, reserved in one step before any element is received, and more as long as it is
/// free. Clones share it.
///
/// The minimum is enough for one window and for the chunks that are encoded at a time. Each part is lent to one user
/// after the other. No user of it ever needs more to finish, so it always comes back.
#[derive(Clone, Debug)]
pub(crate) struct WriteMemory(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// Memory beyond the minimum is taken in addition to this.
    rest: Mutex<Permit>,
    window: Mutex<Option<Permit>>,
    encoder: Mutex<Option<Permit>>,
}

/// The minimum memory of a write, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MinMemory {
    /// For received elements.
    pub(crate) window: u64,
    /// For chunks being encoded.
    pub(crate) encoder: u64,
    /// For staged chunks, until the commit.
    pub(crate) made: u64,
}

/// The purpose of a part of the minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryUse {
    /// Received elements.
    Window,
    /// Chunks being encoded.
    Making,
}

/// A part of the memory; dropping it returns it.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    permit: Option<Permit>,
    home: Option<(WriteMemory, MemoryUse)>,
}

impl WriteMemory {
    /// Waits for the minimum, if `account` may still wait.
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

    /// Takes memory for a purpose: from the minimum if that is available and enough, else beyond it if it is free.
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

    /// Takes memory beyond the minimum, if it is free.
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
    /// True if it is from the minimum, and so has to be returned before the write can go on.
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

/// The bytes of small chunks that are encoded together.
pub(crate) const BATCH: u64 = 256 << 10;

/// The memory that is reserved at a time for received elements, in bytes.
pub(crate) const RESERVATION_STEP: u64 = 4 << 20;
