//! Encoding of frames.

use std::io;

use ::lz4::block::{self, CompressionMode};
use bytes::Bytes;
use serde::Deserialize;

use super::{
    blosclz,
    frame::{Compressor, Frame, HEADER_SIZE, MIN_STREAM_SIZE, NAME, Shuffle, can_split, malformed},
    shuffle::{shuffle, shuffle_bits},
};
use crate::{
    CodecError, Cost,
    codecs::{
        deflate::{self, Container},
        zstd::{self, Checksum},
    },
};

/// The names of compressors in configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CompressorName {
    Blosclz,
    Lz4,
    Lz4hc,
    Snappy,
    Zlib,
    Zstd,
}

/// Settings of the encoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) name: CompressorName,
    /// The compression level, 0 to 9.
    pub(super) level: u8,
    pub(super) shuffle: Shuffle,
    /// The size of an element in bytes, at least 1. Sizes above 255 do not fit the header and are treated as 1.
    pub(super) type_size: usize,
    /// The size of a block in bytes; 0 selects it by the level.
    pub(super) block_size: usize,
}

/// The maximum size of a block, so that all numbers in the header fit an `i32`.
const MAX_BLOCK_SIZE: usize = (i32::MAX as usize - 1024) / 3;

/// Encodes bytes as a frame.
pub(super) fn encode(settings: &Settings, decoded: &Bytes) -> Result<Bytes, CodecError> {
    let frame = settings.frame(decoded.len());
    let compressed = match frame.is_uncompressed {
        true => None,
        false => compress(settings, &frame, decoded)?,
    };
    let (frame, mut encoded) = match compressed {
        Some(encoded) => (frame, encoded),
        None => (Frame { is_uncompressed: true, ..frame }, [&[0; HEADER_SIZE], &decoded[..]].concat()),
    };
    let header =
        frame.header(encoded.len()).ok_or_else(|| malformed("the chunk exceeds the maximum size of the format"))?;
    if let Some(header_slot) = encoded.first_chunk_mut() {
        *header_slot = header;
    }
    Ok(encoded.into())
}

impl Settings {
    /// The cost of the compressor and the shuffle. A stored chunk may use any compressor, regardless of the settings.
    pub(super) fn cost(&self) -> Cost {
        let level = i8::try_from(self.level).unwrap_or(i8::MAX);
        let compressor = match self.name {
            CompressorName::Blosclz | CompressorName::Lz4 | CompressorName::Snappy => Cost::symmetric(5),
            CompressorName::Lz4hc => Cost::symmetric(60).with_start(1000, 10_000),
            CompressorName::Zlib => deflate::cost(level),
            CompressorName::Zstd => zstd::compress_cost(i32::from(level).saturating_mul(5) / 2),
        };
        let any = deflate::cost(level);
        Cost {
            decode: any.decode,
            decode_start: any.decode_start,
            encode: compressor.encode.saturating_add(2),
            encode_start: compressor.encode_start,
        }
    }

    /// The frame for `len` bytes.
    fn frame(&self, len: usize) -> Frame {
        let compressor = match self.name {
            CompressorName::Blosclz => Compressor::BloscLz,
            CompressorName::Lz4 | CompressorName::Lz4hc => Compressor::Lz4,
            CompressorName::Snappy => Compressor::Snappy,
            CompressorName::Zlib => Compressor::Zlib,
            CompressorName::Zstd => Compressor::Zstd,
        };
        let type_size = if self.type_size > usize::from(u8::MAX) { 1 } else { self.type_size.max(1) };
        let block_size = self.block_size(len, type_size);
        // Old readers split every block that can be split, but they do not know zstd.
        let split = compressor != Compressor::Zstd && can_split(type_size, block_size);
        let is_uncompressed = self.level == 0 || len < MIN_STREAM_SIZE;
        Frame { compressor, shuffle: self.shuffle, is_uncompressed, split, type_size, len, block_size }
    }

    /// The size of blocks, a multiple of the element size: blocks fit the caches, and are larger for higher levels and
    /// slow compressors.
    fn block_size(&self, len: usize, type_size: usize) -> usize {
        let is_slow = matches!(self.name, CompressorName::Lz4hc | CompressorName::Zlib | CompressorName::Zstd);
        let size = match self.block_size {
            0 => {
                let size = match self.level {
                    0 | 1 => 16 << 10,
                    2 => 32 << 10,
                    3 => 64 << 10,
                    4 | 5 => 128 << 10,
                    _ => 256 << 10,
                };
                let size = if is_slow { size * 2 } else { size };
                let splits = self.name != CompressorName::Zstd && can_split(type_size, size);
                if splits { (size * type_size).clamp(64 << 10, 1 << 20) } else { size }
            }
            size => size.clamp(MIN_STREAM_SIZE, MAX_BLOCK_SIZE),
        };
        let size = size.min(len);
        if size > type_size { size - size % type_size } else { size.max(1) }
    }
}

/// The frame with header, block offsets and compressed blocks; `None` if it is not shorter than the bytes.
fn compress(settings: &Settings, frame: &Frame, decoded: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
    let blocks = decoded.chunks(frame.block_size);
    let mut starts = Vec::with_capacity(blocks.len() * 4);
    let mut body = vec![0; HEADER_SIZE + blocks.len() * 4];
    let (mut shuffled, mut planes) = (Vec::new(), Vec::new());
    for block in blocks {
        let start = i32::try_from(body.len()).map_err(|_| malformed("the blocks are too long"))?;
        starts.extend_from_slice(&start.to_le_bytes());
        shuffled.resize(block.len(), 0);
        let bytes = match frame.shuffle_for_block(block.len()) {
            Shuffle::None => block,
            Shuffle::Bytes => {
                shuffle(frame.type_size, block, &mut shuffled);
                &shuffled
            }
            Shuffle::Bits => {
                planes.resize(block.len(), 0);
                shuffle_bits(frame.type_size, block, &mut planes, &mut shuffled);
                &shuffled
            }
        };
        for part in bytes.chunks_exact(block.len() / frame.num_streams(block.len())) {
            let stream = compress_stream(settings, part)?.filter(|stream| stream.len() < part.len());
            let stream = stream.as_deref().unwrap_or(part);
            let len = i32::try_from(stream.len()).map_err(|_| malformed("the blocks are too long"))?;
            body.extend_from_slice(&len.to_le_bytes());
            body.extend_from_slice(stream);
        }
        if body.len() >= HEADER_SIZE + decoded.len() {
            return Ok(None);
        }
    }
    if let Some(table) = body.get_mut(HEADER_SIZE..HEADER_SIZE + starts.len()) {
        table.copy_from_slice(&starts);
    }
    Ok(Some(body))
}

/// Compresses one stream; `None` if the result is not shorter.
fn compress_stream(settings: &Settings, bytes: &[u8]) -> Result<Option<Vec<u8>>, CodecError> {
    let io = |source: io::Error| CodecError::Library { codec: NAME, source: Box::new(source) };
    let level = i32::from(settings.level);
    match settings.name {
        CompressorName::Blosclz => Ok(blosclz::compress(bytes)),
        CompressorName::Lz4 => {
            block::compress(bytes, Some(CompressionMode::FAST(10 - level)), false).map(Some).map_err(io)
        }
        CompressorName::Lz4hc => {
            block::compress(bytes, Some(CompressionMode::HIGHCOMPRESSION(level)), false).map(Some).map_err(io)
        }
        CompressorName::Snappy => snap::raw::Encoder::new()
            .compress_vec(bytes)
            .map(Some)
            .map_err(|source| CodecError::Library { codec: NAME, source: Box::new(source) }),
        CompressorName::Zlib => {
            let level = i8::try_from(level).unwrap_or(-1);
            deflate::compress(Container::Zlib, level, bytes, NAME).map(Some)
        }
        CompressorName::Zstd => {
            // Maps the levels of blosc to those of zstd, which go up to 22.
            let level = match level {
                9 => 22,
                8 => 20,
                level => level * 2 - 1,
            };
            zstd::compress(bytes, level, Checksum::None)
                .map(Some)
                .map_err(|source| CodecError::Library { codec: NAME, source: Box::new(source) })
        }
    }
}
