//! The `lz4` codec: compresses bytes as one LZ4 block.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.lz4` (v3), id `lz4` (v2), `https://purl.org/zarr/spec/codec/lz4` (draft)
//! - Specification: [numcodecs.lz4](https://numcodecs.readthedocs.io/en/stable/compression/lz4.html), [block
//!   format](https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)
//!
//! ## Configuration
//!
//! ```json
//! {"acceleration": 1}
//! ```
//!
//! `acceleration` is an integer; values below 1 mean 1, the default.
//!
//! ## Encoded bytes
//!
//! The decoded length as a little-endian `u32`, and one LZ4 block.
//!
//! ## Errors and limits
//!
//! A length beyond the limit, or beyond what the block can decode to, is rejected before anything is allocated. Chunks
//! of 2113929216 (`0x7e000000`) bytes or more cannot be encoded.

use std::sync::Arc;

use ::lz4::block::{self, CompressionMode};
use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::bounded_output::compressed_size_bound;
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::parse_configuration, filled,
};

const NAME: &str = "lz4";

/// The maximum number of bytes that one byte of a block decodes to: each byte of a match's length stands for 255.
pub(super) const MAX_EXPANSION: u64 = 255;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Debug)]
struct Lz4 {
    acceleration: i32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default = "default_acceleration")]
    acceleration: i32,
}

impl BytesToBytes for Lz4 {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let malformed = |reason| CodecError::Malformed { codec: NAME, reason };
        let (len, block) = encoded.split_first_chunk::<4>().ok_or_else(|| malformed("the length is truncated"))?;
        let len = u32::from_le_bytes(*len);
        if u64::from(len) > limit {
            return Err(CodecError::OutputTooLong { codec: NAME, limit });
        }
        if u64::from(len) > (block.len() as u64).saturating_mul(MAX_EXPANSION) {
            return Err(malformed("the block is too short for its length"));
        }
        let len = usize::try_from(len).map_err(|_| malformed("the length exceeds the address space"))?;
        let mut decoded = filled(0, len);
        decode_block(block, &mut decoded, NAME)?;
        Ok(decoded.into())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let library_error = |source: std::io::Error| CodecError::Library { codec: NAME, source: Box::new(source) };
        block::compress(&decoded, Some(CompressionMode::FAST(self.acceleration)), true)
            .map(Bytes::from)
            .map_err(library_error)
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        Cost::per_byte(1, 5)
    }
}

/// Decodes a block to exactly `decoded.len()` bytes.
pub(super) fn decode_block(block: &[u8], decoded: &mut [u8], codec: &'static str) -> Result<(), CodecError> {
    let malformed = |reason| CodecError::Malformed { codec, reason };
    let capacity = i32::try_from(decoded.len()).map_err(|_| malformed("a block exceeds the maximum length"))?;
    if i32::try_from(block.len()).is_err() {
        return Err(malformed("a block exceeds the maximum length"));
    }
    let found = block::decompress_to_buffer(block, Some(capacity), decoded)
        .map_err(|source| CodecError::Library { codec, source: Box::new(source) })?;
    if found == decoded.len() { Ok(()) } else { Err(malformed("a block does not have the declared length")) }
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { acceleration } = parse_configuration(spec)?;
    Ok(Codec::BytesToBytes(Arc::new(Lz4 { acceleration: acceleration.max(1) })))
}

fn default_acceleration() -> i32 {
    1
}
