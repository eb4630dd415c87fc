//! Bins of `f32`, guessed in its own arithmetic.

use crate::lanes::widest::{Kernel, widest};

/// The bins, with those outside, that a table has, so that an index needs no comparison with its length.
const TABLE: usize = 1 << 10;
/// The elements whose bins are guessed at a time.
const BLOCK: usize = 256;
/// The counters of a bin, so that equal neighbours need not wait for each other.
const LANES: usize = 4;

/// A linear function of `f32` that is at most one bin too low, and never too high, as its maker has checked.
///
/// Numbers below the first bin are in a bin before it, and those above the last one in a bin after that.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SingleGuess {
    scale: f32,
    offset: f32,
    most: f32,
    /// The least number that is beyond each bin; NaN for the last one, and for those that are not used.
    ends: Box<[f32; TABLE]>,
}

/// The numbers of elements in each bin, one bin after that below all edges.
pub(super) struct SingleCounts(Box<[[u64; LANES]; TABLE]>);

impl SingleGuess {
    /// The function for bins beyond which these numbers are the least; `None` if it is not as good as it has to be, or
    /// if there are too many bins.
    pub(super) fn new(ends: &[f64], scale: f64, offset: f64) -> Option<Self> {
        let least_beyond = |end: f64| match end as f32 {
            single if f64::from(single) < end => single.next_up(),
            single => single,
        };
        let mut table = Box::new([f32::NAN; TABLE]);
        let used = table.get_mut(..ends.len())?;
        used.iter_mut().zip(ends).for_each(|(single, &end)| *single = least_beyond(end));
        let most = ends.len().checked_sub(1)?;
        let guess = Self { scale: scale as f32, offset: offset as f32, most: most as f32, ends: table };
        // As the function increases, it is enough to know it on both sides of where bins end.
        let is_good =
            |(bin, &end): (u32, &f32)| guess.bin(end) >= bin && guess.bin(end.next_down()) <= bin && !end.is_nan();
        (0..).zip(guess.ends.iter().take(most)).all(is_good).then_some(guess)
    }

    /// The bin of a number, or the one before it.
    #[inline(always)]
    fn bin(&self, number: f32) -> u32 {
        /// A number whose sum with a small one has that as its lowest bits, rounded to an integer.
        const ROUNDER: f32 = (1_u32 << 23) as f32;
        let guess = number * self.scale + self.offset;
        // The last bin for NaN.
        let guess = if guess < self.most { guess } else { self.most };
        let guess = if guess > 0.0 { guess } else { 0.0 };
        (guess + ROUNDER).to_bits() & 0x7f_ffff
    }
}

impl SingleCounts {
    pub(super) fn new() -> Self {
        Self(Box::new([[0; LANES]; TABLE]))
    }

    /// Counts numbers. Each step is a loop of its own, so that most of them are done for several numbers at once.
    pub(super) fn add(&mut self, guess: &SingleGuess, values: &[[u8; 4]]) {
        widest(Count { counts: self, guess, values });
    }

    #[inline(always)]
    fn count(&mut self, bin: u32, lane: usize) {
        let counts = self.0.get_mut(bin as usize % TABLE);
        if let Some(count) = counts.and_then(|bin| bin.get_mut(lane % LANES)) {
            *count += 1;
        }
    }

    /// The count of each bin, from the first one between edges on.
    pub(super) fn totals(&self) -> impl Iterator<Item = u64> {
        self.0.iter().skip(1).map(|counts| counts.iter().sum())
    }
}

/// The arguments of [`SingleCounts::add`].
struct Count<'c> {
    counts: &'c mut SingleCounts,
    guess: &'c SingleGuess,
    values: &'c [[u8; 4]],
}

impl Kernel for Count<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { counts, guess, values } = self;
        let (mut bins, mut ends) = ([0_u32; BLOCK], [0.0_f32; BLOCK]);
        for block in values.chunks(BLOCK) {
            for (bin, &value) in bins.iter_mut().zip(block) {
                *bin = guess.bin(f32::from_le_bytes(value));
            }
            let bins = bins.get_mut(..block.len()).unwrap_or_default();
            for (end, &bin) in ends.iter_mut().zip(&*bins) {
                *end = guess.ends.get(bin as usize % TABLE).copied().unwrap_or(f32::NAN);
            }
            for ((bin, &end), &value) in bins.iter_mut().zip(&ends).zip(block) {
                *bin += u32::from(f32::from_le_bytes(value) >= end);
            }
            let (bins, rest) = bins.as_chunks::<LANES>();
            for bins in bins {
                bins.iter().enumerate().for_each(|(lane, &bin)| counts.count(bin, lane));
            }
            rest.iter().for_each(|&bin| counts.count(bin, 0));
        }
    }
}
