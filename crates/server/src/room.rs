//! The account of the memory that requests hold: documents and what is made of them, listings, and answers that are made whole.
//!
//! A request waits for memory once at the most, and before it holds any: what it needs beyond is taken if it is free, or the request fails. So
//! whoever holds memory never waits for that of others, and they cannot wait for each other.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::extract::FromRequestParts;
use bytes::Bytes;
use http::{Extensions, request::Parts};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::{refusal::Refusal, settings::Settings};

/// In what memory is given out.
const UNIT: u64 = 64 << 10;

/// The memory that all requests together may hold.
pub(crate) struct Rooms {
    free: Arc<Semaphore>,
    units: u32,
    patience: Duration,
}

/// Some of the memory; dropping it gives it back.
pub(crate) struct Room(OwnedSemaphorePermit);

/// The right of a request to wait for memory, which it has once. Its clones are the same right.
#[derive(Clone, Debug)]
pub(crate) struct RightToWait(Arc<AtomicBool>);

impl Rooms {
    pub(crate) fn new(settings: &Settings) -> Self {
        let units = settings.limits.request_memory.div_ceil(UNIT);
        let most = u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX);
        let units = u32::try_from(units).unwrap_or(u32::MAX).min(most);
        Self { free: Arc::new(Semaphore::new(units as usize)), units, patience: settings.arrays.patience }
    }

    /// Takes memory for `bytes`. Waits for it, as long as readings wait, where the request has not waited before.
    pub(crate) async fn take(&self, right: &RightToWait, bytes: u64) -> Result<Room, Refusal> {
        let units = self.units_of(bytes)?;
        if !right.0.swap(false, Ordering::AcqRel) {
            return self.try_take(bytes);
        }
        match timeout(self.patience, self.free.clone().acquire_many_owned(units)).await {
            Ok(Ok(permit)) => Ok(Room(permit)),
            Ok(Err(_)) | Err(_) => Err(Refusal::busy(None)),
        }
    }

    /// Takes memory for `bytes` if it is free.
    pub(crate) fn try_take(&self, bytes: u64) -> Result<Room, Refusal> {
        let permit = self.free.clone().try_acquire_many_owned(self.units_of(bytes)?);
        permit.map(Room).map_err(|_| Refusal::busy(None))
    }

    /// Gives `room` memory for `bytes` in all, if it is free.
    pub(crate) fn grow(&self, room: &mut Room, bytes: u64) -> Result<(), Refusal> {
        let had = u64::try_from(room.0.num_permits()).unwrap_or(u64::MAX).saturating_mul(UNIT);
        self.units_of(bytes)?;
        if bytes > had {
            let more = self.try_take(bytes.saturating_sub(had))?;
            room.0.merge(more.0);
        }
        Ok(())
    }

    /// How many bytes there are in all.
    pub(crate) fn all(&self) -> u64 {
        u64::from(self.units).saturating_mul(UNIT)
    }

    /// How many of them are taken.
    pub(crate) fn taken(&self) -> u64 {
        let free = u64::try_from(self.free.available_permits()).unwrap_or(u64::MAX);
        u64::from(self.units).saturating_sub(free).saturating_mul(UNIT)
    }

    fn units_of(&self, bytes: u64) -> Result<u32, Refusal> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).ok().filter(|units| *units <= self.units);
        units.ok_or_else(|| Refusal::too_much_memory(bytes, self.all()))
    }
}

impl RightToWait {
    /// That of a new request.
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// That of the request with these extensions; none where it was given none.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_else(|| Self(Arc::default()))
    }
}

impl<S: Sync> FromRequestParts<S> for RightToWait {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions))
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
    use std::time::Instant;
    use wire::problem::ProblemType;

    const PATIENCE: Duration = Duration::from_millis(50);

    fn rooms() -> Rooms {
        let mut settings = Settings::default();
        settings.arrays.patience = PATIENCE;
        settings.limits.request_memory = 256 << 20;
        Rooms::new(&settings)
    }

    fn kind<T>(result: Result<T, Refusal>) -> Option<ProblemType> {
        result.err().map(|refusal| refusal.kind())
    }

    #[tokio::test]
    async fn what_is_taken_comes_back() {
        let rooms = rooms();
        let all = rooms.take(&RightToWait::new(), rooms.all()).await.unwrap();
        assert_eq!(rooms.taken(), 256 << 20);
        assert_eq!(kind(rooms.take(&RightToWait::new(), 1).await), Some(ProblemType::Busy));
        let held = held(vec![1, 2], all);
        let part = held.slice(..1);
        drop(held);
        assert!(rooms.try_take(1).is_err(), "a part of it is still there");
        drop(part);
        assert_eq!(rooms.taken(), 0);
        let mut room = rooms.try_take(100 << 20).unwrap();
        let other = rooms.try_take(100 << 20).unwrap();
        assert_eq!(kind(rooms.grow(&mut room, 200 << 20)), Some(ProblemType::Busy));
        drop(other);
        rooms.grow(&mut room, 200 << 20).unwrap();
        rooms.grow(&mut room, 1).unwrap();
        assert_eq!(rooms.taken(), 200 << 20);
        drop(room);
        assert_eq!(rooms.taken(), 0);
    }

    #[tokio::test]
    async fn what_could_never_be_is_said_at_once() {
        let rooms = rooms();
        let _some = rooms.try_take(1).unwrap();
        for bytes in [rooms.all() + 1, u64::MAX] {
            assert_eq!(kind(rooms.take(&RightToWait::new(), bytes).await), Some(ProblemType::TooMuchMemory));
        }
    }

    #[tokio::test]
    async fn a_request_waits_once() {
        let rooms = rooms();
        let _all = rooms.try_take(rooms.all()).unwrap();
        let right = RightToWait::new();
        let begun = Instant::now();
        assert!(rooms.take(&right, 1).await.is_err());
        let waited = begun.elapsed();
        assert!(waited >= PATIENCE);
        assert!(rooms.take(&right.clone(), 1).await.is_err());
        assert!(begun.elapsed() - waited < PATIENCE, "it may hold memory by now");
    }
}
