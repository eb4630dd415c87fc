//! The deflate format, shared by `gzip`, `zlib` and `blosc`.
//!
//! Two libraries decode it. `flate2` with the zlib-rs backend decides which streams are valid, and decodes streams of
//! any length. libdeflate is tried first for chunks of known size, which is nearly all of them: it decodes 1 MiB of
//! `float32` at 350 to 1700 MB/s, zlib-rs at 260 to 930 and zlib-ng at 205 to 830 (1.3 to 1.9 times as fast as zlib-rs
//! on the same machine, levels 1 and 5). It needs the size of the output in advance, does not return how much of the
//! input it used, and supports only one gzip member; input that it does not decode to exactly the expected size is left
//! to `flate2`.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use libdeflater::{DecompressionError, Decompressor};

use super::bounded_output::{Step, StreamDecoder, initial_capacity};
use crate::{CodecError, Cost, filled};

/// The container of deflated data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// RFC 1952.
    Gzip,
    /// RFC 1950.
    Zlib,
}

/// The stream decoder of `flate2`.
pub(super) struct Inflater {
    decompress: Decompress,
    codec: &'static str,
}

/// The base-two logarithm of the window size: the maximum.
const WINDOW_BITS: u8 = 15;

impl Inflater {
    pub(super) fn new(wrapper: Container, codec: &'static str) -> Self {
        let decompress = match wrapper {
            Container::Gzip => Decompress::new_gzip(WINDOW_BITS),
            Container::Zlib => Decompress::new(true),
        };
        Self { decompress, codec }
    }
}

impl StreamDecoder for Inflater {
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, CodecError> {
        let before = self.decompress.total_in();
        let status = self
            .decompress
            .decompress_vec(input, output, FlushDecompress::Finish)
            .map_err(|source| CodecError::Library { codec: self.codec, source: Box::new(source) })?;
        let consumed = self.decompress.total_in().saturating_sub(before);
        Ok(Step { consumed, is_finished: status == Status::StreamEnd })
    }
}

/// Decodes to exactly `len` bytes; `None` on any failure.
pub(super) fn decode_to_size(wrapper: Container, encoded: &[u8], len: u64) -> Option<Vec<u8>> {
    let capacity = initial_capacity(encoded.len(), len);
    if capacity as u64 != len {
        return None;
    }
    let mut decoded = filled(0, capacity);
    decode_exact(wrapper, encoded, &mut decoded).ok()?;
    Some(decoded)
}

/// Decodes to exactly `decoded.len()` bytes, ignoring further input.
pub(super) fn decode_exact(wrapper: Container, encoded: &[u8], decoded: &mut [u8]) -> Result<(), DecompressionError> {
    let mut decompressor = Decompressor::new();
    let len = match wrapper {
        Container::Gzip => decompressor.gzip_decompress(encoded, decoded)?,
        Container::Zlib => decompressor.zlib_decompress(encoded, decoded)?,
    };
    if len == decoded.len() { Ok(()) } else { Err(DecompressionError::BadData) }
}

/// The cost of deflate by compression level.
pub(super) fn cost(level: i8) -> Cost {
    let encode = match level {
        0..=3 => 20,
        ..=6 => 50,
        7.. => 150,
    };
    Cost::per_byte(5, encode).with_start(2000, 10_000)
}

/// Compresses bytes; a negative level selects zlib's default.
pub(super) fn compress(
    wrapper: Container,
    level: i8,
    decoded: &[u8],
    codec: &'static str,
) -> Result<Vec<u8>, CodecError> {
    let level = u32::try_from(level).map_or_else(|_| Compression::default(), Compression::new);
    let mut compress = match wrapper {
        Container::Gzip => Compress::new_gzip(level, WINDOW_BITS),
        Container::Zlib => Compress::new(level, true),
    };
    let mut encoded = Vec::with_capacity(decoded.len() / 2 + 64);
    loop {
        let used = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
        let rest = decoded.get(used..).unwrap_or_default();
        let status = compress
            .compress_vec(rest, &mut encoded, FlushCompress::Finish)
            .map_err(|source| CodecError::Library { codec, source: Box::new(source) })?;
        if status == Status::StreamEnd {
            return Ok(encoded);
        }
        encoded.reserve(encoded.capacity().max(64));
    }
}
