//! `quantize`: floating-point numbers with so many decimal digits.
//!
//! Specification: [numcodecs.quantize](https://numcodecs.readthedocs.io/en/stable/filter/quantize.html).
//!
//! ```json
//! {"digits": 2, "dtype": "<f8", "astype": "<f4"}
//! ```
//!
//! `astype` is `dtype` where it is left out, and `dtype` the array's where the array is known. What is lost in encoding is lost: decoding only changes the
//! type. In v3, zarr-python takes the array to keep its type; here it becomes one of `astype`. Limits: nothing but the number of elements, which stays.

use bytes::Bytes;
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel, Side, dtype_of},
    numbers::{Arithmetic, Divisible, Dtype, Num, cast, update, with_divisible},
};
use crate::{
    ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: Quantize::NAME, create }];

#[derive(Debug)]
struct Quantize {
    /// A power of two.
    scale: f64,
    dtype: Number,
    astype: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    digits: i32,
    dtype: Option<Dtype>,
    astype: Option<Dtype>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { digits, dtype, astype } = parse_configuration(spec)?;
    let dtype = dtype_of(spec, dtype, input)?;
    let astype = astype.unwrap_or(dtype);
    let float = |dtype: Dtype| matches!(dtype.number, Number::Float16 | Number::Float32 | Number::Float64);
    if !float(dtype) || !float(astype) {
        return Err(invalid_configuration(spec, "can only be used with floating-point numbers"));
    }
    let kernel = Quantize { scale: scale(digits), dtype: dtype.number, astype: astype.number };
    filter::create(spec, input, kernel, [Side::of(spec, dtype)?, Side::of(spec, astype)?])
}

/// The power of two that keeps this many digits, computed by the same operations as in numcodecs.
fn scale(digits: i32) -> f64 {
    let exponent = 10_f64.powf(-f64::from(digits)).log10();
    let exponent = if exponent < 0.0 { exponent.floor() } else { exponent.ceil() };
    10_f64.powf(-exponent).log2().ceil().exp2()
}

impl Kernel for Quantize {
    const NAME: &'static str = "quantize";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&encoded, self.astype, self.dtype).into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut rounded = decoded.to_vec();
        with_divisible!(self.dtype, T => {
            let scale = T::from_f64(self.scale);
            update(&mut rounded, |value: T| value.multiply(scale).around().divide(scale));
        }, else return Err(CodecError::Malformed { codec: Self::NAME, reason: "the elements are no floating-point numbers" }));
        Ok(cast(&rounded, self.dtype, self.astype).into())
    }
}
