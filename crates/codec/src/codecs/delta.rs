//! `delta`: each element as its difference to the one before.
//!
//! Specification: [numcodecs.delta](https://numcodecs.readthedocs.io/en/stable/filter/delta.html).
//!
//! ```json
//! {"dtype": "<i4", "astype": "<i2"}
//! ```
//!
//! `astype`, the type of the differences, is `dtype` where it is left out; `dtype` in turn is the array's where the array is known. As in numcodecs
//! integers wrap around, and sums are made in the type in which NumPy adds the two types. Deviations: chunks of no elements are encoded as such, where
//! numcodecs fails. Timedeltas are those of NumPy, in which what is calculated with "not a time" is not one, and differences of them have their type or one of
//! integers; datetimes are refused, as NumPy does not add them. Limits: nothing but the number of elements, which stays.

use bytes::{Bytes, BytesMut};
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel},
    filter_dtype::{Countable, is_duration},
    numbers::{Duration, Num, cast, result_type, update, with_number},
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
    durations: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dtype: Option<Countable>,
    astype: Option<Countable>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { dtype, astype } = parse_configuration(spec)?;
    let dtype = Countable::or_of(dtype, spec, input)?;
    let astype = astype.unwrap_or_else(|| dtype.clone());
    let durations = match (dtype.as_time(), astype.as_time()) {
        (None, None) => false,
        (Some(dtype), None) if is_duration(dtype) && is_integer(astype.number()) => true,
        (Some(dtype), Some(astype)) if is_duration(dtype) && dtype == astype => true,
        _ => {
            return Err(invalid_configuration(
                spec,
                "can be used with timedeltas whose differences have their type or one of integers, and with numbers",
            ));
        }
    };
    let kernel = Delta { dtype: dtype.number(), astype: astype.number(), durations };
    filter::create(spec, input, kernel, [dtype.side(spec)?, astype.side(spec)?])
}

fn is_integer(number: Number) -> bool {
    use Number::{Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    matches!(number, Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64)
}

impl Kernel for Delta {
    const NAME: &'static str = "delta";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let sum = if self.durations { self.dtype } else { result_type(self.dtype, self.astype) };
        let mut sums = in_type(encoded, self.astype, sum);
        match self.durations {
            true => sum_up::<Duration>(&mut sums),
            false => with_number!(sum, T => sum_up::<T>(&mut sums)),
        }
        Ok(in_type(sums.freeze(), sum, self.dtype).freeze())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut differences = BytesMut::from(decoded);
        match self.durations {
            true => subtract::<Duration>(&mut differences),
            false => with_number!(self.dtype, T => subtract::<T>(&mut differences)),
        }
        Ok(in_type(differences.freeze(), self.dtype, self.astype).freeze())
    }
}

/// Converts elements in place if nothing changes and the buffer is not shared.
fn in_type(bytes: Bytes, from: Number, to: Number) -> BytesMut {
    if from == to { BytesMut::from(bytes) } else { BytesMut::from(Bytes::from(cast(&bytes, from, to))) }
}

fn sum_up<T: Num>(bytes: &mut [u8]) {
    let mut sum: Option<T> = None;
    update(bytes, |difference: T| *sum.insert(sum.map_or(difference, |sum| sum.add(difference))));
}

fn subtract<T: Num>(bytes: &mut [u8]) {
    let mut before: Option<T> = None;
    update(bytes, |value: T| before.replace(value).map_or(value, |before| value.diff(before)));
}
