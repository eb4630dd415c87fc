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
    bounded::{Bounded, compressed_len},
    inflate::{self, Inflate, Wrapper},
};
use crate::{
    BytesToBytes, ChainError, CodecError, Cost, EncodedLen, Input, Plugin, Resolved,
    registry::{configuration, refused},
};

const NAME: &str = "zlib";

pub(crate) static PLUGINS: &[Plugin] = &[Plugin { namespace: Namespace::Numcodecs, name: NAME, resolve }];

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
        Ok(inflate::deflate(Wrapper::Zlib, self.level, &decoded, NAME)?.into())
    }

    fn encoded_len(&self, decoded: u64) -> EncodedLen {
        compressed_len(decoded)
    }

    fn cost(&self) -> Cost {
        inflate::cost(self.level)
    }
}

/// Decodes a stream that claims to have `len` bytes and ends with the input.
fn decode_expected(encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let (_, sum) = encoded.split_last_chunk::<4>()?;
    let decoded = inflate::expect(Wrapper::Zlib, encoded, len)?;
    // libdeflate compared the sum that follows the stream; it does not say whether that is the one at the end.
    (libdeflater::adler32(&decoded) == u32::from_be_bytes(*sum)).then_some(decoded)
}

fn resolve(spec: &CodecSpec, input: Input<'_>, _depth: usize) -> Result<Resolved, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = configuration(spec)?;
    if !(-1..=9).contains(&level) {
        return Err(refused(spec, format!("has no level {level}")));
    }
    Ok(Resolved::BytesToBytes(Arc::new(Zlib { level })))
}

fn default_level() -> i8 {
    1
}
