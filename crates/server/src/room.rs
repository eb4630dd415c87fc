//! Memory for what cannot be streamed.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{refusal::Refusal, settings::Settings};

/// In what memory is given out.
const UNIT: u64 = 1 << 20;

/// The memory that all requests together may take for large bodies that are read whole and for answers that are made whole.
pub(crate) struct Rooms {
    free: Arc<Semaphore>,
    units: u32,
    patience: Duration,
}

/// Some of the memory; dropping it gives it back.
pub(crate) struct Room(#[allow(dead_code, reason = "it is held, not looked at")] OwnedSemaphorePermit);

impl Rooms {
    pub(crate) fn new(settings: &Settings) -> Self {
        // The largest image, its elements beside it, and as much again for others.
        let units = settings.limits.text_selection.saturating_mul(4).max(256 * UNIT).div_ceil(UNIT);
        let units =
            u32::try_from(units).unwrap_or(u32::MAX).min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self { free: Arc::new(Semaphore::new(units as usize)), units, patience: settings.arrays.patience }
    }

    /// Takes memory for `bytes`, or all that there is where it is less; waits as long as readings wait.
    pub(crate) async fn take(&self, bytes: u64) -> Result<Room, Refusal> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        match timeout(self.patience, self.free.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Room(permit)),
            Ok(Err(_)) | Err(_) => Err(Refusal::busy(None)),
        }
    }
}

/// Bytes with the memory that they are allowed to take, until nobody has them any more.
pub(crate) fn held(bytes: impl Into<Bytes>, room: Room) -> Bytes {
    Bytes::from_owner(Held { bytes: bytes.into(), _room: room })
}

struct Held {
    bytes: Bytes,
    _room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::problem::ProblemType;

    #[tokio::test]
    async fn what_is_taken_comes_back() {
        let mut settings = Settings::default();
        settings.arrays.patience = Duration::from_millis(20);
        let rooms = Rooms::new(&settings);
        let all = rooms.take(u64::MAX).await.unwrap();
        assert_eq!(rooms.take(1).await.err().map(|refusal| refusal.kind()), Some(ProblemType::Busy));
        let held = held(vec![1, 2], all);
        let part = held.slice(..1);
        drop(held);
        assert!(rooms.take(1).await.is_err(), "a part of it is still there");
        drop(part);
        let (_half, _other) = (rooms.take(100 << 20).await.unwrap(), rooms.take(100 << 20).await.unwrap());
        assert!(rooms.take(100 << 20).await.is_err());
    }
}
