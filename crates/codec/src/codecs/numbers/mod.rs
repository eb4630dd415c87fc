//! NumPy's arithmetic and conversions of numbers.
//!
//! The filters of numcodecs are NumPy expressions whose results are stored. Conversions are those of `ndarray.astype`
//! on x86-64: floats are truncated to integers, and values out of range become what the processor returns. Where NumPy
//! itself is inconsistent (its vector loops and their remainders convert floats out of the range of `uint32`
//! differently), the result is that of the vector loop.

mod arithmetic;
mod conversions;
mod dtype;

use half::f16;
use zarrd_meta::data_type::Number;

use self::conversions::half_to_double;
pub(super) use self::dtype::Dtype;
use crate::filled;

/// A number type of NumPy.
pub(super) trait Num: Copy + 'static {
    const SIZE: usize;

    /// Reads a little-endian number of exactly `bytes.len()` bytes.
    fn load(bytes: &[u8]) -> Self;

    /// Writes a little-endian number of exactly `bytes.len()` bytes.
    fn store(self, bytes: &mut [u8]);

    /// Casts the value to another type, like `astype`.
    fn cast<T: Num>(self) -> T;

    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn from_f64(value: f64) -> Self;

    /// Converts a `float16`, by default through `float64`.
    fn from_half(value: f16) -> Self {
        Self::from_f64(half_to_double(value))
    }

    /// Converts a `float32`, by default through `float64`.
    fn from_single(value: f32) -> Self {
        Self::from_f64(value.into())
    }

    /// Converts a complex number, by default its real part.
    fn from_complex<P: Float>(real: P, _imaginary: P) -> Self {
        real.cast()
    }

    /// `np.add`.
    fn add(self, other: Self) -> Self;

    /// `np.diff` of two values: `self - other`.
    fn diff(self, other: Self) -> Self;
}

/// A number type other than boolean.
pub(super) trait Arithmetic: Num {
    /// `np.multiply`.
    fn multiply(self, other: Self) -> Self;

    /// `np.around` without decimals: rounds half to even, for both parts of complex numbers.
    fn around(self) -> Self;
}

/// A number type with division: floating-point and complex numbers.
pub(super) trait Divisible: Arithmetic {
    /// `np.divide`.
    fn divide(self, other: Self) -> Self;
}

/// A floating-point type.
pub(super) trait Float: Divisible + PartialOrd {
    /// `np.abs`.
    fn absolute(self) -> Self;
}

/// A boolean of one byte.
#[derive(Clone, Copy)]
pub(super) struct Bool(bool);

/// A complex number: its real and its imaginary part.
#[derive(Clone, Copy)]
pub(super) struct Complex<T>(T, T);

/// A `timedelta64`: an `int64` whose smallest value is "not a time", which is also the result of all arithmetic with
/// it.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Timedelta(i64);

/// The Rust type of a [`Number`].
macro_rules! number_type {
    (Bool) => { $crate::codecs::numbers::Bool };
    (Int8) => { i8 };
    (Int16) => { i16 };
    (Int32) => { i32 };
    (Int64) => { i64 };
    (UInt8) => { u8 };
    (UInt16) => { u16 };
    (UInt32) => { u32 };
    (UInt64) => { u64 };
    (Float16) => { half::f16 };
    (Float32) => { f32 };
    (Float64) => { f64 };
    (Complex64) => { $crate::codecs::numbers::Complex<f32> };
    (Complex128) => { $crate::codecs::numbers::Complex<f64> };
}

/// Runs an expression with the Rust type `$T` of a [`Number`] that is one of a list, and another expression for others.
macro_rules! match_number {
    ($number:expr, [$($variant:ident)*], $T:ident => $run:expr $(, else $other:expr)?) => {
        match $number {
            $(Number::$variant => {
                type $T = $crate::codecs::numbers::number_type!($variant);
                $run
            })*
            $(_ => $other,)?
        }
    };
}

/// Runs an expression with the Rust type `$T` of a [`Number`].
macro_rules! with_number {
    ($number:expr, $T:ident => $run:expr) => {
        $crate::codecs::numbers::match_number!(
            $number,
            [Bool Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64 Complex64 Complex128],
            $T => $run
        )
    };
}

/// Runs an expression with the [`Arithmetic`] type `$T` of a [`Number`], and another expression for booleans.
macro_rules! with_arithmetic {
    ($number:expr, $T:ident => $run:expr, else $other:expr) => {
        $crate::codecs::numbers::match_number!(
            $number,
            [Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 Float32 Float64 Complex64 Complex128],
            $T => $run,
            else $other
        )
    };
}

/// Runs an expression with the [`Divisible`] type `$T` of a [`Number`], and another expression for booleans and
/// integers.
macro_rules! with_divisible {
    ($number:expr, $T:ident => $run:expr, else $other:expr) => {
        $crate::codecs::numbers::match_number!(
            $number,
            [Float16 Float32 Float64 Complex64 Complex128],
            $T => $run,
            else $other
        )
    };
}

pub(super) use {match_number, number_type, with_arithmetic, with_divisible, with_number};

/// Casts little-endian elements like `astype`.
pub(super) fn cast(bytes: &[u8], from: Number, to: Number) -> Vec<u8> {
    if from == to {
        return bytes.to_vec();
    }
    with_number!(from, S => with_number!(to, T => map::<S, T>(bytes, Num::cast)))
}

/// Maps each little-endian element with a function.
pub(super) fn map<S: Num, T: Num>(bytes: &[u8], mut each: impl FnMut(S) -> T) -> Vec<u8> {
    let mut out = filled(0, bytes.len() / S::SIZE * T::SIZE);
    for (from, to) in bytes.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(T::SIZE)) {
        each(S::load(from)).store(to);
    }
    out
}

/// Maps each little-endian element in place.
pub(super) fn update<T: Num>(bytes: &mut [u8], mut each: impl FnMut(T) -> T) {
    for slot in bytes.chunks_exact_mut(T::SIZE) {
        each(T::load(slot)).store(slot);
    }
}

/// `np.result_type` of two number types.
pub(super) fn result_type(a: Number, b: Number) -> Number {
    use Number::{Bool, Complex64, Complex128, Float16, Float32, Float64, Int8, Int16, Int32, Int64};
    let complex = |number| matches!(number, Complex64 | Complex128);
    // The float type that holds a number type, and the signed type that holds an unsigned one.
    let float = |number: Number| match number {
        Bool | Number::Int8 | Number::UInt8 | Float16 => Float16,
        Number::Int16 | Number::UInt16 | Float32 | Complex64 => Float32,
        _ => Float64,
    };
    let signed = |number: Number| match number {
        Number::UInt8 => Some(Int16),
        Number::UInt16 => Some(Int32),
        Number::UInt32 => Some(Int64),
        Number::UInt64 => None,
        signed => Some(signed),
    };
    let unsigned = |number| matches!(number, Number::UInt8 | Number::UInt16 | Number::UInt32 | Number::UInt64);
    let is_float = |number| matches!(number, Float16 | Float32 | Float64);
    let wider = |a: Number, b: Number| if a.size() >= b.size() { a } else { b };
    match (a, b) {
        _ if a == b => a,
        (Bool, other) | (other, Bool) => other,
        _ if complex(a) || complex(b) => match wider(float(a), float(b)) {
            Float64 => Complex128,
            _ => Complex64,
        },
        _ if is_float(a) || is_float(b) => wider(float(a), float(b)),
        _ if unsigned(a) == unsigned(b) => wider(a, b),
        _ => match (signed(a), signed(b)) {
            (Some(a), Some(b)) => wider(wider(a, b), Int8),
            _ => Float64,
        },
    }
}
#[cfg(test)]
mod tests {
    use zarrd_meta::data_type::StoredOrder;

    use super::{conversions::double_to_half, *};

    #[test]
    fn float64_is_rounded_to_float16_once() {
        let tiny = 2_f64.powi(-24);
        let values = [
            (1.0 + 2_f64.powi(-11) + 2_f64.powi(-40), 15361),
            (1.0 + 2_f64.powi(-11), 15360),
            (1.0 + 2_f64.powi(-11) - 2_f64.powi(-40), 15360),
            (65519.99999, 31743),
            (65520.0, 31744),
            (1e300, 31744),
            (tiny / 2.0, 0),
            (tiny / 2.0 * (1.0 + 2_f64.powi(-40)), 1),
            (tiny * 1.5, 2),
            (-5e-324, 0x8000),
        ];
        for (value, bits) in values {
            assert_eq!(double_to_half(value).to_bits(), bits, "{value}");
        }
    }

    /// `np.result_type` of each pair.
    #[test]
    fn result_type_matches_numpy() {
        let names = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16";
        let table = [
            "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16",
            "i1 i1 i2 i4 i8 i2 i4 i8 f8 f2 f4 f8 c8 c16",
            "i2 i2 i2 i4 i8 i2 i4 i8 f8 f4 f4 f8 c8 c16",
            "i4 i4 i4 i4 i8 i4 i4 i8 f8 f8 f8 f8 c16 c16",
            "i8 i8 i8 i8 i8 i8 i8 i8 f8 f8 f8 f8 c16 c16",
            "u1 i2 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16",
            "u2 i4 i4 i4 i8 u2 u2 u4 u8 f4 f4 f8 c8 c16",
            "u4 i8 i8 i8 i8 u4 u4 u4 u8 f8 f8 f8 c16 c16",
            "u8 f8 f8 f8 f8 u8 u8 u8 u8 f8 f8 f8 c16 c16",
            "f2 f2 f4 f8 f8 f2 f4 f8 f8 f2 f4 f8 c8 c16",
            "f4 f4 f4 f8 f8 f4 f4 f8 f8 f4 f4 f8 c8 c16",
            "f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 f8 c16 c16",
            "c8 c8 c8 c16 c16 c8 c8 c16 c16 c8 c8 c16 c8 c16",
            "c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16 c16",
        ];
        let numbers =
            |names: &str| -> Vec<Number> { names.split(' ').map(|name| Dtype::parse(name).unwrap().number).collect() };
        for (a, row) in numbers(names).into_iter().zip(table) {
            for (b, expected) in numbers(names).into_iter().zip(numbers(row)) {
                assert_eq!(result_type(a, b), expected, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn dtype_names_of_numpy_are_parsed() {
        assert_eq!(
            Dtype::parse(">f8").map(|dtype| (dtype.number, dtype.order())),
            Some((Number::Float64, StoredOrder::Big))
        );
        for text in ["<i4", "|i4", "=i4", "i4", "int32"] {
            assert_eq!(Dtype::parse(text), Some(Dtype::little(Number::Int32)), "{text}");
        }
        for text in ["", "<", "<<i4", "i3", "int33", "<U4", "|O", "é", "<M8[s]", ">>"] {
            assert_eq!(Dtype::parse(text), None, "{text}");
        }
        let all = "b1 i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split(' ').map(|name| Dtype::parse(name).unwrap());
        for dtype in all {
            assert_eq!(dtype.data_type().unwrap().number(), Some(dtype.number));
        }
    }
}
