//! Numeric data types.

use half::{bf16, f16};

/// The Rust type of a numeric data type: `bool`, the integers of 8 to 64 bits, `f32`, `f64`, `f16` and `bf16` of the
/// `half` crate, and complex numbers as `[f32; 2]` or `[f64; 2]`, real part first.
pub trait Element: sealed::Number {}

impl<T: sealed::Number> Element for T {}

/// An [`Element`] that a `.npy` file can contain: all except `bf16`, which NumPy lacks.
#[cfg(feature = "ndarray")]
pub trait NpyElement: Element + sealed::NpyNumber {}

#[cfg(feature = "ndarray")]
impl<T: Element + sealed::NpyNumber> NpyElement for T {}

pub(super) mod sealed {
    /// Conversion from and to little-endian bytes.
    pub trait Number: Copy + Send + Sync + 'static {
        /// Name of the data type in Zarr v3.
        const NAME: &'static str;
        /// Size of an element in bytes.
        const SIZE: usize;

        /// Appends the decoded elements. An incomplete element at the end is ignored.
        fn decode(bytes: &[u8], elements: &mut Vec<Self>);

        /// Appends the encoded element.
        fn encode(self, bytes: &mut Vec<u8>);
    }

    /// Data type in the header of `.npy` files.
    #[cfg(feature = "ndarray")]
    pub trait NpyNumber {
        /// The `descr` of little-endian elements.
        const DESCR: &'static str;
    }
}

macro_rules! numbers {
    ($($number:ty = $name:literal;)*) => {
        $(
            impl sealed::Number for $number {
                const NAME: &'static str = $name;
                const SIZE: usize = size_of::<Self>();

                fn decode(bytes: &[u8], elements: &mut Vec<Self>) {
                    let (words, _) = bytes.as_chunks();
                    elements.extend(words.iter().map(|word| Self::from_le_bytes(*word)));
                }

                fn encode(self, bytes: &mut Vec<u8>) {
                    bytes.extend_from_slice(&self.to_le_bytes());
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
            impl sealed::Number for [$part; 2] {
                const NAME: &'static str = $name;
                const SIZE: usize = size_of::<Self>();

                fn decode(bytes: &[u8], elements: &mut Vec<Self>) {
                    let (pairs, _) = bytes.as_chunks::<{ size_of::<$part>() }>().0.as_chunks::<2>();
                    elements.extend(pairs.iter().map(|pair| pair.map(<$part>::from_le_bytes)));
                }

                fn encode(self, bytes: &mut Vec<u8>) {
                    bytes.extend(self.into_iter().flat_map(<$part>::to_le_bytes));
                }
            }
        )*
    };
}

complex_numbers! {
    f32 = "complex64";
    f64 = "complex128";
}

impl sealed::Number for bool {
    const NAME: &'static str = "bool";
    const SIZE: usize = 1;

    fn decode(bytes: &[u8], elements: &mut Vec<Self>) {
        elements.extend(bytes.iter().map(|byte| *byte != 0));
    }

    fn encode(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }
}

#[cfg(feature = "ndarray")]
macro_rules! npy {
    ($($number:ty = $descr:literal;)*) => {
        $(impl sealed::NpyNumber for $number {
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
