//! The `blosc` codec: compresses blocks of shuffled bytes or bits, in the format of C-Blosc 1.
//!
//! - Kind: bytes to bytes
//! - Names: `blosc` and `numcodecs.blosc` (v3), id `blosc` (v2), `https://purl.org/zarr/spec/codec/blosc` (draft)
//! - Specification: [blosc codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/index.html),
//!   [numcodecs.blosc](https://numcodecs.readthedocs.io/en/stable/compression/blosc.html), [chunk
//!   format](https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst)
//!
//! ## Configuration
//!
//! ```json
//! {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
//! ```
//!
//! In numcodecs, the shuffle is a number:
//!
//! ```json
//! {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
//! ```
//!
//! `cname` is `blosclz`, `lz4`, `lz4hc`, `snappy`, `zlib` or `zstd`; `clevel` is 0 to 9; others are an error of
//! encoding only. `shuffle` is `noshuffle`, `shuffle` or `bitshuffle` in v3 and 0, 1 or 2 in numcodecs, where -1 means
//! bits for elements of one byte and bytes for others. A `blocksize` of 0 is chosen by the level, and `typesize`
//! defaults to the size of the elements. The other defaults are those of zarr-python: `zstd`, 5 and -1 in v3; `lz4`, 5
//! and 1 in numcodecs.
//!
//! ## Encoded bytes
//!
//! A header of 16 bytes, the offsets of the blocks, and the compressed blocks. Only the header determines how a chunk
//! is decoded; the configuration is used for encoding.
//!
//! ## Errors and limits
//!
//! A chunk that is longer than the limit, or than its streams can decode to, is rejected before it is allocated. Bytes
//! after the length in the header are ignored. Decoding needs two blocks of memory in addition to the output; a block
//! is at most as long as the chunk. Chunks have less than 2 GiB.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::{
    bounded_output::compressed_size_bound,
    decode_only::{unless_refused, unsupported_level},
};
use crate::{
    BytesRepresentation, BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound,
    FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

mod blosclz;
mod decode;
mod encode;
mod frame;
mod shuffle;

use encode::{CompressorName, Settings};
use frame::{NAME, Shuffle};

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

/// The level unless one is configured.
const DEFAULT_LEVEL: u8 = 5;

#[derive(Debug)]
struct Blosc {
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    cname: Option<CompressorName>,
    clevel: Option<i64>,
    shuffle: Option<Value>,
    typesize: Option<u64>,
    blocksize: Option<u64>,
}

impl BytesToBytes for Blosc {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        decode::decode(encoded, limit)
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        encode::encode(&self.settings, &decoded)
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        self.settings.cost()
    }
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    let BytesRepresentation { stored_elements: items, .. } = input.bytes(spec)?;
    let Configuration { cname, clevel, shuffle, typesize, blocksize } = parse_configuration(spec)?;
    let item_size = items.as_ref().and_then(|(items, _)| items.fixed_size()).unwrap_or(1);
    let type_size = match typesize {
        Some(0) => return Err(invalid_configuration(spec, "has a typesize of 0")),
        Some(size) => usize::try_from(size).unwrap_or(usize::MAX),
        None => item_size.max(1),
    };
    let by_size = if type_size == 1 { Shuffle::Bits } else { Shuffle::Bytes };
    let numcodecs = spec.namespace == Namespace::Numcodecs;
    let shuffle = match shuffle.as_ref().unwrap_or(&Value::Null) {
        Value::Null if numcodecs => Some(Shuffle::Bytes),
        Value::Null => Some(by_size),
        Value::String(name) if !numcodecs => match name.as_str() {
            "noshuffle" => Some(Shuffle::None),
            "shuffle" => Some(Shuffle::Bytes),
            "bitshuffle" => Some(Shuffle::Bits),
            _ => None,
        },
        Value::Number(number) if numcodecs => match number.as_i64() {
            Some(-1) => Some(by_size),
            Some(0) => Some(Shuffle::None),
            Some(1) => Some(Shuffle::Bytes),
            Some(2) => Some(Shuffle::Bits),
            _ => None,
        },
        _ => None,
    };
    let shuffle = shuffle.ok_or_else(|| invalid_configuration(spec, "has an unknown shuffle"))?;
    let level = clevel.unwrap_or(DEFAULT_LEVEL.into());
    let supported = u8::try_from(level).ok().filter(|level| *level <= 9);
    let refused = supported.is_none().then(|| unsupported_level(level));
    let level = supported.unwrap_or(DEFAULT_LEVEL);
    let name = cname.unwrap_or(if numcodecs { CompressorName::Lz4 } else { CompressorName::Zstd });
    let block_size = usize::try_from(blocksize.unwrap_or(0)).unwrap_or(usize::MAX);
    let settings = Settings { name, level, shuffle, type_size, block_size };
    Ok(unless_refused(Blosc { settings }, NAME, refused))
}
