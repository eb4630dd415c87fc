//! Elements that are buffered, to be read repeatedly: in memory, or spilled to staged values if memory is short.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use zarrd_codec::VariableElements;
use zarrd_store::{BatchStore, ByteStream, Key, Payload, Staged, StoreError};

use super::{error::WriteError, source::ElementSource};
use crate::{context::Context, memory::claim::Permit};

/// The memory that is reserved at a time for buffered elements, in bytes.
const BUFFER_STEP: u64 = 1 << 20;

/// Elements that can be read repeatedly, once for each attempt.
#[derive(Debug)]
pub(crate) enum BufferedElements {
    Fixed(BufferedBytes),
    Variable(VariableElements),
    Scalar(Vec<u8>),
}

/// Buffered bytes: those that exceeded memory are spilled to the store, and come first.
#[derive(Debug, Default)]
pub(crate) struct BufferedBytes {
    spilled: Vec<Staged>,
    pieces: Vec<Bytes>,
    permits: Vec<Permit>,
    /// The bytes in memory, and those that are reserved for them.
    buffered: u64,
    permitted: u64,
    len: u64,
}

impl BufferedElements {
    /// Buffers all elements of a source. What does not fit into memory is staged at `key`, and never committed.
    pub(crate) async fn gather(context: &Context, key: &Key, elements: ElementSource) -> Result<Self, WriteError> {
        Ok(match elements {
            ElementSource::Fixed(stream) => Self::Fixed(BufferedBytes::gather(context, key, stream).await?),
            ElementSource::Variable(elements) => Self::Variable(elements),
            ElementSource::Scalar(element) => Self::Scalar(element),
        })
    }

    /// True if it has memory reserved.
    pub(crate) fn has_memory(&self) -> bool {
        matches!(self, Self::Fixed(pieces) if !pieces.permits.is_empty())
    }

    /// Spills buffered bytes to the store, as a staged value that is never committed.
    pub(crate) async fn spill(&mut self, context: &Context, key: &Key) -> Result<(), StoreError> {
        match self {
            Self::Fixed(pieces) => pieces.spill(context, key).await,
            Self::Variable(_) | Self::Scalar(_) => Ok(()),
        }
    }

    /// The elements, from the first.
    pub(crate) fn source(&self, context: &Context) -> Result<ElementSource, StoreError> {
        Ok(match self {
            Self::Fixed(pieces) => ElementSource::Fixed(pieces.stream(context.writes()?.clone())),
            Self::Variable(elements) => ElementSource::Variable(elements.clone()),
            Self::Scalar(element) => ElementSource::Scalar(element.clone()),
        })
    }
}

impl BufferedBytes {
    /// The number of bytes.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Buffers all bytes of a stream.
    async fn gather(context: &Context, key: &Key, mut stream: ByteStream) -> Result<Self, WriteError> {
        let most = context.options.slab_memory / 2;
        let mut all = Self::default();
        while let Some(piece) = stream.try_next().await? {
            all.len = all.len.saturating_add(piece.len() as u64);
            all.buffered = all.buffered.saturating_add(piece.len() as u64);
            all.pieces.push(piece);
            if all.buffered > all.permitted && !all.permit(context, most) {
                all.spill(context, key).await?;
            }
        }
        Ok(all)
    }

    /// Reserves memory for the buffered bytes; false if they have to be spilled.
    fn permit(&mut self, context: &Context, most: u64) -> bool {
        let more = (self.buffered - self.permitted).max(BUFFER_STEP);
        if self.buffered > most {
            return false;
        }
        match context.try_reserve_memory(more) {
            Some(permit) => {
                self.permits.push(permit);
                self.permitted = self.permitted.saturating_add(more);
                true
            }
            None => false,
        }
    }

    async fn spill(&mut self, context: &Context, key: &Key) -> Result<(), StoreError> {
        let pieces = std::mem::take(&mut self.pieces);
        let content = Payload::sized(self.buffered, stream::iter(pieces.into_iter().map(Ok)));
        self.spilled.push(context.writes()?.stage(key, content).await?);
        self.permits.clear();
        (self.buffered, self.permitted) = (0, 0);
        Ok(())
    }

    fn stream(&self, store: Arc<dyn BatchStore>) -> ByteStream {
        let spilled =
            stream::iter(self.spilled.clone()).then(move |staged| read_staged(store.clone(), staged)).try_flatten();
        spilled.chain(stream::iter(self.pieces.clone()).map(Ok)).boxed()
    }
}

async fn read_staged(
    store: Arc<dyn BatchStore>,
    staged: Staged,
) -> Result<impl Stream<Item = Result<Bytes, StoreError>>, StoreError> {
    store.read_staged(&staged, None).await
}
