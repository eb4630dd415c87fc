//! Values of any size that are generated while they are sent, and verified while they are read.

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use zarrd_store::{GetResult, Payload, StoreError};

const BLOCK_SIZE: u64 = 64 << 10;

/// A value of pseudo-random bytes determined by a seed; each block is marked with its number.
#[derive(Clone, Debug)]
pub struct Generated {
    size: u64,
    pattern: Bytes,
}

impl Generated {
    /// The value of `size` bytes determined by `seed`.
    pub fn new(seed: u64, size: u64) -> Self {
        let mut pattern = vec![0; usize::try_from(size.min(BLOCK_SIZE)).expect("a piece is small")];
        SmallRng::seed_from_u64(seed).fill(&mut pattern[..]);
        Self { size, pattern: pattern.into() }
    }

    /// The size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The complete value in memory.
    pub fn bytes(&self) -> Bytes {
        let mut all = Vec::with_capacity(usize::try_from(self.size).expect("it fits into memory"));
        (0..self.size.div_ceil(BLOCK_SIZE)).for_each(|number| all.extend_from_slice(&self.block(number)));
        all.into()
    }

    /// The bytes from `start` to `end` (exclusive).
    pub fn range(&self, start: u64, end: u64) -> Bytes {
        let len = |bytes: u64| usize::try_from(bytes).expect("it fits into memory");
        let mut blocks = Vec::with_capacity(len(end.next_multiple_of(BLOCK_SIZE) - start / BLOCK_SIZE * BLOCK_SIZE));
        (start / BLOCK_SIZE..end.div_ceil(BLOCK_SIZE)).for_each(|number| blocks.extend_from_slice(&self.block(number)));
        let before = start / BLOCK_SIZE * BLOCK_SIZE;
        Bytes::from(blocks).slice(len(start - before)..len(end - before))
    }

    /// The value as a request body or store content.
    pub fn content(&self) -> Payload {
        let value = self.clone();
        let blocks = (0..self.size.div_ceil(BLOCK_SIZE)).map(move |number| Ok::<_, StoreError>(value.block(number)));
        Payload::sized(self.size, stream::iter(blocks))
    }

    /// Reads a value to its end and compares every byte.
    ///
    /// # Errors
    ///
    /// If the value cannot be read.
    ///
    /// # Panics
    ///
    /// If the value differs.
    pub async fn compare(&self, value: GetResult) -> Result<(), StoreError> {
        assert_eq!(value.meta.size, self.size);
        let mut stream = value.stream;
        let (mut at, mut number) = (0, 0);
        let mut block = Bytes::new();
        while let Some(mut read) = stream.try_next().await? {
            at += read.len() as u64;
            while !read.is_empty() {
                if block.is_empty() {
                    block = self.block(number);
                    number += 1;
                }
                let step = block.len().min(read.len());
                assert!(step > 0 && block.split_to(step) == read.split_to(step), "it differs before byte {at}");
            }
        }
        assert_eq!(at, self.size, "a complete value");
        Ok(())
    }

    fn block(&self, number: u64) -> Bytes {
        let len = self.size.saturating_sub(number * BLOCK_SIZE).min(BLOCK_SIZE);
        let mut block = self.pattern[..usize::try_from(len).expect("a piece is small")].to_vec();
        for (byte, mark) in block.iter_mut().zip(number.to_le_bytes()) {
            *byte ^= mark;
        }
        block.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_deterministic_and_differ_by_seed() {
        for size in [0, 1, BLOCK_SIZE - 1, BLOCK_SIZE, BLOCK_SIZE + 1, 5 * BLOCK_SIZE + 7] {
            let value = Generated::new(1, size).bytes();
            assert_eq!(value.len() as u64, size);
            assert_eq!(value, Generated::new(1, size).bytes());
            assert!(size < 8 || value != Generated::new(2, size).bytes());
        }
        let complete = Generated::new(1, 3 * BLOCK_SIZE + 100);
        for (start, end) in
            [(0, 0), (0, 10), (BLOCK_SIZE - 1, BLOCK_SIZE + 1), (BLOCK_SIZE, 2 * BLOCK_SIZE), (5, 3 * BLOCK_SIZE + 100)]
        {
            let [from, to] = [start, end].map(|at| usize::try_from(at).unwrap());
            assert_eq!(complete.range(start, end), complete.bytes().slice(from..to), "{start} to {end}");
        }
        let value = Generated::new(1, 3 * BLOCK_SIZE).bytes();
        let blocks: Vec<_> = value.chunks(usize::try_from(BLOCK_SIZE).unwrap()).collect();
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2]);
    }
}
