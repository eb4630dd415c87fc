//! The index in sled 0.34.7, with the patches in `vendor/sled`.
//!
//! The published sled syncs its log `db` with `sync_file_range`, which makes neither the file size nor new blocks
//! durable and does not flush the drive's cache. It then overwrites segments whose pages it has moved, so that a crash
//! could lose both copies. The patched version syncs everything it depends on, including snapshots and their directory,
//! so that a sync of the index is a flush of sled.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use bytes::Bytes;

use super::{Index, IndexError, IndexIter, catch, redb::catch_next};

/// The file with the settings that sled was created with.
const SETTINGS_FILE: &str = "conf";

/// The file that sled appends to, relative to its directory.
pub(super) const FILE: &str = "db";

/// The file that says where pages are, relative to its directory.
pub(crate) const PAGE_POSITIONS: &str = "pages";

/// A sled database.
pub(crate) struct SledIndex {
    /// `None` only during the drop.
    db: Option<sled::Db>,
    /// Dropped after `db`.
    _unlock_waiter: UnlockWaiter,
}

/// Waits on drop until sled has released its file lock.
///
/// Tasks of sled's thread pool run for a moment after its last handle is dropped, and may still truncate the file. They
/// hold sled's lock on it, so when the lock is free the file no longer changes: it can be checksummed or opened again.
struct UnlockWaiter(PathBuf);

/// The maximum time to wait for sled, far longer than any of its tasks takes.
const MAX_UNLOCK_WAIT: Duration = Duration::from_secs(30);

impl Drop for UnlockWaiter {
    fn drop(&mut self) {
        let start = Instant::now();
        while let Ok(file) = File::open(&self.0)
            && matches!(file.try_lock(), Err(TryLockError::WouldBlock))
        {
            if start.elapsed() > MAX_UNLOCK_WAIT {
                tracing::warn!(file = %self.0.display(), "sled does not release its file");
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl SledIndex {
    /// Opens the index. sled stores a page larger than a quarter of a segment in a file of its own; neither a leaf of
    /// 16 small values nor most nodes of 256 keys come near that with segments of 1 MiB or more.
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
        // If sled dropped the end of its log, it will write other messages there.
        match fs::remove_file(dir.join(PAGE_POSITIONS)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(IndexError::Io(error)),
            _ => {}
        }
        // sled never syncs the directory entries of the files that it creates.
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
    /// sled panics if its final sync fails; everything that counts was synced before.
    fn drop(&mut self) {
        let db = self.db.take();
        let closed = catch(|| {
            drop(db);
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(error = &error as &dyn std::error::Error, "sled failed while closing");
        }
    }
}

/// The segment size of an existing index: sled opens it with no other.
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

    fn check_writes(&self) -> Result<(), IndexError> {
        catch(|| Ok(self.db()?.check_writes()?))
    }

    fn sync(&self) -> Result<(), IndexError> {
        catch(|| {
            self.db()?.flush()?;
            Ok(())
        })
    }

    fn page_positions(&self) -> Result<Option<Bytes>, IndexError> {
        catch(|| Ok(self.db()?.page_positions().map(Bytes::from)))
    }
}
