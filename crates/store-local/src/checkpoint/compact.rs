//! Compaction: copying the index into a new generation while the store is used.
//!
//! Neither index frees space by itself: sled has no compaction, and redb's needs exclusive access. The entries are
//! copied in order into a new index; batches that change copied entries are applied to both. At the end the new index
//! is synced, the pointer to it is switched durably, and the old one is removed when its last reader is done.

use std::{
    fs,
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use tokio::sync::oneshot;
use zarrd_store::StoreError;

use super::{
    Checkpointer,
    generation::disk_bytes,
    writer::{Follower, MAX_BATCH_BYTES},
};
use crate::{
    index::{self, Index, IndexError},
    index_pages,
    keyspace::{META_KEY, Meta, first_after, is_internal},
    view::store_error,
};

/// The progress of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactProgress {
    /// The number of entries copied.
    pub copied_entries: u64,
    /// The current number of all entries.
    pub total_entries: u64,
}

/// The space of an index before and after a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactReport {
    /// The space of its files before, in bytes.
    pub before_bytes: u64,
    /// The space of its files after, in bytes. As before if a new index would not have been smaller: then nothing has
    /// changed.
    pub after_bytes: u64,
}

/// The end of a compaction.
enum Ended {
    Switched,
    /// The copy is not smaller than the index, of this size in bytes, and stays unused.
    NotSmaller {
        bytes: u64,
    },
}

/// Errors of compacting an index, which is unchanged then.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// The new index does not fit next to the old one.
    #[error("compacting the index needs {needed} bytes of free space; {free} are free")]
    NotEnoughSpace {
        /// The maximum space that it needs, in bytes.
        needed: u64,
        /// The free space, in bytes.
        free: u64,
    },
    /// The compaction was aborted.
    #[error("the compaction was aborted: {reason}")]
    Aborted {
        /// The reason.
        reason: &'static str,
    },
    /// Another compaction is running.
    #[error("a compaction is already running")]
    AlreadyRunning,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A request for a compaction.
pub(crate) struct CompactRequest {
    pub(crate) progress: Box<dyn FnMut(&CompactProgress) + Send>,
    pub(crate) reply: oneshot::Sender<Result<CompactReport, CompactError>>,
}

/// A running compaction.
pub(crate) struct Compaction {
    target: Box<dyn Index>,
    dir: PathBuf,
    /// The last key that was copied.
    cursor: Option<Bytes>,
    meta: Meta,
    /// Changes of copied entries, not yet applied to the copy.
    pending_changes: Vec<(Bytes, Option<Bytes>)>,
    before_bytes: u64,
}

/// The maximum size of a new index relative to its entries.
const MAX_SIZE_FACTOR: u64 = 2;
/// The number of sled segments that it needs in addition.
const SEGMENTS_NEEDED: u64 = 4;
/// The same for entries of less than a segment, in bytes, which begin a segment without filling it: on a small disk that is
/// full of erased values there may be no more.
const NEEDED_FOR_FEW: u64 = 256 << 10;

impl Follower for Compaction {
    fn changed(&mut self, key: &Bytes, old: Option<&Bytes>, new: Option<&Bytes>) -> Result<(), IndexError> {
        if self.cursor.as_ref().is_some_and(|cursor| key <= cursor) {
            self.meta.replace(key, old, new);
            self.pending_changes.push((key.clone(), new.cloned()));
        }
        Ok(())
    }
}

impl Compaction {
    /// Applies pending changes to the copy.
    pub(super) fn catch_up(&mut self) -> Result<(), IndexError> {
        if self.pending_changes.is_empty() {
            Ok(())
        } else {
            self.target.apply(std::mem::take(&mut self.pending_changes))
        }
    }

    /// Copies the next entries. Returns true if those were the last.
    fn step(&mut self, index: &dyn Index, limit: usize) -> Result<bool, IndexError> {
        let from = first_after(self.cursor.as_ref());
        let (mut batch, mut bytes) = (Vec::new(), 0_usize);
        let mut last = None;
        let mut done = true;
        for entry in index.iter(&from)? {
            let (key, value) = entry?;
            if batch.len() >= limit || bytes >= MAX_BATCH_BYTES {
                done = false;
                break;
            }
            bytes = bytes.saturating_add(key.len()).saturating_add(value.len());
            last = Some(key.clone());
            // Changes of internal entries are not reported, so these are copied at the end.
            if !is_internal(&key) {
                self.meta.add(&key, &value);
                batch.push((key, Some(value)));
            }
        }
        self.target.apply(batch)?;
        self.cursor = last.or_else(|| self.cursor.take());
        Ok(done)
    }

    /// Copies the internal entries and makes the copy durable.
    fn complete(&mut self, index: &dyn Index, applied: u64) -> Result<(), IndexError> {
        let mut internal = Vec::new();
        for entry in index.iter(b"")? {
            let (key, value) = entry?;
            if !is_internal(&key) {
                break;
            }
            if key != META_KEY {
                internal.push((key, Some(value)));
            }
        }
        self.meta.applied = applied;
        internal.push((Bytes::from_static(META_KEY), Some(self.meta.encode())));
        self.target.apply(internal)?;
        self.target.sync()?;
        index_pages::save_positions(&*self.target, &self.dir)
    }
}

impl Checkpointer {
    pub(super) fn start_compaction(&mut self, request: CompactRequest) {
        match self.new_compaction() {
            Ok(compaction) => self.compaction = Some((compaction, request)),
            // The caller may be gone.
            Err(error) => drop(request.reply.send(Err(error))),
        }
    }

    fn new_compaction(&self) -> Result<Compaction, CompactError> {
        if self.compaction.is_some() {
            return Err(CompactError::AlreadyRunning);
        }
        self.read_only.check()?;
        let io = |error| StoreError::io("measure the index", error);
        let before_bytes = disk_bytes(&self.generations.dir()).map_err(io)?;
        let needed = self.compaction_space();
        self.ballast.free_space(needed);
        let free = self.directory.space().map_err(io)?.free;
        if free < needed {
            return Err(CompactError::NotEnoughSpace { needed, free });
        }
        let dir = self.generations.next_dir();
        let removed = match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        removed
            .and_then(|()| fs::create_dir_all(&dir))
            .map_err(|error| StoreError::io("create the new index", error))?;
        let target = self.index_options.open(&dir).map_err(store_error)?;
        Ok(Compaction { target, dir, cursor: None, meta: Meta::default(), pending_changes: Vec::new(), before_bytes })
    }

    /// The maximum space of a new index, in bytes.
    pub(super) fn compaction_space(&self) -> u64 {
        let (bytes, segment) = (self.writer.meta.bytes, self.index_options.segment_bytes);
        let least = if bytes < segment { NEEDED_FOR_FEW } else { segment.saturating_mul(SEGMENTS_NEEDED) };
        bytes.saturating_mul(MAX_SIZE_FACTOR).saturating_add(least)
    }

    pub(super) fn compact_step(&mut self) -> Result<(), IndexError> {
        let Some((compaction, request)) = &mut self.compaction else { return Ok(()) };
        let done = compaction.step(&*self.writer.index, self.writer.limit())?;
        let total = self.writer.meta.entries;
        (request.progress)(&CompactProgress {
            copied_entries: compaction.meta.entries.min(total),
            total_entries: total,
        });
        if done { self.switch() } else { Ok(()) }
    }

    /// Switches to the copy.
    fn switch(&mut self) -> Result<(), IndexError> {
        let Some((mut compaction, request)) = self.compaction.take() else { return Ok(()) };
        let old_dir = self.generations.dir();
        match self.make_current(&mut compaction) {
            Ok(Ended::Switched) => {}
            Ok(Ended::NotSmaller { bytes }) => {
                self.timers.compacted_size = Some((bytes, self.writer.meta.bytes));
                self.discard(compaction);
                tracing::info!(bytes, "the index was not compacted, since a new one would not be smaller");
                drop(request.reply.send(Ok(CompactReport { before_bytes: bytes, after_bytes: bytes })));
                return Ok(());
            }
            Err(error) if error.is_out_of_space() => {
                // The copy is aborted together with everything else that waits for space.
                self.compaction = Some((compaction, request));
                return Err(error);
            }
            Err(error) => return Err(error),
        }
        self.writer.meta = compaction.meta;
        let target: Arc<dyn Index> = Arc::from(compaction.target);
        let old = std::mem::replace(&mut self.writer.index, Arc::clone(&target));
        self.views.replace(|parts| parts.index = target);
        // Earlier readers still have the old index open.
        self.retired.push((old, old_dir));
        self.remove_retired_generations();
        let after_bytes = disk_bytes(&compaction.dir).unwrap_or_default();
        let before_bytes = compaction.before_bytes;
        self.timers.compacted_size = Some((after_bytes, self.writer.meta.bytes));
        tracing::info!(before_bytes, after_bytes, "compacted the index");
        drop(request.reply.send(Ok(CompactReport { before_bytes, after_bytes })));
        Ok(())
    }

    /// Completes the copy and makes it the current generation, durably, if it is smaller.
    fn make_current(&mut self, compaction: &mut Compaction) -> Result<Ended, IndexError> {
        compaction.complete(&*self.writer.index, self.writer.meta.applied)?;
        if !compaction.meta.same_entries(&self.writer.meta) {
            let (found, expected) = (compaction.meta.entries, self.writer.meta.entries);
            return Err(IndexError::Entries { found, expected });
        }
        let size = |dir: &Path| disk_bytes(dir).map_err(IndexError::Io);
        let bytes = size(&self.generations.dir())?;
        if size(&compaction.dir)? >= bytes {
            return Ok(Ended::NotSmaller { bytes });
        }
        self.directory.check_place().map_err(|error| IndexError::Io(io::Error::other(error)))?;
        File::open(&self.paths.dir).and_then(|dir| dir.sync_all()).map_err(IndexError::Io)?;
        self.generations.switch().map_err(IndexError::Io)?;
        Ok(Ended::Switched)
    }

    /// Removes old generations without readers.
    pub(super) fn remove_retired_generations(&mut self) {
        let (unused, used): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.retired).into_iter().partition(|(index, _)| Arc::strong_count(index) == 1);
        self.retired = used;
        for (index, dir) in unused {
            let closed = index::catch(|| {
                drop(index);
                Ok(())
            });
            if let Err(error) = closed {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "an old generation of the index did not close"
                );
            }
            if let Err(error) = fs::remove_dir_all(&dir) {
                tracing::warn!(%error, dir = %self.paths.shown(&dir).display(), "could not remove an old generation of the index");
            }
        }
    }

    /// Aborts a running compaction.
    pub(super) fn abort_compaction(&mut self, reason: &'static str) {
        let Some((compaction, request)) = self.compaction.take() else { return };
        self.discard(compaction);
        drop(request.reply.send(Err(CompactError::Aborted { reason })));
    }

    /// Removes a copy that is not used.
    fn discard(&self, Compaction { target, dir, .. }: Compaction) {
        let closed = index::catch(|| {
            drop(target);
            Ok(())
        });
        if closed.is_err() || fs::remove_dir_all(&dir).is_err() {
            tracing::warn!(dir = %self.paths.shown(&dir).display(), "could not remove the index of an aborted compaction; the next start removes it");
        }
    }
}
