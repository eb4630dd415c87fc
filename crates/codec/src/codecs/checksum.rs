//! The codecs that add a checksum of four bytes.

use std::{fmt, sync::Arc};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Deserialize;
use zarrd_meta::codecs::CodecSpec;

use crate::{
    BytesToBytes, ChainError, Codec, CodecError, CodecInput, Cost, EncodedSizeBound, factory::parse_configuration,
};

/// The size of a checksum in bytes.
const CHECKSUM_SIZE: u64 = 4;

/// The location of the little-endian checksum relative to the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Location {
    Start,
    End,
}

/// A codec that adds a checksum.
struct Checksum<F> {
    codec: &'static str,
    location: Location,
    compute: F,
}

/// Creates the codec that adds the checksum computed by `compute`.
pub(super) fn checksum_codec(
    codec: &'static str,
    location: Location,
    compute: impl Fn(&[u8]) -> u32 + Send + Sync + 'static,
) -> Codec {
    Codec::BytesToBytes(Arc::new(Checksum { codec, location, compute }))
}

/// The configuration of checksums whose location can be chosen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Configuration {
    location: Option<Location>,
}

/// Creates the codec of a checksum whose location can be chosen.
pub(super) fn create_with_location(
    spec: &CodecSpec,
    input: CodecInput<'_>,
    codec: &'static str,
    default: Location,
    compute: fn(&[u8]) -> u32,
) -> Result<Codec, ChainError> {
    input.bytes(spec)?;
    let Configuration { location } = parse_configuration(spec)?;
    Ok(checksum_codec(codec, location.unwrap_or(default), compute))
}

impl<F: Fn(&[u8]) -> u32 + Send + Sync> BytesToBytes for Checksum<F> {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let (content, stored) = match self.location {
            Location::Start => encoded.split_first_chunk::<4>().map(|(stored, content)| (content, stored)),
            Location::End => encoded.split_last_chunk::<4>(),
        }
        .ok_or(CodecError::LengthMismatch {
            codec: self.codec,
            expected: CHECKSUM_SIZE,
            found: encoded.len() as u64,
        })?;
        if content.len() as u64 > limit {
            return Err(CodecError::OutputTooLong { codec: self.codec, limit });
        }
        if (self.compute)(content) != u32::from_le_bytes(*stored) {
            return Err(CodecError::ChecksumMismatch { codec: self.codec });
        }
        Ok(encoded.slice_ref(content))
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let compute = (self.compute)(&decoded);
        let mut encoded = BytesMut::with_capacity(decoded.len() + CHECKSUM_SIZE as usize);
        if self.location == Location::Start {
            encoded.put_u32_le(compute);
        }
        encoded.extend_from_slice(&decoded);
        if self.location == Location::End {
            encoded.put_u32_le(compute);
        }
        Ok(encoded.freeze())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        EncodedSizeBound::Exact(decoded.saturating_add(CHECKSUM_SIZE))
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(2)
    }
}

impl<F> fmt::Debug for Checksum<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at the {:?}", self.codec, self.location)
    }
}
