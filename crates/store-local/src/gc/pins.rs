//! Pins: what retains a replaced value file until no reader needs it.
//!
//! A pin stands for a reader of some keys as of one commit. It retains the files that those keys had then, and nothing else;
//! until the reader has looked its keys up, which takes no waiting, it retains everything. A pin that is left without
//! progress ends, and so does the oldest when too many bytes are retained.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

use crate::record::FileId;

/// A value file that a commit replaced or erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplacedFile {
    pub(crate) id: FileId,
    /// The value's length in bytes.
    pub(crate) size: u64,
}

/// All pins of a store.
pub(crate) struct Pins {
    state: Mutex<State>,
    begin: Instant,
    timeout: Duration,
    /// The most bytes of replaced files that are retained.
    limit: u64,
}

#[derive(Default)]
struct State {
    next_number: u64,
    active: BTreeMap<u64, Active>,
    retained: HashMap<FileId, Retained>,
    /// The bytes of all retained files.
    bytes: u64,
}

struct Active {
    /// The number of the last change that the reader sees, or an earlier one.
    since: u64,
    /// The files of the reader's keys, sorted; `None` until it has looked them up.
    files: Option<Box<[FileId]>>,
    /// The replaced files that are retained for it.
    retains: Vec<FileId>,
    status: Arc<PinStatus>,
}

struct Retained {
    size: u64,
    readers: u32,
}

/// The part of a pin that its reader changes without a lock.
pub(super) struct PinStatus {
    /// When the pin was last used, in milliseconds since [`Pins::begin`].
    used: AtomicU64,
    ended: AtomicBool,
}

impl Pins {
    pub(crate) fn new(timeout: Duration, limit: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), begin: Instant::now(), timeout, limit })
    }

    /// Adds a pin of what is visible now, which `visible` returns. Files that are looked up afterwards stay.
    pub(super) fn add(&self, visible: impl FnOnce() -> u64) -> (u64, Arc<PinStatus>) {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        let status = Arc::new(PinStatus { used: AtomicU64::new(self.now()), ended: AtomicBool::new(false) });
        let active = Active { since: visible(), files: None, retains: Vec::new(), status: Arc::clone(&status) };
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

    /// Notes files that the change of this number replaced; those that no reader needs.
    pub(crate) fn replaced(&self, number: u64, files: &[ReplacedFile]) -> Vec<FileId> {
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
        free.extend(state.cut_off(self.limit));
        free
    }

    /// Ends pins that were left while something is retained for them; the files that nobody needs any more.
    pub(crate) fn sweep(&self) -> Vec<FileId> {
        let now = self.now();
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        let left = |active: &Active| now.saturating_sub(active.status.used.load(Ordering::Relaxed)) > timeout;
        let left = state.active.iter().filter(|(_, active)| !active.retains.is_empty() && left(active));
        let left: Vec<u64> = left.map(|(number, _)| *number).collect();
        left.into_iter().flat_map(|number| state.end(number)).collect()
    }

    /// The bytes of replaced files that are retained for readers.
    #[cfg(test)]
    pub(crate) fn retained_bytes(&self) -> u64 {
        self.state.lock().bytes
    }

    fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Active {
    fn needs(&self, file: FileId) -> bool {
        self.files.as_ref().is_none_or(|files| files.binary_search(&file).is_ok())
    }
}

impl State {
    /// Ends a pin; the files that nobody needs any more.
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

    /// Ends the oldest pins until no more than `limit` bytes are retained.
    fn cut_off(&mut self, limit: u64) -> Vec<FileId> {
        let mut free = Vec::new();
        while self.bytes > limit {
            let oldest = self.active.iter().find(|(_, active)| !active.retains.is_empty()).map(|(number, _)| *number);
            let Some(oldest) = oldest else { return free };
            tracing::warn!(
                limit,
                "cut off the oldest reader: too many bytes of replaced values are retained for readers"
            );
            free.extend(self.end(oldest));
        }
        free
    }
}
