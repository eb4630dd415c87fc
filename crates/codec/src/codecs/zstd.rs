//! The `zstd` codec: compresses bytes with Zstandard (RFC 8878).
//!
//! - Kind: bytes to bytes
//! - Names: `zstd` and `numcodecs.zstd` (v3), id `zstd` (v2), `https://purl.org/zarr/spec/codec/zstd` (draft)
//! - Specification: [zstd codec](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd),
//!   [numcodecs.zstd](https://numcodecs.readthedocs.io/en/stable/compression/zstd.html)
//!
//! ## Configuration
//!
//! ```json
//! {"level": 3, "checksum": false}
//! ```
//!
//! `level` is -131072 to 22; 0, the default, means 3. In numcodecs, higher levels mean 22; others are an error of
//! encoding only. `checksum` appends a
//! checksum to the frame.
//!
//! ## Encoded bytes
//!
//! One frame. Any number of frames is decoded, including skippable ones and those that do not declare their content
//! size.
//!
//! ## Errors and limits
//!
//! Other bytes are an error, and so are frames that need a dictionary. Frames that declare more than the limit are
//! rejected before anything is allocated; a smaller declared size is trusted up to a small multiple of the input.
//! Window sizes do not matter, because the output serves as the window.

use std::cell::RefCell;

use ::zstd::zstd_safe::{self, CCtx, CParameter, DCtx, zstd_sys::ZSTD_ErrorCode};
use bytes::Bytes;
use serde::Deserialize;
use zarrd_meta::codecs::{CodecSpec, Namespace};

use super::{
    bounded_output::{compressed_size_bound, initial_capacity, into_bytes},
    decode_only::{unless_refused, unsupported_level},
};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::parse_configuration,
};

const NAME: &str = "zstd";

/// The growth factor of an output that was too small; each attempt decodes from the start.
const GROWTH_FACTOR: usize = 4;

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

thread_local! {
    /// A context of 95 KiB. Creating one per chunk halves the speed for chunks of 16 KiB.
    static DECOMPRESSION_CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };

    /// A context of 1 MiB or more, depending on its level and input.
    static COMPRESSION_CONTEXT: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// The maximum size of a compression context that is retained, in bytes: those of high levels take hundreds of
/// megabytes.
const MAX_RETAINED_CONTEXT_SIZE: usize = 8 << 20;

#[derive(Debug)]
struct Zstd {
    level: i32,
    checksum: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    #[serde(default)]
    level: i64,
    #[serde(default)]
    checksum: bool,
}

/// Errors of encoding or decoding frames.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// The output buffer is too small.
    #[error("the output buffer is too small")]
    OutputTooSmall,
    /// The library's error.
    #[error("{0}")]
    Library(&'static str),
}

impl BytesToBytes for Zstd {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let too_long = CodecError::OutputTooLong { codec: NAME, limit };
        let declared = declared_size(&encoded)?.unwrap_or(limit);
        if declared > limit {
            return Err(too_long);
        }
        let max_capacity = usize::try_from(declared).unwrap_or(usize::MAX);
        let mut capacity = initial_capacity(encoded.len(), declared);
        loop {
            let mut decoded = Vec::with_capacity(capacity);
            match decode_into(&encoded, &mut decoded) {
                Ok(_) => return Ok(into_bytes(decoded)),
                Err(FrameError::OutputTooSmall) if capacity < max_capacity => {
                    capacity = capacity.saturating_mul(GROWTH_FACTOR).min(max_capacity)
                }
                Err(FrameError::OutputTooSmall) => return Err(too_long),
                Err(source) => return Err(CodecError::Library { codec: NAME, source: Box::new(source) }),
            }
        }
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let checksum = if self.checksum { Checksum::Appended } else { Checksum::None };
        compress(&decoded, self.level, checksum)
            .map(Bytes::from)
            .map_err(|source| CodecError::Library { codec: NAME, source: Box::new(source) })
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        compressed_size_bound(decoded)
    }

    fn cost(&self) -> Cost {
        compress_cost(self.level)
    }
}

/// The cost of compression by level.
pub(super) fn compress_cost(level: i32) -> Cost {
    let encode = match level {
        ..=3 => 5,
        4..=9 => 25,
        10..=15 => 100,
        16..=19 => 400,
        20.. => 1200,
    };
    Cost::per_byte(2, encode).with_start(1000, 1000)
}

/// The checksum at the end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// Appended.
    Appended,
    /// Not written.
    None,
}

/// Encodes one frame.
pub(super) fn compress(decoded: &[u8], level: i32, checksum: Checksum) -> Result<Vec<u8>, FrameError> {
    let library_error = |code| FrameError::Library(zstd_safe::get_error_name(code));
    COMPRESSION_CONTEXT.with_borrow_mut(|retained| {
        let mut context = match retained.take() {
            Some(context) => context,
            None => CCtx::try_create().ok_or(FrameError::Library("cannot allocate a context"))?,
        };
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(library_error)?;
        context.set_parameter(CParameter::ChecksumFlag(checksum == Checksum::Appended)).map_err(library_error)?;
        let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(decoded.len()));
        context.compress2(&mut encoded, decoded).map_err(library_error)?;
        if context.sizeof() <= MAX_RETAINED_CONTEXT_SIZE {
            *retained = Some(context);
        }
        Ok(encoded)
    })
}

/// Decodes all frames of the input into a buffer. Returns the decoded size.
pub(super) fn decode_into<C: zstd_safe::WriteBuf + ?Sized>(
    encoded: &[u8],
    decoded: &mut C,
) -> Result<usize, FrameError> {
    DECOMPRESSION_CONTEXT.with_borrow_mut(|context| {
        if context.is_none() {
            *context = DCtx::try_create();
        }
        let context = context.as_mut().ok_or(FrameError::Library("cannot allocate a context"))?;
        context.decompress(decoded, encoded).map_err(|code| {
            // The library returns negated error codes.
            match code == (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg() {
                true => FrameError::OutputTooSmall,
                false => FrameError::Library(zstd_safe::get_error_name(code)),
            }
        })
    })
}

/// The total content size that the frames declare; `None` if one of them does not. Fails if the input has anything but
/// frames.
fn declared_size(mut encoded: &[u8]) -> Result<Option<u64>, CodecError> {
    let library_error = |source| CodecError::Library { codec: NAME, source: Box::new(FrameError::Library(source)) };
    let mut declared = Some(0_u64);
    loop {
        let frame = zstd_safe::find_frame_compressed_size(encoded)
            .map_err(|code| library_error(zstd_safe::get_error_name(code)))?;
        let len = zstd_safe::get_frame_content_size(encoded).map_err(|_| library_error("not a zstd frame"))?;
        declared = declared.zip(len).map(|(sum, len)| sum.saturating_add(len));
        encoded = encoded.get(frame..).unwrap_or_default();
        if encoded.is_empty() {
            return Ok(declared);
        }
    }
}

fn create(spec: &CodecSpec, input: CodecInput<'_>, _context: &FactoryContext) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { level, checksum } = parse_configuration(spec)?;
    let unsupported = level;
    let levels = ::zstd::compression_level_range();
    let supported = i32::try_from(level).ok().filter(|level| levels.contains(level));
    let level = match spec.namespace {
        Namespace::Numcodecs if level > i64::from(*levels.end()) => Some(*levels.end()),
        _ => supported,
    };
    let refused = level.is_none().then(|| unsupported_level(unsupported));
    Ok(unless_refused(Zstd { level: level.unwrap_or(0), checksum }, NAME, refused))
}
