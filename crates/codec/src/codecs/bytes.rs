//! `bytes`: the elements one after the other.
//!
//! Specification: [bytes codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html).
//! Drafts of the v3 specification called it `endian`, and zarr-python has kept the name.
//!
//! ```json
//! {"endian": "big"}
//! ```
//!
//! The configuration may be left out where no word of an element has an order. Structs without it are little-endian, as zarr-python
//! reads what its older releases wrote; for every other type of more than one byte `endian` is required. Limits: the bytes are exactly as many as the chunk
//! has.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Layout, StoredOrder, WordRun},
};
use serde::Deserialize;

use crate::{
    ArrayToBytes, ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, Elements,
    EncodedSizeBound,
    registry::{invalid_configuration, parse_configuration},
};

const NAME: &str = "bytes";

pub(crate) static PLUGINS: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create: resolve },
    CodecFactory { namespace: Namespace::V3, name: "endian", create: resolve },
];

/// The elements of a fixed size, their words in some order.
#[derive(Debug)]
pub(super) struct BytesCodec {
    name: &'static str,
    array: ChunkRepresentation,
    len: u64,
    order: StoredOrder,
}

/// The words of consecutive elements that have to be byte-swapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ByteSwap {
    /// None.
    None,
    /// All of them; elements are words of this width and nothing else.
    Words(usize),
    /// Those of the runs, in each element of this size.
    Runs(usize, Vec<WordRun>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    endian: Option<Endian>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Endian {
    Little,
    Big,
}

fn resolve(spec: &CodecSpec, input: CodecInput<'_>, _depth: usize) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let endian = parse_configuration::<Configuration>(spec)?.endian;
    let Layout::Fixed(layout) = array.data_type().layout() else {
        return Err(invalid_configuration(spec, format!("has no form for elements of {}", array.data_type())));
    };
    let order = match endian {
        Some(Endian::Little) => StoredOrder::Little,
        Some(Endian::Big) => StoredOrder::Big,
        None if layout.words.is_empty() || is_struct(array.data_type()) => StoredOrder::Little,
        None => return Err(invalid_configuration(spec, format!("needs the endian of {}", array.data_type()))),
    };
    BytesCodec::resolve(NAME, array, order)
}

fn is_struct(data_type: &DataType) -> bool {
    let name = data_type.to_v3();
    matches!(name.get("name").and_then(|name| name.as_str()), Some("struct" | "structured"))
}

impl BytesCodec {
    /// The codec for an array of elements of a fixed size.
    pub(super) fn resolve(
        name: &'static str,
        array: &ChunkRepresentation,
        order: StoredOrder,
    ) -> Result<Codec, ChainError> {
        let len = array.fixed_size().ok_or_else(|| ChainError::InvalidPosition {
            codec: name.to_owned(),
            reason: "it is given elements of variable length".into(),
        })?;
        Ok(Codec::ArrayToBytes(Arc::new(Self { name, array: array.clone(), len, order })))
    }

    fn swapped(&self, bytes: Bytes) -> Result<Bytes, CodecError> {
        let found = bytes.len() as u64;
        if found != self.len {
            return Err(CodecError::LengthMismatch { codec: self.name, expected: self.len, found });
        }
        Ok(ByteSwap::new(self.array.data_type(), &self.order).apply(bytes))
    }
}

impl ArrayToBytes for BytesCodec {
    fn decode(&self, encoded: Bytes, _budget: u64) -> Result<Elements, CodecError> {
        self.swapped(encoded).map(Elements::Fixed)
    }

    fn encode(&self, decoded: Elements) -> Result<Bytes, CodecError> {
        match decoded {
            Elements::Fixed(bytes) => self.swapped(bytes),
            Elements::Variable(_) => {
                Err(CodecError::Malformed { codec: self.name, reason: "the elements are of variable length" })
            }
        }
    }

    fn encoded_size(&self) -> Option<EncodedSizeBound> {
        Some(EncodedSizeBound::Exact(self.len))
    }

    fn stored_elements(&self) -> Option<(DataType, StoredOrder)> {
        Some((self.array.data_type().clone(), self.order.clone()))
    }

    fn stored_order(&self) -> Option<&StoredOrder> {
        Some(&self.order)
    }
}

impl ByteSwap {
    /// The swap between memory and a stored byte order.
    pub fn new(data_type: &DataType, order: &StoredOrder) -> Self {
        let Layout::Fixed(layout) = data_type.layout() else {
            return Self::None;
        };
        let runs = match order {
            StoredOrder::Little => return Self::None,
            StoredOrder::Big => layout.words,
            StoredOrder::Mixed(runs) => runs.clone(),
        };
        match runs.as_slice() {
            [] => Self::None,
            [run] if run.offset == 0 && run.width.checked_mul(run.count) == Some(layout.size) => Self::Words(run.width),
            _ => Self::Runs(layout.size, runs),
        }
    }

    /// Swaps the words, in place if the buffer is not shared.
    pub fn apply(&self, bytes: Bytes) -> Bytes {
        if *self == Self::None {
            return bytes;
        }
        let mut bytes = BytesMut::from(bytes);
        self.apply_in_place(&mut bytes);
        bytes.freeze()
    }

    /// Swaps the words of some elements.
    pub fn apply_in_place(&self, bytes: &mut [u8]) {
        match self {
            Self::None => {}
            Self::Words(width) => swap_words(bytes, *width),
            Self::Runs(size, runs) => {
                for element in bytes.chunks_exact_mut((*size).max(1)) {
                    for run in runs {
                        let end = run.width.saturating_mul(run.count).saturating_add(run.offset);
                        element.get_mut(run.offset..end).into_iter().for_each(|words| swap_words(words, run.width));
                    }
                }
            }
        }
    }
}

/// Reverses the bytes of each word.
fn swap_words(bytes: &mut [u8], width: usize) {
    match width {
        0 | 1 => {}
        2 => swap_each::<2>(bytes),
        4 => swap_each::<4>(bytes),
        8 => swap_each::<8>(bytes),
        _ => bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse),
    }
}

/// A width that is known to the compiler becomes one shuffle of a vector.
fn swap_each<const WIDTH: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<WIDTH>().0.iter_mut().for_each(|word| word.reverse());
}
