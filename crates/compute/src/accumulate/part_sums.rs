//! The sums of one part of each element: of floats, or of the real or imaginary parts of complex numbers.

use crate::{
    element::Real,
    exact::{
        sums::ExactSums,
        term::{Plain, Square},
    },
    lanes::sums::{BLOCK, BlockSums, Specials, Start, WindowSums},
    rows::Rows,
};

/// The elements of a block of which some are not finite, or whose exponents are far apart, that are added at a time.
const SMALL_BLOCK: usize = 256;

/// The sums of one part.
#[derive(Debug)]
pub(super) struct PartSums {
    pub(super) sums: ExactSums,
    /// The sums of squares, if they are needed.
    pub(super) squares: Option<ExactSums>,
    /// The start of the last sums of squares.
    start: Start,
    /// The sums of the last windows; none before the first ones.
    windows: Option<Box<WindowSums>>,
}

impl PartSums {
    /// These sums of elements, and sums of squares, if they are needed.
    pub(super) fn new(sums: ExactSums, squares: Option<ExactSums>) -> Self {
        Self { sums, squares, start: Start::default(), windows: None }
    }

    /// Adds elements to one sum; returns the number of those that are NaN.
    pub(super) fn add_to_one<R: Real, const SKIP: bool>(&mut self, group: usize, values: &[R::Bytes]) -> u64 {
        values.chunks(BLOCK).map(|block| self.add_block::<R, SKIP>(group, block)).sum()
    }

    fn add_block<R: Real, const SKIP: bool>(&mut self, group: usize, block: &[R::Bytes]) -> u64 {
        if self.add_exact::<R>(group, block) {
            return 0;
        }
        if !R::HAS_BLOCK_SUMS || block.len() < SMALL_BLOCK {
            self.add_each::<R, SKIP>(group, block);
            return if SKIP { block.iter().filter(|&&value| is_nan::<R>(value)).count() as u64 } else { 0 };
        }
        let mut finite = [R::Bytes::default(); BLOCK];
        let finite = finite.get_mut(..block.len()).unwrap_or_default();
        let specials = R::copy_finite(block, finite);
        self.add_specials::<SKIP>(group, specials);
        for block in finite.chunks(SMALL_BLOCK) {
            if !self.add_exact::<R>(group, block) {
                self.add_each::<R, SKIP>(group, block);
            }
        }
        specials.nan
    }

    /// Adds elements if their sums are exact; else changes nothing and returns false.
    #[inline]
    fn add_exact<R: Real>(&mut self, group: usize, block: &[R::Bytes]) -> bool {
        let sums = match self.squares {
            Some(_) => R::block_sums::<true>(block, &mut self.start),
            None => R::block_sums::<false>(block, &mut self.start),
        };
        let Some(BlockSums { sum, squares }) = sums else { return false };
        self.sums.add_sum(group, sum);
        if let Some(all) = &mut self.squares {
            squares.into_iter().for_each(|sum| all.add_sum(group, sum));
        }
        true
    }

    /// Adds each window of `width` elements of some rows, and with `SQUARES` also their squares, if the sums are exact, and
    /// returns the number of windows; else changes nothing.
    pub(super) fn add_exact_windows<R: Real, const SQUARES: bool>(
        &mut self,
        first: usize,
        rows: Rows<'_>,
        width: usize,
    ) -> Option<usize> {
        let found = self.windows.get_or_insert_default();
        R::sums_of_windows::<SQUARES>(rows.iter().map(R::all), width, found)?;
        let windows = rows.width() / (width * size_of::<R::Bytes>()).max(1);
        let [sums, squares @ ..] = found.windows.each_ref().map(|sums| sums.get(..windows).unwrap_or_default());
        self.sums.add_to_each::<Plain<f64>, false>(first, sums);
        if let Some(all) = self.squares.as_mut().filter(|_| SQUARES) {
            squares.into_iter().for_each(|sums| all.add_to_each::<Plain<f64>, false>(first, sums));
        }
        Some(windows)
    }

    pub(super) fn add_specials<const SKIP: bool>(&mut self, group: usize, specials: Specials) {
        let values = [
            (!SKIP && specials.nan > 0, f64::NAN),
            (specials.has_infinity, f64::INFINITY),
            (specials.has_negative_infinity, f64::NEG_INFINITY),
        ];
        for (_, value) in values.into_iter().filter(|(is_there, _)| *is_there) {
            self.sums.add_special(group, value);
            if let Some(squares) = &mut self.squares {
                squares.add_special(group, value * value);
            }
        }
    }

    fn add_each<R: Real, const SKIP: bool>(&mut self, group: usize, values: &[R::Bytes]) {
        self.sums.add_to_one::<Plain<R>, SKIP>(group, values);
        if let Some(squares) = &mut self.squares {
            squares.add_to_one::<Square<R>, SKIP>(group, values);
        }
    }

    pub(super) fn add_to_each<R: Real, const SKIP: bool>(&mut self, first: usize, values: &[R::Bytes]) {
        self.sums.add_to_each::<Plain<R>, SKIP>(first, values);
        if let Some(squares) = &mut self.squares {
            squares.add_to_each::<Square<R>, SKIP>(first, values);
        }
    }
}

#[inline]
pub(super) fn is_nan<R: Real>(value: R::Bytes) -> bool {
    R::read(value).to_f64().is_nan()
}
