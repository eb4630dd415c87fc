//! Values of any size that are made while they are sent, and checked while they are read.

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use rand::{RngExt, SeedableRng, rngs::SmallRng};
use store::{Content, StoreError, Value};

const PIECE: u64 = 64 << 10;

/// A value: random bytes that a seed determines, each piece of them marked with its number.
#[derive(Clone, Debug)]
pub struct Generated {
    size: u64,
    pattern: Bytes,
}

impl Generated {
    /// The value of `size` bytes that `seed` determines.
    pub fn new(seed: u64, size: u64) -> Self {
        let mut pattern = vec![0; usize::try_from(size.min(PIECE)).expect("a piece is small")];
        SmallRng::seed_from_u64(seed).fill(&mut pattern[..]);
        Self { size, pattern: pattern.into() }
    }

    /// How many bytes it has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The whole value in memory.
    pub fn bytes(&self) -> Bytes {
        let mut all = Vec::with_capacity(usize::try_from(self.size).expect("it fits into memory"));
        (0..self.size.div_ceil(PIECE)).for_each(|number| all.extend_from_slice(&self.piece(number)));
        all.into()
    }

    /// A part of the value in memory, from one byte to before another.
    pub fn range(&self, start: u64, end: u64) -> Bytes {
        let len = |bytes: u64| usize::try_from(bytes).expect("it fits into memory");
        let mut pieces = Vec::with_capacity(len(end.next_multiple_of(PIECE) - start / PIECE * PIECE));
        (start / PIECE..end.div_ceil(PIECE)).for_each(|number| pieces.extend_from_slice(&self.piece(number)));
        let before = start / PIECE * PIECE;
        Bytes::from(pieces).slice(len(start - before)..len(end - before))
    }

    /// The value as it is uploaded.
    pub fn content(&self) -> Content {
        let value = self.clone();
        let pieces = (0..self.size.div_ceil(PIECE)).map(move |number| Ok::<_, StoreError>(value.piece(number)));
        Content { size: Some(self.size), stream: Box::pin(stream::iter(pieces)) }
    }

    /// Reads a value to its end and compares each byte.
    ///
    /// # Errors
    ///
    /// Where it cannot be read.
    ///
    /// # Panics
    ///
    /// Where it is another value.
    pub async fn compare(&self, value: Value) -> Result<(), StoreError> {
        assert_eq!(value.info.size, self.size);
        let mut stream = value.stream;
        let (mut at, mut number) = (0, 0);
        let mut piece = Bytes::new();
        while let Some(mut read) = stream.try_next().await? {
            at += read.len() as u64;
            while !read.is_empty() {
                if piece.is_empty() {
                    piece = self.piece(number);
                    number += 1;
                }
                let step = piece.len().min(read.len());
                assert!(step > 0 && piece.split_to(step) == read.split_to(step), "it differs before byte {at}");
            }
        }
        assert_eq!(at, self.size, "it is whole");
        Ok(())
    }

    fn piece(&self, number: u64) -> Bytes {
        let len = self.size.saturating_sub(number * PIECE).min(PIECE);
        let mut piece = self.pattern[..usize::try_from(len).expect("a piece is small")].to_vec();
        for (byte, mark) in piece.iter_mut().zip(number.to_le_bytes()) {
            *byte ^= mark;
        }
        piece.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_deterministic_and_differ_by_seed() {
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 5 * PIECE + 7] {
            let value = Generated::new(1, size).bytes();
            assert_eq!(value.len() as u64, size);
            assert_eq!(value, Generated::new(1, size).bytes());
            assert!(size < 8 || value != Generated::new(2, size).bytes());
        }
        let whole = Generated::new(1, 3 * PIECE + 100);
        for (start, end) in [(0, 0), (0, 10), (PIECE - 1, PIECE + 1), (PIECE, 2 * PIECE), (5, 3 * PIECE + 100)] {
            let [from, to] = [start, end].map(|at| usize::try_from(at).unwrap());
            assert_eq!(whole.range(start, end), whole.bytes().slice(from..to), "{start} to {end}");
        }
        let value = Generated::new(1, 3 * PIECE).bytes();
        let pieces: Vec<_> = value.chunks(usize::try_from(PIECE).unwrap()).collect();
        assert!(pieces[0] != pieces[1] && pieces[1] != pieces[2]);
    }
}
