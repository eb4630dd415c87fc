//! The pin of one reader.

use std::sync::Arc;

use super::{
    collector::GarbageCollector,
    pins::{PinKind, PinStatus, Pins},
};
use crate::record::FileId;

/// Retains the files that one reader needs, until it is dropped.
pub(crate) struct Pin {
    number: u64,
    status: Arc<PinStatus>,
    pins: Arc<Pins>,
    collector: GarbageCollector,
}

impl Pin {
    /// Pins the visible state, whose number `visible` returns. Files that are looked up afterwards are retained.
    pub(crate) fn new(
        kind: PinKind,
        pins: &Arc<Pins>,
        visible: impl FnOnce() -> u64,
        collector: GarbageCollector,
    ) -> Self {
        let (number, status) = pins.add(kind, visible);
        Self { number, status, pins: Arc::clone(pins), collector }
    }

    /// Limits the pin to the files of the reader's keys.
    pub(crate) fn resolve(&self, files: Vec<FileId>) {
        self.collector.remove(self.pins.resolve(self.number, files));
    }

    /// False if the pin has ended.
    pub(crate) fn is_valid(&self) -> bool {
        !self.pins.has_ended(&self.status)
    }

    /// Records that the reader made progress. Returns false if the pin has ended.
    pub(crate) fn touch(&self) -> bool {
        self.pins.touch(&self.status)
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.collector.remove(self.pins.end(self.number));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        gc::{PinLimits, ReplacedFile},
        values::Directory,
    };

    fn file(id: u64) -> ReplacedFile {
        ReplacedFile { id: FileId(id), size: 10 }
    }

    fn reader(pins: &Arc<Pins>, since: u64, collector: GarbageCollector) -> Pin {
        Pin::new(PinKind::Reader, pins, || since, collector)
    }

    fn pins(limit: u64) -> (Arc<Pins>, GarbageCollector, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        Directory::create(dir.path()).unwrap();
        let pins = Pins::new(Duration::from_secs(60), PinLimits { readers: limit, snapshots: limit });
        let (collector, _thread) = GarbageCollector::start(Directory::open(dir.path(), None).unwrap(), &pins).unwrap();
        (pins, collector, dir)
    }

    #[test]
    fn a_pin_retains_only_the_files_of_its_keys() {
        let (pins, collector, _dir) = pins(1000);
        let pin = reader(&pins, 5, collector);
        // Before the keys are resolved, every file that is replaced later is retained.
        assert_eq!(pins.release_replaced(5, &[file(1)]), [FileId(1)]);
        assert_eq!(pins.release_replaced(6, &[file(2), file(3)]), []);
        pin.resolve(vec![FileId(3), FileId(4)]);
        assert_eq!(pins.retained_bytes(PinKind::Reader), 10);
        assert_eq!(pins.release_replaced(7, &[file(4), file(5)]), [FileId(5)]);
        assert_eq!(pins.retained_bytes(PinKind::Reader), 20);
        drop(pin);
        assert_eq!(pins.retained_bytes(PinKind::Reader), 0);
    }

    #[test]
    fn the_oldest_pin_ends_when_too_much_is_retained() {
        let (pins, collector, _dir) = pins(25);
        let readers: Vec<Pin> = (0..3).map(|_| reader(&pins, 0, collector.clone())).collect();
        for (reader, id) in readers.iter().zip(1..) {
            reader.resolve(vec![FileId(id)]);
        }
        assert_eq!(pins.release_replaced(1, &[file(1), file(2)]), []);
        assert_eq!(pins.release_replaced(2, &[file(3)]), [FileId(1)]);
        let are_pinned: Vec<bool> = readers.iter().map(Pin::touch).collect();
        assert_eq!(are_pinned, [false, true, true]);
    }

    #[test]
    fn snapshots_have_a_limit_of_their_own_and_end_before_readers() {
        let (pins, collector, _dir) = pins(25);
        let snapshot = |id| {
            let snapshot = Pin::new(PinKind::Snapshot, &pins, || 0, collector.clone());
            snapshot.resolve(vec![FileId(id), FileId(9)]);
            snapshot
        };
        let (old, new, reader) = (snapshot(1), snapshot(2), reader(&pins, 0, collector.clone()));
        reader.resolve(vec![FileId(2), FileId(9)]);
        // 9 is retained for all three, 2 for the reader and the new snapshot.
        assert_eq!(pins.release_replaced(1, &[file(9), file(1)]), []);
        assert_eq!(pins.release_replaced(2, &[file(2)]), [FileId(1)]);
        assert_eq!([&old, &new, &reader].map(Pin::is_valid), [false, true, true]);
        let retained = |kind| pins.retained_bytes(kind);
        assert_eq!((retained(PinKind::Snapshot), retained(PinKind::Reader)), (20, 20));
        assert_eq!(pins.end_snapshots(), [], "the reader needs the files as well");
        assert_eq!([&new, &reader].map(Pin::is_valid), [false, true]);
        assert_eq!((retained(PinKind::Snapshot), retained(PinKind::Reader)), (0, 20));
    }

    #[test]
    fn a_snapshot_does_not_expire() {
        let (pins, collector, _dir) = pins(100);
        drop(pins);
        let pins = Pins::new(Duration::ZERO, PinLimits { readers: 100, snapshots: 100 });
        let snapshot = Pin::new(PinKind::Snapshot, &pins, || 0, collector.clone());
        let reader = reader(&pins, 0, collector);
        pins.release_replaced(1, &[file(1)]);
        std::thread::sleep(Duration::from_millis(5));
        pins.end_expired();
        assert_eq!([&snapshot, &reader].map(Pin::is_valid), [true, false]);
    }
}
