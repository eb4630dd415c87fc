//! Streams of encoded elements for response bodies.

use std::io;

use bytes::Bytes;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};
use zarrd_array::{ArrayError, ReadMetrics};
use zarrd_codec::Elements;
use zarrd_executor::run_short;

use super::encode::encoder::{BLOCK_SIZE, ElementEncoder, Progress};
use crate::{
    app::App,
    content_encoding::{Compressor, ContentEncoding},
};

/// The largest slice, in bytes, that is compressed before other tasks get a turn.
const COMPRESS_STRIDE: usize = 64 << 10;

/// Errors that end a response body early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// Reading the elements failed.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The compressor failed.
    #[error("compressing the response failed")]
    Compression(#[source] io::Error),
}

/// The encoded bytes of a response, block by block.
pub(super) type Blocks = BoxStream<'static, Result<Bytes, BodyError>>;

type ElementStream = BoxStream<'static, Result<Elements, ArrayError>>;

/// Reports the statistics of a read to the metrics when dropped.
pub(super) struct MetricsGuard {
    app: App,
    metrics: ReadMetrics,
}

/// The elements to encode.
pub(super) enum ElementInput {
    /// Elements as they are read.
    Stream(ElementStream),
    /// A count of empty texts to encode; see [`ArraySlice::placeholders`](super::encode::ArraySlice::placeholders).
    Placeholders(u64),
}

/// The buffered start of a body.
pub(super) enum BodyStart {
    /// The complete body.
    Complete(Bytes),
    /// More than a block, with the rest of the body still to be encoded.
    Partial(Blocks),
}

impl MetricsGuard {
    pub(super) fn new(app: &App, metrics: ReadMetrics) -> Self {
        Self { app: app.clone(), metrics }
    }
}

impl Drop for MetricsGuard {
    fn drop(&mut self) {
        self.app.metrics().record_read(self.metrics.stats());
    }
}

/// Streams elements in their memory layout, after a header.
pub(super) fn passthrough(head: Vec<u8>, stream: ElementStream, guard: MetricsGuard) -> Blocks {
    let head = (!head.is_empty()).then(|| Ok(Bytes::from(head)));
    let bytes = stream.map_err(BodyError::Array).try_filter_map(move |elements| {
        // The guard has to live as long as the stream.
        let _ = &guard;
        std::future::ready(Ok(match elements {
            Elements::Fixed(bytes) => Some(bytes).filter(|bytes| !bytes.is_empty()),
            Elements::Variable(_) => None,
        }))
    });
    stream::iter(head).chain(bytes).boxed()
}

/// Streams what an encoder writes for elements of `size` bytes, or of variable length.
pub(super) fn encode_elements(
    encoder: Box<dyn ElementEncoder>,
    size: Option<usize>,
    input: ElementInput,
    guard: MetricsGuard,
) -> Blocks {
    let writer =
        BlockWriter { encoder, size, input, current: None, position: 0, state: WriterState::Header, _guard: guard };
    stream::try_unfold(writer, |mut writer| async move {
        Ok::<_, BodyError>(writer.next().await?.map(|block| (block, writer)))
    })
    .boxed()
}

/// Compresses a stream of blocks.
pub(super) fn compress(blocks: Blocks, encoding: ContentEncoding) -> Result<Blocks, BodyError> {
    let Some(compressor) = Compressor::new(encoding).map_err(BodyError::Compression)? else { return Ok(blocks) };
    let state = (blocks, Some(compressor), Bytes::new());
    let compress = stream::try_unfold(state, |(mut blocks, mut compressor, mut pending)| async move {
        while let Some(mut active) = compressor.take() {
            if pending.is_empty() {
                match blocks.try_next().await? {
                    Some(block) => pending = block,
                    None => {
                        let end = active.finish().map_err(BodyError::Compression)?;
                        return Ok(Some((end, (blocks, None, pending))));
                    }
                }
            }
            let part = pending.split_to(pending.len().min(COMPRESS_STRIDE));
            let compress = move || active.push(&part).map(|block| (block, active));
            let (block, active) = run_short(compress).await.map_err(BodyError::Compression)?;
            compressor = Some(active);
            if !block.is_empty() {
                return Ok(Some((block, (blocks, compressor, pending))));
            }
            // Well compressible input is consumed for long without producing output.
            tokio::task::yield_now().await;
        }
        Ok::<_, BodyError>(None)
    });
    Ok(compress.boxed())
}

/// Buffers blocks until they end or exceed [`BLOCK_SIZE`]. An error up to here still becomes a response of its own.
pub(super) async fn buffer_start(mut blocks: Blocks) -> Result<BodyStart, BodyError> {
    let (mut buffered, mut len) = (Vec::new(), 0);
    while len <= BLOCK_SIZE {
        let Some(block) = blocks.try_next().await? else {
            return Ok(BodyStart::Complete(concat(buffered)));
        };
        len += block.len();
        buffered.push(block);
    }
    Ok(BodyStart::Partial(stream::iter(buffered.into_iter().map(Ok)).chain(blocks).boxed()))
}

fn concat(mut blocks: Vec<Bytes>) -> Bytes {
    match blocks.len() {
        0 | 1 => blocks.pop().unwrap_or_default(),
        _ => blocks.concat().into(),
    }
}

/// Encodes elements into blocks.
struct BlockWriter {
    encoder: Box<dyn ElementEncoder>,
    size: Option<usize>,
    input: ElementInput,
    /// The elements being encoded.
    current: Option<Elements>,
    /// The position in them: in bytes, or in elements of variable length.
    position: usize,
    state: WriterState,
    _guard: MetricsGuard,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WriterState {
    Header,
    Elements,
    Finished,
}

impl BlockWriter {
    async fn next(&mut self) -> Result<Option<Bytes>, ArrayError> {
        if self.state == WriterState::Finished {
            return Ok(None);
        }
        // Small answers are one block; the last element of a full one ends beyond it.
        let capacity = if self.state == WriterState::Header { 1 << 10 } else { BLOCK_SIZE + (1 << 10) };
        let mut out = Vec::with_capacity(capacity);
        if self.state == WriterState::Header {
            if self.encoder.write_header(&mut out) == Progress::Partial {
                return Ok(Some(out.into()));
            }
            self.state = WriterState::Elements;
        }
        while out.len() < BLOCK_SIZE {
            if self.write_current(&mut out) {
                continue;
            }
            let ElementInput::Stream(stream) = &mut self.input else { return Ok(Some(self.finish(out))) };
            match stream.try_next().await? {
                Some(current) => (self.current, self.position) = (Some(current), 0),
                None => return Ok(Some(self.finish(out))),
            }
        }
        Ok(Some(out.into()))
    }

    fn finish(&mut self, mut out: Vec<u8>) -> Bytes {
        self.encoder.finish(&mut out);
        self.state = WriterState::Finished;
        out.into()
    }

    /// Encodes from the current elements until a block is full. Returns false if nothing was left to encode.
    fn write_current(&mut self, out: &mut Vec<u8>) -> bool {
        if let ElementInput::Placeholders(remaining) = &mut self.input {
            let any = *remaining > 0;
            while *remaining > 0 && out.len() < BLOCK_SIZE {
                self.encoder.write_element(&[], out);
                *remaining -= 1;
            }
            return any;
        }
        let before = self.position;
        match &self.current {
            None => {}
            Some(Elements::Fixed(bytes)) => {
                let size = self.size.unwrap_or(1).max(1);
                for element in bytes.get(self.position..).unwrap_or_default().chunks_exact(size) {
                    self.encoder.write_element(element, out);
                    self.position += size;
                    if out.len() >= BLOCK_SIZE {
                        break;
                    }
                }
            }
            Some(Elements::Variable(elements)) => {
                while let Some(element) = elements.get(self.position).filter(|_| out.len() < BLOCK_SIZE) {
                    self.encoder.write_element(element, out);
                    self.position += 1;
                }
            }
        }
        self.position > before
    }
}
