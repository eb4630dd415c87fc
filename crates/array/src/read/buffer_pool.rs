//! Reused buffers, and bytes that hold a memory permit.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;
use zarrd_codec::filled;

use crate::memory::claim::{Permit, attach};

/// The buffers of one read. They are reused once they are sent, which saves the kernel from clearing fresh pages.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
}

/// A counter of bytes with a limit.
#[derive(Debug)]
pub(crate) struct ByteCounter {
    used: AtomicU64,
    limit: u64,
}

/// A buffer that returns to its pool after its last use, and holds its memory, such as a permit, until then.
struct PooledBytes<M> {
    buffer: Vec<u8>,
    pool: Weak<BufferPool>,
    _memory: M,
}

impl BufferPool {
    /// A buffer of `len` bytes with unspecified content from the same read.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let reused = self.free.lock().pop();
        match reused {
            Some(mut buffer) => {
                buffer.resize(len, 0);
                buffer
            }
            None => filled(0, len),
        }
    }

    /// Returns a buffer to the pool.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        self.free.lock().push(buffer);
    }

    /// The bytes of a buffer, which returns to the pool after their last use; `memory` is dropped next.
    pub(crate) fn into_bytes<M: Send + 'static>(self: &Arc<Self>, buffer: Vec<u8>, memory: M) -> Bytes {
        Bytes::from_owner(PooledBytes { buffer, pool: Arc::downgrade(self), _memory: memory })
    }
}

/// Bytes that hold a permit until their last use.
pub(crate) fn with_permit(bytes: Bytes, permit: Option<Arc<Permit>>) -> Bytes {
    match permit {
        Some(permit) => attach(bytes, permit),
        None => bytes,
    }
}

impl ByteCounter {
    /// A counter at 0.
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    /// Counts more bytes; false, and unchanged, if that would exceed the limit.
    pub(crate) fn take(&self, amount: u64) -> bool {
        let used = self.used.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        if used > self.limit {
            self.release(amount);
        }
        used <= self.limit
    }

    /// Counts fewer bytes.
    pub(crate) fn release(&self, amount: u64) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl<M> AsRef<[u8]> for PooledBytes<M> {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl<M> Drop for PooledBytes<M> {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.recycle(std::mem::take(&mut self.buffer));
        }
    }
}
