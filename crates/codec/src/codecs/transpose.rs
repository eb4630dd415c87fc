//! The `transpose` codec: reorders the dimensions of an array.
//!
//! - Kind: array to array
//! - Names: `transpose` (v3); order `F` of v2 and the draft is read into it
//! - Specification: [transpose codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/transpose/index.html)
//!
//! ## Configuration
//!
//! ```json
//! {"order": [1, 0, 2]}
//! ```
//!
//! Dimension `i` of the encoded array is dimension `order[i]` of the decoded one. The older strings `"C"` and `"F"`
//! mean the identity and the reversed order.
//!
//! ## Encoded bytes
//!
//! The same elements in another order.
//!
//! ## Errors and limits
//!
//! `order` names each dimension exactly once. The size of the chunk does not change.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::transpose_kernel::{Axis, Permutation};
use crate::{
    ArrayToArray, ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, Cost, Elements,
    FactoryContext, VariableBuilder,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "transpose";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::V3, name: NAME, create }];

#[derive(Debug)]
struct Transpose {
    /// Dimension `i` of the encoded array is dimension `order[i]` of the decoded one.
    order: Vec<usize>,
    encode: Permutation,
    decode: Permutation,
    /// True if the order of the dimensions does not change.
    identity: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    order: Order,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Order {
    Permutation(Vec<usize>),
    Name(OrderName),
}

#[derive(Deserialize)]
enum OrderName {
    C,
    F,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let rank = array.shape().len();
    let order = match parse_configuration::<Configuration>(spec)?.order {
        Order::Permutation(order) => order,
        Order::Name(OrderName::C) => (0..rank).collect(),
        Order::Name(OrderName::F) => (0..rank).rev().collect(),
    };
    transpose_codec(array, order)?.map(|(codec, encoded)| Codec::ArrayToArray(codec, encoded)).ok_or_else(|| {
        invalid_configuration(spec, format!("has an order that is not a permutation of {rank} dimensions"))
    })
}

/// A codec with the representation of its encoded array.
type TransposedArray = (Arc<dyn ArrayToArray>, ChunkRepresentation);

/// The codec that transposes an array, with the representation of its output; `None` unless `order` names each
/// dimension exactly once.
pub(crate) fn transpose_codec(
    array: &ChunkRepresentation,
    order: Vec<usize>,
) -> Result<Option<TransposedArray>, ChainError> {
    let Some(inverse_permutation) = inverse_permutation(&order, array.shape().len()) else { return Ok(None) };
    let shape: Vec<u64> = order.iter().filter_map(|&axis| array.shape().get(axis).copied()).collect();
    let (encode, decode) = Permutation::new(array.shape(), &order)
        .zip(Permutation::new(&shape, &inverse_permutation))
        .ok_or(ChainError::ChunkTooLarge)?;
    let encoded = ChunkRepresentation::new(array.data_type().clone(), shape, array.fill_value().clone())?;
    let size = array.data_type().fixed_size();
    let (encode, decode) = (encode.with_element_size(size), decode.with_element_size(size));
    let identity = order.is_sorted();
    Ok(Some((Arc::new(Transpose { order, encode, decode, identity }), encoded)))
}

/// The inverse of a permutation; `None` unless `order` names each dimension exactly once.
fn inverse_permutation(order: &[usize], rank: usize) -> Option<Vec<usize>> {
    if order.len() != rank {
        return None;
    }
    let mut inverse_permutation = vec![None; rank];
    for (to, &from) in order.iter().enumerate() {
        if inverse_permutation.get_mut(from)?.replace(to).is_some() {
            return None;
        }
    }
    inverse_permutation.into_iter().collect()
}

/// Transposes a matrix of bytes.
pub(super) fn transpose_bytes(bytes: Bytes, rows: usize, columns: usize) -> Bytes {
    let axes = [Axis { extent: columns, stride: 1 }, Axis { extent: rows, stride: columns }];
    Permutation::from_axes(axes.into()).with_element_size(Some(1)).apply(bytes)
}

fn permute_elements(permutation: &Permutation, elements: Elements) -> Result<Elements, CodecError> {
    let elements = match elements {
        Elements::Fixed(bytes) => return Ok(Elements::Fixed(permutation.apply(bytes))),
        Elements::Variable(elements) => elements,
    };
    let mut moved = VariableBuilder::new(elements.memory_size());
    let mismatch = || CodecError::Malformed { codec: NAME, reason: "the number of elements does not match the chunk" };
    permutation.for_each_source(|from| {
        let element = elements.get(from).ok_or_else(mismatch)?;
        moved.push(element).map_err(|_| mismatch())
    })?;
    Ok(Elements::Variable(moved.finish()))
}

impl ArrayToArray for Transpose {
    fn decode(&self, encoded: Elements) -> Result<Elements, CodecError> {
        permute_elements(&self.decode, encoded)
    }

    fn encode(&self, decoded: Elements) -> Result<Elements, CodecError> {
        permute_elements(&self.encode, decoded)
    }

    fn is_identity(&self) -> bool {
        self.identity
    }

    fn permutation(&self) -> Option<&[usize]> {
        Some(&self.order)
    }

    fn cost(&self) -> Cost {
        Cost::per_byte(self.decode.steps_per_byte(), self.encode.steps_per_byte())
    }
}
