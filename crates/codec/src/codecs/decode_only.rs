//! Compressors whose configuration is only wrong for encoding: a level that does not exist stops no read.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_meta::data_type::{DataType, StoredOrder};

use crate::{BytesToBytes, Codec, CodecError, Cost, EncodedSizeBound};

/// A codec that decodes like another one, and does not encode.
#[derive(Debug)]
struct DecodeOnly<C> {
    codec: C,
    name: &'static str,
    /// Continues the codec's name.
    reason: String,
}

/// The codec, which does not encode if there is a reason, which continues its name.
pub(super) fn unless_refused(codec: impl BytesToBytes + 'static, name: &'static str, reason: Option<String>) -> Codec {
    Codec::BytesToBytes(match reason {
        None => Arc::new(codec),
        Some(reason) => Arc::new(DecodeOnly { codec, name, reason }),
    })
}

/// The reason for refusing to encode with a level.
pub(super) fn unsupported_level(level: i64) -> String {
    format!("does not encode with level {level}")
}

impl<C: BytesToBytes> BytesToBytes for DecodeOnly<C> {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        self.codec.decode(encoded, limit)
    }

    fn encode(&self, _decoded: Bytes) -> Result<Bytes, CodecError> {
        Err(CodecError::EncodingUnsupported { codec: self.name, reason: self.reason.clone() })
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        self.codec.encoded_size(decoded)
    }

    fn encoder_memory(&self, decoded: u64) -> u64 {
        self.codec.encoder_memory(decoded)
    }

    fn cost(&self) -> Cost {
        self.codec.cost()
    }

    fn stored_elements(&self, before: Option<&(DataType, StoredOrder)>) -> Option<(DataType, StoredOrder)> {
        self.codec.stored_elements(before)
    }
}
