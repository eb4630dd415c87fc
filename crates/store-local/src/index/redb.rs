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

/// The only file of the index, relative to its directory.
pub(super) const FILE: &str = "index.redb";

/// A copy-on-write B-tree in one file. Each batch is a write transaction, made durable by the next sync.
pub(crate) struct RedbIndex {
    db: Database,
    /// True if a write failed for lack of space. redb rejects all later operations with an error that does not say why.
    full: AtomicBool,
}

impl RedbIndex {
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        std::fs::create_dir_all(dir).map_err(IndexError::Io)?;
        let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
        let db = Database::builder().set_cache_size(cache_bytes).create(dir.join(FILE)).map_err(redb_error)?;
        // Create the table now, so that readers always find it.
        let transaction = db.begin_write().map_err(redb_error)?;
        transaction.open_table(TABLE).map_err(redb_error)?;
        transaction.commit().map_err(redb_error)?;
        // redb syncs its file, but not the file's directory entry.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(IndexError::Io)?;
        Ok(Self { db, full: AtomicBool::new(false) })
    }

    /// Runs `work`. Errors that follow a write without space count as a lack of space too.
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

/// Wraps an iterator so that panics are turned into errors.
pub(super) fn catch_next<T>(
    mut next: impl FnMut() -> Option<Result<T, IndexError>>,
) -> impl FnMut() -> Option<Result<T, IndexError>> {
    move || catch(|| next().transpose()).transpose()
}

/// Converts the error type of any redb call.
fn redb_error(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Redb(Box::new(error.into()))
}
