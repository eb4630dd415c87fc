//! The `delta` codec: stores the differences of consecutive elements.
//!
//! - Kind: array to array (v3), bytes to bytes (v2, draft)
//! - Names: `numcodecs.delta` (v3), id `delta` (v2, draft)
//! - Specification: [numcodecs.delta](https://numcodecs.readthedocs.io/en/stable/filter/delta.html)
//!
//! ## Configuration
//!
//! ```json
//! {"dtype": "<i4", "astype": "<i2"}
//! ```
//!
//! `dtype` defaults to the array's data type in v3; it is required after the array-to-bytes codec. `astype`, the type
//! of the differences, defaults to `dtype`.
//!
//! ## Encoded bytes
//!
//! The first element and the differences. As in numcodecs, integers wrap around, and sums are computed in NumPy's
//! result type of the two types. The result of arithmetic with "not a time" is "not a time".
//!
//! ## Errors and limits
//!
//! Timedeltas have differences of their own type or of an integer type. Datetimes are rejected, because NumPy does not
//! add them. Chunks without elements are encoded; numcodecs fails on them. The number of elements does not change.

use bytes::{Bytes, BytesMut};
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};

use super::{
    filter::{self, FilterKernel},
    filter_dtype::{FilterDtype, is_timedelta},
    numbers::{Num, Timedelta, cast, result_type, update, with_number},
};
use crate::{
    ChainError, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::Numcodecs, name: Delta::NAME, create }];

#[derive(Debug)]
struct Delta {
    dtype: Number,
    astype: Number,
    /// True if the elements are timedeltas.
    is_timedelta: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dtype: Option<FilterDtype>,
    astype: Option<FilterDtype>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { dtype, astype } = parse_configuration(spec)?;
    let dtype = FilterDtype::configured_or_input(dtype, spec, input)?;
    let astype = astype.unwrap_or_else(|| dtype.clone());
    let is_timedelta = match (dtype.as_time(), astype.as_time()) {
        (None, None) => false,
        (Some(dtype), None) if is_timedelta(dtype) && is_integer(astype.number()) => true,
        (Some(dtype), Some(astype)) if is_timedelta(dtype) && dtype == astype => true,
        _ => {
            return Err(invalid_configuration(
                spec,
                "can be used with timedeltas whose differences have their type or one of integers, and with numbers",
            ));
        }
    };
    let kernel = Delta { dtype: dtype.number(), astype: astype.number(), is_timedelta };
    filter::create(spec, input, kernel, [dtype.elements(spec)?, astype.elements(spec)?])
}

fn is_integer(number: Number) -> bool {
    use Number::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    matches!(number, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

impl FilterKernel for Delta {
    const NAME: &'static str = "delta";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let sum = if self.is_timedelta { self.dtype } else { result_type(self.dtype, self.astype) };
        let mut sums = cast_elements(encoded, self.astype, sum);
        match self.is_timedelta {
            true => cumulative_sum::<Timedelta>(&mut sums),
            false => with_number!(sum, T => cumulative_sum::<T>(&mut sums)),
        }
        Ok(cast_elements(sums.freeze(), sum, self.dtype).freeze())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut differences = BytesMut::from(decoded);
        match self.is_timedelta {
            true => subtract_previous::<Timedelta>(&mut differences),
            false => with_number!(self.dtype, T => subtract_previous::<T>(&mut differences)),
        }
        Ok(cast_elements(differences.freeze(), self.dtype, self.astype).freeze())
    }
}

/// Converts elements, in place if the type stays and the buffer is not shared.
fn cast_elements(bytes: Bytes, from: Number, to: Number) -> BytesMut {
    if from == to { BytesMut::from(bytes) } else { BytesMut::from(Bytes::from(cast(&bytes, from, to))) }
}

fn cumulative_sum<T: Num>(bytes: &mut [u8]) {
    let mut sum: Option<T> = None;
    update(bytes, |difference: T| *sum.insert(sum.map_or(difference, |sum| sum.add(difference))));
}

fn subtract_previous<T: Num>(bytes: &mut [u8]) {
    let mut before: Option<T> = None;
    update(bytes, |value: T| before.replace(value).map_or(value, |before| value.diff(before)));
}
