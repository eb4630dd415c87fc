//! Pins, which retain replaced value files until no reader needs them.
//!
//! A pin represents a reader of some keys as of one commit. It retains the files that those keys had then; until the
//! reader has looked up its keys, it retains all files. A pin without progress expires, and so does the oldest when too
//! many bytes are retained.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use zarrd_store::{Admitted, WarningRate};

use crate::record::FileId;

/// Warnings about readers that expired.
static WARNINGS: WarningRate = WarningRate::new();

/// A value file that a commit replaced or erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplacedFile {
    pub(crate) id: FileId,
    /// The length of the value, in bytes.
    pub(crate) size: u64,
}

/// All pins of a store.
pub(crate) struct Pins {
    state: Mutex<State>,
    start: Instant,
    timeout: Duration,
    /// The maximum size of retained files, in bytes.
    limit: u64,
}

#[derive(Default)]
struct State {
    next_number: u64,
    active: BTreeMap<u64, ActivePin>,
    retained: HashMap<FileId, Retained>,
    /// The size of all retained files, in bytes.
    bytes: u64,
}

struct ActivePin {
    /// The number of the last change that the reader sees, or an earlier one.
    since: u64,
    /// The files of the reader's keys, sorted; `None` until they are looked up.
    files: Option<Box<[FileId]>>,
    /// The replaced files that are retained for the reader.
    retains: Vec<FileId>,
    status: Arc<PinStatus>,
}

struct Retained {
    size: u64,
    readers: u32,
}

/// The part of a pin that its reader accesses without a lock.
pub(super) struct PinStatus {
    /// The time of the last use, in milliseconds since [`Pins::start`].
    used: AtomicU64,
    ended: AtomicBool,
}

impl Pins {
    pub(crate) fn new(timeout: Duration, limit: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), start: Instant::now(), timeout, limit })
    }

    /// Adds a pin of the visible state, whose number `visible` returns.
    pub(super) fn add(&self, visible: impl FnOnce() -> u64) -> (u64, Arc<PinStatus>) {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        let status = Arc::new(PinStatus { used: AtomicU64::new(self.now()), ended: AtomicBool::new(false) });
        let active = ActivePin { since: visible(), files: None, retains: Vec::new(), status: Arc::clone(&status) };
        state.active.insert(number, active);
        (number, status)
    }

    /// Limits a pin to these files. Returns the files that no reader needs any more.
    pub(super) fn resolve(&self, number: u64, mut files: Vec<FileId>) -> Vec<FileId> {
        files.sort_unstable();
        let mut state = self.state.lock();
        let Some(active) = state.active.get_mut(&number) else { return Vec::new() };
        active.files = Some(files.into_boxed_slice());
        let retains = std::mem::take(&mut active.retains);
        let (needed, rest): (Vec<_>, Vec<_>) = retains.into_iter().partition(|file| active.needs(*file));
        active.retains = needed;
        state.release(rest)
    }

    /// Records that the reader of a pin made progress. Returns false if the pin has ended.
    pub(super) fn touch(&self, status: &PinStatus) -> bool {
        status.used.store(self.now(), Ordering::Relaxed);
        !status.ended.load(Ordering::Relaxed)
    }

    /// Ends a pin. Returns the files that no reader needs any more.
    pub(super) fn end(&self, number: u64) -> Vec<FileId> {
        self.state.lock().end(number)
    }

    /// Retains the files that the change with this number replaced, and returns those that no reader needs.
    pub(crate) fn release_replaced(&self, number: u64, files: &[ReplacedFile]) -> Vec<FileId> {
        let mut state = self.state.lock();
        let mut free = Vec::new();
        for file in files {
            let mut readers = 0_u32;
            for active in state.active.values_mut() {
                if active.since < number && active.needs(file.id) {
                    active.retains.push(file.id);
                    readers = readers.saturating_add(1);
                }
            }
            if readers == 0 {
                free.push(file.id);
            } else {
                state.bytes = state.bytes.saturating_add(file.size);
                state.retained.insert(file.id, Retained { size: file.size, readers });
            }
        }
        free.extend(state.end_oldest(self.limit));
        free
    }

    /// Ends pins that retain files and made no progress. Returns the files that no reader needs any more.
    pub(crate) fn end_expired(&self) -> Vec<FileId> {
        let now = self.now();
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        let expired = |active: &ActivePin| now.saturating_sub(active.status.used.load(Ordering::Relaxed)) > timeout;
        let expired = state.active.iter().filter(|(_, active)| !active.retains.is_empty() && expired(active));
        let expired: Vec<u64> = expired.map(|(number, _)| *number).collect();
        expired.into_iter().flat_map(|number| state.end(number)).collect()
    }

    /// The size of all retained files, in bytes.
    #[cfg(test)]
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl ActivePin {
    fn needs(&self, file: FileId) -> bool {
        self.files.as_ref().is_none_or(|files| files.binary_search(&file).is_ok())
    }
}

impl State {
    /// Ends a pin. Returns the files that no reader needs any more.
    fn end(&mut self, number: u64) -> Vec<FileId> {
        let Some(active) = self.active.remove(&number) else { return Vec::new() };
        active.status.ended.store(true, Ordering::Relaxed);
        self.release(active.retains)
    }

    fn release(&mut self, files: Vec<FileId>) -> Vec<FileId> {
        let mut free = Vec::new();
        for file in files {
            let Some(retained) = self.retained.get_mut(&file) else { continue };
            retained.readers = retained.readers.saturating_sub(1);
            if retained.readers == 0 {
                self.bytes = self.bytes.saturating_sub(retained.size);
                self.retained.remove(&file);
                free.push(file);
            }
        }
        free
    }

    /// Ends the oldest pins until at most `limit` bytes are retained.
    fn end_oldest(&mut self, limit: u64) -> Vec<FileId> {
        let mut free = Vec::new();
        while self.bytes > limit {
            let oldest = self.active.iter().find(|(_, active)| !active.retains.is_empty()).map(|(number, _)| *number);
            let Some(oldest) = oldest else { return free };
            if let Some(Admitted { left_out }) = WARNINGS.admit("expired reader") {
                tracing::warn!(
                    limit,
                    left_out,
                    "expired the oldest reader: too many bytes of replaced values are retained for readers"
                );
            }
            free.extend(self.end(oldest));
        }
        free
    }
}
