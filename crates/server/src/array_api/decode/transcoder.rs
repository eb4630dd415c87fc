//! Streaming conversion of elements of a fixed size.

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use zarrd_codec::ByteSwap;
use zarrd_meta::data_type::{DataType, Number};
use zarrd_store::ByteStream;

use super::{
    DecodeError,
    conversion::{ElementStep, RejectedElement},
    indices,
};

/// The approximate size, in bytes, of the blocks of padded elements.
const BLOCK_SIZE: usize = 256 << 10;

/// Converts elements of a fixed size as they stream in.
pub(super) struct ElementTranscoder {
    /// The expected length of the stream, in bytes, if known.
    pub(super) expected: Option<u64>,
    /// The extents of the elements, for the indices in errors.
    pub(super) extents: Vec<Option<u64>>,
    /// The data type of received elements, or that of the array to which they are padded.
    pub(super) data_type: DataType,
    /// The conversion to the array's elements, after the byte swap.
    pub(super) step: ElementStep,
    /// The size of a received element, in bytes.
    pub(super) size: usize,
    /// The byte swap to apply before anything else.
    pub(super) swap: ByteSwap,
}

struct Transcoding {
    stream: ByteStream,
    transcoder: ElementTranscoder,
    /// The number of received bytes.
    received: u64,
    /// The number of emitted elements.
    emitted: u64,
    /// Received bytes that are not emitted yet.
    buffered: BytesMut,
    ended: bool,
}

impl ElementTranscoder {
    /// Converts a stream to the array's elements: little-endian, and padded with zeros to the array's size. The stream
    /// fails if its length differs from `expected`, or if an element is invalid.
    pub(super) fn transcode(self, stream: ByteStream) -> ByteStream {
        let state =
            Transcoding { stream, transcoder: self, received: 0, emitted: 0, buffered: BytesMut::new(), ended: false };
        let elements = stream::try_unfold(state, |mut state| async move {
            Ok(state.next().await.map_err(DecodeError::into_stream_error)?.map(|data| (data, state)))
        });
        elements.boxed()
    }

    fn wider_size(&self) -> Option<usize> {
        self.data_type.fixed_size().filter(|size| *size > self.size)
    }

    fn needs_validation(&self) -> bool {
        self.data_type.number() == Some(Number::Bool)
    }
}

impl Transcoding {
    async fn next(&mut self) -> Result<Option<Bytes>, DecodeError> {
        loop {
            if let Some(data) = self.next_elements()? {
                return Ok(Some(data));
            }
            if self.ended {
                return Ok(None);
            }
            match self.stream.try_next().await? {
                Some(data) if self.is_passthrough() => {
                    self.count(data.len())?;
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
                Some(data) => {
                    self.count(data.len())?;
                    self.buffered.extend_from_slice(&data);
                }
                None => self.end()?,
            }
        }
    }

    fn is_passthrough(&self) -> bool {
        let transcoder = &self.transcoder;
        transcoder.swap == ByteSwap::None
            && transcoder.wider_size().is_none()
            && !transcoder.needs_validation()
            && matches!(transcoder.step, ElementStep::Keep)
    }

    fn count(&mut self, len: usize) -> Result<(), DecodeError> {
        self.received = self.received.saturating_add(len as u64);
        match self.transcoder.expected {
            Some(expected) if self.received > expected => Err(DecodeError::Length { expected, found: self.received }),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), DecodeError> {
        self.ended = true;
        match self.transcoder.expected {
            Some(expected) if expected != self.received => Err(DecodeError::Length { expected, found: self.received }),
            // The consumer reports a partial element at the end of an append.
            _ => Ok(()),
        }
    }

    /// Returns the complete elements received so far, converted; `None` if more bytes are needed.
    fn next_elements(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let size = self.transcoder.size.max(1);
        let complete = self.buffered.len() / size;
        let count = match (self.transcoder.wider_size(), &self.transcoder.step) {
            (Some(wider), _) => complete.min((BLOCK_SIZE / wider).max(1)),
            (None, ElementStep::Keep) => complete,
            (None, _) => complete.min((BLOCK_SIZE / size).max(1)),
        };
        if count == 0 {
            // A partial element at the end is emitted for the consumer to report.
            let part = self.ended && !self.buffered.is_empty();
            return Ok(part.then(|| self.buffered.split().freeze()));
        }
        let mut elements = self.buffered.split_to(count.saturating_mul(size));
        self.transcoder.swap.apply_in_place(&mut elements);
        self.validate(&elements)?;
        let converted = self.transcoder.step.apply(&elements).map_err(|rejected| self.rejected(rejected))?;
        self.emitted = self.emitted.saturating_add(count as u64);
        if let Some(converted) = converted {
            return Ok(Some(converted.into()));
        }
        Ok(Some(match self.transcoder.wider_size() {
            None => elements.freeze(),
            Some(wider) => widen(&elements, size, wider),
        }))
    }

    fn rejected(&self, RejectedElement { index, reason }: RejectedElement) -> DecodeError {
        let at = indices(&self.transcoder.extents, self.emitted.saturating_add(index));
        DecodeError::Unrepresentable { at, reason }
    }

    fn validate(&self, elements: &[u8]) -> Result<(), DecodeError> {
        let data_type = &self.transcoder.data_type;
        if !self.transcoder.needs_validation() || data_type.invalid_reason(elements).is_none() {
            return Ok(());
        }
        let flaws = elements.chunks(self.transcoder.size.max(1)).map(|element| data_type.invalid_reason(element));
        match flaws.enumerate().find_map(|(index, flaw)| Some((index as u64, flaw?))) {
            Some((index, flaw)) => {
                let at = indices(&self.transcoder.extents, self.emitted.saturating_add(index));
                Err(DecodeError::Element { at, flaw })
            }
            None => Ok(()),
        }
    }
}

fn widen(elements: &[u8], size: usize, wider: usize) -> Bytes {
    let mut out = Vec::with_capacity((elements.len() / size.max(1)).saturating_mul(wider));
    for element in elements.chunks(size.max(1)) {
        let end = out.len().saturating_add(wider);
        out.extend_from_slice(element);
        out.resize(end, 0);
    }
    out.into()
}
