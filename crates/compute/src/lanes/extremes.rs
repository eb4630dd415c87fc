//! The least and greatest of floats, and counts of NaN.

use super::widest::{Kernel, widest};

/// The numbers that are compared at a time.
const LANES: usize = 16;

/// The greatest or least number of some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Best<F> {
    /// There is none, or none that is not NaN.
    None,
    /// One is NaN, which was looked for.
    Nan,
    /// A number. Of zeros, +0 is the greatest and -0 the least.
    Number(F),
}

/// Numbers of `SIZE` bytes whose best is looked for.
struct BestOf<'v, const MAX: bool, const SKIP: bool, const SIZE: usize>(&'v [[u8; SIZE]]);

/// Numbers of `SIZE` bytes that are counted.
struct CountOf<'v, const SIZE: usize>(&'v [[u8; SIZE]]);

macro_rules! extremes {
    ($name:ident, $count:ident, $float:ty, $count_type:ty, $size:literal) => {
        /// The greatest of some numbers, or the least. With `SKIP`, NaN is left out.
        #[inline]
        pub(crate) fn $name<const MAX: bool, const SKIP: bool>(values: &[[u8; $size]]) -> Best<$float> {
            widest(BestOf::<MAX, SKIP, $size>(values))
        }

        impl<const MAX: bool, const SKIP: bool> Kernel for BestOf<'_, MAX, SKIP, $size> {
            type Output = Best<$float>;

            #[inline(always)]
            fn run(self) -> Best<$float> {
                let Self(values) = self;
                let worst = if MAX { <$float>::NEG_INFINITY } else { <$float>::INFINITY };
                let (mut best, mut nan) = ([worst; LANES], [0; LANES]);
                let mut add = |block: &[[u8; $size]]| {
                    for ((best, nan), &value) in best.iter_mut().zip(&mut nan).zip(block) {
                        let number = <$float>::from_le_bytes(value);
                        // False for NaN.
                        let is_better = if MAX { number > *best } else { number < *best };
                        *best = if is_better { number } else { *best };
                        if !SKIP {
                            *nan |= <$count_type>::from(number.is_nan());
                        }
                    }
                };
                let (blocks, rest) = values.as_chunks::<LANES>();
                blocks.iter().for_each(|block| add(block));
                add(rest);
                if nan.iter().any(|&nan| nan != 0) {
                    return Best::Nan;
                }
                let best = best.into_iter().fold(worst, |one, other| if MAX { one.max(other) } else { one.min(other) });
                let has = |number: $float| {
                    let bytes = number.to_le_bytes();
                    values.iter().fold(false, |has, &value| has | (value == bytes))
                };
                let (better_zero, other_zero) = if MAX { (0.0, -0.0) } else { (-0.0, 0.0) };
                match best {
                    best if best == worst && !has(worst) => Best::None,
                    0.0 => Best::Number(if has(better_zero) { better_zero } else { other_zero }),
                    best => Best::Number(best),
                }
            }
        }

        /// The count of those that are not NaN.
        #[inline]
        pub(crate) fn $count(values: &[[u8; $size]]) -> usize {
            widest(CountOf::<$size>(values))
        }

        impl Kernel for CountOf<'_, $size> {
            type Output = usize;

            #[inline(always)]
            fn run(self) -> usize {
                let Self(values) = self;
                /// The numbers that are counted at a time, so that the counter of a lane is small.
                const BLOCK: usize = 1 << 12;
                let count = |block: &[[u8; $size]]| {
                    let present = |&value: &[u8; $size]| <$count_type>::from(!<$float>::from_le_bytes(value).is_nan());
                    block.iter().map(present).sum::<$count_type>() as usize
                };
                values.chunks(BLOCK).map(count).sum()
            }
        }
    };
}

extremes!(best_single, count_single, f32, u32, 4);
extremes!(best_double, count_double, f64, u64, 8);
