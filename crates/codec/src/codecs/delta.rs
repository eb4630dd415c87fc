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
//! numcodecs fails; datetimes and timedeltas have to be named as the integers that they are. Limits: nothing but the number of elements, which stays.

use bytes::{Bytes, BytesMut};
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::Number,
};
use serde::Deserialize;

use super::{
    filter::{self, Kernel, Side, dtype_of},
    numbers::{Dtype, Num, cast, result_type, update, with_number},
};
use crate::{ChainError, CodecError, Input, Plugin, Resolved, registry::configuration};

pub(crate) static PLUGINS: &[Plugin] = &[Plugin { namespace: Namespace::Numcodecs, name: Delta::NAME, resolve }];

#[derive(Debug)]
struct Delta {
    dtype: Number,
    astype: Number,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    dtype: Option<Dtype>,
    astype: Option<Dtype>,
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    let Configuration { dtype, astype } = configuration(spec)?;
    let dtype = dtype_of(spec, dtype, input)?;
    let astype = astype.unwrap_or(dtype);
    let kernel = Delta { dtype: dtype.number, astype: astype.number };
    filter::resolve(spec, input, kernel, [Side::of(spec, dtype)?, Side::of(spec, astype)?])
}

impl Kernel for Delta {
    const NAME: &'static str = "delta";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let sum = result_type(self.dtype, self.astype);
        let mut sums = in_type(encoded, self.astype, sum);
        with_number!(sum, T => sum_up::<T>(&mut sums));
        Ok(in_type(sums.freeze(), sum, self.dtype).freeze())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut differences = BytesMut::from(decoded);
        with_number!(self.dtype, T => subtract::<T>(&mut differences));
        Ok(in_type(differences.freeze(), self.dtype, self.astype).freeze())
    }
}

/// Keeps the buffer where nothing changes and nobody else holds it.
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
