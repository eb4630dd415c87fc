//! Conversion between stored byte orders and memory.

use bytes::{Bytes, BytesMut};
use zarrd_meta::data_type::{DataType, Layout, StoredOrder, WordRun};

/// The words to byte-swap between stored elements and memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteSwap {
    /// None.
    None,
    /// All bytes: elements consist of words of this width.
    Words(usize),
    /// The runs in each element of this size.
    Runs(usize, Vec<WordRun>),
}

impl ByteSwap {
    /// The swap between a stored byte order and memory.
    pub fn new(data_type: &DataType, order: &StoredOrder) -> Self {
        let Layout::Fixed(layout) = data_type.layout() else {
            return Self::None;
        };
        let runs = match order {
            StoredOrder::Little => return Self::None,
            StoredOrder::Big => layout.words,
            StoredOrder::Mixed(runs) => runs.clone(),
        };
        match runs.as_slice() {
            [] => Self::None,
            [run] if run.offset == 0 && run.width.checked_mul(run.count) == Some(layout.size) => Self::Words(run.width),
            _ => Self::Runs(layout.size, runs),
        }
    }

    /// Swaps the words, in place if the buffer is not shared.
    pub fn apply(&self, bytes: Bytes) -> Bytes {
        if *self == Self::None {
            return bytes;
        }
        let mut bytes = BytesMut::from(bytes);
        self.apply_in_place(&mut bytes);
        bytes.freeze()
    }

    /// Swaps the words in place; `bytes` has complete elements.
    pub fn apply_in_place(&self, bytes: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Words(width) => swap_words(bytes, *width),
            Self::Runs(size, runs) => {
                for element in bytes.chunks_exact_mut((*size).max(1)) {
                    for run in runs {
                        let end = run.width.saturating_mul(run.count).saturating_add(run.offset);
                        element.get_mut(run.offset..end).into_iter().for_each(|words| swap_words(words, run.width));
                    }
                }
            }
        }
    }
}

/// Reverses the bytes of each word.
fn swap_words(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => swap_each::<2>(bytes),
        4 => swap_each::<4>(bytes),
        8 => swap_each::<8>(bytes),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}

/// Reverses words of a constant width, which compiles to vector shuffles.
fn swap_each<const WIDTH: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<WIDTH>().0.iter_mut().for_each(|word| word.reverse());
}
