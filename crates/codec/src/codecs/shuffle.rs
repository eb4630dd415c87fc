//! The `shuffle` codec: groups the first bytes of all elements, then their second bytes, and so on.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.shuffle` (v3), id `shuffle` (v2, draft)
//! - Specification: [numcodecs.shuffle](https://numcodecs.readthedocs.io/en/stable/filter/shuffle.html)
//!
//! ## Configuration
//!
//! ```json
//! {"elementsize": 4}
//! ```
//!
//! `elementsize` defaults to the size of the elements, as in zarr-python for v3, and to numcodecs' 4 if that is
//! unknown. Sizes of 1 and less mean no change.
//!
//! ## Encoded bytes
//!
//! As many bytes as decoded, transposed.
//!
//! ## Errors and limits
//!
//! The number of bytes is a multiple of `elementsize`.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::transpose::transpose_bytes;
use crate::{
    BytesRepresentation, BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound,
    FactoryContext, factory::parse_configuration,
};

const NAME: &str = "shuffle";

/// The default of numcodecs.
const DEFAULT_SIZE: i64 = 4;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Debug)]
struct Shuffle {
    /// At least 1.
    size: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    elementsize: Option<i64>,
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let BytesRepresentation { stored_elements: items, .. } = input.bytes(spec)?;
    let of_items = || items.as_ref()?.0.fixed_size().and_then(|size| i64::try_from(size).ok());
    let size = parse_configuration::<Configuration>(spec)?.elementsize.or_else(of_items).unwrap_or(DEFAULT_SIZE);
    let size = usize::try_from(size).unwrap_or(1).max(1);
    Ok(Codec::BytesToBytes(Arc::new(Shuffle { size })))
}

impl Shuffle {
    /// The number of whole elements.
    fn elements(&self, bytes: &Bytes) -> Result<usize, CodecError> {
        match bytes.len() % self.size {
            0 => Ok(bytes.len() / self.size),
            _ => Err(CodecError::Malformed { codec: NAME, reason: "the last element is incomplete" }),
        }
    }
}

impl BytesToBytes for Shuffle {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        if encoded.len() as u64 > limit {
            return Err(CodecError::OutputTooLong { codec: NAME, limit });
        }
        let elements = self.elements(&encoded)?;
        Ok(transpose_bytes(encoded, self.size, elements))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let elements = self.elements(&decoded)?;
        Ok(transpose_bytes(decoded, elements, self.size))
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        EncodedSizeBound::Exact(decoded)
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(2)
    }
}
