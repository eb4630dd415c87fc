//! Sums of blocks of `f32` and of their squares, without rounding.
//!
//! Numbers whose exponents are near each other are multiples of a power of two that is not much smaller than they are.
//! An `f64` has all sums of a block of them, in any order. So the smallest and the largest magnitude tell whether a sum is
//! exact; they are found while the numbers are added.

use super::{
    extremes::count_single,
    magnitudes::{Exponents, LANES, Magnitudes, count_bits, magnitudes},
    widest::{Kernel, widest},
};

/// The numbers of a block, at most.
pub(crate) const BLOCK: usize = 1024;
/// The numbers of a row of windows, at most.
pub(crate) const COLUMNS: usize = 512;

/// The numbers that are read twice, since they are still in the processor's first cache.
const NEAR: usize = 128;

/// The partial sums that are computed side by side.
const SUMS: usize = LANES;

/// The exact sum of a block, and that of the squares as two floats.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BlockSums {
    pub(crate) sum: f64,
    pub(crate) squares: [f64; 2],
}

/// The number with which sums of squares begin, by its exponent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start(i32);

/// The numbers of a block that are not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Specials {
    /// The number of those that are NaN.
    pub(crate) nan: u64,
    pub(crate) has_infinity: bool,
    pub(crate) has_negative_infinity: bool,
}

impl Specials {
    /// These and others.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            nan: self.nan.saturating_add(other.nan),
            has_infinity: self.has_infinity || other.has_infinity,
            has_negative_infinity: self.has_negative_infinity || other.has_negative_infinity,
        }
    }
}

/// The sum of at most [`BLOCK`] numbers, and with `SQUARES` that of their squares; `None` if one is not finite, or if
/// the exponents are too far apart. `start` is that of the last block, or anything.
#[inline]
pub(crate) fn block_sums<const SQUARES: bool>(values: &[[u8; 4]], start: &mut Start) -> Option<BlockSums> {
    widest(Block::<SQUARES> { values, start })
}

/// The arguments of [`block_sums`].
struct Block<'v, const SQUARES: bool> {
    values: &'v [[u8; 4]],
    start: &'v mut Start,
}

impl<const SQUARES: bool> Kernel for Block<'_, SQUARES> {
    type Output = Option<BlockSums>;

    #[inline(always)]
    fn run(self) -> Option<BlockSums> {
        let Self { values, start } = self;
        // It is known afterwards whether they are exact, and mostly they are.
        let (magnitudes, sums) = if SQUARES { moments(values, *start) } else { sum(values) };
        let exponents = magnitudes.exponents(std::iter::once(values)).filter(|_| values.len() <= BLOCK)?;
        let Some(exponents) = exponents else {
            return Some(BlockSums::default()).filter(|_| count_single(values) == values.len());
        };
        if !exponents.allow(values.len()) || sums.sum.is_nan() {
            return None;
        }
        if !SQUARES || start.allows(exponents, values.len()) {
            return Some(sums);
        }
        *start = Start::least(exponents, values.len());
        start.allows(exponents, values.len()).then(|| moments(values, *start).1)
    }
}

/// Buffers for the sums of windows, and for the sums of columns of which they are made. Each use overwrites them.
#[derive(Clone, Debug)]
pub(crate) struct WindowSums {
    columns: [[f64; COLUMNS]; 3],
    /// The bytes of the sum of each window, and of the two floats of the sum of its squares.
    pub(crate) windows: [[[u8; 8]; COLUMNS]; 3],
}

impl Default for WindowSums {
    fn default() -> Self {
        Self { columns: [[0.0; COLUMNS]; 3], windows: [[[0; 8]; COLUMNS]; 3] }
    }
}

/// Replaces sums by those of each window of `len` numbers of some rows of the same length, at most [`COLUMNS`], and with
/// `SQUARES` those of their squares; `None` as in [`block_sums`].
pub(crate) fn sums_of_windows<'a, const SQUARES: bool>(
    rows: impl Iterator<Item = &'a [[u8; 4]]> + Clone,
    len: usize,
    sums: &mut WindowSums,
) -> Option<()> {
    widest(WindowRows::<_, SQUARES> { rows, len, sums })
}

/// The arguments of [`sums_of_windows`].
struct WindowRows<'f, I, const SQUARES: bool> {
    rows: I,
    len: usize,
    sums: &'f mut WindowSums,
}

impl<'a, I: Iterator<Item = &'a [[u8; 4]]> + Clone, const SQUARES: bool> Kernel for WindowRows<'_, I, SQUARES> {
    type Output = Option<()>;

    #[inline(always)]
    fn run(self) -> Option<()> {
        let Self { rows, len, sums: WindowSums { columns, windows } } = self;
        let (count, width) = rows.clone().fold((0_usize, 0), |(count, _), row| (count.saturating_add(len), row.len()));
        let [sums, high, low] = columns;
        let (sums, high, low) = (sums.get_mut(..width)?, high.get_mut(..width)?, low.get_mut(..width)?);
        sums.fill(0.0);
        let [of_sums, of_high, of_low] = windows;
        if SQUARES {
            let exponents = magnitudes(rows.clone()).exponents(rows.clone())?;
            exponents.is_none_or(|exponents| exponents.allow(count)).then_some(())?;
            let start = exponents.map_or(Start::default(), |exponents| Start::least(exponents, count));
            exponents.is_none_or(|exponents| start.allows(exponents, count)).then_some(())?;
            low.fill(0.0);
            add_moments(rows, start.value(), [sums, high, low]);
            add_columns(high, len, of_high);
            add_columns(low, len, of_low);
        } else {
            let exponents = add_rows(rows.clone(), sums).exponents(rows)?;
            exponents.is_none_or(|exponents| exponents.allow(count)).then_some(())?;
        }
        add_columns(sums, len, of_sums);
        (!total(sums).is_nan()).then_some(())
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
fn add_moments<'a>(rows: impl Iterator<Item = &'a [[u8; 4]]>, start: f64, [sums, highs, lows]: [&mut [f64]; 3]) {
    highs.fill(start);
    for row in rows {
        let columns = sums.iter_mut().zip(highs.iter_mut()).zip(lows.iter_mut());
        for (((sum, high), low), &value) in columns.zip(row) {
            add_moment(value, [sum, high, low]);
        }
    }
    highs.iter_mut().for_each(|high| *high -= start);
}

/// Adds the numbers of rows to the sums of their columns, and returns their magnitudes, which tell whether the sums are
/// exact. Four rows are added at a time, since reading and writing the sums takes longer than adding.
#[inline(always)]
fn add_rows<'a>(mut rows: impl Iterator<Item = &'a [[u8; 4]]>, columns: &mut [f64]) -> Magnitudes {
    let mut magnitudes = Magnitudes::NONE;
    loop {
        match [rows.next(), rows.next(), rows.next(), rows.next()] {
            [Some(first), Some(second), Some(third), Some(fourth)] => {
                let (blocks, rest) = columns.as_chunks_mut::<LANES>();
                let [(first, last_first), (second, last_second), (third, last_third), (fourth, last_fourth)] =
                    [first, second, third, fourth].map(<[[u8; 4]]>::as_chunks::<LANES>);
                let values = first.iter().zip(second).zip(third.iter().zip(fourth));
                for (block, ((first, second), (third, fourth))) in blocks.iter_mut().zip(values) {
                    for values in [first, second, third, fourth] {
                        magnitudes.add(values);
                    }
                    // A copy, so that nothing is written before all is read.
                    let mut sums = *block;
                    let values = first.iter().zip(second).zip(third.iter().zip(fourth));
                    for (sum, ((&first, &second), (&third, &fourth))) in sums.iter_mut().zip(values) {
                        *sum += (wide(first) + wide(second)) + (wide(third) + wide(fourth));
                    }
                    *block = sums;
                }
                for row in [last_first, last_second, last_third, last_fourth] {
                    magnitudes.add_rest(row);
                    rest.iter_mut().zip(row).for_each(|(column, &value)| *column += wide(value));
                }
            }
            rest => {
                for row in rest.into_iter().flatten() {
                    magnitudes.add_all(row);
                    columns.iter_mut().zip(row).for_each(|(column, &value)| *column += wide(value));
                }
                return magnitudes;
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

impl Start {
    /// The least start of sums of `count` squares.
    #[inline(always)]
    fn least(exponents: Exponents, count: usize) -> Self {
        Self(2 * (exponents.largest - 127) + 3 + count_bits(count))
    }

    /// True if sums of `count` squares that begin with it are exact in [`moments`].
    #[inline(always)]
    fn allows(self, exponents: Exponents, count: usize) -> bool {
        Self::least(exponents, count) <= self && self.0 + count_bits(count) - 59 <= 2 * (exponents.smallest - 127)
    }

    /// A power of two.
    #[inline(always)]
    fn value(self) -> f64 {
        power_of_two(self.0)
    }
}

#[inline(always)]
fn wide(value: [u8; 4]) -> f64 {
    f32::from_le_bytes(value).into()
}

/// The sum of some numbers, and their magnitudes, which tell whether it is exact.
#[inline(always)]
fn sum(values: &[[u8; 4]]) -> (Magnitudes, BlockSums) {
    let (mut magnitudes, mut sums) = (Magnitudes::NONE, [0.0_f64; SUMS]);
    let (blocks, rest) = values.as_chunks::<SUMS>();
    for block in blocks {
        magnitudes.add(block);
        for (sum, &value) in sums.iter_mut().zip(block) {
            *sum += wide(value);
        }
    }
    magnitudes.add_rest(rest);
    sums.iter_mut().zip(rest).for_each(|(sum, &value)| *sum += wide(value));
    (magnitudes, BlockSums { sum: total(&sums), squares: [0.0; 2] })
}

/// The sum of some numbers, that of their squares, and their magnitudes, which tell whether the sums are exact.
///
/// The square of an `f32` is an `f64`. It is added to a sum that begins with a large `start`, so that all of its values
/// have the same lowest bit `u`; what is rounded off, at most `u/2`, is added to a second sum. Nothing of that is rounded
/// off as long as it has 53 bits. Let the numbers be less than 2^(e+1) and multiples of 2^(s-23), and fewer than 2^n.
/// Their squares add up to less than 2^(2e+2+n), so the first sum stays between `start` and twice that if it is
/// 2^(2e+3+n) or more. With a start of 2^l, `u` is 2^(l-52). What is rounded off adds up to less than 2^(l-53+n), in
/// multiples of 2^(2s-46), which is exact if l + n - 60 <= 2s; one bit more is left unused.
#[inline(always)]
fn moments(values: &[[u8; 4]], start: Start) -> (Magnitudes, BlockSums) {
    let start = start.value();
    let mut magnitudes = Magnitudes::NONE;
    let (mut sums, mut high, mut low) = ([0.0_f64; SUMS], [start; SUMS], [0.0_f64; SUMS]);
    let mut add = |block: &[[u8; 4]]| {
        for (((sum, high), low), &value) in sums.iter_mut().zip(&mut high).zip(&mut low).zip(block) {
            add_moment(value, [sum, high, low]);
        }
    };
    // In loops of their own, which need fewer registers.
    for values in values.chunks(NEAR) {
        magnitudes.add_all(values);
        let (blocks, rest) = values.as_chunks::<SUMS>();
        blocks.iter().for_each(|block| add(block));
        add(rest);
    }
    let squares = [total(&high.map(|high| high - start)), total(&low)];
    (magnitudes, BlockSums { sum: total(&sums), squares })
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

    fn sums_of<const SQUARES: bool>(values: &[f32]) -> Option<BlockSums> {
        block_sums::<SQUARES>(&bytes(values), &mut Start::default())
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
            start in -300..300,
        )| {
            let value = |bits: u32| match bits % 9 {
                0 if zeros => 0.0,
                _ => f32::from_bits(bits & 0x807f_ffff | ((bits >> 23 & 31) % spread + shift) << 23),
            };
            let values: Vec<f32> = bits.into_iter().map(value).collect();
            let (values_of, mut other) = (bytes(&values), Start(start));
            let moments = block_sums::<true>(&values_of, &mut other);
            let plain = block_sums::<false>(&values_of, &mut other);
            prop_assert_eq!(sums_of::<true>(&values).is_some(), moments.is_some(), "whatever the start");
            // As on any other processor.
            let again = Block::<true> { values: &values_of, start: &mut Start(start) }.run();
            let again = (Block::<false> { values: &values_of, start: &mut other }.run(), again);
            prop_assert_eq!(again, (plain, moments));
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
            let moments = sums_of::<true>(&values).unwrap();
            let squares: BigInt = values.iter().map(|&value| scaled(f64::from(value) * f64::from(value))).sum();
            assert_eq!(moments.squares.into_iter().map(scaled).sum::<BigInt>(), squares);
        }
    }

    #[test]
    fn blocks_that_may_be_rounded_are_refused() {
        assert_eq!(sums_of::<true>(&[]), Some(BlockSums::default()));
        assert_eq!(sums_of::<false>(&[0.0, -0.0]), Some(BlockSums::default()));
        let smallest = f32::from_bits(1);
        let sums = sums_of::<true>(&[smallest; 3]).unwrap();
        let squares: f64 = sums.squares.into_iter().sum();
        assert_eq!((sums.sum, squares), (3.0 * f64::from(smallest), 3.0 * f64::from(smallest).powi(2)));
        for refused in [[1.0, 1e-12], [1.0, f32::NAN], [f32::INFINITY, 1.0], [1.0, f32::NEG_INFINITY], [1e30, 1e-30]] {
            assert_eq!(sums_of::<false>(&refused), None, "{refused:?}");
            assert_eq!(sums_of::<true>(&refused), None, "{refused:?}");
        }
        assert_eq!(sums_of::<false>(&[0.0; BLOCK + 1]), None);
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
        let values = proptest::collection::vec(any::<u32>(), 9 * 50);
        let lens = proptest::sample::select(vec![1_usize, 2, 3, 4, 5, 7, 8, 16, 50]);
        proptest!(ProptestConfig::with_cases(2000), |(
            bits in values, len in lens, count in 1_usize..10, spread in 1_u32..32, special in 0..4_u32,
        )| {
            let value = |bits: u32| match bits % 40 {
                0 if special == 1 => 0.0,
                0 if special == 2 && bits % 1000 < 40 => f32::NAN,
                0 if special == 3 && bits % 1000 < 40 => f32::INFINITY,
                _ => f32::from_bits(bits & 0x807f_ffff | ((bits >> 23 & 31) % spread + 100) << 23),
            };
            let values: Vec<f32> = bits.into_iter().map(value).collect();
            let (all, width) = (bytes(&values), 50 - 50 % len);
            let rows = all.chunks_exact(50).take(count).map(|row| &row[..width]);
            // They are made anew.
            let mut sums = WindowSums { columns: [[f64::NAN; COLUMNS]; 3], ..WindowSums::default() };
            let plain = sums_of_windows::<false>(rows.clone(), len, &mut sums).map(|()| sums.windows);
            let moments = sums_of_windows::<true>(rows.clone(), len, &mut sums).map(|()| sums.windows);
            prop_assert!(spread > 20 || special > 1 || plain.is_some(), "exponents are near");
            prop_assert!(spread > 15 || special > 1 || moments.is_some(), "exponents are near");
            let number = |bytes: [u8; 8]| scaled(f64::from_le_bytes(bytes));
            for window in 0..width / len {
                let of = |row: usize| &values[row * 50 + window * len..][..len];
                let wide = (0..count).flat_map(of).map(|&value| f64::from(value));
                let exact = |map: fn(f64) -> f64| wide.clone().map(|value| scaled(map(value))).sum::<BigInt>();
                for [sums, ..] in plain.iter().chain(&moments) {
                    prop_assert_eq!(number(sums[window]), exact(|value| value), "{} rows, windows of {}", count, len);
                }
                if let Some([_, high, low]) = moments {
                    prop_assert_eq!(number(high[window]) + number(low[window]), exact(|value| value * value));
                }
            }
        });
    }
}
