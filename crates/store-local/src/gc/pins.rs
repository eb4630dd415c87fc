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

use super::GarbageCollector;
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

/// Retains what its reader needs. Dropping it ends it.
pub(crate) struct Pin {
    number: u64,
    shared: Arc<Shared>,
    pins: Arc<Pins>,
    collector: GarbageCollector,
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
    shared: Arc<Shared>,
}

struct Retained {
    size: u64,
    readers: u32,
}

struct Shared {
    /// When the pin was last used, in milliseconds since [`Pins::begin`].
    used: AtomicU64,
    ended: AtomicBool,
}

impl Pins {
    pub(crate) fn new(timeout: Duration, limit: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), begin: Instant::now(), timeout, limit })
    }

    /// Pins what is visible now, which `visible` gives. Files that are looked up afterwards stay.
    pub(crate) fn pin(self: &Arc<Self>, visible: impl FnOnce() -> u64, collector: GarbageCollector) -> Pin {
        let mut state = self.state.lock();
        let number = state.next_number;
        state.next_number = number.wrapping_add(1);
        let shared = Arc::new(Shared { used: AtomicU64::new(self.now()), ended: AtomicBool::new(false) });
        let active = Active { since: visible(), files: None, retains: Vec::new(), shared: Arc::clone(&shared) };
        state.active.insert(number, active);
        Pin { number, shared, pins: Arc::clone(self), collector }
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
        let left = |active: &Active| now.saturating_sub(active.shared.used.load(Ordering::Relaxed)) > timeout;
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

impl Pin {
    /// Notes what the reader's keys have: nothing else is retained from now on.
    pub(crate) fn resolve(&self, mut files: Vec<FileId>) {
        files.sort_unstable();
        let mut state = self.pins.state.lock();
        let Some(active) = state.active.get_mut(&self.number) else { return };
        active.files = Some(files.into_boxed_slice());
        let retains = std::mem::take(&mut active.retains);
        let (needed, rest): (Vec<_>, Vec<_>) = retains.into_iter().partition(|file| active.needs(*file));
        active.retains = needed;
        let free = state.release(rest);
        drop(state);
        self.collector.remove(free);
    }

    /// Notes progress. Whether the pin still holds.
    pub(crate) fn touch(&self) -> bool {
        self.shared.used.store(self.pins.now(), Ordering::Relaxed);
        !self.shared.ended.load(Ordering::Relaxed)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let free = self.pins.state.lock().end(self.number);
        self.collector.remove(free);
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
        active.shared.ended.store(true, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::Directory;

    fn file(id: u64) -> ReplacedFile {
        ReplacedFile { id: FileId(id), size: 10 }
    }

    fn pins(limit: u64) -> (Arc<Pins>, GarbageCollector, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        Directory::create(dir.path()).unwrap();
        let pins = Pins::new(Duration::from_secs(60), limit);
        let (collector, _thread) = GarbageCollector::start(Directory::open(dir.path()).unwrap(), &pins).unwrap();
        (pins, collector, dir)
    }

    #[test]
    fn a_pin_retains_what_its_keys_had_and_nothing_else() {
        let (pins, collector, _dir) = pins(1000);
        let pin = pins.pin(|| 5, collector);
        // Before its keys are known, everything that is replaced later stays.
        assert_eq!(pins.replaced(5, &[file(1)]), [FileId(1)]);
        assert_eq!(pins.replaced(6, &[file(2), file(3)]), []);
        pin.resolve(vec![FileId(3), FileId(4)]);
        assert_eq!(pins.retained_bytes(), 10);
        assert_eq!(pins.replaced(7, &[file(4), file(5)]), [FileId(5)]);
        assert_eq!(pins.retained_bytes(), 20);
        drop(pin);
        assert_eq!(pins.retained_bytes(), 0);
    }

    #[test]
    fn the_oldest_reader_is_cut_off_when_too_much_is_retained() {
        let (pins, collector, _dir) = pins(25);
        let readers: Vec<Pin> = (0..3).map(|_| pins.pin(|| 0, collector.clone())).collect();
        for (reader, id) in readers.iter().zip(1..) {
            reader.resolve(vec![FileId(id)]);
        }
        assert_eq!(pins.replaced(1, &[file(1), file(2)]), []);
        assert_eq!(pins.replaced(2, &[file(3)]), [FileId(1)]);
        let held: Vec<bool> = readers.iter().map(Pin::touch).collect();
        assert_eq!(held, [false, true, true]);
    }
}
