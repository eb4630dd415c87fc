//! The `quantize` codec: rounds floating-point numbers to a number of decimal digits.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.quantize` (v3), id `quantize` (v2, draft)
//! - Specification: [numcodecs.quantize](https://numcodecs.readthedocs.io/en/stable/filter/quantize.html)
//!
//! ## Configuration
//!
//! ```json
//! {"digits": 2, "dtype": "<f8", "astype": "<f4"}
//! ```
//!
//! `dtype` defaults to the array's data type in v3; it is required after the array-to-bytes codec. `astype` defaults to
//! `dtype`.
//!
//! ## Encoded bytes
//!
//! The rounded elements, as `astype`. In v3 the encoded array has the type `astype`; zarr-python keeps the array's type
//! there. Decoding only converts the type.
//!
//! ## Errors and limits
//!
//! Both types are floating-point types. The number of elements does not change.

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use super::{
    filter::{self, FilterElements, FilterKernel, configured_or_input_dtype},
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
    let dtype = configured_or_input_dtype(spec, dtype, input)?;
    let astype = astype.unwrap_or(dtype);
    let float = |dtype: Dtype| matches!(dtype.number, Number::Float16 | Number::Float32 | Number::Float64);
    if !float(dtype) || !float(astype) {
        return Err(invalid_configuration(spec, "only supports floating-point numbers"));
    }
    let kernel = Quantize { scale: scale(digits), dtype: dtype.number, astype: astype.number };
    filter::create(
        spec,
        input,
        kernel,
        [FilterElements::from_dtype(spec, dtype)?, FilterElements::from_dtype(spec, astype)?],
    )
}

/// The power of two that keeps this many digits, computed by the same operations as in numcodecs.
fn scale(digits: i32) -> f64 {
    let exponent = 10_f64.powf(-f64::from(digits)).log10();
    let exponent = if exponent < 0.0 { exponent.floor() } else { exponent.ceil() };
    10_f64.powf(-exponent).log2().ceil().exp2()
}

impl FilterKernel for Quantize {
    const NAME: &'static str = "quantize";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(cast(&encoded, self.astype, self.dtype).into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut rounded = decoded.to_vec();
        with_divisible!(self.dtype, T => {
            let scale = T::from_f64(self.scale);
            update(&mut rounded, |value: T| value.multiply(scale).around().divide(scale));
        }, else return Err(CodecError::Malformed { codec: Self::NAME, reason: "the elements are not floating-point numbers" }));
        Ok(cast(&rounded, self.dtype, self.astype).into())
    }
}
