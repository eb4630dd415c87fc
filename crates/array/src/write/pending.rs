//! Parts of chunks that are pending until the whole chunk is received: in memory, or spilled to staged values if memory
//! is short.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use zarrd_store::{ByteRange, Staged};

use super::{
    encode::WriteContext,
    error::WriteError,
    gather::{self, Patch, SourceElements},
    layout::{self, ChunkPart, ChunkedRegion, StreamWindow},
    memory::{MemoryShare, WriteMemory},
    reader::BufferMemory,
};
use crate::{error::ArrayError, grid::dimension::DimIndexer};

/// The windows with pending parts, in order.
#[derive(Debug, Default)]
pub(crate) struct PendingParts {
    windows: Vec<(StreamWindow, Storage)>,
    /// The bytes of them that are in memory.
    memory: u64,
}

/// The storage of one window's partial chunks.
#[derive(Clone, Debug)]
enum Storage {
    /// The window itself.
    Window(SourceElements),
    /// The parts in memory, one after the other, in C order of their chunks.
    Parts(Arc<PartsInMemory>),
    /// The same, staged in the store.
    Spilled(Staged),
}

/// Parts in memory, with their reservation.
#[derive(Debug)]
struct PartsInMemory {
    bytes: Bytes,
    _share: MemoryShare,
}

/// A pending part: its storage and its place in it.
#[derive(Clone, Debug)]
pub(crate) struct PendingPart {
    storage: Storage,
    selection: Vec<DimIndexer>,
    /// The number of elements that come before it in the storage.
    before: u64,
}

/// A cursor over the chunks of a region, which finds the pending parts of each.
#[derive(Debug)]
pub(crate) struct PartCursor<'a> {
    pending: &'a PendingParts,
    /// The number of elements of each window that belong to chunks before the cursor.
    passed: Vec<u64>,
}

impl PendingParts {
    /// True if nothing is pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Adds a window that is in memory already.
    pub(crate) fn push_window(&mut self, window: StreamWindow, source: SourceElements) {
        self.windows.push((window, Storage::Window(source)));
    }

    /// Adds some parts of a window.
    pub(crate) async fn push_parts(
        &mut self,
        target: &Arc<WriteContext>,
        memory: Option<&WriteMemory>,
        (window, lent): (StreamWindow, BufferMemory),
        source: SourceElements,
        parts: &[ChunkPart],
    ) -> Result<(), WriteError> {
        let size = target.size.unwrap_or(0);
        let len = |elements: u64| elements.saturating_mul(size as u64);
        let (all, some) =
            (len(window.elements()), len(parts.iter().map(|part| layout::elements(&part.selection)).sum()));
        let free = (target.context.options.slab_memory / 2).saturating_sub(self.memory);
        // The write's minimum has to be returned before it goes on.
        if lent != BufferMemory::Least && all <= free && some >= all / 2 {
            self.memory = self.memory.saturating_add(all);
            self.push_window(window, source);
            return Ok(());
        }
        let share = if some <= free { memory.and_then(|memory| memory.more(some).ok()) } else { None };
        let gather = |part: &ChunkPart| {
            gather::gather(&source, &part.selection, size)
                .map_err(|_| ArrayError::Misplaced { path: target.array.path().clone() })
        };
        if let Some(share) = share {
            let mut all = Vec::with_capacity(usize::try_from(some).unwrap_or_default());
            parts.iter().try_for_each(|part| gather(part).map(|part| all.extend_from_slice(&part)))?;
            self.memory = self.memory.saturating_add(some);
            self.windows.push((window, Storage::Parts(Arc::new(PartsInMemory { bytes: all.into(), _share: share }))));
            return Ok(());
        }
        let Some(key) =
            parts.first().map(|part| target.keys(&part.position)).transpose()?.and_then(|keys| keys.into_iter().next())
        else {
            return Ok(());
        };
        let buffered: Vec<Result<Bytes, zarrd_store::StoreError>> =
            parts.iter().map(|part| gather(part).map(|part| Ok(part.into()))).collect::<Result<_, _>>()?;
        let content = zarrd_store::Payload::from_stream(futures::stream::iter(buffered));
        let staged = target.context.writes()?.stage(&key, content).await?;
        self.windows.push((window, Storage::Spilled(staged)));
        Ok(())
    }

    /// A cursor at the first chunk.
    pub(crate) fn cursor(&self) -> PartCursor<'_> {
        PartCursor { pending: self, passed: vec![0; self.windows.len()] }
    }
}

impl PartCursor<'_> {
    /// The pending parts of the next chunk. Every chunk of the region has to be visited, in order.
    pub(crate) fn next(&mut self, chunk: &ChunkPart) -> Vec<PendingPart> {
        let mut waiting = Vec::new();
        for ((window, storage), passed) in self.pending.windows.iter().zip(&mut self.passed) {
            let Some(selection) = ChunkedRegion::clipped(chunk, window) else { continue };
            let elements = layout::elements(&selection);
            if chunk.is_complete_with(elements) {
                continue;
            }
            waiting.push(PendingPart { storage: storage.clone(), selection, before: *passed });
            *passed = passed.saturating_add(elements);
        }
        waiting
    }
}

impl PendingPart {
    /// The part, fetched if it was spilled.
    pub(crate) async fn fetch(self, target: &WriteContext) -> Result<Patch, WriteError> {
        let Self { storage, selection, before } = self;
        let size = target.size.unwrap_or(0) as u64;
        let start = before.saturating_mul(size);
        let end = layout::elements(&selection).saturating_mul(size).saturating_add(start);
        match storage {
            Storage::Window(source) => Ok(Patch { selection, source }),
            Storage::Parts(parts) => {
                let bytes = &parts.bytes;
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(gather::buffered(bytes.slice(index(start)..index(end)), &selection))
            }
            Storage::Spilled(staged) => {
                let Ok(range) = ByteRange::bounded(start, end) else {
                    return Ok(gather::buffered(Bytes::new(), &selection));
                };
                let mut bytes = BytesMut::new();
                let mut stream = target.context.writes()?.read_staged(&staged, Some(range)).await?;
                while let Some(piece) = stream.try_next().await? {
                    bytes.extend_from_slice(&piece);
                }
                Ok(gather::buffered(bytes.freeze(), &selection))
            }
        }
    }
}
