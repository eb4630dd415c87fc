//! The index in sled 0.34.7, with the patches in `vendor/sled`.
//!
//! As published, sled syncs its log `db` with `sync_file_range`, which makes neither the file's size nor new blocks durable and
//! does not flush the drive's cache; then it writes into segments again whose pages it has moved, and a crash could lose them in
//! both places. The patched one syncs whatever it has written before it counts on it, and its snapshots with their
//! directory, so that a sync here is sled's flush.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{Index, IndexError, IndexIter, catch, redb::catch_next};

/// The file of the settings that sled was made with.
const SETTINGS_FILE: &str = "conf";

/// The file that sled appends to, within its directory.
pub(super) const FILE: &str = "db";

/// See the module's page.
pub(crate) struct SledIndex {
    /// `None` only while it is dropped.
    db: Option<sled::Db>,
    /// Dropped after `db`.
    _unlock_waiter: UnlockWaiter,
}

/// Waits, when it is dropped, until sled has let go of its file.
///
/// Tasks of sled's thread pool go on for a moment after its last handle is gone, and may still cut the file's free end off. They
/// hold sled's lock on the file, so once that can be had nothing changes the file any more: it can be summed, or
/// opened again.
struct UnlockWaiter(PathBuf);

/// How long sled is waited for: far longer than any task takes.
const MAX_UNLOCK_WAIT: Duration = Duration::from_secs(30);

impl Drop for UnlockWaiter {
    fn drop(&mut self) {
        let start = Instant::now();
        while let Ok(file) = File::open(&self.0)
            && matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        {
            if start.elapsed() > MAX_UNLOCK_WAIT {
                tracing::warn!(file = %self.0.display(), "sled does not let go of its file");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl SledIndex {
    /// A page larger than a quarter of a segment goes to a file of its own; neither a leaf of 16 small values nor most nodes of
    /// 256 keys come near that with segments of 1 MiB or more.
    pub(super) fn open(dir: &Path, cache_bytes: u64, segment_bytes: u64) -> Result<Self, IndexError> {
        let segment_bytes = existing_segment_bytes(dir).unwrap_or(segment_bytes);
        let db = sled::Config::new()
            .path(dir)
            .mode(sled::Mode::HighThroughput)
            .cache_capacity(cache_bytes)
            .segment_size(usize::try_from(segment_bytes).unwrap_or(usize::MAX))
            .flush_every_ms(None)
            .open()?;
        let index = Self { db: Some(db), _unlock_waiter: UnlockWaiter(dir.join(FILE)) };
        // sled never syncs the entries of the files that it has made.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(IndexError::Io)?;
        index.sync()?;
        Ok(index)
    }
}

impl SledIndex {
    fn db(&self) -> Result<&sled::Db, IndexError> {
        self.db.as_ref().ok_or(IndexError::Reopening)
    }
}

impl Drop for SledIndex {
    /// sled panics where it cannot sync once more at its end; what counts was synced before.
    fn drop(&mut self) {
        let db = self.db.take();
        let closed = catch(|| {
            drop(db);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(error = &error as &dyn std::error::Error, "sled did not close in order");
        }
    }
}

/// The segments that an existing index was made with: sled opens it with no others.
fn existing_segment_bytes(dir: &Path) -> Option<u64> {
    let settings = fs::read(dir.join(SETTINGS_FILE)).ok()?;
    let text = String::from_utf8_lossy(&settings);
    let size = text.lines().find_map(|line| line.strip_prefix("segment_size: "))?;
    size.parse().ok()
}

impl Index for SledIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        catch(|| Ok(self.db()?.get(key)?.map(Bytes::from_owner)))
    }

    fn iter(&self, from: &[u8]) -> Result<IndexIter<'_>, IndexError> {
        catch(|| {
            let mut entries = self.db()?.range(from..);
            let next = move || {
                let entry = entries.next()?;
                Some(entry.map(|(key, record)| (Bytes::from_owner(key), Bytes::from_owner(record))).map_err(Into::into))
            };
            Ok(Box::new(std::iter::from_fn(catch_next(next))) as IndexIter<'_>)
        })
    }

    fn apply(&self, batch: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError> {
        let mut changes = sled::Batch::default();
        for (key, record) in batch {
            match record {
                Some(record) => changes.insert(&*key, &*record),
                None => changes.remove(&*key),
            }
        }
        catch(|| Ok(self.db()?.apply_batch(changes)?))
    }

    fn sync(&self) -> Result<(), IndexError> {
        catch(|| {
            self.db()?.flush()?;
            Ok(())
        })
    }
}
