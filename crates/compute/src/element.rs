//! Elements of plain types, read from their bytes in memory.

use half::f16;

use crate::lanes::{
    extremes::{Best, best_double, best_single, count_double, count_single},
    sums::{self, BlockSums, Specials, Start, WindowSums},
};

/// The numbers up to which comparing them in lanes is not worth its preparation.
const FEW: usize = 48;

/// An element of a plain type.
pub(crate) trait Element: Copy + Send + Sync + PartialEq + 'static {
    /// Its bytes in memory, little-endian.
    type Bytes: Copy + AsRef<[u8]> + Send + Sync + Default;

    /// The elements of a buffer; bytes beyond the last complete one are ignored.
    fn all(bytes: &[u8]) -> &[Self::Bytes];

    /// The elements of a buffer, as [`all`](Self::all), to be changed.
    fn all_mut(bytes: &mut [u8]) -> &mut [Self::Bytes];

    /// Reads an element.
    fn read(bytes: Self::Bytes) -> Self;

    /// The bytes of an element.
    fn write(self) -> Self::Bytes;
}

/// A real number that is a float.
pub(crate) trait Real: Element {
    /// True if [`block_sums`](Self::block_sums) and [`sums_of_windows`](Self::sums_of_windows) may return sums.
    const HAS_BLOCK_SUMS: bool = false;

    /// The same number as an `f64`.
    fn to_f64(self) -> f64;

    /// The nearest number to an `f64`.
    fn from_f64(value: f64) -> Self;

    /// The exact sum of at most [`BLOCK`](sums::BLOCK) numbers, and with `SQUARES` that of their squares; `None` if it is
    /// not known to be exact, or if one of them is not finite.
    #[inline]
    fn block_sums<const SQUARES: bool>(_values: &[Self::Bytes], _start: &mut Start) -> Option<BlockSums> {
        None
    }

    /// Replaces sums by the exact ones of each window of `len` numbers of some rows of the same length, at most
    /// [`COLUMNS`](sums::COLUMNS), and with `SQUARES` those of their squares; `None` as in
    /// [`block_sums`](Self::block_sums), and the contents of `sums` are unspecified then.
    #[inline]
    fn sums_of_windows<'a, const SQUARES: bool>(
        _rows: impl Iterator<Item = &'a [Self::Bytes]> + Clone,
        _len: usize,
        _sums: &mut WindowSums,
    ) -> Option<()> {
        None
    }

    /// Copies numbers with zeros in place of what is not finite.
    fn copy_finite(values: &[Self::Bytes], finite: &mut [Self::Bytes]) -> Specials {
        let mut specials = Specials::default();
        for (finite, &value) in finite.iter_mut().zip(values) {
            let number = Self::read(value).to_f64();
            specials.nan += u64::from(number.is_nan());
            specials.has_infinity |= number == f64::INFINITY;
            specials.has_negative_infinity |= number == f64::NEG_INFINITY;
            *finite = if number.is_finite() { value } else { Self::from_f64(0.0).write() };
        }
        specials
    }
}

/// An integer, or a boolean as 0 or 1.
pub(crate) trait Whole: Element {
    /// The same number.
    fn to_i128(self) -> i128;

    /// The sum of at most 2^31 numbers.
    #[inline]
    fn sum(values: &[Self::Bytes]) -> i128 {
        values.iter().map(|&value| Self::read(value).to_i128()).sum()
    }

    /// The sum of the squares of at most 2^31 numbers, and the number of times that it exceeded 128 bits.
    #[inline]
    fn squares(values: &[Self::Bytes]) -> (u128, u64) {
        values.iter().fold((0, 0), |(sum, carries), &value| {
            let magnitude = Self::read(value).to_i128().unsigned_abs();
            let (sum, carry) = u128::overflowing_add(sum, magnitude.saturating_mul(magnitude));
            (sum, carries + u64::from(carry))
        })
    }
}

/// An element with a total order.
pub(crate) trait Ordered: Element {
    /// An integer that has the order of the elements: −0 precedes +0, and NaN is above or below all numbers.
    type Key: Copy + Ord + Send + Sync + 'static;
    /// The least and the greatest key.
    const LIMITS: (Self::Key, Self::Key);
    /// The least and the greatest key of what is not missing, such as those of the infinities.
    const PRESENT: (Self::Key, Self::Key);

    /// The key of an element.
    fn key(self) -> Self::Key;

    /// The element of a key.
    fn of_key(key: Self::Key) -> Self;

    /// The key as an unsigned integer of as many bits as the element.
    fn rank(self) -> u64;

    /// The element of such an integer.
    fn of_rank(rank: u64) -> Self;

    /// The element, or the usual NaN or "not a time" if it is missing.
    fn or_missing(self) -> Self {
        self
    }

    /// The element; 0 for -0.
    #[inline]
    fn with_one_zero(self) -> Self {
        self
    }

    /// True if the element is NaN, or no time.
    #[inline]
    fn is_missing(self) -> bool {
        let key = self.key();
        key < Self::PRESENT.0 || key > Self::PRESENT.1
    }

    /// The number of elements that are not missing.
    #[inline]
    fn count_present(values: &[Self::Bytes]) -> usize {
        values.iter().map(|&value| usize::from(!Self::read(value).is_missing())).sum()
    }

    /// The key of an element for `min` and `max`. What is missing has the one that replaces all others, or with `SKIP`
    /// that replaces none.
    #[inline]
    fn extreme_key<const MAX: bool, const SKIP: bool>(self) -> Self::Key {
        let missing = if MAX == SKIP { Self::LIMITS.0 } else { Self::LIMITS.1 };
        if self.is_missing() { missing } else { self.key() }
    }

    /// The best of the keys of elements: the greatest one, or the least.
    #[inline]
    fn best_key<const MAX: bool, const SKIP: bool>(values: &[Self::Bytes]) -> Self::Key {
        best_of_keys::<Self, MAX, SKIP>(values)
    }
}

/// The best of the keys of elements, of which each is compared with all before it.
#[inline]
fn best_of_keys<O: Ordered, const MAX: bool, const SKIP: bool>(values: &[O::Bytes]) -> O::Key {
    let keys = values.iter().map(|&value| O::read(value).extreme_key::<MAX, SKIP>());
    match MAX {
        true => keys.fold(O::LIMITS.0, Ord::max),
        false => keys.fold(O::LIMITS.1, Ord::min),
    }
}

/// A number of 8 bytes that counts units of time; the least one is no time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(pub(crate) i64);

/// A boolean, of which every byte but 0 is true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Boolean(pub(crate) bool);

macro_rules! element {
    ($type:ty, $size:literal, $read:expr, $write:expr) => {
        impl Element for $type {
            type Bytes = [u8; $size];

            #[inline]
            fn all(bytes: &[u8]) -> &[Self::Bytes] {
                bytes.as_chunks().0
            }

            #[inline]
            fn all_mut(bytes: &mut [u8]) -> &mut [Self::Bytes] {
                bytes.as_chunks_mut().0
            }

            #[inline]
            fn read(bytes: Self::Bytes) -> Self {
                $read(bytes)
            }

            #[inline]
            fn write(self) -> Self::Bytes {
                $write(self)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty, $size:literal, $narrow:ty;)*) => {$(
        element!($type, $size, <$type>::from_le_bytes, <$type>::to_le_bytes);

        impl Whole for $type {
            #[inline]
            fn to_i128(self) -> i128 {
                self.into()
            }

            #[inline]
            fn sum(values: &[Self::Bytes]) -> i128 {
                let mut sum: $narrow = 0;
                for &value in values {
                    sum += <$narrow>::from(<$type>::from_le_bytes(value));
                }
                sum.into()
            }
        }

        impl Ordered for $type {
            type Key = Self;
            const LIMITS: (Self, Self) = (Self::MIN, Self::MAX);
            const PRESENT: (Self, Self) = (Self::MIN, Self::MAX);

            #[inline]
            fn key(self) -> Self {
                self
            }

            #[inline]
            fn of_key(key: Self) -> Self {
                key
            }

            #[inline]
            fn rank(self) -> u64 {
                self.abs_diff(Self::MIN).into()
            }

            fn of_rank(rank: u64) -> Self {
                Self::MIN.wrapping_add(rank as Self)
            }
        }
    )*};
}

integers! {
    i8, 1, i64;
    i16, 2, i64;
    i32, 4, i64;
    i64, 8, i128;
    u8, 1, u64;
    u16, 2, u64;
    u32, 4, u64;
    u64, 8, i128;
}

element!(Boolean, 1, |[byte]: [u8; 1]| Boolean(byte != 0), |value: Boolean| [u8::from(value.0)]);
element!(Time, 8, |bytes| Time(i64::from_le_bytes(bytes)), |value: Time| value.0.to_le_bytes());

impl Whole for Boolean {
    #[inline]
    fn to_i128(self) -> i128 {
        self.0.into()
    }
}

impl Ordered for Boolean {
    type Key = bool;
    const LIMITS: (bool, bool) = (false, true);
    const PRESENT: (bool, bool) = (false, true);

    #[inline]
    fn key(self) -> bool {
        self.0
    }

    #[inline]
    fn of_key(key: bool) -> Self {
        Self(key)
    }

    #[inline]
    fn rank(self) -> u64 {
        self.0.into()
    }

    fn of_rank(rank: u64) -> Self {
        Self(rank != 0)
    }
}

impl Whole for Time {
    #[inline]
    fn to_i128(self) -> i128 {
        self.0.into()
    }
}

impl Ordered for Time {
    // Every `i64` is a time or none, so what is missing has keys beyond.
    type Key = i128;
    const LIMITS: (i128, i128) = (i128::MIN, i128::MAX);
    const PRESENT: (i128, i128) = (i64::MIN as i128 + 1, i64::MAX as i128);

    #[inline]
    fn key(self) -> i128 {
        self.0.into()
    }

    #[inline]
    fn of_key(key: i128) -> Self {
        Self(i64::try_from(key).unwrap_or(i64::MIN))
    }

    #[inline]
    fn rank(self) -> u64 {
        self.0.abs_diff(i64::MIN)
    }

    fn of_rank(rank: u64) -> Self {
        Self(i64::MIN.wrapping_add(rank as i64))
    }

    fn or_missing(self) -> Self {
        self
    }
}

macro_rules! floats {
    ($($type:ty, $size:literal, $bits:ty, $key:ty, $shift:literal, $infinity:literal $(, $best:ident, $count:ident)?;)*) => {$(
        element!($type, $size, <$type>::from_le_bytes, <$type>::to_le_bytes);

        impl Ordered for $type {
            type Key = $key;
            const LIMITS: ($key, $key) = (<$key>::MIN, <$key>::MAX);
            const PRESENT: ($key, $key) = (-$infinity - 1, $infinity);

            #[inline]
            fn key(self) -> $key {
                let bits = <$key>::from_le_bytes(self.to_le_bytes());
                // Negative numbers are ordered by their magnitude, so all their other bits are inverted.
                bits ^ (((bits >> $shift) as $bits) >> 1) as $key
            }

            #[inline]
            fn of_key(key: $key) -> Self {
                Self::from_le_bytes((key ^ (((key >> $shift) as $bits) >> 1) as $key).to_le_bytes())
            }

            #[inline]
            fn rank(self) -> u64 {
                self.key().abs_diff(<$key>::MIN).into()
            }

            fn of_rank(rank: u64) -> Self {
                Self::of_key(<$key>::MIN.wrapping_add(rank as $key))
            }

            fn or_missing(self) -> Self {
                if self.is_missing() { <$type>::NAN } else { self }
            }

            #[inline]
            fn with_one_zero(self) -> Self {
                // Of all keys, only that of -0 is -1.
                if self.key() == -1 { Self::of_key(0) } else { self }
            }

            $(
                #[inline]
                fn count_present(values: &[[u8; $size]]) -> usize {
                    $count(values)
                }

                #[inline]
                fn best_key<const MAX: bool, const SKIP: bool>(values: &[[u8; $size]]) -> $key {
                    if values.len() < FEW {
                        return best_of_keys::<Self, MAX, SKIP>(values);
                    }
                    let (worst, nan) =
                        if MAX { (Self::LIMITS.0, Self::LIMITS.1) } else { (Self::LIMITS.1, Self::LIMITS.0) };
                    match $best::<MAX, SKIP>(values) {
                        Best::None => worst,
                        Best::Nan => nan,
                        Best::Number(number) => number.key(),
                    }
                }
            )?
        }
    )*};
}

floats! {
    f16, 2, u16, i16, 15, 0x7c00;
    f32, 4, u32, i32, 31, 0x7f80_0000, best_single, count_single;
    f64, 8, u64, i64, 63, 0x7ff0_0000_0000_0000, best_double, count_double;
}

impl Real for f16 {
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        Self::from_f64(value)
    }
}

impl Real for f32 {
    const HAS_BLOCK_SUMS: bool = true;

    #[inline]
    fn to_f64(self) -> f64 {
        self.into()
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value as Self
    }

    #[inline]
    fn block_sums<const SQUARES: bool>(values: &[[u8; 4]], start: &mut Start) -> Option<BlockSums> {
        sums::block_sums::<SQUARES>(values, start)
    }

    #[inline]
    fn sums_of_windows<'a, const SQUARES: bool>(
        rows: impl Iterator<Item = &'a [[u8; 4]]> + Clone,
        len: usize,
        sums: &mut WindowSums,
    ) -> Option<()> {
        sums::sums_of_windows::<SQUARES>(rows, len, sums)
    }

    #[inline]
    fn copy_finite(values: &[[u8; 4]], finite: &mut [[u8; 4]]) -> Specials {
        sums::copy_finite(values, finite)
    }
}

impl Real for f64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_have_the_order_of_floats() {
        proptest!(|(one in any::<f32>(), other in any::<f32>())| {
            prop_assert_eq!(f32::of_key(one.key()).to_bits(), one.to_bits());
            prop_assert_eq!(one.is_missing(), one.is_nan());
            if one < other {
                prop_assert!(one.key() < other.key());
            }
        });
        for value in [f64::NEG_INFINITY, f64::INFINITY, 0.0, -0.0] {
            assert!(!value.is_missing());
        }
        assert!(f16::NAN.is_missing() && (-f16::NAN).is_missing() && !f16::INFINITY.is_missing());
        assert!((-0.0_f64).key() < 0.0_f64.key() && Time(i64::MIN).is_missing() && !Time(i64::MAX).is_missing());
    }
}
