//! `blosc`: blocks, whose bytes or bits are shuffled, each compressed by one of several compressors.
//!
//! Specification: [blosc codec 1.0](https://zarr-specs.readthedocs.io/en/latest/v3/codecs/blosc/index.html),
//! [numcodecs.blosc](https://numcodecs.readthedocs.io/en/stable/compression/blosc.html), the
//! [chunk format](https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst) of C-Blosc 1. Compressors are `blosclz`, `lz4`, `lz4hc`, `snappy`, `zlib` and
//! `zstd`; levels 0 to 9; `shuffle` is `noshuffle`, `shuffle` or `bitshuffle` in v3, and 0, 1, 2 in numcodecs, where -1 stands for bits of elements
//! of one byte and bytes of others. A block size of 0 is chosen by the level. What is not given is as zarr-python has it: in v3 `zstd`, 5, the shuffle of
//! numcodecs' -1, in numcodecs `lz4`, 5, 1; the type size is that of the elements.
//!
//! ```json
//! {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0}
//! ```
//!
//! Decoding only believes the header of the chunk; the configuration is for encoding. Limits: a chunk longer than the limit, or than its
//! streams could make it, is refused before it is allocated; beside the output, decoding takes two blocks, which are no longer than that;
//! chunks have less than 2 GiB.

use std::sync::Arc;

use bytes::Bytes;
use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;
use serde_json::Value;

use super::bounded_output::compressed_len;
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

#[derive(Debug)]
struct Blosc {
    settings: Settings,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    cname: Option<CompressorName>,
    clevel: Option<u8>,
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
        compressed_len(decoded)
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
        Some(0) => return Err(invalid_configuration(spec, "has elements of no size")),
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
    let shuffle = shuffle.ok_or_else(|| invalid_configuration(spec, "has no such shuffle"))?;
    let level = clevel.unwrap_or(5);
    if level > 9 {
        return Err(invalid_configuration(spec, format!("has no level {level}")));
    }
    let name = cname.unwrap_or(if numcodecs { CompressorName::Lz4 } else { CompressorName::Zstd });
    let block_size = usize::try_from(blocksize.unwrap_or(0)).unwrap_or(usize::MAX);
    Ok(Codec::BytesToBytes(Arc::new(Blosc { settings: Settings { name, level, shuffle, type_size, block_size } })))
}
