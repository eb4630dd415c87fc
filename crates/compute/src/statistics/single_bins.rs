//! Bins of `f32`, guessed in its own arithmetic.

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
    #[inline]
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

    /// Counts numbers.
    pub(super) fn add(&mut self, guess: &SingleGuess, values: &[[u8; 4]]) {
        let mut bins = [0_u32; BLOCK];
        for block in values.chunks(BLOCK) {
            for (bin, &value) in bins.iter_mut().zip(block) {
                *bin = guess.bin(f32::from_le_bytes(value));
            }
            let ((values, last_values), (all_bins, _)) = (block.as_chunks::<LANES>(), bins.as_chunks::<LANES>());
            for (values, bins) in values.iter().zip(all_bins) {
                for (lane, (&value, &bin)) in values.iter().zip(bins).enumerate() {
                    self.count(guess, value, bin, lane);
                }
            }
            let last_bins = all_bins.get(values.len()).copied().unwrap_or_default();
            for (&value, bin) in last_values.iter().zip(last_bins) {
                self.count(guess, value, bin, 0);
            }
        }
    }

    #[inline]
    fn count(&mut self, guess: &SingleGuess, value: [u8; 4], bin: u32, lane: usize) {
        let bin = bin as usize % TABLE;
        let is_beyond = guess.ends.get(bin).is_some_and(|&end| f32::from_le_bytes(value) >= end);
        let counts = self.0.get_mut((bin + usize::from(is_beyond)) % TABLE);
        if let Some(count) = counts.and_then(|bin| bin.get_mut(lane % LANES)) {
            *count += 1;
        }
    }

    /// The count of each bin, from the first one between edges on.
    pub(super) fn totals(&self) -> impl Iterator<Item = u64> {
        self.0.iter().skip(1).map(|counts| counts.iter().sum())
    }
}
