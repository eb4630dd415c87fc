//! Arithmetic and conversions of each number type.

use half::f16;

use super::{
    Arithmetic, Bool, Complex, Divisible, Float, Num, Timedelta,
    conversions::{double_to_half, half_to_double, half_to_single, single_to_half, to_i32, to_i64},
};

/// Implements `load` and `store` for types with `from_le_bytes` and `to_le_bytes`.
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
                // NumPy has no vector loop for this conversion.
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
                // The first of two NaNs is kept, whatever operand order the compiler chooses.
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

/// Computes in `float32` and rounds, like NumPy. The result is the nearest `float16` for a single operation.
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
        // NumPy's loop keeps the second of two NaNs.
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

impl Timedelta {
    const NAT: Self = Self(i64::MIN);
}

impl Num for Timedelta {
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
        if self == Self::NAT || other == Self::NAT { Self::NAT } else { Self(self.0.add(other.0)) }
    }

    fn diff(self, other: Self) -> Self {
        if self == Self::NAT || other == Self::NAT { Self::NAT } else { Self(self.0.diff(other.0)) }
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
        // NumPy's loop for complex64 keeps the second of two NaNs.
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
    /// Smith's algorithm, with NumPy's order of operations.
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
