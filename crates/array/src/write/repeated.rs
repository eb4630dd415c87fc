//! Chunks that one element fills: equal ones are encoded once.

use bytes::Bytes;
use parking_lot::Mutex;

use super::gather::Patch;
use crate::grid::dimension::DimIndexer;

/// The maximum number of cached chunks: the one inside of a region, and a few kinds at its edges.
const MAX_CHUNKS: usize = 4;

/// The maximum size of a cached chunk, in bytes. Larger ones take time to store anyway.
const MAX_SIZE: usize = 256 << 10;

/// The maximum memory of all cached chunks, in bytes.
pub(crate) const MEMORY: u64 = (MAX_CHUNKS * MAX_SIZE) as u64;

/// Encoded chunks of a write of one element.
#[derive(Debug, Default)]
pub(crate) struct RepeatedChunks {
    chunks: Mutex<Vec<RepeatedChunk>>,
}

#[derive(Debug)]
struct RepeatedChunk {
    filling: Filling,
    /// The encoded chunk; `None` if it is full of the fill value and not stored.
    encoded: Option<Bytes>,
}

/// The elements of a chunk that are set. Those of its other elements are the fill value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filling {
    shape: Vec<u64>,
    /// The first index, the distance to the next, and their number, along each dimension.
    indices: Vec<(u64, i64, u64)>,
}

impl Filling {
    /// The elements that a patch of one element sets; `None` if it has other elements, or sets a list of indices.
    pub(crate) fn of(shape: &[u64], patch: &Patch) -> Option<Self> {
        let strided = |indexer: &DimIndexer| match indexer {
            &DimIndexer::Strided { first, step, len, .. } => Some((first, step, len)),
            DimIndexer::Listed(_) => None,
        };
        let indices = patch.source.is_scalar().then(|| patch.selection.iter().map(strided).collect::<Option<_>>())?;
        Some(Self { shape: shape.to_vec(), indices: indices? })
    }
}

impl RepeatedChunks {
    /// The encoded chunk, if it is cached.
    pub(crate) fn get(&self, filling: &Filling) -> Option<Option<Bytes>> {
        let chunks = self.chunks.lock();
        chunks.iter().find(|chunk| chunk.filling == *filling).map(|chunk| chunk.encoded.clone())
    }

    /// Keeps an encoded chunk, in place of the oldest one if there are too many.
    pub(crate) fn keep(&self, filling: Filling, encoded: &Option<Bytes>) {
        if encoded.as_ref().is_some_and(|encoded| encoded.len() > MAX_SIZE) {
            return;
        }
        let mut chunks = self.chunks.lock();
        if chunks.iter().any(|chunk| chunk.filling == filling) {
            return;
        }
        if chunks.len() >= MAX_CHUNKS {
            chunks.remove(0);
        }
        chunks.push(RepeatedChunk { filling, encoded: encoded.clone() });
    }
}

#[cfg(test)]
mod tests {
    use zarrd_codec::Elements;

    use super::*;
    use crate::write::gather::SourceElements;

    fn strided(first: u64, len: u64, out: u64) -> DimIndexer {
        DimIndexer::Strided { first, step: 1, len, out }
    }

    fn patch(selection: Vec<DimIndexer>) -> Patch {
        let source = SourceElements::scalar(Elements::Fixed(Bytes::from_static(&[3])), selection.len());
        Patch { selection, source }
    }

    #[test]
    fn chunks_with_the_same_elements_set_are_equal() {
        let filling = |first, len, out| Filling::of(&[4], &patch(vec![strided(first, len, out)])).unwrap();
        assert_eq!(filling(0, 4, 0), filling(0, 4, 8), "wherever they are in the array");
        assert_ne!(filling(0, 4, 0), filling(0, 3, 8));
        assert_ne!(filling(0, 3, 0), filling(1, 3, 0));
        assert_eq!(Filling::of(&[4], &patch(vec![DimIndexer::Listed(vec![(1, 0)])])), None);
        let source = SourceElements::new(Elements::Fixed(Bytes::from_static(&[3, 4])), &[2]);
        assert_eq!(Filling::of(&[4], &Patch { selection: vec![strided(0, 2, 0)], source }), None, "not one element");
    }

    #[test]
    fn few_small_chunks_are_kept() {
        let chunks = RepeatedChunks::default();
        let filling = |len| Filling { shape: vec![9], indices: vec![(0, 1, len)] };
        for len in 1..=5 {
            chunks.keep(filling(len), &Some(Bytes::from(vec![0; len as usize])));
        }
        assert_eq!(chunks.get(&filling(1)), None, "the oldest");
        assert_eq!(chunks.get(&filling(5)), Some(Some(Bytes::from(vec![0; 5]))));
        chunks.keep(filling(6), &None);
        assert_eq!(chunks.get(&filling(6)), Some(None), "not stored");
        chunks.keep(filling(7), &Some(Bytes::from(vec![0; MAX_SIZE + 1])));
        assert_eq!(chunks.get(&filling(7)), None);
    }
}
