//! `sum`, `mean`, `std` and `var` of floats and of complex numbers.

use std::{any::Any, ops::Range};

use num_bigint::BigInt;
use zarrd_codec::filled;

use super::{
    Accumulator, Computation, Orders, downcast,
    integer_sums::{small_variance, variance},
    part_sums::{PartSums, is_nan},
};
use crate::{
    element::Real,
    error::ComputeError,
    exact::{
        ratio::Precision,
        sums::ExactSums,
        term::{Plain, Square},
        total::{Total, add_scaled, add_small},
    },
    function::Operation,
    lanes::{
        sums::{COLUMNS, Specials},
        widest::{Kernel, widest},
    },
    rows::Rows,
};

/// The rows that are added at a time, so that they are read from the processor's first cache the second time.
const ROWS: usize = 16;
/// The rows from which on adding them before their sums are added to others is worth its preparation.
const FEW_ROWS: usize = 4;
/// The windows of a row up to which those whose sums may not be exact are not split any further.
const FEW_WINDOWS: usize = 4;

/// The quotients that are computed at a time.
const SIDE_BY_SIDE: usize = u64::BITS as usize;

/// The memory of a sum and a count.
pub(super) const SIZE: u64 = ExactSums::SIZE + 8;
/// The memory of these and of a sum of squares.
pub(super) const SIZE_OF_MOMENTS: u64 = 2 * ExactSums::SIZE + 8;

/// Exact sums of floats, or of the parts of complex numbers, and of their squares.
struct FloatSums<R, const PARTS: usize, const SKIP: bool> {
    parts: [PartSums; PARTS],
    counts: Vec<u64>,
    /// A buffer for elements with zeros in place of NaN.
    finite: Vec<u8>,
    computation: Computation,
    element: std::marker::PhantomData<fn(R)>,
}

pub(super) fn real<R: Float>(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
    match computation.skips() {
        true => Box::new(FloatSums::<R, 1, true>::new(computation, groups)),
        false => Box::new(FloatSums::<R, 1, false>::new(computation, groups)),
    }
}

pub(super) fn complex<R: Float>(computation: &Computation, groups: usize) -> Box<dyn Accumulator> {
    match computation.skips() {
        true => Box::new(FloatSums::<R, 2, true>::new(computation, groups)),
        false => Box::new(FloatSums::<R, 2, false>::new(computation, groups)),
    }
}

/// A float with its precision.
pub(super) trait Float: Real {
    const PRECISION: Precision;
}

impl Float for half::f16 {
    const PRECISION: Precision = Precision::HALF;
}

impl Float for f32 {
    const PRECISION: Precision = Precision::SINGLE;
}

impl Float for f64 {
    const PRECISION: Precision = Precision::DOUBLE;
}

impl<R: Float, const PARTS: usize, const SKIP: bool> FloatSums<R, PARTS, SKIP> {
    const SIZE_OF_ELEMENT: usize = size_of::<R::Bytes>() * PARTS;

    fn new(computation: &Computation, groups: usize) -> Self {
        let needs_squares = matches!(computation.function.operation, Operation::Std | Operation::Var);
        let sums = || ExactSums::new(groups, computation.spill);
        let part = |_| PartSums::new(sums(), needs_squares.then(sums));
        Self {
            parts: std::array::from_fn(part),
            counts: filled(0, groups),
            finite: Vec::new(),
            computation: computation.clone(),
            element: std::marker::PhantomData,
        }
    }

    /// The parts of the elements, and the number of those that count. Those that are left out become zeros.
    fn split(values: &[u8]) -> ([Vec<R::Bytes>; PARTS], u64) {
        let (elements, _) = R::all(values).as_chunks::<PARTS>();
        let is_counted = |element: &[R::Bytes; PARTS]| !SKIP || !element.iter().any(|&part| is_nan::<R>(part));
        let zero = R::from_f64(0.0).write();
        let part = |part: usize| {
            let of = |element: &[R::Bytes; PARTS]| element.get(part).copied().unwrap_or(zero);
            elements.iter().map(|element| if is_counted(element) { of(element) } else { zero }).collect()
        };
        let counted = elements.iter().filter(|element| is_counted(element)).count();
        (std::array::from_fn(part), counted as u64)
    }

    fn count(&mut self, group: usize, count: u64) {
        if let Some(counted) = self.counts.get_mut(group) {
            *counted = counted.saturating_add(count);
        }
    }

    /// Adds each window of `len` bytes of a few rows.
    fn add_band(&mut self, first: usize, rows: Rows<'_>, len: usize) {
        let width = len / size_of::<R::Bytes>().max(1);
        if self.add_exact_windows(first, rows, width) {
            return;
        }
        let windows = rows.width() / len.max(1);
        if windows <= FEW_WINDOWS {
            return self.add_each_row(first, rows, len);
        }
        if self.add_windows_with_nan(first, rows, width) {
            return;
        }
        if len == Self::SIZE_OF_ELEMENT {
            return self.add_each_row(first, rows, len);
        }
        // Few of the elements may be the reason.
        let half = windows / 2;
        self.add_band(first, rows.part(0, half * len), len);
        self.add_band(first.saturating_add(half), rows.part(half * len, rows.width()), len);
    }

    /// Adds each window of `len` bytes of some rows, one after another.
    fn add_each_row(&mut self, first: usize, rows: Rows<'_>, len: usize) {
        for row in rows.iter() {
            if len == Self::SIZE_OF_ELEMENT {
                self.add_to_each(first, row, 0);
                continue;
            }
            let windows = (first..).zip(row.chunks_exact(len.max(1)));
            windows.for_each(|(group, window)| self.add_to_one(group, window, 0, 0));
        }
    }

    /// Adds each window of `width` elements of some rows if their sums are exact; else changes nothing and returns false.
    fn add_exact_windows(&mut self, first: usize, rows: Rows<'_>, width: usize) -> bool {
        let [part, ..] = self.parts.as_mut_slice() else { return false };
        let added = match part.squares {
            None => part.add_exact_windows::<R, false>(first, rows, width),
            Some(_) => part.add_exact_windows::<R, true>(first, rows, width),
        };
        let Some(windows) = added else { return false };
        let counted = (width as u64).saturating_mul(rows.count() as u64);
        self.counts.iter_mut().skip(first).take(windows).for_each(|count| *count = count.saturating_add(counted));
        true
    }

    /// Adds each window of `width` elements of some rows if some are NaN and the sums of the others are exact; else
    /// changes nothing and returns false.
    fn add_windows_with_nan(&mut self, first: usize, rows: Rows<'_>, width: usize) -> bool {
        let mut finite = std::mem::take(&mut self.finite);
        // All of it is overwritten.
        finite.resize(rows.count().saturating_mul(rows.width()), 0);
        let mut specials = Specials::default();
        for (row, finite) in rows.iter().zip(finite.chunks_exact_mut(rows.width().max(1))) {
            specials = specials.and(R::copy_finite(R::all(row), R::all_mut(finite)));
        }
        let is_nan_alone = specials.nan > 0 && !specials.has_infinity && !specials.has_negative_infinity;
        let without = Rows::new(&finite, rows.width(), (rows.width(), rows.count())).filter(|_| is_nan_alone);
        let is_added = without.is_some_and(|without| self.add_exact_windows(first, without, width));
        self.finite = finite;
        if is_added {
            self.add_nan_of_windows(first, rows, width);
        }
        is_added
    }

    /// Corrects the sums and counts of windows that were added with zeros in place of NaN.
    fn add_nan_of_windows(&mut self, first: usize, rows: Rows<'_>, width: usize) {
        let mut found = [0_u32; COLUMNS];
        for row in rows.iter() {
            for (found, window) in found.iter_mut().zip(R::all(row).chunks_exact(width.max(1))) {
                *found += window.iter().map(|&value| u32::from(is_nan::<R>(value))).sum::<u32>();
            }
        }
        for (group, nan) in (first..).zip(found).filter(|(_, nan)| *nan > 0) {
            if SKIP {
                let count = self.counts.get_mut(group);
                count.into_iter().for_each(|count| *count = count.saturating_sub(nan.into()));
            } else {
                let specials = Specials { nan: nan.into(), ..Specials::default() };
                self.parts.iter_mut().for_each(|part| part.add_specials::<SKIP>(group, specials));
            }
        }
    }

    /// The sum of the squared distances from the mean times the count, as an integer times a power of two, and the
    /// count; the first is an error if it is not finite.
    fn variance(&self, computation: &Computation, group: usize) -> f64 {
        let count = self.counts.get(group).copied().unwrap_or(0);
        let small = self.small_spread(group, count);
        if let Some(variance) = small.and_then(|(spread, scale)| small_variance(spread, scale, count, computation)) {
            return variance;
        }
        let mut spread = (BigInt::ZERO, 0);
        for part in &self.parts {
            let (sum, squares) = (part.sums.total(group), part.squares.as_ref().map(|squares| squares.total(group)));
            let Some(squares @ Total::Finite(..)) = squares else { return f64::NAN };
            let ((sum, exponent), (squares, of_squares)) = (sum.exact(), squares.exact());
            spread = add_scaled(spread, (squares * count, of_squares));
            spread = add_scaled(spread, (-(&sum * &sum), exponent.saturating_mul(2)));
        }
        variance(&spread.0, spread.1, count, computation)
    }

    /// The sum of the squared distances from the mean times the count, as in [`variance`](Self::variance), if it is small
    /// enough.
    fn small_spread(&self, group: usize, count: u64) -> Option<(i128, i64)> {
        self.parts.iter().try_fold((0, 0), |spread, part| {
            let (sum, exponent) = part.sums.total(group).small()?;
            let (squares, of_squares) = part.squares.as_ref()?.total(group).small()?;
            let spread = add_small(spread, (squares.checked_mul(count.into())?, of_squares))?;
            add_small(spread, (sum.checked_mul(sum)?.checked_neg()?, exponent.saturating_mul(2)))
        })
    }

    /// Appends the results of groups from `first` on, given their sums, each of which is one float. The few that would
    /// be rounded twice are made again.
    fn finish_singles(&self, computation: &Computation, first: usize, sums: &[f64], out: &mut Vec<u8>) {
        let counts = self.counts.get(first..).unwrap_or_default();
        let blocks = sums.chunks(SIDE_BY_SIDE).zip(counts.chunks(SIDE_BY_SIDE));
        for (first, (sums, counts)) in (first..).step_by(SIDE_BY_SIDE).zip(blocks) {
            let (results, twice) =
                widest(Quotients::<R> { computation, sums, counts, float: std::marker::PhantomData });
            for (lane, result) in results.iter().take(sums.len()).enumerate() {
                match twice >> lane & 1 {
                    0 => out.extend_from_slice(result.as_ref()),
                    _ => self.finish_one(computation, first.saturating_add(lane), out),
                }
            }
        }
    }

    fn finish_one(&self, computation: &Computation, group: usize, out: &mut Vec<u8>) {
        let count = self.counts.get(group).copied().unwrap_or(0);
        let results: [f64; PARTS] = match computation.function.operation {
            Operation::Std | Operation::Var => return self.finish_variance(self.variance(computation, group), out),
            _ => {
                let divisor = divisor(computation, count);
                self.parts.each_ref().map(|part| part.sums.total(group).divided_by(divisor, R::PRECISION))
            }
        };
        results.into_iter().for_each(|value| out.extend_from_slice(R::from_f64(value).write().as_ref()));
    }

    fn finish_variance(&self, value: f64, out: &mut Vec<u8>) {
        out.extend_from_slice(R::from_f64(value).write().as_ref());
    }
}

/// The sums and counts of at most [`SIDE_BY_SIDE`] groups, each of which is one float.
struct Quotients<'a, R> {
    computation: &'a Computation,
    sums: &'a [f64],
    counts: &'a [u64],
    float: std::marker::PhantomData<fn(R)>,
}

impl<R: Float> Kernel for Quotients<'_, R> {
    /// The results, and a bit for each that may have been rounded twice.
    type Output = ([R::Bytes; SIDE_BY_SIDE], u64);

    #[inline(always)]
    fn run(self) -> Self::Output {
        let mut results = [R::Bytes::default(); SIDE_BY_SIDE];
        let mut twice = 0_u64;
        for (lane, (result, (&sum, &count))) in results.iter_mut().zip(self.sums.iter().zip(self.counts)).enumerate() {
            let divisor = divisor(self.computation, count);
            let quotient = sum / divisor as f64;
            *result = R::from_f64(quotient).write();
            twice |= u64::from(!R::PRECISION.rounds_once(quotient, divisor)) << lane;
        }
        (results, twice)
    }
}

impl<R: Float, const PARTS: usize, const SKIP: bool> Accumulator for FloatSums<R, PARTS, SKIP> {
    fn add_to_one(&mut self, group: usize, values: &[u8], _order: u64, _order_step: u64) {
        if PARTS == 1 {
            let values = R::all(values);
            let nan: u64 = self.parts.iter_mut().map(|part| part.add_to_one::<R, SKIP>(group, values)).sum();
            let all = values.len() as u64;
            return self.count(group, if SKIP { all.saturating_sub(nan) } else { all });
        }
        let (parts, counted) = Self::split(values);
        self.count(group, counted);
        for (part, values) in self.parts.iter_mut().zip(&parts) {
            part.add_to_one::<R, false>(group, values);
        }
    }

    fn add_windows(&mut self, first: usize, values: &[u8], len: usize, orders: Orders) {
        self.add_rows(first, Rows::one(values), len, orders);
    }

    fn add_rows(&mut self, first: usize, rows: Rows<'_>, len: usize, _orders: Orders) {
        let width = len / size_of::<R::Bytes>().max(1);
        if !R::HAS_BLOCK_SUMS || PARTS != 1 || width == 0 || width > COLUMNS {
            return self.add_each_row(first, rows, len);
        }
        // Whole windows of some columns at a time.
        let windows = COLUMNS / width;
        for (number, columns) in rows.columns(windows * len).enumerate() {
            let first = first.saturating_add(number.saturating_mul(windows));
            columns.bands(ROWS).for_each(|band| self.add_band(first, band, len));
        }
    }

    fn add_rows_to_each(&mut self, first: usize, rows: Rows<'_>, order: u64, of_rows: u64) {
        if rows.count() < FEW_ROWS {
            return self.add_each_row(first, rows, Self::SIZE_OF_ELEMENT);
        }
        let orders = Orders { first: order, step: 0, apart: 0, of_rows };
        self.add_rows(first, rows, Self::SIZE_OF_ELEMENT, orders);
    }

    fn add_to_each(&mut self, first: usize, values: &[u8], _order: u64) {
        if PARTS > 1 {
            for (group, value) in (first..).zip(values.chunks_exact(Self::SIZE_OF_ELEMENT)) {
                self.add_to_one(group, value, 0, 0);
            }
            return;
        }
        let values = R::all(values);
        for (count, &value) in self.counts.iter_mut().skip(first).zip(values) {
            *count += u64::from(!SKIP || !is_nan::<R>(value));
        }
        self.parts.iter_mut().for_each(|part| part.add_to_each::<R, SKIP>(first, values));
    }

    fn add_repeated(&mut self, group: usize, value: &[u8], count: u64, _order: u64) {
        let (parts, counted) = Self::split(value);
        self.count(group, counted.saturating_mul(count));
        let values = parts.iter().map(|values| values.first().map_or(0.0, |&value| R::read(value).to_f64()));
        for (part, value) in self.parts.iter_mut().zip(values) {
            part.sums.add_repeated::<Plain<R>, false>(group, value, count);
            if let Some(squares) = &mut part.squares {
                squares.add_repeated::<Square<R>, false>(group, value, count);
            }
        }
    }

    fn merge(&mut self, other: Box<dyn Accumulator>) {
        let Some(other) = downcast::<Self>(other) else { return };
        self.counts.iter_mut().zip(other.counts).for_each(|(one, other)| *one = one.saturating_add(other));
        for (one, other) in self.parts.iter_mut().zip(other.parts) {
            one.sums.merge(other.sums);
            if let (Some(one), Some(other)) = (&mut one.squares, other.squares) {
                one.merge(other);
            }
        }
    }

    fn finish(&self, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        self.finish_as(&self.computation, groups, out)
    }

    fn finish_as(&self, other: &Computation, groups: Range<usize>, out: &mut Vec<u8>) -> Result<(), ComputeError> {
        let singles = match self.parts.as_slice() {
            [part] if other.function.operation != Operation::Std && other.function.operation != Operation::Var => {
                part.sums.singles(groups.clone())
            }
            _ => None,
        };
        match singles {
            Some(sums) => self.finish_singles(other, groups.start, sums, out),
            None => groups.for_each(|group| self.finish_one(other, group, out)),
        }
        Ok(())
    }

    fn is_exceeded(&self) -> bool {
        let of = |part: &PartSums| part.sums.is_exceeded() || part.squares.as_ref().is_some_and(ExactSums::is_exceeded);
        self.parts.iter().any(of)
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// The number by which a sum is divided.
#[inline]
fn divisor(computation: &Computation, count: u64) -> u64 {
    if computation.function.operation == Operation::Sum { 1 } else { count }
}
