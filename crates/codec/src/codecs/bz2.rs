//! The `bz2` codec: compresses bytes with bzip2.
//!
//! - Kind: bytes to bytes
//! - Names: `numcodecs.bz2` (v3), id `bz2` (v2), `https://purl.org/zarr/spec/codec/bz2` (draft)
//! - Specification: [numcodecs.bz2](https://numcodecs.readthedocs.io/en/stable/compression/bz2.html)
//!
//! ## Configuration
//!
//! ```json
//! {"level": 1}
//! ```
//!
//! `level` is 1 (the default) to 9. Others are an error of encoding only.
//!
//! ## Encoded bytes
//!
//! One bzip2 stream. Several concatenated streams are decoded, too.
//!
//! ## Errors and limits
//!
//! Bytes after the last stream are ignored unless they begin as one. Decoding needs at most 3.7 MB in addition to
//! its output, which grows as it is decoded, beyond a small multiple of the input.

use ::bzip2::{Action, Compress, Compression, Decompress, Status};
use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::{
    bounded_output::{BoundedOutput, Step, StreamDecoder, compressed_size_bound},
    decode_only::{unless_refused, unsupported_level},
};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::parse_configuration,
};

const NAME: &str = "bz2";

/// The first bytes of a stream.
const MAGIC: &[u8] = b"BZh";

/// bzip2's default threshold for falling back to another sorting algorithm.
const WORK_FACTOR: u32 = 0;

pub(crate) static FACTORIES: &[CodecFactory] = &[CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create }];

#[derive(Debug)]
struct Bz2 {
    level: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default = "default_level")]
    level: i64,
}

impl StreamDecoder for Decompress {
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, CodecError> {
        let before = self.total_in();
        let status = self.decompress_vec(input, output).map_err(library_error)?;
        Ok(Step { consumed: self.total_in().saturating_sub(before), is_finished: matches!(status, Status::StreamEnd) })
    }
}

impl BytesToBytes for Bz2 {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let mut decoded = BoundedOutput::new(NAME, encoded.len(), limit);
        let mut rest = &encoded[..];
        loop {
            rest = decoded.decode_stream(&mut Decompress::new(false), rest)?;
            // As by Python's `bz2`, bytes after a stream that begin no other one are ignored.
            if !rest.starts_with(MAGIC) {
                return Ok(decoded.into_bytes());
            }
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let mut compress = Compress::new(Compression::new(self.level), WORK_FACTOR);
        let mut encoded = Vec::with_capacity(decoded.len() / 2 + 64);
        loop {
            let used = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
            let rest = decoded.get(used..).unwrap_or_default();
            if matches!(
                compress.compress_vec(rest, &mut encoded, Action::Finish).map_err(library_error)?,
                Status::StreamEnd
            ) {
                return Ok(encoded.into());
            }
            encoded.reserve(encoded.capacity().max(64));
        }
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        // The tables are as large as the level says, however small the chunk is.
        let start = u64::from(self.level).saturating_mul(10_000);
        Cost::per_byte(60, 150).with_start(start, start.saturating_add(10_000))
    }
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level } = parse_configuration(spec)?;
    let supported = u32::try_from(level).ok().filter(|level| (1..=9).contains(level));
    let refused = supported.is_none().then(|| unsupported_level(level));
    Ok(unless_refused(Bz2 { level: supported.unwrap_or(9) }, NAME, refused))
}

fn library_error(source: ::bzip2::Error) -> CodecError {
    CodecError::Library { codec: NAME, source: Box::new(source) }
}

fn default_level() -> i64 {
    1
}
