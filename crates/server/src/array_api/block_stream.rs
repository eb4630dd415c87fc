//! Elements becoming bytes on their way out.

use std::io;

use array::{ArrayError, ReadMetrics};
use bytes::Bytes;
use codec::Elements;
use futures::{
    StreamExt, TryStreamExt,
    stream::{self, BoxStream},
};

use super::encode::encoder::{BLOCK, Begun, Encoder};
use crate::{
    app::App,
    content_encoding::{Coder, Coding},
};

/// How much of large pieces is compressed at a time, so that other requests come in between.
const STRIDE: usize = 64 << 10;

/// Why the bytes of an answer break off.
#[derive(Debug, thiserror::Error)]
pub(super) enum BlockError {
    /// The elements are not read.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The content coding failed.
    #[error("the answer cannot be compressed")]
    Coding(#[source] io::Error),
}

/// The bytes of an answer, block by block.
pub(super) type Blocks = BoxStream<'static, Result<Bytes, BlockError>>;

type Pieces = BoxStream<'static, Result<Elements, ArrayError>>;

/// Counts what a reading took when it ends, whichever way.
pub(super) struct Counted {
    app: App,
    meter: ReadMetrics,
}

/// What the elements of an answer come from.
pub(super) enum Source {
    /// What is read.
    Pieces(Pieces),
    /// Elements, or what stands in their place, that have no bytes: this many.
    Empties(u64),
}

/// The beginning of an answer.
pub(super) enum Gathered {
    /// All of it.
    All(Bytes),
    /// More than a block, and what follows.
    Begun(Blocks),
}

impl Counted {
    pub(super) fn new(app: &App, meter: ReadMetrics) -> Self {
        Self { app: app.clone(), meter }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.app.metrics().worked(self.meter.stats());
    }
}

/// The bytes of elements as they are in memory, after a head.
pub(super) fn verbatim(head: Vec<u8>, pieces: Pieces, counted: Counted) -> Blocks {
    let head = (!head.is_empty()).then(|| Ok(Bytes::from(head)));
    let bytes = pieces.map_err(BlockError::Array).try_filter_map(move |elements| {
        // It lives as long as the stream.
        let _ = &counted;
        std::future::ready(Ok(match elements {
            Elements::Fixed(bytes) => Some(bytes).filter(|bytes| !bytes.is_empty()),
            Elements::Variable(_) => None,
        }))
    });
    stream::iter(head).chain(bytes).boxed()
}

/// What an encoder writes of elements of `size` bytes, or of variable length.
pub(super) fn encoded(encoder: Box<dyn Encoder>, size: Option<usize>, source: Source, counted: Counted) -> Blocks {
    let writer = Writer { encoder, size, source, piece: None, at: 0, state: State::New, _counted: counted };
    stream::try_unfold(writer, |mut writer| async move {
        Ok::<_, BlockError>(writer.next().await?.map(|block| (block, writer)))
    })
    .boxed()
}

/// Compresses the blocks.
pub(super) fn coded(blocks: Blocks, coding: Coding) -> Result<Blocks, BlockError> {
    let Some(coder) = Coder::new(coding).map_err(BlockError::Coding)? else { return Ok(blocks) };
    let state = (blocks, Some(coder), Bytes::new());
    let coded = stream::try_unfold(state, |(mut blocks, mut coder, mut rest)| async move {
        while let Some(coding) = coder.as_mut() {
            if rest.is_empty() {
                match blocks.try_next().await? {
                    Some(block) => rest = block,
                    None => {
                        let end = coder.take().map(Coder::end).transpose().map_err(BlockError::Coding)?;
                        return Ok(end.map(|end| (end, (blocks, coder, rest))));
                    }
                }
            }
            let block = coding.next(&rest.split_to(rest.len().min(STRIDE))).map_err(BlockError::Coding)?;
            if !block.is_empty() {
                return Ok(Some((block, (blocks, coder, rest))));
            }
            // Much is taken in before anything comes out where it compresses well.
            tokio::task::yield_now().await;
        }
        Ok::<_, BlockError>(None)
    });
    Ok(coded.boxed())
}

/// Takes blocks until they end or are more than one large one. What fails until then can still become an answer of its own.
pub(super) async fn gather(mut blocks: Blocks) -> Result<Gathered, BlockError> {
    let (mut begun, mut len) = (Vec::new(), 0);
    while len <= BLOCK {
        let Some(block) = blocks.try_next().await? else {
            return Ok(Gathered::All(joined(begun)));
        };
        len += block.len();
        begun.push(block);
    }
    Ok(Gathered::Begun(stream::iter(begun.into_iter().map(Ok)).chain(blocks).boxed()))
}

fn joined(mut blocks: Vec<Bytes>) -> Bytes {
    match blocks.len() {
        0 | 1 => blocks.pop().unwrap_or_default(),
        _ => blocks.concat().into(),
    }
}

/// Writes elements into blocks.
struct Writer {
    encoder: Box<dyn Encoder>,
    size: Option<usize>,
    source: Source,
    /// What is being written.
    piece: Option<Elements>,
    /// How much of it has been: bytes, or elements of variable length.
    at: usize,
    state: State,
    _counted: Counted,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    Within,
    Ended,
}

impl Writer {
    async fn next(&mut self) -> Result<Option<Bytes>, ArrayError> {
        if self.state == State::Ended {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(1 << 10);
        if self.state == State::New {
            if self.encoder.begin(&mut out) == Begun::Partly {
                return Ok(Some(out.into()));
            }
            self.state = State::Within;
        }
        while out.len() < BLOCK {
            if self.write(&mut out) {
                continue;
            }
            let Source::Pieces(pieces) = &mut self.source else { return Ok(Some(self.ended(out))) };
            match pieces.try_next().await? {
                Some(piece) => (self.piece, self.at) = (Some(piece), 0),
                None => return Ok(Some(self.ended(out))),
            }
        }
        Ok(Some(out.into()))
    }

    fn ended(&mut self, mut out: Vec<u8>) -> Bytes {
        self.encoder.end(&mut out);
        self.state = State::Ended;
        out.into()
    }

    /// Writes what is at hand, up to a block; whether there was anything.
    fn write(&mut self, out: &mut Vec<u8>) -> bool {
        if let Source::Empties(left) = &mut self.source {
            let any = *left > 0;
            while *left > 0 && out.len() < BLOCK {
                self.encoder.element(&[], out);
                *left -= 1;
            }
            return any;
        }
        let before = self.at;
        match &self.piece {
            None => {}
            Some(Elements::Fixed(bytes)) => {
                let size = self.size.unwrap_or(1).max(1);
                for element in bytes.get(self.at..).unwrap_or_default().chunks_exact(size) {
                    self.encoder.element(element, out);
                    self.at += size;
                    if out.len() >= BLOCK {
                        break;
                    }
                }
            }
            Some(Elements::Variable(elements)) => {
                while let Some(element) = elements.get(self.at).filter(|_| out.len() < BLOCK) {
                    self.encoder.element(element, out);
                    self.at += 1;
                }
            }
        }
        self.at > before
    }
}
