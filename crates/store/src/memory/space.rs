//! Accounting of the memory that values occupy.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use futures::TryStreamExt;

use super::state::Value;
use crate::{Key, Payload, StoreError, UploadError};

/// The limits of a [`MemoryStore`](crate::MemoryStore).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The maximum size of one value, in bytes. A larger one fails with [`UploadError::TooLarge`].
    pub value_bytes: u64,
    /// The maximum size of all keys and values, in bytes. A set beyond it fails with [`StoreError::OutOfSpace`].
    pub total_bytes: u64,
}

impl Default for MemoryLimits {
    /// 1 GiB per value, 4 GiB in total.
    fn default() -> Self {
        Self { value_bytes: 1 << 30, total_bytes: 4 << 30 }
    }
}

/// The memory budget of a store.
pub(super) struct Space {
    pub(super) limits: MemoryLimits,
    used: Arc<AtomicU64>,
}

/// The bytes of a value, released with the last `Bytes` that refers to them.
struct TrackedBytes {
    bytes: Vec<u8>,
    reservation: Reservation,
}

/// A part of the budget, released on drop.
struct Reservation {
    bytes: u64,
    used: Arc<AtomicU64>,
}

impl Space {
    pub(super) fn new(limits: MemoryLimits) -> Self {
        Self { limits, used: Arc::default() }
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Reads a payload into memory, counting each chunk before it is stored.
    pub(super) async fn receive(&self, key: &Key, payload: Payload) -> Result<Value, StoreError> {
        let Payload { size: announced, mut stream, attributes, .. } = payload;
        let MemoryLimits { value_bytes: limit, total_bytes: total } = self.limits;
        if announced.is_some_and(|size| size > limit) {
            return Err(UploadError::TooLarge { limit }.into());
        }
        let mut tracked =
            TrackedBytes { bytes: Vec::new(), reservation: Reservation { bytes: 0, used: self.used.clone() } };
        let overhead = key.as_bytes().len().saturating_add(attributes.encode().len());
        tracked.reservation.grow(overhead as u64, total)?;
        let mut received = 0_u64;
        while let Some(chunk) = stream.try_next().await? {
            received = received.saturating_add(chunk.len() as u64);
            if let Some(announced) = announced.filter(|announced| received > *announced) {
                return Err(UploadError::LengthMismatch { announced, received }.into());
            }
            if received > limit {
                return Err(UploadError::TooLarge { limit }.into());
            }
            tracked.reservation.grow(chunk.len() as u64, total)?;
            tracked.bytes.extend_from_slice(&chunk);
        }
        if let Some(announced) = announced.filter(|announced| received < *announced) {
            return Err(UploadError::LengthMismatch { announced, received }.into());
        }
        tracked.bytes.shrink_to_fit();
        Ok(Value { bytes: Bytes::from_owner(tracked), attributes })
    }
}

impl Reservation {
    fn grow(&mut self, bytes: u64, total: u64) -> Result<(), StoreError> {
        let more = |used: u64| used.checked_add(bytes).filter(|used| *used <= total);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| StoreError::OutOfSpace)?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for TrackedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
