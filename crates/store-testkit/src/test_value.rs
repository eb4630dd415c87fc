//! Values that are generated and checked chunk by chunk, without being buffered.

use std::{ops::Range, sync::LazyLock};

use bytes::Bytes;
use futures::{TryStreamExt, stream};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use zarrd_store::{GetResult, Payload, StoreError};

/// A value determined by its seed and length. Values of different seeds differ everywhere, except by chance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TestValue {
    pub(super) seed: u64,
    pub(super) len: u64,
}

/// A prime, so that blocks that are swapped, or from another value, do not match.
const PERIOD: usize = 65_521;

/// Two periods of noise: any chunk of up to one period is a slice of it.
static NOISE: LazyLock<Bytes> = LazyLock::new(|| {
    let words = (0..PERIOD as u64).flat_map(|number| xxh3_64_with_seed(&number.to_le_bytes(), 0).to_le_bytes());
    let period: Vec<u8> = words.take(PERIOD).collect();
    Bytes::from(period.repeat(2))
});

/// The lengths of a payload's chunks, repeated.
const CHUNK_LENGTHS: [usize; 7] = [1, 4_095, 65_000, 7, 16_384, 1_000, 33_333];

impl TestValue {
    pub(super) fn new(seed: u64, len: u64) -> Self {
        Self { seed, len }
    }

    /// The bytes from `at` on: `len` of them, but at most a period.
    fn chunk(self, at: u64, len: usize) -> Bytes {
        let start = ((self.seed % PERIOD as u64) * 40_503 + at % PERIOD as u64) as usize % PERIOD;
        NOISE.slice(start..start + len.min(PERIOD))
    }

    /// The chunks of the value in order, of various lengths.
    pub(super) fn chunks(self) -> impl Iterator<Item = Bytes> + Send + 'static {
        let mut lengths = CHUNK_LENGTHS.into_iter().cycle();
        let mut at = 0;
        std::iter::from_fn(move || {
            let left = self.len.checked_sub(at).filter(|left| *left > 0)?;
            let chunk = self.chunk(at, lengths.next()?.min(usize::try_from(left).unwrap_or(usize::MAX)));
            at += chunk.len() as u64;
            Some(chunk)
        })
    }

    /// The value as a payload of announced length.
    pub(super) fn payload(self) -> Payload {
        Payload { size: Some(self.len), ..self.payload_of_unknown_size() }
    }

    /// The value as a payload of unknown length.
    pub(super) fn payload_of_unknown_size(self) -> Payload {
        Payload::from_stream(stream::iter(self.chunks().map(Ok)))
    }

    /// The complete value.
    pub(super) fn bytes(self) -> Bytes {
        self.chunks().collect::<Vec<_>>().concat().into()
    }

    /// Reads `value` to its end and asserts that it is the range of this value that it claims to be.
    pub(super) async fn assert_is(self, value: GetResult) {
        let mut reader = self.reader(&value);
        let mut stream = value.stream;
        while let Some(chunk) = stream.try_next().await.expect("the value can be read") {
            reader.take(&chunk);
        }
        reader.finish();
    }

    /// A reader that compares the chunks of `value` with this value.
    pub(super) fn reader(self, value: &GetResult) -> PayloadReader {
        assert_eq!(value.meta.size, self.len, "the size of {self:?}");
        PayloadReader { payload: self, left: value.range.clone() }
    }
}

/// Compares what is read with what was written.
#[derive(Debug)]
pub(super) struct PayloadReader {
    payload: TestValue,
    left: Range<u64>,
}

impl PayloadReader {
    pub(super) fn take(&mut self, read: &[u8]) {
        let payload = self.payload;
        assert!(
            read.len() as u64 <= self.left.end - self.left.start,
            "{payload:?} yields more bytes than its range has"
        );
        for part in read.chunks(PERIOD) {
            let at = self.left.start;
            assert!(payload.chunk(at, part.len()) == part, "{payload:?} was read back differently after byte {at}");
            self.left.start += part.len() as u64;
        }
    }

    pub(super) fn finish(self) {
        assert!(self.left.is_empty(), "{:?} ended {} bytes early", self.payload, self.left.end - self.left.start);
    }
}

/// A payload that fails with `error` after some chunks.
pub(super) fn broken_payload(payload: TestValue, chunks: usize, error: StoreError) -> Payload {
    let chunks: Vec<_> = payload.chunks().take(chunks).map(Ok).chain([Err(error)]).collect();
    Payload { size: Some(payload.len), ..Payload::from_stream(stream::iter(chunks)) }
}
