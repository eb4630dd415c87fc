//! The `cast_value` codec: stores elements as numbers of another data type.
//!
//! - Kind: array to array
//! - Names: `cast_value` (v3)
//! - Specification: [`cast_value`](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/cast_value)
//!
//! ## Configuration
//!
//! ```json
//! {
//!   "data_type": "int16", "rounding": "towards-zero", "out_of_range": "clamp",
//!   "scalar_map": {"encode": [["NaN", -9999]], "decode": [[-9999, "NaN"]]}
//! }
//! ```
//!
//! `rounding` is `nearest-even` (the default), `nearest-away`, `towards-zero`, `towards-positive` or
//! `towards-negative`. `out_of_range` is `error` (the default), `clamp` or, for integers only, `wrap`. The pairs of
//! `scalar_map` come before both; their numbers are written like fill values of the type on their side.
//!
//! ## Encoded bytes
//!
//! One element per element: the number itself, rounded once. Every type of integers and every binary floating-point
//! type can be on either side. As with `cast-value-rs`, which zarr-python uses, a number beyond the range of a float
//! type is infinite after `clamp`, a NaN becomes quiet and keeps its sign and the upper bits of its payload, and
//! `"NaN"` in a map is every NaN. Other than there, `"0x…"` in a map is the NaN with these bits.
//!
//! ## Errors and limits
//!
//! NaN and infinity have no integer; they need a map. A fill value that cannot be cast is an invalid configuration. A
//! map has at most 4,096 pairs in each direction, which are searched in logarithmic time. The number of elements does
//! not change.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};
use zarrd_meta::{
    Dialect,
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, StoredOrder, parse_v3},
};

use super::filter::{self, FilterElements, FilterKernel};
use crate::{
    ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
    filled,
};

mod format;
#[cfg(test)]
mod golden;
mod number;

use format::Format;
use number::{Impossible, OutOfRange, Rounding, Rules};

pub(crate) static FACTORIES: &[CodecFactory] =
    &[CodecFactory { namespace: Namespace::V3, name: CastValue::NAME, create }];

/// The maximum number of pairs of a map in one direction.
const MAX_PAIRS: usize = 4096;

#[derive(Debug)]
struct CastValue {
    encode: Direction,
    decode: Direction,
}

/// The conversion of elements in one direction.
#[derive(Debug)]
struct Direction {
    from: Format,
    to: Format,
    rules: Rules,
    /// The bits of elements with those of their results, sorted. Zeros have one sign, and NaNs one payload.
    pairs: Vec<(u64, u64)>,
    /// The bits of NaNs with a payload, likewise.
    payloads: Vec<(u64, u64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    data_type: Value,
    rounding: Option<Rounding>,
    out_of_range: Option<OutOfRange>,
    scalar_map: Option<ScalarMap>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScalarMap {
    encode: Option<Pairs>,
    decode: Option<Pairs>,
}

/// Pairs, in the notation of the specification, or as the object that zarr-python accepts as well.
#[derive(Deserialize)]
#[serde(untagged)]
enum Pairs {
    List(Vec<(Value, Value)>),
    Object(Map<String, Value>),
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let decoded = input.array(spec)?.data_type();
    let Configuration { data_type, rounding, out_of_range, scalar_map } = parse_configuration(spec)?;
    let encoded = parse_v3(&data_type)
        .map_err(|error| invalid_configuration(spec, format!("has an invalid data_type: {error}")))?;
    let rules = Rules { rounding: rounding.unwrap_or_default(), out_of_range: out_of_range.unwrap_or_default() };
    let ScalarMap { encode, decode } = scalar_map.unwrap_or_default();
    let kernel = CastValue {
        encode: Direction::new(spec, [decoded, &encoded], rules, encode)?,
        decode: Direction::new(spec, [&encoded, decoded], rules, decode)?,
    };
    if rules.out_of_range == OutOfRange::Wrap && !kernel.encode.to.is_integer() {
        return Err(invalid_configuration(spec, format!("cannot wrap numbers of {encoded} around")));
    }
    let side = |data_type: &DataType| FilterElements::new(spec, data_type.clone(), StoredOrder::Little);
    let sides = [side(decoded)?, side(&encoded)?];
    filter::create(spec, input, kernel, sides)
}

impl Direction {
    fn new(
        spec: &CodecSpec,
        [from, to]: [&DataType; 2],
        rules: Rules,
        pairs: Option<Pairs>,
    ) -> Result<Self, ChainError> {
        let format = |data_type: &DataType| {
            Format::of(data_type).ok_or_else(|| {
                invalid_configuration(spec, format!("only supports integers and floats, not {data_type}"))
            })
        };
        let mut direction =
            Self { from: format(from)?, to: format(to)?, rules, pairs: Vec::new(), payloads: Vec::new() };
        let pairs = match pairs {
            None => return Ok(direction),
            Some(Pairs::List(pairs)) => pairs,
            Some(Pairs::Object(members)) => members.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        };
        if pairs.len() > MAX_PAIRS {
            let reason = format!("has a scalar_map with {} pairs; the limit is {MAX_PAIRS}", pairs.len());
            return Err(invalid_configuration(spec, reason));
        }
        for (key, value) in &pairs {
            let [key_bits, value_bits] = [(from, key), (to, value)].map(|(data_type, json)| {
                let element = data_type.fill_value(json, Dialect::V3);
                element.map(|element| format::load(&element))
            });
            let invalid = |error| invalid_configuration(spec, format!("has an invalid scalar_map: {error}"));
            let pair = (key_bits.map_err(invalid)?, value_bits.map_err(invalid)?);
            let is_bits = key.as_str().is_some_and(|key| key.starts_with("0x"));
            match direction.from.is_nan(pair.0) && is_bits {
                true => direction.payloads.push(pair),
                false => direction.pairs.push((direction.from.normalized(pair.0), pair.1)),
            }
        }
        // Of equal keys the last one counts, as in a Python dictionary.
        for pairs in [&mut direction.pairs, &mut direction.payloads] {
            pairs.reverse();
            pairs.sort_by_key(|(key, _)| *key);
            pairs.dedup_by_key(|(key, _)| *key);
        }
        Ok(direction)
    }

    fn convert(&self, bits: u64) -> Result<u64, Impossible> {
        match self.mapped(bits) {
            Some(mapped) => Ok(mapped),
            // Signalling NaNs stay what they are.
            None if self.from == self.to => Ok(bits),
            None => self.to.bits(self.from.number(bits), self.rules),
        }
    }

    /// The result of an element that is in the map.
    fn mapped(&self, bits: u64) -> Option<u64> {
        if self.pairs.is_empty() && self.payloads.is_empty() {
            return None;
        }
        let find = |pairs: &[(u64, u64)], bits: u64| {
            let position = pairs.binary_search_by_key(&bits, |(key, _)| *key).ok()?;
            pairs.get(position).map(|(_, value)| *value)
        };
        find(&self.payloads, bits).or_else(|| find(&self.pairs, self.from.normalized(bits)))
    }

    /// Converts elements. The error has the index of the first one that has no result.
    fn convert_all(&self, bytes: &[u8]) -> Result<Bytes, (u64, Impossible)> {
        let (from, to) = (self.from.size(), self.to.size());
        let mut out = filled(0, (bytes.len() / from).saturating_mul(to));
        let elements = bytes.chunks_exact(from).zip(out.chunks_exact_mut(to));
        for (index, (element, slot)) in elements.enumerate() {
            let bits = self.convert(format::load(element)).map_err(|reason| (index as u64, reason))?;
            slot.iter_mut().zip(bits.to_le_bytes()).for_each(|(slot, byte)| *slot = byte);
        }
        Ok(out.into())
    }
}

impl FilterKernel for CastValue {
    const NAME: &'static str = "cast_value";

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let decoded = self.decode.convert_all(&encoded);
        decoded.map_err(|(_, reason)| CodecError::Malformed { codec: Self::NAME, reason: reason.as_str() })
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let encoded = self.encode.convert_all(&decoded);
        encoded.map_err(|(index, reason)| CodecError::InvalidElement {
            codec: Self::NAME,
            index,
            reason: reason.as_str(),
        })
    }

    fn encoded_fill_value(&self, array: &ChunkRepresentation, _encoded: &DataType) -> Result<Bytes, CodecError> {
        self.encode(array.fill_value().clone())
    }
}

#[cfg(test)]
mod tests;
