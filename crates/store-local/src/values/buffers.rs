//! A pool of buffers, since allocating and clearing a buffer costs as much as reading into it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The size of a buffer in bytes, which is the unit of reads and writes.
pub(crate) const BUFFER_BYTES: usize = 512 << 10;
/// The maximum number of unused buffers in the pool.
const MAX_POOLED_BUFFERS: usize = 32;

/// A pool of buffers of [`BUFFER_BYTES`].
#[derive(Clone, Default)]
pub(crate) struct Buffers(Arc<Mutex<Vec<Box<[u8]>>>>);

/// A buffer that returns to the pool on drop.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    pool: Buffers,
}

/// The filled part of a buffer.
struct Filled {
    buffer: Buffer,
    start: usize,
    end: usize,
}

impl Buffers {
    /// A buffer with arbitrary content.
    pub(crate) fn take(&self) -> Buffer {
        let pooled = self.0.lock().pop();
        Buffer { bytes: pooled.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice()), pool: self.clone() }
    }
}

impl Buffer {
    /// The bytes from `start` to `end`, or to the end of the buffer.
    pub(crate) fn slice_mut(&mut self, start: usize, end: usize) -> &mut [u8] {
        let end = end.min(self.bytes.len());
        self.bytes.get_mut(start..end).unwrap_or_default()
    }

    /// Turns `start..end` into shared bytes. The buffer returns to the pool with the last of them.
    pub(crate) fn freeze(self, start: usize, end: usize) -> Bytes {
        Bytes::from_owner(Filled { buffer: self, start, end })
    }
}

impl AsRef<[u8]> for Filled {
    fn as_ref(&self) -> &[u8] {
        self.buffer.bytes.get(self.start..self.end).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let mut pooled = self.pool.0.lock();
        if pooled.len() < MAX_POOLED_BUFFERS {
            pooled.push(std::mem::take(&mut self.bytes));
        }
    }
}
