//! A pool of buffers, since allocating and clearing a large buffer costs as much as reading into it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

/// The sizes of pooled buffers in bytes, each with the maximum number of unused ones: for what is streamed, and for the
/// beginnings of values.
const POOLS: [(usize, usize); 2] = [(256 << 10, 32), (1 << 20, 16)];

/// The size up to which a buffer is allocated each time, in bytes.
const MAX_UNPOOLED_LEN: usize = 32 << 10;

/// Pools of buffers. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Buffers(Arc<[Pool; 2]>);

/// A buffer with arbitrary content, which returns to its pool on drop.
#[derive(Debug)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    /// The pools, with the index of that of the buffer.
    pool: Option<(Buffers, usize)>,
}

#[derive(Debug)]
struct Pool {
    size: usize,
    most: usize,
    unused: Mutex<Vec<Vec<u8>>>,
}

impl Default for Buffers {
    fn default() -> Self {
        Self(Arc::new(POOLS.map(|(size, most)| Pool { size, most, unused: Mutex::default() })))
    }
}

impl Buffers {
    /// A buffer of this length.
    pub(crate) fn take(&self, len: usize) -> Buffer {
        let pool = self.0.iter().enumerate().find(|(_, pool)| len > MAX_UNPOOLED_LEN && len <= pool.size);
        match pool {
            Some((index, pool)) => {
                let unused = pool.unused.lock().pop();
                let bytes = unused.unwrap_or_else(|| vec![0; pool.size]);
                Buffer { bytes, len, pool: Some((self.clone(), index)) }
            }
            None => Buffer { bytes: vec![0; len], len, pool: None },
        }
    }
}

impl Buffer {
    /// The bytes from `start` on.
    pub(crate) fn rest(&mut self, start: usize) -> &mut [u8] {
        self.bytes.get_mut(start..self.len).unwrap_or_default()
    }

    /// Turns the buffer into shared bytes. It returns to its pool with the last of them.
    pub(crate) fn freeze(mut self) -> Bytes {
        match self.pool {
            Some(_) => Bytes::from_owner(self),
            None => std::mem::take(&mut self.bytes).into(),
        }
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let Some((pools, index)) = self.pool.take() else { return };
        let Some(pool) = pools.0.get(index) else { return };
        let mut unused = pool.unused.lock();
        if unused.len() < pool.most {
            unused.push(std::mem::take(&mut self.bytes));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_buffer_is_used_again_when_its_last_bytes_are_dropped() {
        let buffers = Buffers::default();
        let unused = |buffers: &Buffers| buffers.0.each_ref().map(|pool| pool.unused.lock().len());
        for (len, pooled) in [(0, [0, 0]), (1_000, [0, 0]), (100_000, [1, 0]), (1 << 20, [1, 1]), (2 << 20, [1, 1])] {
            let mut buffer = buffers.take(len);
            assert_eq!(buffer.rest(0).len(), len);
            buffer.rest(len / 2).fill(7);
            let bytes = buffer.freeze();
            assert_eq!((bytes.len(), bytes.get(len / 2)), (len, (len > 0).then_some(&7)), "{len}");
            let part = bytes.slice(len / 2..);
            drop(bytes);
            drop(part);
            assert_eq!(unused(&buffers), pooled, "{len}");
        }
        let all: Vec<_> = (0..40).map(|_| buffers.take(1 << 20)).collect();
        drop(all);
        assert_eq!(unused(&buffers), [1, 16]);
    }
}
