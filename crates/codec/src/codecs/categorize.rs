//! The `categorize` codec: stores strings as the numbers of labels.
//!
//! - Kind: array to bytes for objects; for `<U` array to array (v3) or bytes to bytes (v2, draft)
//! - Names: `numcodecs.categorize` (v3), id `categorize` (v2, draft)
//! - Specification: [numcodecs.categorize](https://numcodecs.readthedocs.io/en/stable/filter/categorize.html)
//!
//! ## Configuration
//!
//! ```json
//! {"labels": ["female", "male"], "dtype": "|O", "astype": "|u1"}
//! ```
//!
//! `dtype` is `|O`, or a `<U` whose length truncates the labels. `astype` is the data type of the numbers, by default
//! `|u1`.
//!
//! ## Encoded bytes
//!
//! One number per element: 0 for strings that are not labels, which are decoded as the empty string, and `i` for the
//! `i`-th label, counted from 1.
//!
//! ## Errors and limits
//!
//! `astype` has to be able to hold the number of labels. There are exactly as many numbers as the chunk has elements.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Layout, Number, StoredOrder, V2Context, parse_v2},
};

use super::{
    filter::{self, FilterElements, FilterKernel},
    numbers::{Dtype, Num, map, with_number},
};
use crate::{
    ArrayToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements, EncodedSizeBound,
    FactoryContext, VariableBuilder,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "categorize";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

/// The labels, without padding, and their numbers.
#[derive(Debug)]
struct Categories {
    labels: Vec<Vec<u8>>,
    codes: HashMap<Vec<u8>, u64>,
    astype: Number,
    /// The size of an element in bytes, or 0 for variable length.
    size: usize,
}

/// The codec for objects: strings of variable length.
#[derive(Debug)]
struct CategorizeObjects {
    labels: Categories,
    codes: FilterElements,
    num_elements: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    labels: Vec<String>,
    dtype: String,
    #[serde(default = "default_astype")]
    astype: Dtype,
}

fn default_astype() -> Dtype {
    Dtype::little(Number::UInt8)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let Configuration { labels, dtype, astype } = parse_configuration(spec)?;
    let codes = FilterElements::from_dtype(spec, astype)?;
    let max_code = with_number!(astype.number, T => T::from_u64(labels.len() as u64).cast::<f64>());
    if max_code != labels.len() as f64 {
        return Err(invalid_configuration(spec, format!("has {} labels, too many for its astype", labels.len())));
    }
    if matches!(dtype.as_str(), "|O" | "O" | "object") {
        let array = input.array(spec)?;
        if array.data_type().layout() != Layout::Variable {
            return Err(invalid_configuration(spec, format!("decodes to objects, not to {}", array.data_type())));
        }
        let labels = Categories::new(labels.into_iter().map(String::into_bytes), astype.number, 0);
        return Ok(Codec::ArrayToBytes(Arc::new(CategorizeObjects {
            labels,
            codes,
            num_elements: array.num_elements(),
        })));
    }
    if !dtype.trim_start_matches(['<', '>', '|', '=']).starts_with('U') {
        return Err(invalid_configuration(spec, "only supports strings"));
    }
    let (data_type, order) = parse_v2(&Value::String(dtype), V2Context::default())
        .map_err(|error| invalid_configuration(spec, format!("has an invalid dtype: {error}")))?;
    let size = data_type.fixed_size().unwrap_or(0);
    let utf32 = |label: String| {
        let element: Vec<u8> = label.chars().flat_map(|char| u32::from(char).to_le_bytes()).collect();
        trim_padding(&element).to_vec()
    };
    let labels = Categories::new(labels.into_iter().map(utf32), astype.number, size);
    filter::create(spec, input, labels, [FilterElements::new(spec, data_type, order)?, codes])
}

impl Categories {
    fn new(labels: impl Iterator<Item = Vec<u8>>, astype: Number, size: usize) -> Self {
        let labels: Vec<_> = labels.collect();
        // As in numcodecs, the last of several equal labels has the number.
        let codes = labels.iter().cloned().zip(1..).collect();
        Self { labels, codes, astype, size }
    }

    /// The label with a number.
    fn label(&self, code: f64) -> &[u8] {
        let index = (code - 1.0) as usize;
        let label = self.labels.get(index).filter(|_| code == index as f64 + 1.0);
        label.map_or(&[], Vec::as_slice)
    }

    /// Calls `visit` with the label of each number.
    fn labels(&self, codes: &[u8], mut visit: impl FnMut(&[u8]) -> Result<(), CodecError>) -> Result<(), CodecError> {
        with_number!(self.astype, T => {
            codes.chunks_exact(T::SIZE).try_for_each(|code| visit(self.label(T::load(code).cast::<f64>())))
        })
    }

    /// The number of each label.
    fn codes<'a>(&self, labels: impl ExactSizeIterator<Item = &'a [u8]>) -> Vec<u8> {
        let codes: Vec<u8> =
            labels.flat_map(|label| self.codes.get(label).copied().unwrap_or(0).to_le_bytes()).collect();
        with_number!(self.astype, T => map::<u64, T>(&codes, Num::cast))
    }
}

/// A UTF-32 string without trailing zeros.
fn trim_padding(element: &[u8]) -> &[u8] {
    let characters = element.as_chunks::<4>().0;
    let len = characters.iter().rposition(|&character| character != [0; 4]).map_or(0, |max_code| max_code + 1);
    element.get(..len * 4).unwrap_or(element)
}

impl FilterKernel for Categories {
    const NAME: &'static str = NAME;

    fn decode(&self, encoded: Bytes) -> Result<Bytes, CodecError> {
        let mut decoded = Vec::new();
        self.labels(&encoded, |label| {
            let end = decoded.len() + self.size;
            decoded.extend_from_slice(label.get(..self.size).unwrap_or(label));
            decoded.resize(end, 0);
            Ok(())
        })?;
        Ok(decoded.into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(self.codes(decoded.chunks_exact(self.size.max(1)).map(trim_padding)).into())
    }
}

impl ArrayToBytes for CategorizeObjects {
    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        let (found, expected) = (encoded.len() as u64, self.codes.size_of(self.num_elements));
        if found != expected {
            return Err(CodecError::LengthMismatch { codec: NAME, expected, found });
        }
        let mut elements = VariableBuilder::new(budget);
        let over = |_| CodecError::BudgetExceeded { codec: NAME, budget };
        self.labels.labels(&self.codes.swap_bytes(encoded), |label| elements.push(label).map_err(over))?;
        Ok(Elements::Variable(elements.finish()))
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        match decoded {
            Elements::Variable(elements) => Ok(self.codes.swap_bytes(self.labels.codes(elements.iter()).into())),
            Elements::Fixed(_) => Err(CodecError::Malformed { codec: NAME, reason: "the elements have a fixed size" }),
        }
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(8)
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        Some(EncodedSizeBound::Exact(self.codes.size_of(self.num_elements)))
    }

    fn stored_elements(&self) -> Option<(DataType, StoredOrder)> {
        Some(self.codes.stored_elements())
    }
}
