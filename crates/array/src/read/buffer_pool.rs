//! Memory that is used again.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::memory::claim::Permit;

/// The buffers of one reading. What was sent is written to again, which spares the kernel from clearing fresh pages.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<Vec<Vec<u8>>>,
}

/// How much of something bounded is taken.
#[derive(Debug)]
pub(crate) struct ByteCounter {
    used: AtomicU64,
    limit: u64,
}

/// Bytes on their way out, with the permission to have them.
struct BytesWithPermit {
    bytes: Bytes,
    _permit: Arc<Permit>,
}

/// A buffer on its way out, with the permission to have it.
struct PooledBytes {
    buffer: Vec<u8>,
    pool: Weak<BufferPool>,
    _permit: Option<Arc<Permit>>,
}

impl BufferPool {
    /// A buffer of `len` bytes, whose content is whatever this reading wrote to it before.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        let reused = self.free.lock().pop();
        match reused {
            Some(mut buffer) => {
                buffer.resize(len, 0);
                buffer
            }
            None => vec![0; len],
        }
    }

    /// Takes a buffer back.
    pub(crate) fn recycle(&self, buffer: Vec<u8>) {
        self.free.lock().push(buffer);
    }

    /// The buffer's bytes, after whose last use it comes back.
    pub(crate) fn into_bytes(self: &Arc<Self>, buffer: Vec<u8>, permit: Option<Arc<Permit>>) -> Bytes {
        Bytes::from_owner(PooledBytes { buffer, pool: Arc::downgrade(self), _permit: permit })
    }
}

/// The bytes, with whose last use the permission ends.
pub(crate) fn with_permit(bytes: Bytes, permit: Option<Arc<Permit>>) -> Bytes {
    match permit {
        Some(permit) => Bytes::from_owner(BytesWithPermit { bytes, _permit: permit }),
        None => bytes,
    }
}

impl AsRef<[u8]> for BytesWithPermit {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl ByteCounter {
    /// Nothing taken of `limit`.
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: AtomicU64::new(0), limit }
    }

    /// Takes some, unless that is more than there is.
    pub(crate) fn take(&self, amount: u64) -> bool {
        let used = self.used.fetch_add(amount, Ordering::Relaxed).saturating_add(amount);
        if used > self.limit {
            self.release(amount);
        }
        used <= self.limit
    }

    /// Gives some back.
    pub(crate) fn release(&self, amount: u64) {
        self.used.fetch_sub(amount, Ordering::Relaxed);
    }
}

impl AsRef<[u8]> for PooledBytes {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for PooledBytes {
    fn drop(&mut self) {
        if let Some(owner) = self.pool.upgrade() {
            owner.recycle(std::mem::take(&mut self.buffer));
        }
    }
}
