//! The `bytes` codec (`endian` in drafts of v3): stores elements of a fixed size consecutively.
//!
//! - Kind: array to bytes
//! - Names: `bytes` and `endian` (v3); v2 and the draft specify it by the byte order of the data type
//! - Specification: [bytes codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/bytes/index.html)
//!
//! ## Configuration
//!
//! ```json
//! {"endian": "big"}
//! ```
//!
//! `endian` is `little` or `big`. It is required for elements with multi-byte words, except for structs, which are
//! little-endian without it: zarr-python reads the output of its older releases that way.
//!
//! ## Encoded bytes
//!
//! The elements in C order, in the given byte order.
//!
//! ## Errors and limits
//!
//! The encoded bytes have exactly the chunk's size. Elements of variable length are an invalid input.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::{
    codecs::{CodecSpec, Namespace},
    data_type::{DataType, Layout, StoredOrder},
};

use crate::{
    ArrayToBytes, ByteSwap, ChainError, ChunkRepresentation, Codec, CodecError, CodecFactory, CodecInput, Elements,
    EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "bytes";

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::V3, name: "endian", create },
];

/// The `bytes` codec, for elements of a fixed size.
#[derive(Debug)]
pub(super) struct BytesCodec {
    name: &'static str,
    array: ChunkRepresentation,
    len: u64,
    order: StoredOrder,
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

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let array = input.array(spec)?;
    let endian = parse_configuration::<Configuration>(spec)?.endian;
    let Layout::Fixed(layout) = array.data_type().layout() else {
        return Err(invalid_configuration(spec, format!("does not support elements of {}", array.data_type())));
    };
    let order = match endian {
        Some(Endian::Little) => StoredOrder::Little,
        Some(Endian::Big) => StoredOrder::Big,
        None if layout.words.is_empty() || is_struct(array.data_type()) => StoredOrder::Little,
        None => return Err(invalid_configuration(spec, format!("requires an endian for {}", array.data_type()))),
    };
    BytesCodec::create(NAME, array, order)
}

fn is_struct(data_type: &DataType) -> bool {
    let name = data_type.to_v3();
    matches!(name.get("name").and_then(|name| name.as_str()), Some("struct" | "structured"))
}

impl BytesCodec {
    /// Creates the codec. Fails for elements of variable length.
    pub(super) fn create(
        name: &'static str,
        array: &ChunkRepresentation,
        order: StoredOrder,
    ) -> Result<Codec, ChainError> {
        let len = array.fixed_size().ok_or_else(|| ChainError::InvalidPosition {
            codec: name.to_owned(),
            reason: "its input has elements of variable length".into(),
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
                Err(CodecError::Malformed { codec: self.name, reason: "the elements have variable length" })
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
