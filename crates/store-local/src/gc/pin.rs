//! The pin of one reader.

use std::sync::Arc;

use super::{
    collector::GarbageCollector,
    pins::{PinStatus, Pins},
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
    pub(crate) fn new(pins: &Arc<Pins>, visible: impl FnOnce() -> u64, collector: GarbageCollector) -> Self {
        let (number, status) = pins.add(visible);
        Self { number, status, pins: Arc::clone(pins), collector }
    }

    /// Limits the pin to the files of the reader's keys.
    pub(crate) fn resolve(&self, files: Vec<FileId>) {
        self.collector.remove(self.pins.resolve(self.number, files));
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
    use crate::{gc::ReplacedFile, values::Directory};

    fn file(id: u64) -> ReplacedFile {
        ReplacedFile { id: FileId(id), size: 10 }
    }

    fn pins(limit: u64) -> (Arc<Pins>, GarbageCollector, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        Directory::create(dir.path()).unwrap();
        let pins = Pins::new(Duration::from_secs(60), limit);
        let (collector, _thread) = GarbageCollector::start(Directory::open(dir.path(), None).unwrap(), &pins).unwrap();
        (pins, collector, dir)
    }

    #[test]
    fn a_pin_retains_only_the_files_of_its_keys() {
        let (pins, collector, _dir) = pins(1000);
        let pin = Pin::new(&pins, || 5, collector);
        // Before the keys are resolved, every file that is replaced later is retained.
        assert_eq!(pins.release_replaced(5, &[file(1)]), [FileId(1)]);
        assert_eq!(pins.release_replaced(6, &[file(2), file(3)]), []);
        pin.resolve(vec![FileId(3), FileId(4)]);
        assert_eq!(pins.retained_bytes(), 10);
        assert_eq!(pins.release_replaced(7, &[file(4), file(5)]), [FileId(5)]);
        assert_eq!(pins.retained_bytes(), 20);
        drop(pin);
        assert_eq!(pins.retained_bytes(), 0);
    }

    #[test]
    fn the_oldest_pin_ends_when_too_much_is_retained() {
        let (pins, collector, _dir) = pins(25);
        let readers: Vec<Pin> = (0..3).map(|_| Pin::new(&pins, || 0, collector.clone())).collect();
        for (reader, id) in readers.iter().zip(1..) {
            reader.resolve(vec![FileId(id)]);
        }
        assert_eq!(pins.release_replaced(1, &[file(1), file(2)]), []);
        assert_eq!(pins.release_replaced(2, &[file(3)]), [FileId(1)]);
        let are_pinned: Vec<bool> = readers.iter().map(Pin::touch).collect();
        assert_eq!(are_pinned, [false, true, true]);
    }
}
