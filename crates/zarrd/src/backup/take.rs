//! Taking a backup.

use std::{
    collections::HashSet,
    num::NonZeroUsize,
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use futures::{StreamExt, TryStreamExt};
use xxhash_rust::xxh3::xxh3_64;
use zarrd_store::{Entry, Key, PageRequest, Prefix, PrefixSnapshot, StoreError, ValueMeta};
use zarrd_wire::snapshot::SnapshotIntent;

use super::{
    BackupDirectory, BackupError, Manifest, Tokens,
    contents::{Content, contents},
    manifest::{FORMAT_WITH_ATTRIBUTES, PLAIN_FORMAT},
    pool::{Pool, parse_version},
    records::{BackedUp, MAX_INLINE_BYTES, RecordsReader, RecordsWriter, render},
};
use crate::ui::{Progress, error_chain};

/// The maximum number of damaged keys that a manifest names.
const MAX_DAMAGED: usize = 10_000;

/// The files of values that are read again at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verify {
    /// Those that this backup wrote.
    New,
    /// Those of all its values.
    All,
}

/// A backup that is being taken.
struct Taking<'t> {
    snapshot: &'t dyn PrefixSnapshot,
    pool: Pool,
    progress: &'t Progress,
}

/// What becomes of a value.
enum Outcome {
    /// It is part of the backup, and its file was written for it or is older.
    Stored(BackedUp, Origin),
    /// It is damaged in the store.
    Damaged(Key),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    New,
    Earlier,
}

/// Takes a backup of a snapshot of everything, and returns its description. Tokens are copied by `copy_tokens`, which is
/// given the directory for them.
pub(crate) async fn take(
    snapshot: &Arc<dyn PrefixSnapshot>,
    directory: &BackupDirectory,
    jobs: NonZeroUsize,
    verify: Verify,
    copy_tokens: impl FnOnce(&std::path::Path) -> Result<Tokens, BackupError>,
    progress: &Progress,
) -> Result<Manifest, BackupError> {
    progress.counters().expected_keys.store(snapshot.len(), Ordering::Relaxed);
    progress.start_processing();
    let begun = SystemTime::now();
    let previous = directory.manifests()?.pop();
    let name = new_name(begun, previous.as_ref());
    let taking = Taking { snapshot: &**snapshot, pool: directory.pool(), progress };
    let store = taking.store().await?;
    if let Some(store) = &store {
        directory.claim(store)?;
    }
    let path = directory.file(&name, "records");
    let earlier =
        previous.map(|previous| RecordsReader::open(&directory.file(&previous.name, "records"))).transpose()?;
    let mut manifest = Manifest {
        format: PLAIN_FORMAT,
        name: name.clone(),
        zarrd: env!("CARGO_PKG_VERSION").to_owned(),
        store,
        taken: humantime::format_rfc3339_millis(begun).to_string(),
        commit: format!("{:x}", snapshot.watermark().as_u64()),
        keys: 0,
        bytes: 0,
        records: String::new(),
        intents: snapshot.intents().iter().map(SnapshotIntent::new).collect(),
        tokens: copy_tokens(&directory.access(&name))?,
        damaged: Vec::new(),
    };
    let mut writer = RecordsWriter::create(&path)?;
    let written = taking.write_all(earlier, jobs, &mut writer, &mut manifest).await?;
    manifest.records = writer.finish()?;
    let pool = taking.pool.clone();
    let verified = move || {
        pool.sync()?;
        verify_files(&pool, &path, |version| verify == Verify::All || written.contains(&version))
    };
    zarrd_executor::run_blocking(verified).await.unwrap_or(Err(StoreError::Closed.into()))?;
    directory.complete(&manifest)?;
    Ok(manifest)
}

impl Taking<'_> {
    /// The store of the snapshot, which is the upper half of all its versions; none if it is empty.
    async fn store(&self) -> Result<Option<String>, BackupError> {
        let first = self.snapshot.list_prefix(&Prefix::root(), PageRequest::first(1)).await?;
        Ok(first.keys.first().map(|entry| render((entry.meta.version.as_u128() >> 64) as u64)))
    }

    /// Writes the records and files of all values. Returns the versions whose files were written.
    async fn write_all(
        &self,
        earlier: Option<RecordsReader>,
        jobs: NonZeroUsize,
        writer: &mut RecordsWriter,
        manifest: &mut Manifest,
    ) -> Result<HashSet<u128>, BackupError> {
        let stored = contents(self.snapshot, earlier).map(|content| async { self.store_value(content?).await });
        let mut outcomes = std::pin::pin!(stored.buffered(jobs.get()));
        let mut written = HashSet::new();
        while let Some(outcome) = outcomes.try_next().await? {
            match outcome {
                Outcome::Damaged(key) => {
                    if manifest.damaged.len() < MAX_DAMAGED {
                        manifest.damaged.push(key.to_string());
                    }
                }
                Outcome::Stored(record, origin) => {
                    if origin == Origin::New && record.value.is_none() {
                        written.extend(parse_version(&record.version));
                    }
                    if record.attributes.is_some() {
                        manifest.format = FORMAT_WITH_ATTRIBUTES;
                    }
                    manifest.keys = manifest.keys.saturating_add(1);
                    manifest.bytes = manifest.bytes.saturating_add(record.size);
                    writer.push(&record)?;
                }
            }
        }
        Ok(written)
    }

    async fn store_value(&self, content: Content) -> Result<Outcome, BackupError> {
        let counters = self.progress.counters();
        let Content { entry: Entry { key, meta, .. }, known, value } = content;
        if let Some(known) = known.filter(|known| known.value.is_some() || self.pool.has(known)) {
            counters.keys.fetch_add(1, Ordering::Relaxed);
            return Ok(Outcome::Stored(known, Origin::Earlier));
        }
        let copied = match value {
            Some(value) => Ok(inline_record(&key, &meta, &value)),
            None => self.copy_value(&key, meta.version.to_string()).await,
        };
        match copied {
            Ok(record) => {
                counters.keys.fetch_add(1, Ordering::Relaxed);
                counters.bytes.fetch_add(record.size, Ordering::Relaxed);
                Ok(Outcome::Stored(record, Origin::New))
            }
            Err(BackupError::Store(error @ StoreError::Corrupt { .. })) => {
                self.progress.message(&format!("not part of the backup: {key:?}: {}", error_chain(&error)));
                counters.failed.fetch_add(1, Ordering::Relaxed);
                counters.corrupt.fetch_add(1, Ordering::Relaxed);
                Ok(Outcome::Damaged(key))
            }
            Err(error) => Err(error),
        }
    }

    async fn copy_value(&self, key: &Key, version: String) -> Result<BackedUp, BackupError> {
        let value = self.snapshot.get(key, None).await?.ok_or_else(|| BackupError::Vanished { key: key.clone() })?;
        if value.meta.size > MAX_INLINE_BYTES {
            let attributes = attributes_text(&value.meta);
            let (size, checksum) = self.pool.write(&version, value.stream).await?;
            let xxh3 = render(checksum);
            return Ok(BackedUp { key: key.to_string(), version, size, xxh3, attributes, value: None });
        }
        let meta = value.meta.clone();
        Ok(inline_record(key, &meta, &value.bytes().await?))
    }
}

/// The record of a small value.
fn inline_record(key: &Key, meta: &ValueMeta, bytes: &[u8]) -> BackedUp {
    BackedUp {
        key: key.to_string(),
        version: meta.version.to_string(),
        size: meta.size,
        xxh3: render(xxh3_64(bytes)),
        attributes: attributes_text(meta),
        value: Some(BASE64_STANDARD.encode(bytes)),
    }
}

fn attributes_text(meta: &ValueMeta) -> Option<String> {
    let bytes = meta.attributes.encode();
    (!bytes.is_empty()).then(|| BASE64_STANDARD.encode(bytes))
}

/// Reads the files of some values again, and checks that the others are there. Blocks.
fn verify_files(pool: &Pool, records: &std::path::Path, is_read: impl Fn(u128) -> bool) -> Result<(), BackupError> {
    let mut reader = RecordsReader::open(records)?;
    while let Some(record) = reader.next()? {
        if record.value.is_some() {
            continue;
        }
        let path = pool.path(&record.version);
        if !pool.has(&record) {
            return Err(BackupError::damaged(path, "it is missing, or has another size"));
        }
        let version = parse_version(&record.version).unwrap_or_default();
        if is_read(version) && render(pool.checksum(&record.version)?) != record.xxh3 {
            return Err(BackupError::damaged(path, "it has not the bytes that were written"));
        }
    }
    Ok(())
}

/// The name of a backup that is begun now, which follows all others.
fn new_name(begun: SystemTime, previous: Option<&Manifest>) -> String {
    let text = humantime::format_rfc3339_seconds(begun).to_string();
    let name: String = text.chars().filter(|character| !matches!(character, '-' | ':')).collect();
    match previous {
        // The clock was set back, or two backups were begun in one second.
        Some(previous) if previous.name >= name => format!("{}-1", previous.name),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn names_are_times_and_ascend() {
        let time = UNIX_EPOCH + Duration::from_secs(1_795_851_912);
        let first = new_name(time, None);
        assert_eq!(first, "20261128T074512Z");
        let manifest = Manifest {
            format: 1,
            name: first.clone(),
            zarrd: String::new(),
            store: None,
            taken: String::new(),
            commit: String::new(),
            keys: 0,
            bytes: 0,
            records: String::new(),
            intents: Vec::new(),
            tokens: Tokens::None,
            damaged: Vec::new(),
        };
        let second = new_name(time - Duration::from_secs(60), Some(&manifest));
        assert_eq!(second, "20261128T074512Z-1");
        assert!(second > first);
        let third = new_name(time, Some(&Manifest { name: second.clone(), ..manifest }));
        assert!(third > second);
    }
}
