//! Output buffers of decoders with a maximum size.

use bytes::Bytes;

use crate::{CodecError, EncodedSizeBound};

/// The number of bytes that may be allocated regardless of the encoded size: the size of a common chunk.
const DEFAULT_CAPACITY: usize = 4 << 20;

/// The maximum ratio of memory allocated in advance to the encoded size.
const MAX_EXPANSION: usize = 32;

/// A decoder of a stream that is completely in memory; it decodes step by step.
pub(super) trait StreamDecoder {
    /// Decodes into the spare capacity of `output`, without growing it.
    fn step(&mut self, input: &[u8], output: &mut Vec<u8>) -> Result<Step, CodecError>;
}

/// The result of a [`StreamDecoder::step`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The number of consumed input bytes.
    pub(super) consumed: u64,
    /// True if the stream ended.
    pub(super) is_finished: bool,
}

/// A buffer for decoded bytes with a maximum size.
#[derive(Debug)]
pub(super) struct BoundedOutput {
    bytes: Vec<u8>,
    limit: u64,
    codec: &'static str,
}

/// The initial capacity for the output of `encoded` bytes with a declared size. It is usually the declared size, which
/// is only trusted up to a multiple of the encoded size.
pub(super) fn initial_capacity(encoded: usize, declared: u64) -> usize {
    usize::try_from(declared).unwrap_or(usize::MAX).min(encoded.saturating_mul(MAX_EXPANSION).max(DEFAULT_CAPACITY))
}

/// The bound of any compressor's output for `decoded` bytes. Our compressors add less than a hundredth to
/// incompressible data; some writers flush after every few bytes.
pub(super) fn compressed_size_bound(decoded: u64) -> EncodedSizeBound {
    EncodedSizeBound::AtMost(decoded.saturating_add(decoded / 4).saturating_add(64 << 10))
}

/// Converts a codec's output; releases excess capacity.
pub(super) fn into_bytes(mut bytes: Vec<u8>) -> Bytes {
    if bytes.capacity() - bytes.len() > bytes.len() / 8 {
        bytes.shrink_to_fit();
    }
    bytes.into()
}

impl BoundedOutput {
    /// An empty buffer of at most `limit` bytes for the output of `encoded` bytes.
    pub(super) fn new(codec: &'static str, encoded: usize, limit: u64) -> Self {
        Self { bytes: Vec::with_capacity(initial_capacity(encoded, limit)), limit, codec }
    }

    /// Decodes one stream to its end. Returns the input after it.
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
            input = consumed.ok_or(CodecError::Malformed { codec: self.codec, reason: "the stream is truncated" })?;
            if step.is_finished {
                return Ok(input);
            }
            if step.consumed == 0 && self.bytes.len() == before {
                return Err(CodecError::Malformed { codec: self.codec, reason: "the stream is truncated" });
            }
        }
    }

    /// The decoded bytes.
    pub(super) fn into_bytes(self) -> Bytes {
        into_bytes(self.bytes)
    }

    /// Grows the buffer if it is full. Returns true if it has capacity.
    fn reserve(&mut self) -> bool {
        let len = self.bytes.len();
        if len < self.bytes.capacity() {
            return true;
        }
        let rest = usize::try_from(self.limit.saturating_sub(len as u64)).unwrap_or(usize::MAX);
        self.bytes.reserve_exact(rest.min(len.max(DEFAULT_CAPACITY)));
        rest > 0
    }

    /// Decodes the end of a stream when the output is full; fails if there is more output.
    fn probe_end(&self, decoder: &mut impl StreamDecoder, input: &[u8]) -> Result<Step, CodecError> {
        let mut probed = Vec::with_capacity(1);
        let step = decoder.step(input, &mut probed)?;
        if probed.is_empty() { Ok(step) } else { Err(self.output_too_long()) }
    }

    fn output_too_long(&self) -> CodecError {
        CodecError::OutputTooLong { codec: self.codec, limit: self.limit }
    }
}
