//! The `gzip` codec: compresses bytes with gzip (RFC 1952).
//!
//! - Kind: bytes to bytes
//! - Names: `gzip` and `numcodecs.gzip` (v3), id `gzip` (v2), `https://purl.org/zarr/spec/codec/gzip` (draft)
//! - Specification: [gzip codec](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/gzip/index.html),
//!   [numcodecs.gzip](https://numcodecs.readthedocs.io/en/stable/compression/gzip.html)
//!
//! ## Configuration
//!
//! ```json
//! {"level": 1}
//! ```
//!
//! `level` is 0 to 9, in numcodecs also -1 (zlib's default). As in zarr-python, it defaults to 5 in v3 and to 1 in
//! numcodecs. Others are an error of encoding only.
//!
//! ## Encoded bytes
//!
//! One gzip member. As by Python's `gzip`, several members are decoded, and zeros after the last one are ignored.
//!
//! ## Errors and limits
//!
//! Other bytes after the last member are an error. The output grows as it is decoded, beyond a small multiple of the
//! input; the length in a member's trailer is not trusted.

use bytes::Bytes;
use memchr::memmem;
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

const NAME: &str = "gzip";

/// The first bytes of a member: the magic number and the only compression method.
const MEMBER_MAGIC: &[u8] = &[0x1f, 0x8b, 8];

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
    level: Option<i64>,
}

impl BytesToBytes for Gzip {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        if let Some(decoded) = decode_single_member(&encoded, limit) {
            return Ok(decoded.into());
        }
        let mut decoded = BoundedOutput::new(NAME, encoded.len(), limit);
        let mut rest = &encoded[..];
        loop {
            rest = decoded.decode_stream(&mut Inflater::new(Container::Gzip, NAME), rest)?;
            while let Some((0, padded)) = rest.split_first() {
                rest = padded;
            }
            if rest.is_empty() {
                return Ok(decoded.into_bytes());
            }
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        Ok(deflate::compress(Container::Gzip, self.level, &decoded, NAME)?.into())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        deflate::cost(self.level)
    }
}

/// Decodes a single member that declares `len` bytes and ends with the input; `None` on any failure.
fn decode_single_member(encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let (rest, declared) = encoded.split_last_chunk::<4>()?;
    let (rest, sum) = rest.split_last_chunk::<4>()?;
    let (_, rest) = rest.split_first()?;
    if u64::from(u32::from_le_bytes(*declared)) != len || memmem::find(rest, MEMBER_MAGIC).is_some() {
        return None;
    }
    let decoded = deflate::decode_to_size(Container::Gzip, encoded, len)?;
    // libdeflate verified the checksum after the member, which need not be the one at the end of the input.
    (libdeflater::crc32(&decoded) == u32::from_le_bytes(*sum)).then_some(decoded)
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = parse_configuration(spec)?;
    let (default, levels) = match spec.namespace {
        Namespace::Numcodecs => (1, -1..=9),
        Namespace::V3 | Namespace::Model => (5, 0..=9),
    };
    let level = level.unwrap_or(default.into());
    let supported = i8::try_from(level).ok().filter(|level| levels.contains(level));
    let refused = supported.is_none().then(|| unsupported_level(level));
    Ok(unless_refused(Gzip { level: supported.unwrap_or(default) }, NAME, refused))
}
