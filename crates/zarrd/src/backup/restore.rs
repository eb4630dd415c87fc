//! Restoring a backup into a new store.

use std::{
    num::NonZeroUsize,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use tokio_util::io::ReaderStream;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zarrd_store::{Change, Key, Payload, Precondition, StoreError, TransactionalStore, WriteableStore, put_or_stage};
use zarrd_store_local::LocalStore;
use zarrd_wire::snapshot::SnapshotIntent;

use super::{
    BackupDirectory, BackupError, Manifest,
    pool::{self, Pool},
    records::{BackedUp, RecordsReader, checksum},
};
use crate::ui::{Progress, error_chain};

/// The number of small values in one commit, and their size in bytes, at most.
const BATCH: usize = 1024;
const BATCH_BYTES: u64 = 2 << 20;

/// The treatment of values whose files are damaged or missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// The store stays incomplete.
    Fail,
    /// The store is completed without them.
    Skip,
}

/// What is restored together: a large value, or some small ones.
enum Unit {
    Large(BackedUp),
    Small(Vec<BackedUp>),
}

/// A restoring in progress.
struct Restoring<'r> {
    store: &'r LocalStore,
    pool: Pool,
    progress: &'r Progress,
    failed: AtomicU64,
}

/// Restores a backup into a new store. Returns the number of values that are damaged or missing, which is 0 unless these
/// are skipped.
pub(crate) async fn restore(
    directory: &BackupDirectory,
    manifest: &Manifest,
    store: &LocalStore,
    jobs: NonZeroUsize,
    damaged: Damaged,
    progress: &Progress,
) -> Result<u64, BackupError> {
    let counters = progress.counters();
    counters.expected_keys.store(manifest.keys, Ordering::Relaxed);
    counters.expected_bytes.store(manifest.bytes, Ordering::Relaxed);
    progress.start_processing();
    let path = directory.file(&manifest.name, "records");
    check_records(path.clone(), manifest).await?;
    let restoring = Restoring { store, pool: directory.pool(), progress, failed: AtomicU64::new(0) };
    let units = stream::try_unfold(RecordsReader::open(&path)?, async |mut reader| {
        Ok(next_unit(&mut reader)?.map(|unit| (unit, reader)))
    });
    units.try_for_each_concurrent(jobs.get(), |unit| restoring.put(unit)).await?;
    let missing = u64::try_from(manifest.damaged.len()).unwrap_or(u64::MAX);
    let failed = restoring.failed.load(Ordering::Relaxed).saturating_add(missing);
    for key in &manifest.damaged {
        progress.message(&format!("{key:?} was damaged in the store when the backup was taken"));
    }
    if failed > missing && damaged == Damaged::Fail {
        let advice = "restore an older backup, or what is whole with --skip-damaged";
        return Err(BackupError::Values { count: failed, advice });
    }
    for intent in &manifest.intents {
        restoring.add_intent(intent, &path).await?;
    }
    Ok(failed)
}

/// Fails unless the file of records has the bytes that were written.
async fn check_records(path: PathBuf, manifest: &Manifest) -> Result<(), BackupError> {
    let file = path.clone();
    let found =
        zarrd_executor::run_blocking(move || checksum(&file)).await.unwrap_or(Err(StoreError::Closed.into()))?;
    match found == manifest.records {
        true => Ok(()),
        false => Err(BackupError::damaged(path, "it has not the bytes that were written")),
    }
}

/// The next large value, or small values up to a limit.
fn next_unit(reader: &mut RecordsReader) -> Result<Option<Unit>, BackupError> {
    let (mut small, mut bytes) = (Vec::new(), 0_u64);
    while small.len() < BATCH && bytes < BATCH_BYTES {
        match reader.peek() {
            Some(record) if record.value.is_none() && !small.is_empty() => break,
            None => break,
            Some(_) => {}
        }
        let Some(record) = reader.next()? else { break };
        if record.value.is_none() {
            return Ok(Some(Unit::Large(record)));
        }
        bytes = bytes.saturating_add(record.size);
        small.push(record);
    }
    Ok((!small.is_empty()).then_some(Unit::Small(small)))
}

impl Restoring<'_> {
    async fn put(&self, unit: Unit) -> Result<(), BackupError> {
        match unit {
            Unit::Large(record) => self.put_large(record).await,
            Unit::Small(records) => self.put_small(records).await,
        }
    }

    async fn put_small(&self, records: Vec<BackedUp>) -> Result<(), BackupError> {
        let (mut changes, mut bytes) = (Vec::with_capacity(records.len()), 0_u64);
        for record in records {
            let value = record.value.as_deref().and_then(|value| BASE64_STANDARD.decode(value).ok());
            let checked = value.filter(|value| {
                value.len() as u64 == record.size && super::records::render(xxh3_64(value)) == record.xxh3
            });
            let (Some(value), Ok(key), Some(attributes)) = (checked, Key::parse(&record.key), record.attributes())
            else {
                self.note_damaged(&record.key, "its record is damaged");
                continue;
            };
            bytes = bytes.saturating_add(record.size);
            changes.push(put_or_stage(self.store, &key, Bytes::from(value), attributes).await?);
        }
        let count = changes.len() as u64;
        self.store.commit(changes).await?;
        self.count(count, bytes);
        Ok(())
    }

    async fn put_large(&self, record: BackedUp) -> Result<(), BackupError> {
        let path = self.pool.path(&record.version);
        let file = match tokio::fs::File::open(&path).await {
            Ok(file) => file,
            Err(error) => {
                self.note_damaged(&record.key, &format!("{}: {error}", path.display()));
                return Ok(());
            }
        };
        let (Ok(key), Some(attributes)) = (Key::parse(&record.key), record.attributes()) else {
            self.note_damaged(&record.key, "its record is damaged");
            return Ok(());
        };
        let size = record.size;
        let is_damaged = Arc::new(AtomicBool::new(false));
        let payload = checked(file, path, record.clone(), Arc::clone(&is_damaged)).with_attributes(attributes);
        match self.store.set(&key, payload, Precondition::none()).await {
            Ok(_) => self.count(1, size),
            // What the stream of the file yields, the store passes on.
            Err(error) if is_damaged.load(Ordering::Relaxed) => self.note_damaged(&record.key, &error_chain(&error)),
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    async fn add_intent(&self, intent: &SnapshotIntent, path: &std::path::Path) -> Result<(), BackupError> {
        let parsed = intent.parse().ok_or_else(|| BackupError::damaged(path, "an operation is malformed"))?;
        self.store.commit(vec![Change::AddIntent { id: parsed.id, record: parsed.record }]).await?;
        Ok(())
    }

    fn note_damaged(&self, key: &str, reason: &str) {
        self.progress.message(&format!("not restored: {key:?}: {reason}"));
        self.failed.fetch_add(1, Ordering::Relaxed);
        self.progress.counters().failed.fetch_add(1, Ordering::Relaxed);
        self.progress.counters().corrupt.fetch_add(1, Ordering::Relaxed);
    }

    fn count(&self, keys: u64, bytes: u64) {
        let counters = self.progress.counters();
        counters.keys.fetch_add(keys, Ordering::Relaxed);
        counters.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The bytes of a file, which fail at their end if they are not those that were backed up. `is_damaged` is set if the file
/// is the reason of a failure. The size is checked with the bytes, so that a wrong one is named as damage.
fn checked(file: tokio::fs::File, path: PathBuf, record: BackedUp, is_damaged: Arc<AtomicBool>) -> Payload {
    let reader = ReaderStream::with_capacity(file, 1 << 18);
    let stream = stream::try_unfold((reader, Xxh3::new(), 0_u64), move |(mut reader, mut hash, mut read)| {
        let (path, record, is_damaged) = (path.clone(), record.clone(), Arc::clone(&is_damaged));
        async move {
            let failed = |error: StoreError| {
                is_damaged.store(true, Ordering::Relaxed);
                error
            };
            let Some(bytes) = reader.next().await else {
                pool::check(&path, &record, read, hash.digest()).map_err(failed)?;
                return Ok(None);
            };
            let bytes = bytes.map_err(|error| failed(StoreError::io("read the file of a value", error)))?;
            hash.update(&bytes);
            read = read.saturating_add(bytes.len() as u64);
            Ok(Some((bytes, (reader, hash, read))))
        }
    });
    Payload::from_stream(stream)
}
