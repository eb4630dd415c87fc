//! NumPy's numbers: their names, how they are converted, and in which type two of them meet.
//!
//! numcodecs' filters are NumPy expressions, and what they yield is part of what is stored. Conversions are those of
//! `ndarray.astype` on x86-64: floats become integers by truncation, and what an integer cannot hold becomes what the processor yields. Where NumPy itself
//! is of two minds (floats beyond the range of `uint32`, which its vector loops and the remainders of these convert differently) it is the vector loop's.

use half::f16;
use meta::data_type::{DataType, Number, StoredOrder, parse_v3};
use serde::{Deserialize, Deserializer, de::Error};

/// A `dtype` of a configuration that is a plain number: `<f4`, `float32`, `>i2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dtype {
    pub(super) number: Number,
    big: bool,
}

/// A number as NumPy calculates with it.
pub(super) trait Num: Copy + 'static {
    const SIZE: usize;

    /// Reads a little-endian number; `bytes` are as many as it has.
    fn load(bytes: &[u8]) -> Self;

    /// Writes a little-endian number over as many bytes as it has.
    fn store(self, bytes: &mut [u8]);

    /// The same value in another type, as `astype` has it.
    fn cast<T: Num>(self) -> T;

    fn from_i64(value: i64) -> Self;
    fn from_u64(value: u64) -> Self;
    fn from_f64(value: f64) -> Self;

    /// From a `float16`: as from a `float64`, unless NumPy has another way for it.
    fn from_half(value: f16) -> Self {
        Self::from_f64(half_to_double(value))
    }

    /// From a `float32`: as from a `float64`, unless NumPy has another way for it.
    fn from_single(value: f32) -> Self {
        Self::from_f64(value.into())
    }

    /// From a complex number: its real part, unless the type is complex too.
    fn from_complex<P: Float>(real: P, _imaginary: P) -> Self {
        real.cast()
    }

    /// `np.add`.
    fn add(self, other: Self) -> Self;

    /// `np.diff` of two: the second is subtracted.
    fn diff(self, other: Self) -> Self;
}

/// A number that is no boolean.
pub(super) trait Arithmetic: Num {
    /// `np.multiply`.
    fn multiply(self, other: Self) -> Self;

    /// `np.around` without decimals: halves go to the even neighbour, and parts of complex numbers each by itself.
    fn around(self) -> Self;
}

/// A number that can be divided: a floating-point number, or a complex one of two such parts.
pub(super) trait Divisible: Arithmetic {
    /// `np.divide`.
    fn divide(self, other: Self) -> Self;
}

/// A floating-point number.
pub(super) trait Float: Divisible + PartialOrd {
    /// `np.abs`.
    fn absolute(self) -> Self;
}

/// A boolean of one byte.
#[derive(Clone, Copy)]
pub(super) struct Bool(bool);

/// A complex number of two parts.
#[derive(Clone, Copy)]
pub(super) struct Complex<T>(T, T);

/// A `timedelta64`: an `int64`, of which the least is "not a time", and makes what is calculated with it likewise.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Duration(i64);

/// Runs an expression with the type `$T` that a [`Number`] stands for.
macro_rules! with_number {
    ($number:expr, $T:ident => $run:expr) => {
        match $number {
            Number::Bool => {
                type $T = super::numbers::Bool;
                $run
            }
            Number::Int8 => {
                type $T = i8;
                $run
            }
            Number::Int16 => {
                type $T = i16;
                $run
            }
            Number::Int32 => {
                type $T = i32;
                $run
            }
            Number::Int64 => {
                type $T = i64;
                $run
            }
            Number::UInt8 => {
                type $T = u8;
                $run
            }
            Number::UInt16 => {
                type $T = u16;
                $run
            }
            Number::UInt32 => {
                type $T = u32;
                $run
            }
            Number::UInt64 => {
                type $T = u64;
                $run
            }
            Number::Float16 => {
                type $T = half::f16;
                $run
            }
            Number::Float32 => {
                type $T = f32;
                $run
            }
            Number::Float64 => {
                type $T = f64;
                $run
            }
            Number::Complex64 => {
                type $T = super::numbers::Complex<f32>;
                $run
            }
            Number::Complex128 => {
                type $T = super::numbers::Complex<f64>;
                $run
            }
        }
    };
}

/// Runs an expression with the type `$T` of a number that is no boolean, or another for what is one.
macro_rules! with_arithmetic {
    ($number:expr, $T:ident => $run:expr, else $other:expr) => {
        match $number {
            Number::Int8 => {
                type $T = i8;
                $run
            }
            Number::Int16 => {
                type $T = i16;
                $run
            }
            Number::Int32 => {
                type $T = i32;
                $run
            }
            Number::Int64 => {
                type $T = i64;
                $run
            }
            Number::UInt8 => {
                type $T = u8;
                $run
            }
            Number::UInt16 => {
                type $T = u16;
                $run
            }
            Number::UInt32 => {
                type $T = u32;
                $run
            }
            Number::UInt64 => {
                type $T = u64;
                $run
            }
            Number::Float16 => {
                type $T = half::f16;
                $run
            }
            Number::Float32 => {
                type $T = f32;
                $run
            }
            Number::Float64 => {
                type $T = f64;
                $run
            }
            Number::Complex64 => {
                type $T = super::numbers::Complex<f32>;
                $run
            }
            Number::Complex128 => {
                type $T = super::numbers::Complex<f64>;
                $run
            }
            Number::Bool => $other,
        }
    };
}

/// Runs an expression with the type `$T` of a number that can be divided, or another for what is none.
macro_rules! with_float {
    ($number:expr, $T:ident => $run:expr, else $other:expr) => {
        match $number {
            Number::Float16 => {
                type $T = half::f16;
                $run
            }
            Number::Float32 => {
                type $T = f32;
                $run
            }
            Number::Float64 => {
                type $T = f64;
                $run
            }
            Number::Complex64 => {
                type $T = super::numbers::Complex<f32>;
                $run
            }
            Number::Complex128 => {
                type $T = super::numbers::Complex<f64>;
                $run
            }
            _ => $other,
        }
    };
}

pub(super) use {with_arithmetic, with_float, with_number};

impl Dtype {
    pub(super) fn little(number: Number) -> Self {
        Self { number, big: false }
    }

    /// The number that a text names to NumPy.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (big, name) = match text.split_at_checked(1)? {
            (">", name) => (true, name),
            ("<" | "|" | "=", name) => (false, name),
            _ => (false, text),
        };
        let number = match name {
            "b1" | "?" | "bool" => Number::Bool,
            "i1" | "int8" => Number::Int8,
            "i2" | "int16" => Number::Int16,
            "i4" | "int32" => Number::Int32,
            "i8" | "int64" | "int" => Number::Int64,
            "u1" | "uint8" => Number::UInt8,
            "u2" | "uint16" => Number::UInt16,
            "u4" | "uint32" => Number::UInt32,
            "u8" | "uint64" | "uint" => Number::UInt64,
            "f2" | "float16" => Number::Float16,
            "f4" | "float32" => Number::Float32,
            "f8" | "float64" | "float" => Number::Float64,
            "c8" | "complex64" => Number::Complex64,
            "c16" | "complex128" | "complex" => Number::Complex128,
            _ => return None,
        };
        Some(Self { number, big })
    }

    /// The order in which its elements are stored.
    pub(super) fn order(self) -> StoredOrder {
        if self.big { StoredOrder::Big } else { StoredOrder::Little }
    }

    /// The data type of its elements.
    pub(super) fn data_type(self) -> Option<DataType> {
        parse_v3(&name(self.number).into()).ok()
    }
}

impl<'de> Deserialize<'de> for Dtype {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let shown = || text.chars().take(64).collect::<String>();
        Self::parse(&text).ok_or_else(|| D::Error::custom(format!("{} is no dtype of numbers", shown())))
    }
}

/// The name of a number in v3 documents.
fn name(number: Number) -> &'static str {
    match number {
        Number::Bool => "bool",
        Number::Int8 => "int8",
        Number::Int16 => "int16",
        Number::Int32 => "int32",
        Number::Int64 => "int64",
        Number::UInt8 => "uint8",
        Number::UInt16 => "uint16",
        Number::UInt32 => "uint32",
        Number::UInt64 => "uint64",
        Number::Float16 => "float16",
        Number::Float32 => "float32",
        Number::Float64 => "float64",
        Number::Complex64 => "complex64",
        Number::Complex128 => "complex128",
    }
}

/// Converts little-endian elements as `astype` does.
pub(super) fn cast(bytes: &[u8], from: Number, to: Number) -> Vec<u8> {
    if from == to {
        return bytes.to_vec();
    }
    with_number!(from, S => with_number!(to, T => map::<S, T>(bytes, Num::cast)))
}

/// Each little-endian element through a function.
pub(super) fn map<S: Num, T: Num>(bytes: &[u8], mut each: impl FnMut(S) -> T) -> Vec<u8> {
    let mut out = vec![0; bytes.len() / S::SIZE * T::SIZE];
    for (from, to) in bytes.chunks_exact(S::SIZE).zip(out.chunks_exact_mut(T::SIZE)) {
        each(S::load(from)).store(to);
    }
    out
}

/// Each little-endian element through a function, in its place.
pub(super) fn update<T: Num>(bytes: &mut [u8], mut each: impl FnMut(T) -> T) {
    for slot in bytes.chunks_exact_mut(T::SIZE) {
        each(T::load(slot)).store(slot);
    }
}

/// `np.result_type`: in which type NumPy calculates with two.
pub(super) fn result_type(a: Number, b: Number) -> Number {
    use Number::{Bool, Complex64, Complex128, Float16, Float32, Float64, Int8, Int16, Int32, Int64};
    let complex = |number| matches!(number, Complex64 | Complex128);
    // The float that a number needs, and the signed integer that an unsigned one needs.
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

/// Truncates as `cvttsd2si` does: what does not fit is the most negative number.
fn to_i32(value: f64) -> i32 {
    if value > -2_147_483_649.0 && value < 2_147_483_648.0 { value as i32 } else { i32::MIN }
}

/// As [`to_i32`].
fn to_i64(value: f64) -> i64 {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if (-LIMIT..LIMIT).contains(&value) { value as i64 } else { i64::MIN }
}

/// NumPy keeps the bits of a NaN as they are, where a processor would set its highest.
fn half_to_single(value: f16) -> f32 {
    if !value.is_nan() {
        return value.to_f32();
    }
    let bits = u32::from(value.to_bits());
    f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13)
}

/// As [`half_to_single`].
fn half_to_double(value: f16) -> f64 {
    if !value.is_nan() {
        return value.to_f64();
    }
    let bits = u64::from(value.to_bits());
    f64::from_bits((bits & 0x8000) << 48 | 0x7ff0_0000_0000_0000 | (bits & 0x3ff) << 42)
}

/// As [`half_to_single`]; a NaN of which no bit would be left keeps the lowest.
fn single_to_half(value: f32) -> f16 {
    if !value.is_nan() {
        return f16::from_f32(value);
    }
    let bits = value.to_bits();
    half_nan((bits >> 31) as u16, (bits >> 13) as u16)
}

/// Rounds once. `f16::from_f64` goes through `f32` on some processors, which rounds twice.
fn double_to_half(value: f64) -> f16 {
    if value.is_nan() {
        return half_nan((value.to_bits() >> 63) as u16, (value.to_bits() >> 42) as u16);
    }
    let single = value as f32;
    let back = f64::from(single);
    if back == value {
        return f16::from_f32(single);
    }
    // Rounded to odd instead, an f32 has enough bits more than an f16 for the second rounding to be that of the whole value.
    let bits = single.to_bits();
    let towards_zero = if back.abs() > value.abs() { bits.wrapping_sub(1) } else { bits };
    f16::from_f32(f32::from_bits(towards_zero | 1))
}

fn half_nan(sign: u16, mantissa: u16) -> f16 {
    f16::from_bits(sign << 15 | 0x7c00 | (mantissa & 0x3ff).max(1))
}

/// `load` and `store` through an array of bytes.
macro_rules! little_endian {
    () => {
        const SIZE: usize = size_of::<Self>();

        #[inline]
        fn load(bytes: &[u8]) -> Self {
            Self::from_le_bytes(bytes.try_into().unwrap_or_default())
        }

        #[inline]
        fn store(self, bytes: &mut [u8]) {
            if let Some(slot) = bytes.first_chunk_mut() {
                *slot = self.to_le_bytes();
            }
        }
    };
}

macro_rules! integers {
    ($($T:ty, $wide:ty, $from_wide:ident, |$value:ident| $from_f64:expr;)*) => {$(
        impl Num for $T {
            little_endian!();

            fn cast<T: Num>(self) -> T {
                T::$from_wide(<$wide>::from(self))
            }

            fn from_i64(value: i64) -> Self {
                value as Self
            }

            fn from_u64(value: u64) -> Self {
                value as Self
            }

            fn from_f64($value: f64) -> Self {
                $from_f64
            }

            fn from_half(value: f16) -> Self {
                // NumPy has no vector loop here.
                match (Self::MIN, size_of::<Self>()) {
                    (0, 4) => to_i64(half_to_double(value)) as Self,
                    _ => Self::from_f64(half_to_double(value)),
                }
            }

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn diff(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }

        impl Arithmetic for $T {
            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn around(self) -> Self {
                self
            }
        }
    )*};
}

integers! {
    i8, i64, from_i64, |value| to_i32(value) as Self;
    i16, i64, from_i64, |value| to_i32(value) as Self;
    i32, i64, from_i64, |value| to_i32(value);
    i64, i64, from_i64, |value| to_i64(value);
    u8, u64, from_u64, |value| to_i32(value) as Self;
    u16, u64, from_u64, |value| to_i32(value) as Self;
    u32, u64, from_u64, |value| {
        const HALF: f64 = 2_147_483_648.0;
        if value >= HALF { (to_i32(value - HALF) as Self) ^ (1 << 31) } else { to_i32(value) as Self }
    };
    u64, u64, from_u64, |value| {
        const HALF: f64 = 9_223_372_036_854_775_808.0;
        if value >= HALF { (to_i64(value - HALF) as Self) ^ (1 << 63) } else { to_i64(value) as Self }
    };
}

macro_rules! floats {
    ($($T:ty, $from:ident;)*) => {$(
        impl Num for $T {
            little_endian!();

            fn cast<T: Num>(self) -> T {
                T::$from(self)
            }

            fn from_i64(value: i64) -> Self {
                value as Self
            }

            fn from_u64(value: u64) -> Self {
                value as Self
            }

            fn from_f64(value: f64) -> Self {
                value as Self
            }

            fn from_half(value: f16) -> Self {
                match size_of::<Self>() {
                    4 => half_to_single(value).into(),
                    _ => half_to_double(value) as Self,
                }
            }

            fn from_single(value: f32) -> Self {
                value.into()
            }

            fn add(self, other: Self) -> Self {
                // Of two NaNs it is the first, in whichever order the compiler adds them.
                if self.is_nan() { self + self } else { self + other }
            }

            fn diff(self, other: Self) -> Self {
                self - other
            }
        }

        impl Arithmetic for $T {
            fn multiply(self, other: Self) -> Self {
                self * other
            }

            fn around(self) -> Self {
                self.round_ties_even()
            }
        }

        impl Divisible for $T {
            fn divide(self, other: Self) -> Self {
                self / other
            }
        }

        impl Float for $T {
            fn absolute(self) -> Self {
                self.abs()
            }
        }
    )*};
}

floats! {
    f32, from_single;
    f64, from_f64;
}

/// As NumPy, calculates with `float32` and rounds. That is the nearest `float16` for one operation.
impl Num for f16 {
    little_endian!();

    fn cast<T: Num>(self) -> T {
        T::from_half(self)
    }

    fn from_i64(value: i64) -> Self {
        Self::from_f64(value as f64)
    }

    fn from_u64(value: u64) -> Self {
        Self::from_f64(value as f64)
    }

    fn from_f64(value: f64) -> Self {
        double_to_half(value)
    }

    fn from_half(value: f16) -> Self {
        value
    }

    fn from_single(value: f32) -> Self {
        single_to_half(value)
    }

    fn add(self, other: Self) -> Self {
        // Of two NaNs NumPy's loop keeps the second.
        single_to_half(half_to_single(other).add(half_to_single(self)))
    }

    fn diff(self, other: Self) -> Self {
        single_to_half(half_to_single(self) - half_to_single(other))
    }
}

impl Arithmetic for f16 {
    fn multiply(self, other: Self) -> Self {
        single_to_half(half_to_single(self) * half_to_single(other))
    }

    fn around(self) -> Self {
        single_to_half(half_to_single(self).round_ties_even())
    }
}

impl Divisible for f16 {
    fn divide(self, other: Self) -> Self {
        single_to_half(half_to_single(self) / half_to_single(other))
    }
}

impl Float for f16 {
    fn absolute(self) -> Self {
        Self::from_bits(self.to_bits() & 0x7fff)
    }
}

impl Num for Bool {
    const SIZE: usize = 1;

    fn load(bytes: &[u8]) -> Self {
        Self(bytes.first().is_some_and(|&byte| byte != 0))
    }

    fn store(self, bytes: &mut [u8]) {
        u8::from(self.0).store(bytes);
    }

    fn cast<T: Num>(self) -> T {
        T::from_u64(self.0.into())
    }

    fn from_i64(value: i64) -> Self {
        Self(value != 0)
    }

    fn from_u64(value: u64) -> Self {
        Self(value != 0)
    }

    fn from_f64(value: f64) -> Self {
        Self(value != 0.0)
    }

    fn from_complex<P: Float>(real: P, imaginary: P) -> Self {
        Self(real.cast::<Self>().0 || imaginary.cast::<Self>().0)
    }

    fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn diff(self, other: Self) -> Self {
        Self(self.0 != other.0)
    }
}

impl Duration {
    const NOT_A_TIME: Self = Self(i64::MIN);
}

impl Num for Duration {
    const SIZE: usize = i64::SIZE;

    fn load(bytes: &[u8]) -> Self {
        Self(i64::load(bytes))
    }

    fn store(self, bytes: &mut [u8]) {
        self.0.store(bytes);
    }

    fn cast<T: Num>(self) -> T {
        self.0.cast()
    }

    fn from_i64(value: i64) -> Self {
        Self(value)
    }

    fn from_u64(value: u64) -> Self {
        Self(i64::from_u64(value))
    }

    fn from_f64(value: f64) -> Self {
        Self(i64::from_f64(value))
    }

    fn add(self, other: Self) -> Self {
        if self == Self::NOT_A_TIME || other == Self::NOT_A_TIME { Self::NOT_A_TIME } else { Self(self.0.add(other.0)) }
    }

    fn diff(self, other: Self) -> Self {
        if self == Self::NOT_A_TIME || other == Self::NOT_A_TIME {
            Self::NOT_A_TIME
        } else {
            Self(self.0.diff(other.0))
        }
    }
}

impl<P: Float> Num for Complex<P> {
    const SIZE: usize = 2 * P::SIZE;

    fn load(bytes: &[u8]) -> Self {
        let (real, imaginary) = bytes.split_at_checked(P::SIZE).unwrap_or_default();
        Self(P::load(real), P::load(imaginary))
    }

    fn store(self, bytes: &mut [u8]) {
        if let Some((real, imaginary)) = bytes.split_at_mut_checked(P::SIZE) {
            self.0.store(real);
            self.1.store(imaginary);
        }
    }

    fn cast<T: Num>(self) -> T {
        T::from_complex(self.0, self.1)
    }

    fn from_i64(value: i64) -> Self {
        Self(P::from_i64(value), P::from_i64(0))
    }

    fn from_u64(value: u64) -> Self {
        Self(P::from_u64(value), P::from_u64(0))
    }

    fn from_f64(value: f64) -> Self {
        Self(P::from_f64(value), P::from_f64(0.0))
    }

    fn from_half(value: f16) -> Self {
        Self(P::from_half(value), P::from_f64(0.0))
    }

    fn from_single(value: f32) -> Self {
        Self(P::from_single(value), P::from_f64(0.0))
    }

    fn from_complex<Q: Float>(real: Q, imaginary: Q) -> Self {
        Self(real.cast(), imaginary.cast())
    }

    fn add(self, other: Self) -> Self {
        // Of two NaNs NumPy's loop for complex64 keeps the second.
        match P::SIZE {
            4 => Self(other.0.add(self.0), other.1.add(self.1)),
            _ => Self(self.0.add(other.0), self.1.add(other.1)),
        }
    }

    fn diff(self, other: Self) -> Self {
        Self(self.0.diff(other.0), self.1.diff(other.1))
    }
}

impl<P: Float> Arithmetic for Complex<P> {
    fn multiply(self, other: Self) -> Self {
        let (Self(a, b), Self(c, d)) = (self, other);
        Self(a.multiply(c).diff(b.multiply(d)), a.multiply(d).add(b.multiply(c)))
    }

    fn around(self) -> Self {
        Self(self.0.around(), self.1.around())
    }
}

impl<P: Float> Divisible for Complex<P> {
    /// Smith's algorithm, with NumPy's operations in their order.
    fn divide(self, other: Self) -> Self {
        let (Self(a, b), Self(c, d)) = (self, other);
        let (real, imaginary) = (c.absolute(), d.absolute());
        let zero = P::from_i64(0);
        if real >= imaginary {
            if real == zero && imaginary == zero {
                return Self(a.divide(real), b.divide(real));
            }
            let ratio = d.divide(c);
            let scale = P::from_i64(1).divide(c.add(d.multiply(ratio)));
            return Self(a.add(b.multiply(ratio)).multiply(scale), b.diff(a.multiply(ratio)).multiply(scale));
        }
        let ratio = c.divide(d);
        let scale = P::from_i64(1).divide(c.multiply(ratio).add(d));
        Self(a.multiply(ratio).add(b).multiply(scale), b.multiply(ratio).diff(a).multiply(scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn float64_becomes_float16_in_one_step() {
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

    /// `np.result_type` of each two, in one order.
    #[test]
    fn types_meet_as_in_numpy() {
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
    fn names_of_dtypes() {
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
