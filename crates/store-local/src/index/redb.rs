//! The index in redb.

use std::path::Path;

use bytes::Bytes;
use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use super::{Batch, Index, IndexError, META_KEY, Step, catch, walk};

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("keys");

/// The index's only file, within its directory.
pub(super) const FILE: &str = "index.redb";

/// A copy-on-write B-tree in one file. Every batch is one write transaction, synced before it is acknowledged.
pub(crate) struct RedbIndex {
    db: Database,
}

impl RedbIndex {
    pub(super) fn open(dir: &Path, cache_bytes: u64) -> Result<Self, IndexError> {
        std::fs::create_dir_all(dir).map_err(IndexError::Sync)?;
        let cache_bytes = usize::try_from(cache_bytes).unwrap_or(usize::MAX);
        let db = Database::builder().set_cache_size(cache_bytes).create(dir.join(FILE)).map_err(redb_error)?;
        // The table is made at once, so that a reader always finds it.
        let transaction = db.begin_write().map_err(redb_error)?;
        transaction.open_table(TABLE).map_err(redb_error)?;
        transaction.commit().map_err(redb_error)?;
        Ok(Self { db })
    }
}

impl Index for RedbIndex {
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>, IndexError> {
        catch(|| {
            let table = self.db.begin_read().map_err(redb_error)?.open_table(TABLE).map_err(redb_error)?;
            keys.iter().map(|key| Ok(table.get(*key).map_err(redb_error)?.map(|record| copy(record.value())))).collect()
        })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError> {
        Ok(self.get_many(&[key])?.pop().flatten())
    }

    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Bytes) -> Step) -> Result<(), IndexError> {
        catch(|| {
            let table = self.db.begin_read().map_err(redb_error)?.open_table(TABLE).map_err(redb_error)?;
            walk(from, visit, |from| {
                let entries = table.range(from..).map_err(redb_error)?;
                Ok(entries.map(|entry| {
                    let (key, record) = entry.map_err(redb_error)?;
                    Ok((copy(key.value()), copy(record.value())))
                }))
            })
        })
    }

    fn commit(&self, batch: &Batch) -> Result<(), IndexError> {
        catch(|| {
            let mut transaction = self.db.begin_write().map_err(redb_error)?;
            transaction.set_durability(Durability::Immediate).map_err(redb_error)?;
            {
                let mut table = transaction.open_table(TABLE).map_err(redb_error)?;
                for (key, record) in &batch.changes {
                    match record {
                        Some(record) => table.insert(key.as_bytes(), record.as_slice()).map_err(redb_error)?,
                        None => table.remove(key.as_bytes()).map_err(redb_error)?,
                    };
                }
                table.insert(META_KEY, batch.meta.encode().as_slice()).map_err(redb_error)?;
            }
            transaction.commit().map_err(redb_error)
        })
    }
}

fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

/// redb has an error type for each call, all of which turn into its common one.
fn redb_error(error: impl Into<redb::Error>) -> IndexError {
    IndexError::Redb(Box::new(error.into()))
}
