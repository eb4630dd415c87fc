//! Decoding of frames.

use std::cell::RefCell;

use bytes::Bytes;
use snap::raw::decompress_len;

use super::{
    blosclz,
    frame::{Compressor, Frame, HEADER_SIZE, NAME, Shuffle, malformed},
    shuffle::{unshuffle, unshuffle_bits},
};
use crate::{
    CodecError,
    codecs::{
        bounded_output::{initial_capacity, into_bytes},
        deflate::{self, Container},
        lz4, zstd,
    },
};

/// The maximum size of each buffer that is retained for the next chunk, in bytes: the largest block that writers choose
/// by default.
const MAX_RETAINED_SCRATCH_SIZE: usize = 1 << 20;

/// Buffers for shuffled blocks.
struct Scratch {
    shuffled: Vec<u8>,
    planes: Vec<u8>,
}

thread_local! {
    /// Reused, because allocating for each chunk costs more than decoding: 435 instead of 5800 MB/s for 1 MiB in one
    /// block.
    static SCRATCH: RefCell<Scratch> = const { RefCell::new(Scratch { shuffled: Vec::new(), planes: Vec::new() }) };
}

/// Decodes a frame to at most `limit` bytes.
pub(super) fn decode(encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
    let (frame, encoded_len) = Frame::parse(&encoded)?;
    let encoded = encoded.slice(..encoded_len);
    if frame.len as u64 > limit {
        return Err(CodecError::OutputTooLong { codec: NAME, limit });
    }
    if frame.is_uncompressed {
        let is_uncompressed = encoded.slice(HEADER_SIZE..);
        let wrong =
            CodecError::LengthMismatch { codec: NAME, expected: frame.len as u64, found: is_uncompressed.len() as u64 };
        return if is_uncompressed.len() == frame.len { Ok(is_uncompressed) } else { Err(wrong) };
    }
    if frame.len == 0 {
        return Ok(Bytes::new());
    }
    SCRATCH.with_borrow_mut(|scratch| {
        let decoded = decode_blocks(&frame, &encoded, scratch);
        for buffer in [&mut scratch.shuffled, &mut scratch.planes] {
            buffer.truncate(MAX_RETAINED_SCRATCH_SIZE);
            buffer.shrink_to(MAX_RETAINED_SCRATCH_SIZE);
        }
        decoded
    })
}

fn decode_blocks(frame: &Frame, encoded: &[u8], scratch: &mut Scratch) -> Result<Bytes, CodecError> {
    let blocks = frame.len.div_ceil(frame.block_size);
    let starts = encoded.get(HEADER_SIZE..).unwrap_or_default().as_chunks::<4>().0;
    let starts = starts.get(..blocks).ok_or_else(|| malformed("the table of blocks is truncated"))?;
    let mut decoded = Vec::with_capacity(initial_capacity(encoded.len(), frame.len as u64));
    for start in starts {
        let done = decoded.len();
        let block = frame.block_size.min(frame.len - done);
        let start = usize::try_from(i32::from_le_bytes(*start)).ok().and_then(|start| encoded.get(start..));
        let start = start.ok_or_else(|| malformed("a block lies outside the frame"))?;
        let streams = streams(frame, start, block)?;
        // The streams are now known to be long enough for the declared size.
        decoded.resize(done + block, 0);
        decode_block(frame, &streams, decoded.get_mut(done..).unwrap_or_default(), scratch)?;
    }
    Ok(into_bytes(decoded))
}

/// The streams of a block. Fails if one of them is too short to decode to its part of the block.
fn streams<'a>(frame: &Frame, mut encoded: &'a [u8], block: usize) -> Result<Vec<&'a [u8]>, CodecError> {
    let count = frame.num_streams(block);
    if !block.is_multiple_of(count) {
        return Err(malformed("a block cannot be split into its streams"));
    }
    let stream_size = block / count;
    let mut streams = Vec::with_capacity(count);
    for _ in 0..count {
        let (len, rest) =
            encoded.split_first_chunk::<4>().ok_or_else(|| malformed("a stream lies outside the frame"))?;
        let len = usize::try_from(i32::from_le_bytes(*len)).ok();
        let (stream, rest) = len
            .and_then(|len| rest.split_at_checked(len))
            .ok_or_else(|| malformed("a stream lies outside the frame"))?;
        if stream_size as u64 > max_decoded_size(frame.compressor, stream) {
            return Err(malformed("a stream is too short for its block"));
        }
        streams.push(stream);
        encoded = rest;
    }
    Ok(streams)
}

/// The maximum number of bytes that a stream can decode to.
fn max_decoded_size(compressor: Compressor, stream: &[u8]) -> u64 {
    /// A deflate match has at most 258 bytes and at least two bits.
    const MAX_DEFLATE_EXPANSION: u64 = 1032;
    /// A zstd block has at most 128 KiB and at least four bytes.
    const MAX_ZSTD_EXPANSION: u64 = 32 << 10;
    let len = stream.len() as u64;
    match compressor {
        // Each byte of a match's length stands for 255.
        Compressor::BloscLz | Compressor::Lz4 => len.saturating_mul(lz4::MAX_EXPANSION),
        // A copy of at most 64 bytes takes three bytes.
        Compressor::Snappy => len.saturating_mul(64),
        Compressor::Zlib => len.saturating_mul(MAX_DEFLATE_EXPANSION),
        Compressor::Zstd => len.saturating_mul(MAX_ZSTD_EXPANSION),
    }
}

fn decode_block(frame: &Frame, streams: &[&[u8]], decoded: &mut [u8], scratch: &mut Scratch) -> Result<(), CodecError> {
    let Scratch { shuffled, planes } = scratch;
    match frame.shuffle_for_block(decoded.len()) {
        Shuffle::None => decode_streams(frame.compressor, streams, decoded),
        Shuffle::Bytes => {
            shuffled.resize(decoded.len(), 0);
            decode_streams(frame.compressor, streams, shuffled)?;
            unshuffle(frame.type_size, shuffled, decoded);
            Ok(())
        }
        Shuffle::Bits => {
            shuffled.resize(decoded.len(), 0);
            planes.resize(decoded.len(), 0);
            decode_streams(frame.compressor, streams, shuffled)?;
            unshuffle_bits(frame.type_size, shuffled, planes, decoded);
            Ok(())
        }
    }
}

/// Decodes streams to consecutive parts of equal size.
fn decode_streams(compressor: Compressor, streams: &[&[u8]], decoded: &mut [u8]) -> Result<(), CodecError> {
    let stream_size = decoded.len().checked_div(streams.len()).unwrap_or(0).max(1);
    let parts = decoded.chunks_exact_mut(stream_size);
    for (stream, stream_size) in streams.iter().zip(parts) {
        match stream.len() == stream_size.len() {
            // Incompressible bytes are stored uncompressed.
            true => stream_size.copy_from_slice(stream),
            false => decode_stream(compressor, stream, stream_size)?,
        }
    }
    Ok(())
}

fn decode_stream(compressor: Compressor, stream: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
    let shorter = || malformed("a stream is shorter than its block");
    match compressor {
        Compressor::BloscLz => blosclz::decompress(stream, decoded),
        Compressor::Lz4 => lz4::decode_block(stream, decoded, NAME),
        Compressor::Zlib => deflate::decode_exact(Container::Zlib, stream, decoded)
            .map_err(|source| CodecError::Library { codec: NAME, source: Box::new(source) }),
        Compressor::Zstd => {
            let found = zstd::decode_into(stream, decoded)
                .map_err(|source| CodecError::Library { codec: NAME, source: Box::new(source) })?;
            if found == decoded.len() { Ok(()) } else { Err(shorter()) }
        }
        Compressor::Snappy => {
            let failed = |source| CodecError::Library { codec: NAME, source: Box::new(source) };
            if decompress_len(stream).map_err(failed)? != decoded.len() {
                return Err(shorter());
            }
            snap::raw::Decoder::new().decompress(stream, decoded).map(drop).map_err(failed)
        }
    }
}
