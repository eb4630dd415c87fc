//! The plain numbers.

use half::{bf16, f16};

/// A plain number, as it is in Rust: `bool`, the integers of 8 to 64 bits, `f32`, `f64`, `half`'s `f16` and `bf16`, and complex numbers as
/// `[f32; 2]` or `[f64; 2]`, real part first.
pub trait Element: sealed::Decode {}

impl<T: sealed::Decode> Element for T {}

/// A number that a `.npy` file holds: all but `bf16`, which NumPy alone does not have.
#[cfg(feature = "ndarray")]
pub trait NpyElement: Element + sealed::Npy {}

#[cfg(feature = "ndarray")]
impl<T: Element + sealed::Npy> NpyElement for T {}

pub(super) mod sealed {
    /// How numbers are made of bytes, and bytes of numbers.
    pub trait Decode: Copy + Send + Sync + 'static {
        /// The name of the data type that this is.
        const NAME: &'static str;
        /// How many bytes one has.
        const SIZE: usize;

        /// Appends those that the bytes are, little-endian. What is left at the end and is no whole one is disregarded.
        fn decode(bytes: &[u8], into: &mut Vec<Self>);

        /// Appends its bytes, little-endian.
        fn encode(self, into: &mut Vec<u8>);
    }

    /// How `.npy` files say what numbers are.
    #[cfg(feature = "ndarray")]
    pub trait Npy {
        /// The `descr` of little-endian ones.
        const DESCR: &'static str;
    }
}

macro_rules! numbers {
    ($($number:ty = $name:literal;)*) => {
        $(
            impl sealed::Decode for $number {
                const NAME: &'static str = $name;
                const SIZE: usize = size_of::<Self>();

                fn decode(bytes: &[u8], into: &mut Vec<Self>) {
                    let (words, _) = bytes.as_chunks();
                    into.extend(words.iter().map(|word| Self::from_le_bytes(*word)));
                }

                fn encode(self, into: &mut Vec<u8>) {
                    into.extend_from_slice(&self.to_le_bytes());
                }
            }
        )*
    };
}

numbers! {
    i8 = "int8";
    i16 = "int16";
    i32 = "int32";
    i64 = "int64";
    u8 = "uint8";
    u16 = "uint16";
    u32 = "uint32";
    u64 = "uint64";
    f16 = "float16";
    bf16 = "bfloat16";
    f32 = "float32";
    f64 = "float64";
}

macro_rules! complex_numbers {
    ($($part:ty = $name:literal;)*) => {
        $(
            impl sealed::Decode for [$part; 2] {
                const NAME: &'static str = $name;
                const SIZE: usize = size_of::<Self>();

                fn decode(bytes: &[u8], into: &mut Vec<Self>) {
                    let (pairs, _) = bytes.as_chunks::<{ size_of::<$part>() }>().0.as_chunks::<2>();
                    into.extend(pairs.iter().map(|pair| pair.map(<$part>::from_le_bytes)));
                }

                fn encode(self, into: &mut Vec<u8>) {
                    into.extend(self.into_iter().flat_map(<$part>::to_le_bytes));
                }
            }
        )*
    };
}

complex_numbers! {
    f32 = "complex64";
    f64 = "complex128";
}

impl sealed::Decode for bool {
    const NAME: &'static str = "bool";
    const SIZE: usize = 1;

    fn decode(bytes: &[u8], into: &mut Vec<Self>) {
        into.extend(bytes.iter().map(|byte| *byte != 0));
    }

    fn encode(self, into: &mut Vec<u8>) {
        into.push(self.into());
    }
}

#[cfg(feature = "ndarray")]
macro_rules! npy {
    ($($number:ty = $descr:literal;)*) => {
        $(impl sealed::Npy for $number {
            const DESCR: &'static str = $descr;
        })*
    };
}

#[cfg(feature = "ndarray")]
npy! {
    bool = "|b1";
    i8 = "|i1";
    i16 = "<i2";
    i32 = "<i4";
    i64 = "<i8";
    u8 = "|u1";
    u16 = "<u2";
    u32 = "<u4";
    u64 = "<u8";
    f16 = "<f2";
    f32 = "<f4";
    f64 = "<f8";
    [f32; 2] = "<c8";
    [f64; 2] = "<c16";
}
