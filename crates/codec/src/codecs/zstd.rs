//! `zstd`: RFC 8878.
//!
//! Specification: [zstd codec](https://github.com/zarr-developers/zarr-extensions/tree/main/codecs/zstd),
//! [numcodecs.zstd](https://numcodecs.readthedocs.io/en/stable/compression/zstd.html). Levels are -131072 to 22, 0 stands for 3; where none is given, 0.
//! numcodecs takes the highest level for any above it.
//!
//! ```json
//! {"level": 3, "checksum": false}
//! ```
//!
//! Any number of frames, with skippable ones among them, are decoded to all of their contents, whether they declare their length or not; other
//! bytes are an error. Limits: frames that declare more than the limit are refused before anything is allocated; what they declare is otherwise
//! believed up to a small multiple of the input. Windows cost nothing of their own, whatever their size: the output itself serves as one.
//! Frames that need a dictionary are refused.

use std::{cell::RefCell, sync::Arc};

use ::zstd::zstd_safe::{self, CCtx, CParameter, DCtx, zstd_sys::ZSTD_ErrorCode};
use bytes::Bytes;
use meta::codecs::{CodecSpec, Namespace};
use serde::Deserialize;

use super::bounded_output::{compressed_len, finish, justified};
use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecFactory, CodecInput, Cost, EncodedSizeBound, FactoryContext,
    factory::{invalid_configuration, parse_configuration},
};

const NAME: &str = "zstd";

/// The factor by which the output grows if it was too small; each attempt decodes from the start.
const GROWTH: usize = 4;

pub(crate) static FACTORIES: &[CodecFactory] = &[
    CodecFactory { namespace: Namespace::V3, name: NAME, create },
    CodecFactory { namespace: Namespace::Numcodecs, name: NAME, create },
];

thread_local! {
    /// A context has 95 KiB. Making one for each chunk halves the speed for chunks of 16 KiB.
    static CONTEXT: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };

    /// One for encoding has 1 MiB and more, by its level and what was encoded last.
    static COMPRESSION: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
}

/// Up to how many bytes a context for encoding is kept: those of high levels take hundreds of megabytes.
const KEPT_COMPRESSION: usize = 8 << 20;

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

/// The reason why frames cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(super) enum FrameError {
    /// They hold more than there is room for.
    #[error("there is too little room")]
    Room,
    /// They are wrong, as the library says.
    #[error("{0}")]
    Library(&'static str),
}

impl BytesToBytes for Zstd {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let too_long = CodecError::OutputTooLong { codec: NAME, limit };
        let declared = declared_len(&encoded)?.unwrap_or(limit);
        if declared > limit {
            return Err(too_long);
        }
        let most = usize::try_from(declared).unwrap_or(usize::MAX);
        let mut room = justified(encoded.len(), declared);
        loop {
            let mut decoded = Vec::with_capacity(room);
            match decode_into(&encoded, &mut decoded) {
                Ok(_) => return Ok(finish(decoded)),
                Err(FrameError::Room) if room < most => room = room.saturating_mul(GROWTH).min(most),
                Err(FrameError::Room) => return Err(too_long),
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
        compressed_len(decoded)
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
        20.. => 800,
    };
    Cost { decode: 2, encode }
}

/// The presence of a checksum at the end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checksum {
    /// It does.
    Appended,
    /// It does not.
    None,
}

/// Encodes one frame.
pub(super) fn compress(decoded: &[u8], level: i32, checksum: Checksum) -> Result<Vec<u8>, FrameError> {
    let failed = |code| FrameError::Library(zstd_safe::get_error_name(code));
    COMPRESSION.with_borrow_mut(|kept| {
        let mut context = match kept.take() {
            Some(context) => context,
            None => CCtx::try_create().ok_or(FrameError::Library("there is no memory for a context"))?,
        };
        context.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
        context.set_parameter(CParameter::ChecksumFlag(checksum == Checksum::Appended)).map_err(failed)?;
        let mut encoded = Vec::with_capacity(zstd_safe::compress_bound(decoded.len()));
        context.compress2(&mut encoded, decoded).map_err(failed)?;
        if context.sizeof() <= KEPT_COMPRESSION {
            *kept = Some(context);
        }
        Ok(encoded)
    })
}

/// Decodes all frames of the input into the room that there is, and answers how many bytes they were.
pub(super) fn decode_into<C: zstd_safe::WriteBuf + ?Sized>(
    encoded: &[u8],
    decoded: &mut C,
) -> Result<usize, FrameError> {
    CONTEXT.with_borrow_mut(|context| {
        if context.is_none() {
            *context = DCtx::try_create();
        }
        let context = context.as_mut().ok_or(FrameError::Library("there is no memory for a context"))?;
        context.decompress(decoded, encoded).map_err(|code| {
            // The library returns the negative of its error codes.
            match code == (ZSTD_ErrorCode::ZSTD_error_dstSize_tooSmall as usize).wrapping_neg() {
                true => FrameError::Room,
                false => FrameError::Library(zstd_safe::get_error_name(code)),
            }
        })
    })
}

/// The decoded size that the frames declare; `None` if one does not. Fails if the input is not only frames.
fn declared_len(mut encoded: &[u8]) -> Result<Option<u64>, CodecError> {
    let failed = |source| CodecError::Library { codec: NAME, source: Box::new(FrameError::Library(source)) };
    let mut declared = Some(0_u64);
    loop {
        let frame =
            zstd_safe::find_frame_compressed_size(encoded).map_err(|code| failed(zstd_safe::get_error_name(code)))?;
        let len = zstd_safe::get_frame_content_size(encoded).map_err(|_| failed("there is no frame"))?;
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
    let levels = ::zstd::compression_level_range();
    let known = i32::try_from(level).ok().filter(|level| levels.contains(level));
    let level = match spec.namespace {
        Namespace::Numcodecs if level > i64::from(*levels.end()) => Some(*levels.end()),
        _ => known,
    };
    let level = level.ok_or_else(|| invalid_configuration(spec, "has no such level"))?;
    Ok(Codec::BytesToBytes(Arc::new(Zstd { level, checksum })))
}
