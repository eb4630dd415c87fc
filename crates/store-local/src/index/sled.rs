//! The index in sled 0.34.7.
//!
//! sled alone does not keep what it acknowledged: its `flush` waits for `sync_file_range` only, which neither
//! flushes the drive's cache nor the file's metadata. So every batch ends with an `fdatasync` of the log file `db`
//! that sled writes.

use std::{
    fs::{File, TryLockError},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::RwLock;

use super::{Batch, Index, IndexError, META_KEY, Step, catch, walk};

/// The size of sled's segments. A page larger than a quarter of it would go to a file of its own that sled never
/// syncs; neither a leaf of 16 inline values nor a node of 256 keys of a thousand bytes comes near that.
const SEGMENT_BYTES: usize = 4 << 20;

/// The file that sled appends to, within its directory.
pub(super) const FILE: &str = "db";

/// See the module's page.
pub(crate) struct SledIndex {
    db: sled::Db,
    /// Dropped after `db`.
    _released: Released,
    /// The file that sled appends to, opened once more to be synced.
    log: File,
    /// Held for reading while several keys are looked up, and for writing while a batch becomes visible.
    visible: RwLock<()>,
}

/// Waits, when it is dropped, until sled has let go of its file.
///
/// Tasks of sled's thread pool go on for a moment after its last handle is gone, and may still cut the file's free end off. They
/// hold sled's lock on the file, so once that can be had nothing changes the file any more: it can be summed, or
/// opened again.
struct Released(PathBuf);

/// How long sled is waited for: far longer than any task takes.
const LONGEST_RELEASE: Duration = Duration::from_secs(30);

impl Drop for Released {
    fn drop(&mut self) {
        let begin = Instant::now();
        while let Ok(file) = File::open(&self.0)
            && matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        {
            if begin.elapsed() > LONGEST_RELEASE {
                tracing::warn!(file = %self.0.display(), "sled does not let go of its file");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl SledIndex {
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        let db = sled::Config::new()
            .path(dir)
            .mode(sled::Mode::HighThroughput)
            .cache_capacity(cache_bytes)
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(None)
            .open()?;
        let log = File::open(dir.join(FILE)).map_err(IndexError::Sync)?;
        let index = Self { db, _released: Released(dir.join(FILE)), log, visible: RwLock::new(()) };
        // What opening wrote must not be lost under the first batch.
        index.sync()?;
        Ok(index)
    }

    fn sync(&self) -> Result<(), IndexError> {
        self.db.flush()?;
        self.log.sync_data().map_err(IndexError::Sync)
    }
}

impl Index for SledIndex {
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>, IndexError> {
        let _visible = self.visible.read();
        keys.iter().map(|key| self.get(key)).collect()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        catch(|| Ok(self.db.get(key)?.map(Bytes::from_owner)))
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Bytes) -> Step) -> Result<(), IndexError> {
        catch(|| {
            walk(from, visit, |from| {
                let entries = self.db.range(from..);
                Ok(entries.map(|entry| entry.map(|(key, record)| (key, Bytes::from_owner(record))).map_err(Into::into)))
            })
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), IndexError> {
        let mut changes = sled::Batch::default();
        for (key, record) in &batch.changes {
            match record {
                Some(record) => changes.insert(key.as_bytes(), record.as_slice()),
                None => changes.remove(key.as_bytes()),
            }
        }
        changes.insert(META_KEY, batch.meta.encode().as_slice());
        catch(|| {
            {
                let _visible = self.visible.write();
                self.db.apply_batch(changes)?;
            }
            self.sync()
        })
    }
}
