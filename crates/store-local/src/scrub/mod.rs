//! The scrub: one thread that reads everything again while the store is used, and compares it with its checksums.
//!
//! A pass reads the records of all keys and the files of their values, then the closed segments of the log. It works for a
//! tenth of the time and reads at most [`MAX_BYTES_PER_SECOND`], so that others do not notice it. Its place and what it
//! found are in the file `scrub`, with which a pass continues after a restart.

mod state;
mod throttle;

use std::{
    fs, io,
    path::Path,
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use zarrd_store::{Key, ScrubFinding, ScrubStatus, StoreError};

use self::{
    state::{Progress, State},
    throttle::Throttle,
};
use crate::{
    log::{ScannedSegment, scan_segment, segment_id, segment_name},
    log_key::LogKey,
    paths::Paths,
    record::{Location, Record, now_millis},
    regular_file,
    values::{BUFFER_BYTES, Buffers, Directory, OpenValue},
    view::Views,
};

/// The bytes of values and log that are read in a second, at most.
pub(crate) const MAX_BYTES_PER_SECOND: u64 = 20 << 20;
/// The interval at which the state is written.
const SAVE_INTERVAL: Duration = Duration::from_secs(30);
/// The longest time of one wait.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// The scrub of an open store.
pub(crate) struct Scrub {
    state: Arc<Mutex<State>>,
    /// Dropping it stops the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The parts of a store that the scrub reads.
pub(crate) struct ScrubSource {
    pub(crate) paths: Paths,
    pub(crate) views: Arc<Views>,
    pub(crate) directory: Directory,
    pub(crate) log_key: LogKey,
}

/// The thread of a scrub.
struct Scrubber {
    source: ScrubSource,
    interval: Duration,
    buffers: Buffers,
    state: Arc<Mutex<State>>,
    throttle: Throttle,
    saved: Instant,
}

/// The store was closed, or cannot be read on.
struct Stopped;

impl Scrub {
    /// Starts the thread: one pass begins each `interval`.
    pub(crate) fn start(source: ScrubSource, interval: Duration) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let state = Arc::new(Mutex::new(State::read(&source.paths)));
        let scrubber = Scrubber {
            source,
            interval,
            buffers: Buffers::default(),
            state: Arc::clone(&state),
            throttle: Throttle::new(stopped, MAX_BYTES_PER_SECOND),
            saved: Instant::now(),
        };
        let thread = thread::Builder::new().name("zarrd-scrub".into()).spawn(move || scrubber.run())?;
        Ok(Self { state, stop: Some(stop), thread: Some(thread) })
    }

    pub(crate) fn status(&self) -> ScrubStatus {
        self.state.lock().status()
    }

    /// Stops the thread, which first writes its state.
    pub(crate) fn stop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic of the thread concerns nothing else.
            let _ = thread.join();
        }
    }
}

impl Scrubber {
    fn run(mut self) {
        while self.next_pass().is_ok() {}
        self.save();
    }

    fn next_pass(&mut self) -> Result<(), Stopped> {
        self.wait_until_due()?;
        let now = now_millis();
        self.state.lock().start_pass(now);
        self.scrub_values()?;
        self.scrub_log()?;
        let findings = self.state.lock().finish_pass(now_millis());
        tracing::info!(findings, "a scrub of the store has ended");
        self.save();
        Ok(())
    }

    /// Waits for the next pass. One that was interrupted continues at once.
    fn wait_until_due(&mut self) -> Result<(), Stopped> {
        loop {
            let due = self.state.lock().due(self.interval);
            let wait = due.saturating_sub(now_millis());
            if wait == 0 {
                return Ok(());
            }
            self.throttle.wait(Duration::from_millis(wait).min(MAX_WAIT)).map_err(|_| Stopped)?;
        }
    }

    fn scrub_values(&mut self) -> Result<(), Stopped> {
        loop {
            let Progress::Values { after } = self.state.lock().progress() else { return Ok(()) };
            self.throttle.start();
            let page = self.source.views.page_after(after.as_ref());
            self.throttle.end(0).map_err(|_| Stopped)?;
            let page = match page {
                Ok(page) => page,
                Err(StoreError::Closed) => return Err(Stopped),
                Err(StoreError::Busy { .. }) => {
                    self.throttle.wait(MAX_WAIT).map_err(|_| Stopped)?;
                    continue;
                }
                Err(error) => {
                    let after = after.map_or_else(|| "its first key".to_owned(), |key| format!("{key:?}"));
                    self.find(format!("index after {after}"), &error);
                    break;
                }
            };
            if page.is_empty() {
                break;
            }
            for (key, record) in page {
                match record {
                    Ok(record) => self.scrub_value(&key, &record)?,
                    Err(cause) => self.find(key.as_str().to_owned(), &cause),
                }
                self.state.lock().passed(&key);
            }
            self.save_if_old();
        }
        self.state.lock().start_log();
        Ok(())
    }

    /// Reads the file of a value. One that was replaced meanwhile is not damaged.
    fn scrub_value(&mut self, key: &Key, record: &Record) -> Result<(), Stopped> {
        let Location::File(file) = &record.location else { return Ok(()) };
        self.throttle.start();
        let opened = OpenValue::open_now(&self.source.directory, key, *file, &self.buffers);
        self.throttle.end(0).map_err(|_| Stopped)?;
        let mut range = 0..file.size;
        let mut read = Ok(());
        match opened {
            Ok(mut value) => {
                while read.is_ok() && !range.is_empty() {
                    self.throttle.start();
                    let before = range.start;
                    read = value.read_now(&mut range).map(drop);
                    let bytes = if read.is_ok() { range.start.saturating_sub(before) } else { BUFFER_BYTES as u64 };
                    self.state.lock().add_bytes(bytes);
                    self.throttle.end(bytes).map_err(|_| Stopped)?;
                }
            }
            Err(error) => read = Err(error),
        }
        if let Err(StoreError::Corrupt { cause, .. }) = &read
            && self.is_current(key, record)?
        {
            self.source.directory.check_place().map_err(|_| Stopped)?;
            self.find(key.as_str().to_owned(), cause);
        }
        Ok(())
    }

    fn is_current(&self, key: &Key, record: &Record) -> Result<bool, Stopped> {
        let (view, _gate) = self.source.views.stable().map_err(|_| Stopped)?;
        Ok(view.record(key).is_ok_and(|current| current.as_ref() == Some(record)))
    }

    /// Reads the segments that are no longer written to.
    fn scrub_log(&mut self) -> Result<(), Stopped> {
        let Ok(entries) = fs::read_dir(self.source.paths.log()) else { return Ok(()) };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut ids: Vec<u64> = names.filter_map(|name| segment_id(&name)).collect();
        ids.sort_unstable();
        ids.pop();
        for id in ids {
            let path = self.source.paths.log().join(segment_name(id));
            self.throttle.start();
            let damage = segment_damage(&path, id, self.source.log_key);
            let bytes = fs::metadata(&path).map_or(0, |metadata| metadata.len());
            self.state.lock().add_bytes(bytes);
            self.throttle.end(bytes).map_err(|_| Stopped)?;
            // One that the index has meanwhile was retired, and may be written to under another name.
            if let Some(damage) = damage.filter(|_| path.exists()) {
                self.find(format!("log/{}", segment_name(id)), &damage);
            }
        }
        Ok(())
    }

    fn find(&self, name: String, cause: &dyn std::error::Error) {
        let text = std::iter::successors(Some(cause), |cause| cause.source()).map(ToString::to_string);
        let cause = text.collect::<Vec<_>>().join(": ");
        tracing::error!(name, cause, "the scrub found damage");
        self.state.lock().add(ScrubFinding { name, cause });
    }

    fn save_if_old(&mut self) {
        if self.saved.elapsed() >= SAVE_INTERVAL {
            self.save();
        }
    }

    /// Writes the state, unless the files of the store were removed or replaced.
    fn save(&mut self) {
        self.saved = Instant::now();
        if self.source.directory.check_place().is_err() {
            return;
        }
        let text = self.state.lock().encode();
        if let Err(error) = state::write(&self.source.paths, &text) {
            tracing::debug!(%error, "could not write the state of the scrub");
        }
    }
}

/// The damage of a segment, if it has any.
fn segment_damage(path: &Path, id: u64, key: LogKey) -> Option<SegmentDamage> {
    let bytes = match regular_file::read_all(path) {
        Ok(bytes) => Bytes::from(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(SegmentDamage::Unreadable(error)),
    };
    let ScannedSegment { header, cut_short, damaged, .. } = scan_segment(key, id, bytes);
    match (header, cut_short || damaged) {
        (None, _) => Some(SegmentDamage::Header),
        (Some(_), true) => Some(SegmentDamage::Frame),
        (Some(_), false) => None,
    }
}

/// Damage of a segment of the log.
#[derive(Debug, thiserror::Error)]
enum SegmentDamage {
    #[error("it cannot be read")]
    Unreadable(#[source] io::Error),
    #[error("its header is damaged")]
    Header,
    #[error("a frame of it is damaged")]
    Frame,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use zarrd_store::{Payload, Precondition, WriteableStore};

    use super::*;
    use crate::{IndexKind, LocalStore, Options, open::Identity};

    #[tokio::test]
    async fn damaged_segments_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path(), Options::new(IndexKind::Redb)).await.unwrap();
        for name in ["a", "b", "c"] {
            let key = Key::parse(name).unwrap();
            store.set(&key, Payload::from_bytes(vec![1; 1000]), Precondition::none()).await.unwrap();
        }
        drop(store);
        let paths = Paths::at(dir.path());
        let identity = Identity::read_either(&paths).unwrap().unwrap();
        let key = LogKey::new(identity.id, identity.secret);
        let mut ids: Vec<u64> = fs::read_dir(paths.log())
            .unwrap()
            .filter_map(|entry| segment_id(entry.unwrap().file_name().to_str().unwrap()))
            .collect();
        ids.sort_unstable();
        let id = *ids.last().unwrap();
        let path = paths.log().join(segment_name(id));
        let file = fs::File::options().read(true).write(true).open(&path).unwrap();
        let damage = |offset: u64, bytes: &[u8]| {
            let mut before = vec![0; bytes.len()];
            file.read_exact_at(&mut before, offset).unwrap();
            file.write_all_at(bytes, offset).unwrap();
            let found = segment_damage(&path, id, key);
            file.write_all_at(&before, offset).unwrap();
            found
        };
        assert!(segment_damage(&path, id, key).is_none());
        // One bit of the first frame, more of it, the header.
        assert!(matches!(damage(4096 + 30, &[0xFF]), Some(SegmentDamage::Frame)));
        assert!(matches!(damage(4096 + 100, &[7; 64]), Some(SegmentDamage::Frame)));
        assert!(matches!(damage(0, &[7; 32]), Some(SegmentDamage::Header)));
        assert!(segment_damage(&path, id, key).is_none());
        file.set_len(8192).unwrap();
        assert!(matches!(segment_damage(&path, id, key), Some(SegmentDamage::Frame)));
        fs::remove_file(&path).unwrap();
        assert!(segment_damage(&path, id, key).is_none(), "it was retired");
        // Something of which nothing can be read, and which does not end.
        fs::create_dir(&path).unwrap();
        assert!(matches!(segment_damage(&path, id, key), Some(SegmentDamage::Unreadable(_))));
        fs::remove_dir(&path).unwrap();
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert!(matches!(segment_damage(&path, id, key), Some(SegmentDamage::Unreadable(_))));
    }
}
