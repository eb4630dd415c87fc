//! `gzip`: RFC 1952.
//!
//! Specification: [gzip codec](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html),
//! [numcodecs.gzip](https://numcodecs.readthedocs.io/en/stable/compression/gzip.html). Levels are 0 to 9; where none is given, 5 in v3 and 1 in
//! numcodecs, as zarr-python has it. numcodecs also takes -1, zlib's own default.
//!
//! ```json
//! {"level": 1}
//! ```
//!
//! Several members one after the other are decoded to all of their contents, and zeros after the last are ignored, as Python's `gzip` does; other
//! bytes there are an error. Limits: the output is allocated as it is decoded, beyond a small multiple of the input; a member's own
//! statement of its length is not believed.

use std::sync::Arc;

use bytes::Bytes;
use memchr::memmem;
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

const NAME: &str = "gzip";

/// The start of each member: the magic number and the only compression method.
const MEMBER: &[u8] = &[0x1f, 0x8b, 8];

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

#[derive(Debug)]
struct Gzip {
    level: i8,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    level: Option<i8>,
}

impl BytesToBytes for Gzip {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        if let Some(decoded) = decode_member(&encoded, limit) {
            return Ok(decoded.into());
        }
        let mut decoded = Bounded::new(NAME, encoded.len(), limit);
        let mut rest = &encoded[..];
        loop {
            rest = decoded.append(&mut Inflate::new(Wrapper::Gzip, NAME), rest)?;
            while let Some((0, padded)) = rest.split_first() {
                rest = padded;
            }
            if rest.is_empty() {
                return Ok(decoded.finish());
            }
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(deflate::deflate(Wrapper::Gzip, self.level, &decoded, NAME)?.into())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_len(decoded)
    }

    fn cost(&self) -> Cost {
        deflate::cost(self.level)
    }
}

/// Decodes a single member that claims to have `len` bytes and ends with the input.
fn decode_member(encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let (rest, declared) = encoded.split_last_chunk::<4>()?;
    let (rest, sum) = rest.split_last_chunk::<4>()?;
    let (_, rest) = rest.split_first()?;
    if u64::from(u32::from_le_bytes(*declared)) != len || memmem::find(rest, MEMBER).is_some() {
        return None;
    }
    let decoded = deflate::expect(Wrapper::Gzip, encoded, len)?;
    // libdeflate compared the sum that follows the member; it does not say whether that is the one at the end.
    (libdeflater::crc32(&decoded) == u32::from_le_bytes(*sum)).then_some(decoded)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = parse_configuration(spec)?;
    let (default, levels) = match spec.namespace {
        Namespace::Numcodecs => (1, -1..=9),
        Namespace::V3 | Namespace::Model => (5, 0..=9),
    };
    let level = level.unwrap_or(default);
    if !levels.contains(&level) {
        return Err(invalid_configuration(spec, format!("has no level {level}")));
    }
    Ok(Codec::BytesToBytes(Arc::new(Gzip { level })))
}
