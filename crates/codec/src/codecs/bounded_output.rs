//! Output of decoders, up to a number of bytes.

use bytes::Bytes;

use crate::{CodecError, EncodedSizeBound};

/// The number of bytes that may be allocated whatever the encoded bytes are: the size of a usual chunk.
const DEFAULT_CAPACITY: usize = 4 << 20;

/// The factor of the encoded size up to which memory is allocated before anything is decoded.
const MAX_EXPANSION: usize = 32;

/// A decoder that is given all its input at once and answers piece by piece.
pub(super) trait StreamDecoder {
    /// Decodes into the spare capacity of `output`, and does not grow it.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, CodecError>;
}

/// The result of one step of a [`Decoder`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The number of input bytes consumed.
    pub(super) consumed: u64,
    /// True if the stream ended.
    pub(super) is_finished: bool,
}

/// Collects what is decoded, up to a number of bytes.
#[derive(Debug)]
pub(super) struct BoundedOutput {
    bytes: Vec<u8>,
    limit: u64,
    codec: &'static str,
}

/// The bytes that may be allocated at once for the output of `encoded` bytes that claim to decode to `declared`.
/// Usually that is all of it; beyond a factor, more has to be decoded before the claim is believed.
pub(super) fn initial_capacity(encoded: usize, declared: u64) -> usize {
    usize::try_from(declared).unwrap_or(usize::MAX).min(encoded.saturating_mul(MAX_EXPANSION).max(DEFAULT_CAPACITY))
}

/// The bounds of any compressor's output for `decoded` bytes. Ours adds less than a hundredth to incompressible data;
/// some writers flush after every few bytes.
pub(super) fn compressed_size_bound(decoded: u64) -> EncodedSizeBound {
    EncodedSizeBound::AtMost(decoded.saturating_add(decoded / 4).saturating_add(64 << 10))
}

/// The `Bytes` of a codec's output. Excess capacity is released.
pub(super) fn into_bytes(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() - bytes.len() > bytes.len() / 8 {
        bytes.shrink_to_fit();
    }
    bytes.into()
}

impl BoundedOutput {
    /// Nothing yet, of at most `limit` bytes, which `encoded` bytes yield.
    pub(super) fn new(codec: &'static str, encoded: usize, limit: u64) -> Self {
        Self { bytes: Vec::with_capacity(initial_capacity(encoded, limit)), limit, codec }
    }

    /// Decodes one stream to its end, and answers what follows it in the input.
    pub(super) fn decode_stream<'a>(
        &mut self,
        decoder: &mut impl StreamDecoder,
        mut input: &'a [u8],
    ) -> Result<&'a [u8], CodecError> {
        loop {
            let before = self.bytes.len();
            let step =
                if self.reserve() { decoder.step(input, &mut self.bytes)? } else { self.probe_end(decoder, input)? };
            if self.bytes.len() as u64 > self.limit {
                return Err(self.output_too_long());
            }
            let consumed = usize::try_from(step.consumed).ok().and_then(|consumed| input.get(consumed..));
            input = consumed.ok_or(CodecError::Malformed { codec: self.codec, reason: "it ends within its stream" })?;
            if step.is_finished {
                return Ok(input);
            }
            if step.consumed == 0 && self.bytes.len() == before {
                return Err(CodecError::Malformed { codec: self.codec, reason: "the stream has no end" });
            }
        }
    }

    /// All that was decoded.
    pub(super) fn into_bytes(self) -> Bytes {
        into_bytes(self.bytes)
    }

    /// Makes room, and answers whether there is any.
    fn reserve(&mut self) -> bool {
        let len = self.bytes.len();
        if len < self.bytes.capacity() {
            return true;
        }
        let rest = usize::try_from(self.limit.saturating_sub(len as u64)).unwrap_or(usize::MAX);
        self.bytes.reserve_exact(rest.min(len.max(DEFAULT_CAPACITY)));
        rest > 0
    }

    /// Looks for the end of a stream when the output is full.
    fn probe_end(&self, decoder: &mut impl StreamDecoder, input: &[u8]) -> Result<Step, CodecError> {
        let mut probed = Vec::with_capacity(1);
        let step = decoder.step(input, &mut probed)?;
        if probed.is_empty() { Ok(step) } else { Err(self.output_too_long()) }
    }

    fn output_too_long(&self) -> CodecError {
        CodecError::OutputTooLong { codec: self.codec, limit: self.limit }
    }
}
