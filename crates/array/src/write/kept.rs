//! Parts of chunks that wait until everything is there: in memory, or where there is too little of it, in staged values.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::TryStreamExt;
use store::{ByteRange, Staged};

use super::{
    WriteError,
    copy::{self, Patch, Source},
    intake::Lent,
    layout::{self, Layout, Part, Window},
    purse::{Purse, Share},
    target::Target,
};
use crate::{ArrayError, plan::AxisIndices};

/// The windows of which parts are kept, in their order.
#[derive(Debug, Default)]
pub(super) struct Kept {
    windows: Vec<(Window, Held)>,
    /// How many bytes of them are in memory.
    memory: u64,
}

/// What a window has of chunks that are not whole in it.
#[derive(Clone, Debug)]
enum Held {
    /// The window itself.
    Window(Source),
    /// The parts one after the other, in C order of the chunks.
    Parts(Arc<Parts>),
    /// The same in the store.
    Spooled(Staged),
}

/// Parts in memory, and the permission to have them.
#[derive(Debug)]
struct Parts {
    bytes: Bytes,
    _share: Share,
}

/// A part that is kept: where it is.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    held: Held,
    picks: Vec<AxisIndices>,
    /// How many elements of the window's parts come before it.
    before: u64,
}

/// Finds the parts of chunks, one chunk after the other.
#[derive(Debug)]
pub(super) struct Finder<'a> {
    kept: &'a Kept,
    /// How many elements of each window's parts belong to chunks that were looked at.
    passed: Vec<u64>,
}

impl Kept {
    /// Whether nothing is kept.
    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Keeps a window that is in memory anyhow.
    pub(super) fn keep_whole(&mut self, window: Window, source: Source) {
        self.windows.push((window, Held::Window(source)));
    }

    /// Keeps some parts of a window.
    pub(super) async fn keep(
        &mut self,
        target: &Arc<Target>,
        purse: Option<&Purse>,
        (window, lent): (Window, Lent),
        source: Source,
        parts: &[Part],
    ) -> Result<(), WriteError> {
        let size = target.size.unwrap_or(0);
        let len = |elements: u64| elements.saturating_mul(size as u64);
        let (all, some) = (len(window.elements()), len(parts.iter().map(|part| layout::elements(&part.picks)).sum()));
        let room = (target.shared.options.assembly / 2).saturating_sub(self.memory);
        // The least that the write has must come back before it goes on.
        if lent != Lent::Least && all <= room && some >= all / 2 {
            self.memory = self.memory.saturating_add(all);
            self.keep_whole(window, source);
            return Ok(());
        }
        let share = if some <= room { purse.and_then(|purse| purse.more(some).ok()) } else { None };
        let gather = |part: &Part| {
            copy::gather(&source, &part.picks, size)
                .map_err(|_| ArrayError::Misplaced { path: target.array.path().clone() })
        };
        if let Some(share) = share {
            let mut all = Vec::with_capacity(usize::try_from(some).unwrap_or_default());
            parts.iter().try_for_each(|part| gather(part).map(|part| all.extend_from_slice(&part)))?;
            self.memory = self.memory.saturating_add(some);
            self.windows.push((window, Held::Parts(Arc::new(Parts { bytes: all.into(), _share: share }))));
            return Ok(());
        }
        let Some(key) =
            parts.first().map(|part| target.keys(&part.position)).transpose()?.and_then(|keys| keys.into_iter().next())
        else {
            return Ok(());
        };
        let gathered: Vec<Result<Bytes, store::StoreError>> =
            parts.iter().map(|part| gather(part).map(|part| Ok(part.into()))).collect::<Result<_, _>>()?;
        let content = store::Content::from_stream(futures::stream::iter(gathered));
        let staged = target.shared.store.stage(&key, content).await?;
        self.windows.push((window, Held::Spooled(staged)));
        Ok(())
    }

    /// Finds the parts of chunks.
    pub(super) fn finder(&self) -> Finder<'_> {
        Finder { kept: self, passed: vec![0; self.windows.len()] }
    }
}

impl Finder<'_> {
    /// What is kept of the next chunk; all chunks of the region have to be asked for, in their order.
    pub(super) fn next(&mut self, chunk: &Part) -> Vec<Waiting> {
        let mut waiting = Vec::new();
        for ((window, held), passed) in self.kept.windows.iter().zip(&mut self.passed) {
            let Some(picks) = Layout::clipped(chunk, window) else { continue };
            let elements = layout::elements(&picks);
            if chunk.is_all_of(elements) {
                continue;
            }
            waiting.push(Waiting { held: held.clone(), picks, before: *passed });
            *passed = passed.saturating_add(elements);
        }
        waiting
    }
}

impl Waiting {
    /// The part, fetched if it has to be.
    pub(super) async fn fetch(self, target: &Target) -> Result<Patch, WriteError> {
        let Self { held, picks, before } = self;
        let size = target.size.unwrap_or(0) as u64;
        let start = before.saturating_mul(size);
        let end = layout::elements(&picks).saturating_mul(size).saturating_add(start);
        match held {
            Held::Window(source) => Ok(Patch { picks, source }),
            Held::Parts(parts) => {
                let bytes = &parts.bytes;
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Ok(copy::gathered(bytes.slice(index(start)..index(end)), &picks))
            }
            Held::Spooled(staged) => {
                let Ok(range) = ByteRange::bounded(start, end) else { return Ok(copy::gathered(Bytes::new(), &picks)) };
                let mut bytes = BytesMut::new();
                let mut stream = target.shared.store.read_staged(&staged, Some(range)).await?;
                while let Some(piece) = stream.try_next().await? {
                    bytes.extend_from_slice(&piece);
                }
                Ok(copy::gathered(bytes.freeze(), &picks))
            }
        }
    }
}
