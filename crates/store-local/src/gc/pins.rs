//! Pins, which retain replaced value files until no reader needs them.
//!
//! A pin represents a reader of some keys as of one commit, or a snapshot of everything below a prefix. It retains the
//! files that those keys had then; until they are looked up, it retains all files. A reader without progress expires.
//!
//! Readers and snapshots have a limit of retained bytes each, at which the oldest pin ends. Snapshots, which last for
//! hours, end before anything else does when space is short.

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
    limits: PinLimits,
}

/// The maximum sizes of retained files, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PinLimits {
    /// For readers.
    pub(crate) readers: u64,
    /// For snapshots of prefixes.
    pub(crate) snapshots: u64,
}

/// What a pin is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinKind {
    /// A reader of some keys, which expires without progress.
    Reader,
    /// A snapshot of a prefix, which its owner ends.
    Snapshot,
}

#[derive(Default)]
struct State {
    next_number: u64,
    active: BTreeMap<u64, ActivePin>,
    retained: HashMap<FileId, Retained>,
    /// The size of the files that are retained for readers, and for snapshots, in bytes. One may be retained for both.
    bytes: [u64; 2],
}

struct ActivePin {
    kind: PinKind,
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
    /// The number of pins of each kind.
    pins: [u32; 2],
}

/// The part of a pin that its reader accesses without a lock.
pub(super) struct PinStatus {
    /// The time of the last use, in milliseconds since [`Pins::start`].
    used: AtomicU64,
    ended: AtomicBool,
}

impl Pins {
    pub(crate) fn new(timeout: Duration, limits: PinLimits) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), start: Instant::now(), timeout, limits })
    }

    /// Adds a pin of the visible state, whose number `visible` returns.
    pub(super) fn add(&self, kind: PinKind, visible: impl FnOnce() -> u64) -> (u64, Arc<PinStatus>) {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        let status = Arc::new(PinStatus { used: AtomicU64::new(self.now()), ended: AtomicBool::new(false) });
        let since = visible();
        let active = ActivePin { kind, since, files: None, retains: Vec::new(), status: Arc::clone(&status) };
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
        let kind = active.kind;
        state.release(kind, rest)
    }

    /// Records that the reader of a pin made progress. Returns false if the pin has ended.
    pub(super) fn touch(&self, status: &PinStatus) -> bool {
        status.used.store(self.now(), Ordering::Relaxed);
        !status.ended.load(Ordering::Relaxed)
    }

    /// True if a pin has ended.
    pub(super) fn has_ended(&self, status: &PinStatus) -> bool {
        status.ended.load(Ordering::Relaxed)
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
            let mut pins = [0_u32; 2];
            for active in state.active.values_mut() {
                if active.since < number && active.needs(file.id) {
                    active.retains.push(file.id);
                    *active.kind.of(&mut pins) = active.kind.of(&mut pins).saturating_add(1);
                }
            }
            if pins == [0; 2] {
                free.push(file.id);
                continue;
            }
            for kind in [PinKind::Reader, PinKind::Snapshot] {
                if *kind.of(&mut pins) > 0 {
                    let bytes = kind.of(&mut state.bytes);
                    *bytes = bytes.saturating_add(file.size);
                }
            }
            state.retained.insert(file.id, Retained { size: file.size, pins });
        }
        free.extend(state.end_oldest(PinKind::Snapshot, self.limits.snapshots));
        free.extend(state.end_oldest(PinKind::Reader, self.limits.readers));
        free
    }

    /// Ends all snapshots that retain files. Returns the files that no reader needs any more.
    pub(super) fn end_snapshots(&self) -> Vec<FileId> {
        self.state.lock().end_oldest(PinKind::Snapshot, 0)
    }

    /// Ends pins that retain files and made no progress. Returns the files that no reader needs any more.
    pub(crate) fn end_expired(&self) -> Vec<FileId> {
        let now = self.now();
        let timeout = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
        let mut state = self.state.lock();
        let expired = |active: &ActivePin| now.saturating_sub(active.status.used.load(Ordering::Relaxed)) > timeout;
        let readers = state.active.iter().filter(|(_, active)| active.kind == PinKind::Reader);
        let expired = readers.filter(|(_, active)| !active.retains.is_empty() && expired(active));
        let expired: Vec<u64> = expired.map(|(number, _)| *number).collect();
        expired.into_iter().flat_map(|number| state.end(number)).collect()
    }

    /// The size of the files that are retained for pins of a kind, in bytes.
    #[cfg(test)]
    pub(crate) fn retained_bytes(&self, kind: PinKind) -> u64 {
        *kind.of(&mut self.state.lock().bytes)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl PinKind {
    /// The element of a pair that belongs to the kind: that of readers, or of snapshots.
    fn of<T>(self, [readers, snapshots]: &mut [T; 2]) -> &mut T {
        match self {
            Self::Reader => readers,
            Self::Snapshot => snapshots,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Snapshot => "snapshot",
        }
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
        self.release(active.kind, active.retains)
    }

    /// Releases files that a pin retained.
    fn release(&mut self, kind: PinKind, files: Vec<FileId>) -> Vec<FileId> {
        let mut free = Vec::new();
        for file in files {
            let Some(retained) = self.retained.get_mut(&file) else { continue };
            let pins = kind.of(&mut retained.pins);
            *pins = pins.saturating_sub(1);
            if *pins == 0 {
                let bytes = kind.of(&mut self.bytes);
                *bytes = bytes.saturating_sub(retained.size);
            }
            if retained.pins == [0; 2] {
                self.retained.remove(&file);
                free.push(file);
            }
        }
        free
    }

    /// Ends the oldest pins of a kind until at most `limit` bytes are retained for it.
    fn end_oldest(&mut self, kind: PinKind, limit: u64) -> Vec<FileId> {
        let mut free = Vec::new();
        while *kind.of(&mut self.bytes) > limit {
            let mut oldest = self.active.iter().filter(|(_, active)| active.kind == kind && !active.retains.is_empty());
            let Some(oldest) = oldest.next().map(|(number, _)| *number) else { return free };
            if let Some(Admitted { left_out }) = WARNINGS.admit(kind.name()) {
                tracing::warn!(
                    limit,
                    left_out,
                    "ended the oldest {}: too many bytes of replaced values are retained for it",
                    kind.name()
                );
            }
            free.extend(self.end(oldest));
        }
        free
    }
}
