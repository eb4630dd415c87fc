//! `zlib`: RFC 1950.
//!
//! Specification: [numcodecs.zlib](https://numcodecs.readthedocs.io/en/stable/compression/zlib.html). Levels are -1 (zlib's own default) to 9; where none
//! is given, 1.
//!
//! ```json
//! {"level": 1}
//! ```
//!
//! Bytes after the end of the stream are an error, where Python's `zlib` ignores them. Limits: the output is allocated as it is decoded, beyond a
//! small multiple of the input.

use std::sync::Arc;

use bytes::Bytes;
use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::{
    bounded_output::{Bounded, compressed_len},
    deflate::{self, Inflate, Wrapper},
};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "zlib";

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Debug)]
struct Zlib {
    level: i8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default = "default_level")]
    level: i8,
}

impl BytesToBytes for Zlib {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        if let Some(decoded) = decode_expected(&encoded, limit) {
            return Ok(decoded.into());
        }
        let mut decoded = Bounded::new(NAME, encoded.len(), limit);
        match decoded.append(&mut Inflate::new(Wrapper::Zlib, NAME), &encoded)? {
            [] => Ok(decoded.finish()),
            _ => Err(CodecError::Malformed { codec: NAME, reason: "bytes follow the end of the stream" }),
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(deflate::deflate(Wrapper::Zlib, self.level, &decoded, NAME)?.into())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_len(decoded)
    }

    fn cost(&self) -> Cost {
        deflate::cost(self.level)
    }
}

/// Decodes a stream that claims to have `len` bytes and ends with the input.
fn decode_expected(encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let (_, sum) = encoded.split_last_chunk::<4>()?;
    let decoded = deflate::expect(Wrapper::Zlib, encoded, len)?;
    // libdeflate compared the sum that follows the stream; it does not say whether that is the one at the end.
    (libdeflater::adler32(&decoded) == u32::from_be_bytes(*sum)).then_some(decoded)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = parse_configuration(spec)?;
    if !(-1..=9).contains(&level) {
        return Err(invalid_configuration(spec, format!("has no level {level}")));
    }
    Ok(Codec::BytesToBytes(Arc::new(Zlib { level })))
}

fn default_level() -> i8 {
    1
}
