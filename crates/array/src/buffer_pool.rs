//! Reused buffers, and bytes that hold a memory permit.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use zarrd_codec::filled;

use crate::memory::claim::{Permit, attach};

/// The smallest buffer that is reused, in bytes: smaller ones come from the allocator's own caches.
const MIN_POOLED: usize = 32 << 10;

/// The number of unused buffers at most, so that finding one takes no long time.
const MAX_FREE: usize = 64;

/// The time after which an unused buffer is freed.
const DECAY: Duration = Duration::from_secs(1);

/// The buffers of all reads and writes. They are reused once they are sent or encoded, which saves the kernel from clearing
/// fresh pages.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    free: Mutex<FreeBuffers>,
    /// The bytes of unused buffers at most.
    limit: usize,
}

#[derive(Debug, Default)]
struct FreeBuffers {
    /// The unused buffers, the last that was returned last.
    buffers: Vec<FreeBuffer>,
    bytes: usize,
    /// True while a task frees those that are not used for a time.
    decays: bool,
}

#[derive(Debug)]
struct FreeBuffer {
    buffer: Vec<u8>,
    since: Instant,
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

/// The task that frees unused buffers, until dropped.
struct Decay(Weak<BufferPool>);

impl BufferPool {
    /// A pool of at most `limit` bytes of unused buffers.
    pub(crate) fn new(limit: u64) -> Self {
        Self { free: Mutex::default(), limit: usize::try_from(limit).unwrap_or(usize::MAX) }
    }

    /// A buffer of `len` bytes with unspecified content, which may be elements of another request.
    pub(crate) fn take(&self, len: usize) -> Vec<u8> {
        match self.free.lock().take(len) {
            Some(mut buffer) => {
                buffer.resize(len, 0);
                buffer
            }
            None => filled(0, len),
        }
    }

    /// An empty buffer with a capacity of at least `len` bytes.
    pub(crate) fn take_empty(&self, len: usize) -> Vec<u8> {
        let Some(mut buffer) = self.free.lock().take(len) else {
            // The compiler must not ask for zeros if the buffer is filled with them.
            return std::hint::black_box(Vec::with_capacity(len));
        };
        buffer.clear();
        buffer
    }

    /// Returns a buffer to the pool, or frees it if it is small, or if there are enough.
    pub(crate) fn recycle(self: &Arc<Self>, buffer: Vec<u8>) {
        let size = buffer.capacity();
        // Without a runtime nothing would free it.
        let Ok(runtime) = Handle::try_current() else { return };
        let mut free = self.free.lock();
        if size < MIN_POOLED || free.buffers.len() >= MAX_FREE || free.bytes.saturating_add(size) > self.limit {
            return;
        }
        free.bytes = free.bytes.saturating_add(size);
        free.buffers.push(FreeBuffer { buffer, since: Instant::now() });
        let decays = std::mem::replace(&mut free.decays, true);
        drop(free);
        if !decays {
            runtime.spawn(Decay(Arc::downgrade(self)).run());
        }
    }

    /// The bytes of a buffer, which returns to the pool after their last use unless it is small.
    pub(crate) fn freeze(self: &Arc<Self>, buffer: Vec<u8>) -> Bytes {
        match buffer.capacity() {
            ..MIN_POOLED => buffer.into(),
            _ => self.into_bytes(buffer, ()),
        }
    }

    /// The bytes of a buffer, which returns to the pool after their last use; `memory` is dropped next.
    pub(crate) fn into_bytes<M: Send + 'static>(self: &Arc<Self>, buffer: Vec<u8>, memory: M) -> Bytes {
        Bytes::from_owner(PooledBytes { buffer, pool: Arc::downgrade(self), _memory: memory })
    }

    /// Frees the buffers that were not used for a time. Returns false if none is left.
    fn decay(&self) -> bool {
        let mut free = self.free.lock();
        // Those that were returned first are first.
        let old = free.buffers.partition_point(|one| one.since.elapsed() >= DECAY);
        let freed: Vec<_> = free.buffers.drain(..old).collect();
        free.bytes = free.buffers.iter().map(|one| one.buffer.capacity()).sum();
        let is_left = !free.buffers.is_empty();
        drop(free);
        drop(freed);
        is_left
    }
}

impl FreeBuffers {
    /// The buffer that was returned last of those that are large enough, and not much larger.
    fn take(&mut self, len: usize) -> Option<Vec<u8>> {
        let most = len.saturating_add(len / 4);
        let fits = |one: &FreeBuffer| (len..=most).contains(&one.buffer.capacity());
        let at = self.buffers.iter().rposition(fits)?;
        let FreeBuffer { buffer, .. } = self.buffers.remove(at);
        self.bytes = self.bytes.saturating_sub(buffer.capacity());
        Some(buffer)
    }
}

impl Decay {
    async fn run(self) {
        loop {
            tokio::time::sleep(DECAY).await;
            if !self.0.upgrade().is_some_and(|pool| pool.decay()) {
                return;
            }
        }
    }
}

impl Drop for Decay {
    fn drop(&mut self) {
        let Some(pool) = self.0.upgrade() else { return };
        let mut free = pool.free.lock();
        free.decays = false;
        // Some may have been returned since the last time, or the runtime ends.
        let left = std::mem::take(&mut free.buffers);
        free.bytes = 0;
        drop(free);
        drop(left);
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

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    fn pool() -> Arc<BufferPool> {
        Arc::new(BufferPool::new(4 << 20))
    }

    fn unused(pool: &BufferPool) -> (usize, usize) {
        let free = pool.free.lock();
        (free.buffers.len(), free.bytes)
    }

    #[tokio::test(start_paused = true)]
    async fn buffer_is_used_again_by_who_needs_about_as_much() {
        let pool = pool();
        let bytes = pool.into_bytes(vec![7; LEN], ());
        assert_eq!(unused(&pool), (0, 0));
        drop(bytes);
        assert_eq!(unused(&pool), (1, LEN));
        assert!(pool.take(LEN / 2).iter().all(|&byte| byte == 0), "one that is much larger is left");
        assert!(pool.take(LEN + 1).iter().all(|&byte| byte == 0), "one that is smaller is left");
        let again = pool.take(LEN - LEN / 8);
        assert_eq!((again.len(), again.first()), (LEN - LEN / 8, Some(&7)));
        assert_eq!(unused(&pool), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn unused_buffers_are_bounded() {
        let pool = pool();
        (0..10).for_each(|_| pool.recycle(vec![0; LEN]));
        assert_eq!(unused(&pool), (4, 4 * LEN));
        let pool = Arc::new(BufferPool::new(u64::MAX));
        (0..2 * MAX_FREE).for_each(|_| pool.recycle(vec![0; MIN_POOLED]));
        assert_eq!(unused(&pool).0, MAX_FREE);
        let pool = Arc::new(BufferPool::new(u64::MAX));
        pool.recycle(vec![0; MIN_POOLED - 1]);
        assert_eq!(unused(&pool), (0, 0), "small ones are the allocator's");
    }

    #[tokio::test]
    async fn unused_buffers_are_freed_after_a_time() {
        let pool = pool();
        pool.recycle(vec![0; LEN]);
        assert!(pool.free.lock().decays);
        assert!(pool.decay(), "it may be needed soon");
        while unused(&pool).0 > 0 || pool.free.lock().decays {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        pool.recycle(vec![0; LEN]);
        assert!(pool.free.lock().decays, "another task frees what comes later");
    }

    #[test]
    fn unused_buffers_do_not_outlive_the_runtime_that_frees_them() {
        let pool = pool();
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime().block_on(async { pool.recycle(vec![0; LEN]) });
        assert_eq!(unused(&pool), (0, 0));
        pool.recycle(vec![0; LEN]);
        assert_eq!(unused(&pool), (0, 0), "without a runtime none is kept");
        runtime().block_on(async { pool.recycle(vec![0; LEN]) });
        assert!(!pool.free.lock().decays);
    }
}
