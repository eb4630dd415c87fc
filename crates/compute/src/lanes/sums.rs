//! Sums of blocks of `f32` and of their squares, without rounding.
//!
//! Numbers whose exponents are near each other are multiples of a power of two that is not much smaller than they are.
//! An `f64` has all sums of a block of them, in any order. So it is enough to know the smallest and the largest
//! magnitude before they are added.

use super::{
    extremes::count_single,
    widest::{Kernel, widest},
};

/// The numbers of a block, at most.
pub(crate) const BLOCK: usize = 1024;
/// The numbers of a row of windows, at most.
pub(crate) const COLUMNS: usize = 512;

/// The bits of the significand of an `f32`.
const SIGNIFICAND: i32 = 24;
/// The bits of the significand of an `f64`.
const WIDE_SIGNIFICAND: i32 = 53;

/// The numbers that are read at a time.
const LANES: usize = 8;
/// The partial sums that are computed side by side.
const SUMS: usize = 8;

/// The exact sum of a block, and that of the squares as two floats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlockSums {
    pub(crate) sum: f64,
    pub(crate) squares: [f64; 2],
}

/// The numbers of a block that are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Specials {
    /// The number of those that are NaN.
    pub(crate) nan: u64,
    pub(crate) has_infinity: bool,
    pub(crate) has_negative_infinity: bool,
}

/// The exponents of some finite numbers that are not zero, as an `f32` has them: 127 for 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Exponents {
    smallest: i32,
    largest: i32,
}

/// The sum of at most [`BLOCK`] numbers, and with `SQUARES` that of their squares; `None` if one is not finite, or if
/// the exponents are too far apart.
#[inline]
pub(crate) fn block_sums<const SQUARES: bool>(values: &[[u8; 4]]) -> Option<BlockSums> {
    widest(Block::<SQUARES>(values))
}

/// The arguments of [`block_sums`].
struct Block<'v, const SQUARES: bool>(&'v [[u8; 4]]);

impl<const SQUARES: bool> Kernel for Block<'_, SQUARES> {
    type Output = Option<BlockSums>;

    #[inline(always)]
    fn run(self) -> Option<BlockSums> {
        let Self(values) = self;
        let Some(exponents) = exponents(std::iter::once(values)).filter(|_| values.len() <= BLOCK)? else {
            return Some(BlockSums::default()).filter(|_| count_single(values) == values.len());
        };
        if !exponents.allow(values.len()) {
            return None;
        }
        if !SQUARES {
            let sum = sum(values);
            return (!sum.is_nan()).then_some(BlockSums { sum, squares: [0.0; 2] });
        }
        let sums = moments(values, exponents.large(values.len())?);
        (!sums.sum.is_nan()).then_some(sums)
    }
}

/// The bytes of the sum of each window of `len` numbers of some rows of the same length, at most [`COLUMNS`], and with
/// three sums of each also those of their squares as two floats; `None` as in [`block_sums`].
pub(crate) fn sums_of_windows<'a, const COUNT: usize>(
    rows: impl Iterator<Item = &'a [[u8; 4]]> + Clone,
    len: usize,
    found: &mut [[[u8; 8]; COLUMNS]; COUNT],
) -> Option<()> {
    widest(WindowRows { rows, len, found })
}

/// The arguments of [`sums_of_windows`].
struct WindowRows<'f, I, const COUNT: usize> {
    rows: I,
    len: usize,
    found: &'f mut [[[u8; 8]; COLUMNS]; COUNT],
}

impl<'a, I: Iterator<Item = &'a [[u8; 4]]> + Clone, const COUNT: usize> Kernel for WindowRows<'_, I, COUNT> {
    type Output = Option<()>;

    #[inline(always)]
    fn run(self) -> Option<()> {
        let Self { rows, len, found } = self;
        let (count, width) = rows.clone().fold((0_usize, 0), |(count, _), row| (count.saturating_add(len), row.len()));
        let exponents = exponents(rows.clone())?;
        if !exponents.is_none_or(|exponents| exponents.allow(count)) {
            return None;
        }
        let mut columns = [[0.0_f64; COLUMNS]; COUNT];
        match columns.as_mut_slice() {
            [sums] => add_rows(rows, sums.get_mut(..width)?),
            [sums, high, low] => {
                let large = exponents.map_or(Some(0.0), |exponents| exponents.large(count))?;
                add_moments(rows, large, [sums, high, low].map(|sums| sums.get_mut(..width).unwrap_or_default()));
            }
            _ => return None,
        }
        for (columns, sums) in columns.iter().zip(found) {
            add_columns(columns.get(..width)?, len, sums);
        }
        (!total(columns.first()?.get(..width)?).is_nan()).then_some(())
    }
}

/// The sum of each window of some columns.
#[inline(always)]
fn add_columns(columns: &[f64], len: usize, sums: &mut [[u8; 8]; COLUMNS]) {
    match len {
        2 => sum_windows::<2>(columns, sums),
        4 => sum_windows::<4>(columns, sums),
        8 => sum_windows::<8>(columns, sums),
        16 => sum_windows::<16>(columns, sums),
        _ => {
            let windows = sums.iter_mut().zip(columns.chunks_exact(len.max(1)));
            windows.for_each(|(sum, window)| *sum = total(window).to_le_bytes());
        }
    }
}

/// Adds the numbers of rows and their squares to the sums of their columns, as [`moments`] does.
#[inline(always)]
fn add_moments<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]>, large: f64, [sums, highs, lows]: [&mut [f64]; 3]) {
    highs.fill(large);
    for row in rows {
        let columns = sums.iter_mut().zip(highs.iter_mut()).zip(lows.iter_mut());
        for (((sum, high), low), &value) in columns.zip(row) {
            add_moment(value, [sum, high, low]);
        }
    }
    highs.iter_mut().for_each(|high| *high -= large);
}

/// Adds the numbers of rows to the sums of their columns, which are exact. Four rows are added at a time, since reading
/// and writing the sums takes longer than adding.
#[inline(always)]
fn add_rows<'a>(mut rows: impl Iterator<Item = &'a [[u8; 4]]>, columns: &mut [f64]) {
    loop {
        match [rows.next(), rows.next(), rows.next(), rows.next()] {
            [Some(first), Some(second), Some(third), Some(fourth)] => {
                let values = first.iter().zip(second).zip(third.iter().zip(fourth));
                for (column, ((&first, &second), (&third, &fourth))) in columns.iter_mut().zip(values) {
                    *column += (wide(first) + wide(second)) + (wide(third) + wide(fourth));
                }
            }
            rest => {
                for row in rest.into_iter().flatten() {
                    columns.iter_mut().zip(row).for_each(|(column, &value)| *column += wide(value));
                }
                return;
            }
        }
    }
}

/// Copies a block with zeros in place of what is not finite. Nothing beyond the shorter of the two is copied.
pub(crate) fn copy_finite(values: &[[u8; 4]], finite: &mut [[u8; 4]]) -> Specials {
    const INFINITY: u32 = f32::INFINITY.to_bits();
    let (mut nan, mut infinity, mut negative) = (0_u32, 0_u32, 0_u32);
    for (finite, &value) in finite.iter_mut().zip(values) {
        let bits = u32::from_le_bytes(value);
        let magnitude = bits & (u32::MAX >> 1);
        *finite = if magnitude < INFINITY { bits } else { 0 }.to_le_bytes();
        nan += u32::from(magnitude > INFINITY);
        infinity |= u32::from(bits == INFINITY);
        negative |= u32::from(bits == f32::NEG_INFINITY.to_bits());
    }
    Specials { nan: nan.into(), has_infinity: infinity != 0, has_negative_infinity: negative != 0 }
}

impl Exponents {
    /// True if an `f64` has every sum of `count` such numbers, all of which are multiples of the smallest one's lowest
    /// bit.
    #[inline(always)]
    fn allow(self, count: usize) -> bool {
        self.largest - self.smallest + SIGNIFICAND + count_bits(count) <= WIDE_SIGNIFICAND
    }

    /// The number with which sums of `count` squares begin in [`moments`]; `None` if these may not be exact.
    #[inline(always)]
    fn large(self, count: usize) -> Option<f64> {
        let bits = count_bits(count);
        let is_exact = self.largest - self.smallest <= 28 - bits;
        is_exact.then(|| power_of_two(2 * (self.largest - 127) + 3 + bits))
    }
}

/// The least exponent of a power of two that is more than a count.
#[inline(always)]
fn count_bits(count: usize) -> i32 {
    i32::try_from(usize::BITS - count.leading_zeros()).unwrap_or(WIDE_SIGNIFICAND)
}

#[inline(always)]
fn wide(value: [u8; 4]) -> f64 {
    f32::from_le_bytes(value).into()
}

/// The exponents of the numbers of some rows that are neither zero nor NaN, if there are any; `None` if one is
/// infinite.
#[inline(always)]
fn exponents<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]> + Clone) -> Option<Option<Exponents>> {
    let (smallest, largest) = match magnitudes(rows.clone(), |magnitude| magnitude) {
        // NaN is not less than anything, so zeros are left out.
        (0.0, _) => magnitudes(rows, |magnitude| if magnitude == 0.0 { f32::NAN } else { magnitude }),
        magnitudes => magnitudes,
    };
    // The exponents of subnormal numbers are that of the smallest normal one.
    let exponent = |magnitude: f32| i32::try_from(magnitude.to_bits() >> 23).unwrap_or(0).max(1);
    match largest {
        0.0 => Some(None),
        f32::INFINITY => None,
        _ => Some(Some(Exponents { smallest: exponent(smallest), largest: exponent(largest) })),
    }
}

/// The smallest and the largest magnitude of the numbers of some rows, of those that are not NaN.
#[inline(always)]
fn magnitudes<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]>, map: impl Fn(f32) -> f32) -> (f32, f32) {
    let (mut smallest, mut largest) = ([f32::INFINITY; LANES], [0.0_f32; LANES]);
    for values in rows {
        let (blocks, rest) = values.as_chunks::<LANES>();
        let mut last = [rest.first().copied().unwrap_or_default(); LANES];
        last.iter_mut().zip(rest).for_each(|(slot, &value)| *slot = value);
        for block in blocks.iter().chain((!rest.is_empty()).then_some(&last)) {
            let block = block.map(|value| map(f32::from_le_bytes(value).abs()));
            smallest.iter_mut().zip(block).for_each(|(best, one)| *best = lesser(one, *best));
            largest.iter_mut().zip(block).for_each(|(best, one)| *best = greater(one, *best));
        }
    }
    (folded(&smallest, lesser), folded(&largest, greater))
}

/// The first number if it is less, else the second one, also if one is NaN.
#[inline(always)]
fn lesser(one: f32, other: f32) -> f32 {
    if one < other { one } else { other }
}

/// The first number if it is greater, else the second one, also if one is NaN.
#[inline(always)]
fn greater(one: f32, other: f32) -> f32 {
    if one > other { one } else { other }
}

/// The best of some lanes. If this was inlined, the lanes would be kept apart instead of in vectors.
#[inline(never)]
fn folded(lanes: &[f32; LANES], better: fn(f32, f32) -> f32) -> f32 {
    lanes.iter().copied().reduce(better).unwrap_or(0.0)
}

/// The sum of numbers whose sums are exact.
#[inline(always)]
fn sum(values: &[[u8; 4]]) -> f64 {
    let mut sums = [0.0_f64; SUMS];
    let (blocks, rest) = values.as_chunks::<SUMS>();
    for block in blocks {
        for (sum, &value) in sums.iter_mut().zip(block) {
            *sum += wide(value);
        }
    }
    sums.iter_mut().zip(rest).for_each(|(sum, &value)| *sum += wide(value));
    total(&sums)
}

/// The sum of numbers whose sums are exact, and that of their squares.
///
/// The square of an `f32` is an `f64`. It is added to a sum that begins with `large`, so that all of its values have the
/// same lowest bit `u`; what is rounded off, at most `u/2`, is added to a second sum. Nothing of that is rounded off as
/// long as it has 53 bits. Let the numbers be less than 2^(e+1) and multiples of 2^(s-23), and fewer than 2^n. Their
/// squares add up to less than 2^(2e+2+n), so the first sum stays between `large` = 2^(2e+3+n) and twice that, and `u` =
/// 2^(2e+n-49). What is rounded off adds up to less than 2^(2e+2n-50), in multiples of 2^(2s-46), which is exact if
/// e - s <= 28 - n.
#[inline(always)]
fn moments(values: &[[u8; 4]], large: f64) -> BlockSums {
    let (mut sums, mut high, mut low) = ([0.0_f64; SUMS], [large; SUMS], [0.0_f64; SUMS]);
    let mut add = |block: &[[u8; 4]]| {
        for (((sum, high), low), &value) in sums.iter_mut().zip(&mut high).zip(&mut low).zip(block) {
            add_moment(value, [sum, high, low]);
        }
    };
    let (blocks, rest) = values.as_chunks::<SUMS>();
    blocks.iter().for_each(|block| add(block));
    add(rest);
    BlockSums { sum: total(&sums), squares: [total(&high.map(|high| high - large)), total(&low)] }
}

/// Adds a number to a sum, and its square to the two sums of squares of [`moments`].
#[inline(always)]
fn add_moment(value: [u8; 4], [sum, high, low]: [&mut f64; 3]) {
    let value = wide(value);
    *sum += value;
    let square = value * value;
    let next = *high + square;
    *low += square - (next - *high);
    *high = next;
}

/// The sum of some sums in any order. One after another they would wait for each other.
#[inline(always)]
fn total(sums: &[f64]) -> f64 {
    let mut lanes = [0.0_f64; SUMS];
    let (blocks, rest) = sums.as_chunks::<SUMS>();
    for block in blocks {
        lanes.iter_mut().zip(block).for_each(|(lane, sum)| *lane += sum);
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, sum)| *lane += sum);
    lanes.into_iter().fold(0.0, |all, lane| all + lane)
}

#[inline(always)]
fn sum_windows<const LEN: usize>(columns: &[f64], sums: &mut [[u8; 8]; COLUMNS]) {
    for (sum, window) in sums.iter_mut().zip(columns.as_chunks::<LEN>().0) {
        *sum = window.iter().fold(0.0, |all, column| all + column).to_le_bytes();
    }
}

/// A power of two within the range of normal numbers.
#[inline(always)]
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(u64::try_from(exponent + 1023).unwrap_or(0) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::BigInt;
    use proptest::prelude::*;

    fn bytes(values: &[f32]) -> Vec<[u8; 4]> {
        values.iter().map(|value| value.to_le_bytes()).collect()
    }

    /// A float as a multiple of 2^-298, the lowest bit of squares; only for multiples of it.
    fn scaled(value: f64) -> BigInt {
        let bits = value.to_bits();
        let (biased, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        if biased == 0 {
            assert_eq!(fraction, 0);
            return BigInt::ZERO;
        }
        let (significand, shift) = (BigInt::from(fraction | 1 << 52), biased as i64 - 1075 + 298);
        let magnitude = if shift >= 0 { significand << shift } else { significand >> -shift };
        if value < 0.0 { -magnitude } else { magnitude }
    }

    #[test]
    fn sums_of_near_exponents_are_exact() {
        proptest!(ProptestConfig::with_cases(1000), |(
            bits in proptest::collection::vec(any::<u32>(), 0..=BLOCK),
            shift in 0_u32..230,
            spread in 1_u32..22,
            zeros in any::<bool>(),
        )| {
            let value = |bits: u32| match bits % 9 {
                0 if zeros => 0.0,
                _ => f32::from_bits(bits & 0x807f_ffff | ((bits >> 23 & 31) % spread + shift) << 23),
            };
            let values: Vec<f32> = bits.into_iter().map(value).collect();
            let (plain, moments) = (block_sums::<false>(&bytes(&values)), block_sums::<true>(&bytes(&values)));
            // As on any other processor.
            prop_assert_eq!((Block::<false>(&bytes(&values)).run(), Block::<true>(&bytes(&values)).run()), (plain, moments));
            prop_assert!(spread > 18 || plain.is_some(), "exponents are near");
            prop_assert!(spread > 18 || moments.is_some(), "exponents are near");
            let wide = values.iter().map(|&value| f64::from(value));
            let sum: BigInt = wide.clone().map(scaled).sum();
            let squares: BigInt = wide.map(|value| scaled(value * value)).sum();
            if let Some(plain) = plain {
                prop_assert_eq!(&scaled(plain.sum), &sum);
            }
            if let Some(moments) = moments {
                prop_assert_eq!(scaled(moments.sum), sum);
                prop_assert_eq!(moments.squares.into_iter().map(scaled).sum::<BigInt>(), squares);
            }
        });
    }

    #[test]
    fn largest_sums_of_squares_are_exact() {
        for (large, small) in [(1.999_999_9_f32, 2_f32.powi(-17) * 1.999_999_9), (f32::MAX, f32::MAX / 131_072.0)] {
            let values: Vec<f32> = (0..BLOCK).map(|at| if at % 128 == 0 { small } else { large }).collect();
            let moments = block_sums::<true>(&bytes(&values)).unwrap();
            let squares: BigInt = values.iter().map(|&value| scaled(f64::from(value) * f64::from(value))).sum();
            assert_eq!(moments.squares.into_iter().map(scaled).sum::<BigInt>(), squares);
        }
    }

    #[test]
    fn blocks_that_may_be_rounded_are_refused() {
        assert_eq!(block_sums::<true>(&[]), Some(BlockSums::default()));
        assert_eq!(block_sums::<false>(&bytes(&[0.0, -0.0])), Some(BlockSums::default()));
        let smallest = f32::from_bits(1);
        let sums = block_sums::<true>(&bytes(&[smallest; 3])).unwrap();
        let squares: f64 = sums.squares.into_iter().sum();
        assert_eq!((sums.sum, squares), (3.0 * f64::from(smallest), 3.0 * f64::from(smallest).powi(2)));
        for refused in [[1.0, 1e-12], [1.0, f32::NAN], [f32::INFINITY, 1.0], [1.0, f32::NEG_INFINITY], [1e30, 1e-30]] {
            assert_eq!(block_sums::<false>(&bytes(&refused)), None, "{refused:?}");
            assert_eq!(block_sums::<true>(&bytes(&refused)), None, "{refused:?}");
        }
        assert_eq!(block_sums::<false>(&[[0; 4]; BLOCK + 1]), None);
    }

    #[test]
    fn what_is_not_finite_becomes_zero() {
        let values = [1.0, f32::NAN, -0.0, -f32::NAN, f32::NEG_INFINITY, f32::MAX];
        let mut finite = [[1; 4]; 7];
        let specials = copy_finite(&bytes(&values), &mut finite);
        assert_eq!(specials, Specials { nan: 2, has_infinity: false, has_negative_infinity: true });
        assert_eq!(finite.map(f32::from_le_bytes)[..6], [1.0, 0.0, 0.0, 0.0, 0.0, f32::MAX]);
        let specials = copy_finite(&bytes(&[f32::INFINITY]), &mut finite);
        assert_eq!(specials, Specials { nan: 0, has_infinity: true, has_negative_infinity: false });
    }

    #[test]
    fn windows_of_rows_are_summed() {
        let values: Vec<f32> = (0..9 * 50).map(|at| at as f32 - 20.0).collect();
        let all = bytes(&values);
        for (len, count) in [1, 2, 3, 4, 8, 16].into_iter().flat_map(|len| [1, 3, 4, 9].map(|count| (len, count))) {
            let width = 50 - 50 % len;
            let rows = all.chunks_exact(50).take(count).map(|row| &row[..width]);
            let mut sums = [[[0; 8]; COLUMNS]; 1];
            sums_of_windows(rows, len, &mut sums).unwrap();
            for (window, sum) in sums[0][..width / len].iter().enumerate() {
                let of = |at: usize| (0..count).map(move |row| row * 50 + window * len + at);
                let expected: f64 = (0..len).flat_map(of).map(|at| f64::from(values[at])).sum();
                assert_eq!(f64::from_le_bytes(*sum), expected, "{count} rows, windows of {len}");
            }
        }
        let nan = bytes(&[1.0, f32::NAN, 2.0, 3.0]);
        assert_eq!(sums_of_windows([nan.as_slice()].into_iter(), 2, &mut [[[0; 8]; COLUMNS]; 1]), None);
    }
}
