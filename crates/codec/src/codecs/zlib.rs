//! The `zlib` codec: compresses bytes with zlib (RFC 1950).
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.zlib` (v3), id `zlib` (v2), `https://purl.org/zarr/spec/codec/zlib` (draft)
//! - Specification: [numcodecs.zlib](https://numcodecs.readthedocs.io/en/stable/compression/zlib.html)
//!
//! ## Configuration
//!
//! ```json
//! {"level": 1}
//! ```
//!
//! `level` is -1 (zlib's default) to 9, by default 1. Others are an error of encoding only.
//!
//! ## Encoded bytes
//!
//! One zlib stream.
//!
//! ## Errors and limits
//!
//! Bytes after the end of the stream are ignored. The output grows as it is decoded,
//! beyond a small multiple of the input.

use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::{
    bounded_output::{BoundedOutput, compressed_size_bound},
    decode_only::{unless_refused, unsupported_level},
    deflate::{self, Container, Inflater},
};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::parse_configuration,
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
    level: i64,
}

impl BytesToBytes for Zlib {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        if let Some(decoded) = decode_single_stream(&encoded, limit) {
            return Ok(decoded.into());
        }
        let mut decoded = BoundedOutput::new(NAME, encoded.len(), limit);
        // As by Python's `zlib`, what follows the stream is ignored.
        let _rest = decoded.decode_stream(&mut Inflater::new(Container::Zlib, NAME), &encoded)?;
        Ok(decoded.into_bytes())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(deflate::compress(Container::Zlib, self.level, &decoded, NAME)?.into())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        deflate::cost(self.level)
    }
}

/// Decodes a stream to exactly `len` bytes if it ends with the input; `None` on any failure.
fn decode_single_stream(encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let (_, sum) = encoded.split_last_chunk::<4>()?;
    let decoded = deflate::decode_to_size(Container::Zlib, encoded, len)?;
    // libdeflate verified the checksum after the stream, which need not be the one at the end of the input.
    (libdeflater::adler32(&decoded) == u32::from_be_bytes(*sum)).then_some(decoded)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = parse_configuration(spec)?;
    let supported = i8::try_from(level).ok().filter(|level| (-1..=9).contains(level));
    let refused = supported.is_none().then(|| unsupported_level(level));
    Ok(unless_refused(Zlib { level: supported.unwrap_or(1) }, NAME, refused))
}

fn default_level() -> i64 {
    1
}
