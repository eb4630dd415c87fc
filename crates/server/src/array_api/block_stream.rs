//! Elements becoming bytes on their way out.

use std::io;

use array::{ArrayError, ReadMetrics};
use bytes::Bytes;
use codec::Elements;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};

use super::encode::encoder::{BLOCK_SIZE, ElementEncoder, Progress};
use crate::{
    app::App,
    content_encoding::{Compressor, ContentEncoding},
};

/// How much of large pieces is compressed at a time, so that other requests come in between.
const COMPRESS_STRIDE: usize = 64 << 10;

/// Why the bytes of an answer break off.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The elements are not read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The content coding failed.
    #[error("the answer cannot be compressed")]
    Compression(#[source] io::Error),
}

/// The bytes of an answer, block by block.
pub(super) type Blocks = BoxStream<'static, Result<Bytes, BodyError>>;

type ElementStream = BoxStream<'static, Result<Elements, ArrayError>>;

/// Counts what a reading took when it ends, whichever way.
pub(super) struct MetricsGuard {
    app: App,
    metrics: ReadMetrics,
}

/// What the elements of an answer come from.
pub(super) enum ElementInput {
    /// What is read.
    Stream(ElementStream),
    /// Elements, or what stands in their place, that have no bytes: this many.
    Placeholders(u64),
}

/// The beginning of an answer.
pub(super) enum BodyStart {
    /// All of it.
    Complete(Bytes),
    /// More than a block, and what follows.
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

/// The bytes of elements as they are in memory, after a head.
pub(super) fn passthrough(head: Vec<u8>, pieces: ElementStream, guard: MetricsGuard) -> Blocks {
    let head = (!head.is_empty()).then(|| Ok(Bytes::from(head)));
    let bytes = pieces.map_err(BodyError::Array).try_filter_map(move |elements| {
        // It lives as long as the stream.
        let _ = &guard;
        std::future::ready(Ok(match elements {
            Elements::Fixed(bytes) => Some(bytes).filter(|bytes| !bytes.is_empty()),
            Elements::Variable(_) => None,
        }))
    });
    stream::iter(head).chain(bytes).boxed()
}

/// What an encoder writes of elements of `size` bytes, or of variable length.
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

/// Compresses the blocks.
pub(super) fn compress(blocks: Blocks, encoding: ContentEncoding) -> Result<Blocks, BodyError> {
    let Some(compressor) = Compressor::new(encoding).map_err(BodyError::Compression)? else { return Ok(blocks) };
    let state = (blocks, Some(compressor), Bytes::new());
    let compress = stream::try_unfold(state, |(mut blocks, mut compressor, mut pending)| async move {
        while let Some(active) = compressor.as_mut() {
            if pending.is_empty() {
                match blocks.try_next().await? {
                    Some(block) => pending = block,
                    None => {
                        let end =
                            compressor.take().map(Compressor::finish).transpose().map_err(BodyError::Compression)?;
                        return Ok(end.map(|end| (end, (blocks, compressor, pending))));
                    }
                }
            }
            let block =
                active.push(&pending.split_to(pending.len().min(COMPRESS_STRIDE))).map_err(BodyError::Compression)?;
            if !block.is_empty() {
                return Ok(Some((block, (blocks, compressor, pending))));
            }
            // Much is taken in before anything comes out where it compresses well.
            tokio::task::yield_now().await;
        }
        Ok::<_, BodyError>(None)
    });
    Ok(compress.boxed())
}

/// Takes blocks until they end or are more than one large one. What fails until then can still become an answer of its own.
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

/// Writes elements into blocks.
struct BlockWriter {
    encoder: Box<dyn ElementEncoder>,
    size: Option<usize>,
    input: ElementInput,
    /// What is being written.
    current: Option<Elements>,
    /// How much of it has been: bytes, or elements of variable length.
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
        let mut out = Vec::with_capacity(1 << 10);
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
            let ElementInput::Stream(pieces) = &mut self.input else { return Ok(Some(self.finish(out))) };
            match pieces.try_next().await? {
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

    /// Writes what is at hand, up to a block; whether there was anything.
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
