//! The index in redb.

use std::{
    fs::File,
    io,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::{Index, IndexError, IndexIter, catch};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("keys");

/// The index's only file, within its directory.
pub(super) const FILE: &str = "index.redb";

/// A copy-on-write B-tree in one file. A batch is a write transaction, made durable by the next sync.
pub(crate) struct RedbIndex {
    db: Database,
    /// True if there was no space for a write, after which redb refuses everything with an error that does not say why.
    full: AtomicBool,
}

impl RedbIndex {
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        std::fs::create_dir_all(dir).map_err(IndexError::Io)?;
        let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
        let db = Database::builder().set_cache_size(cache_bytes).create(dir.join(FILE)).map_err(redb_error)?;
        // The table is made at once, so that a reader always finds it.
        let transaction = db.begin_write().map_err(redb_error)?;
        transaction.open_table(TABLE).map_err(redb_error)?;
        transaction.commit().map_err(redb_error)?;
        // redb syncs its file, and not the entry that names it.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(IndexError::Io)?;
        Ok(Self { db, full: AtomicBool::new(false) })
    }

    /// Runs `work`, whose refusals after a write that had no space are for lack of space too.
    fn catch_full<T>(&self, work: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
        catch(work).map_err(|error| match error {
            IndexError::Redb(error)
                if matches!(*error, redb::Error::PreviousIo) && self.full.load(Ordering::Acquire) =>
            {
                IndexError::Io(io::ErrorKind::StorageFull.into())
            }
            error => {
                self.full.fetch_or(error.is_out_of_space(), Ordering::AcqRel);
                error
            }
        })
    }

    fn commit(&self, batch: &[(Bytes, Option<Bytes>)], durability: Durability) -> Result<(), IndexError> {
        let mut transaction = self.db.begin_write().map_err(redb_error)?;
        transaction.set_durability(durability).map_err(redb_error)?;
        {
            let mut table = transaction.open_table(TABLE).map_err(redb_error)?;
            for (key, record) in batch {
                match record {
                    Some(record) => table.insert(&**key, &**record).map_err(redb_error)?,
                    None => table.remove(&**key).map_err(redb_error)?,
                };
            }
        }
        transaction.commit().map_err(redb_error)
    }
}

impl Index for RedbIndex {
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        self.catch_full(|| {
            let table = self.db.begin_read().map_err(redb_error)?.open_table(TABLE).map_err(redb_error)?;
            Ok(table.get(key).map_err(redb_error)?.map(|record| Bytes::copy_from_slice(record.value())))
        })
    }

    fn iter(&self, from: &[u8]) -> Result<IndexIter<'_>, IndexError> {
        self.catch_full(|| {
            let table = self.db.begin_read().map_err(redb_error)?.open_table(TABLE).map_err(redb_error)?;
            let mut entries = table.range(from..).map_err(redb_error)?;
            let mut next =
                move || {
                    let entry = entries.next()?.map_err(redb_error);
                    Some(entry.map(|(key, record)| {
                        (Bytes::copy_from_slice(key.value()), Bytes::copy_from_slice(record.value()))
                    }))
                };
            let next = move || self.catch_full(|| next().transpose()).transpose();
            Ok(Box::new(std::iter::from_fn(next)) as IndexIter<'_>)
        })
    }

    fn apply(&self, batch: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError> {
        self.catch_full(|| self.commit(&batch, Durability::None))
    }

    fn sync(&self) -> Result<(), IndexError> {
        self.catch_full(|| self.commit(&[], Durability::Immediate))
    }
}

/// The same calls, with panics turned into errors.
pub(super) fn catch_next<T>(
    mut next: impl FnMut() -> Option<Result<T, IndexError>>,
) -> impl FnMut() -> Option<Result<T, IndexError>> {
    move || catch(|| next().transpose()).transpose()
}

/// redb has an error type for each call, all of which turn into its common one.
fn redb_error(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Redb(Box::new(error.into()))
}
