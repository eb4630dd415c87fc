//! Applying a frozen memtable to the index.

use std::sync::Arc;

use bytes::Bytes;
use zarrd_store::{Key, Prefix};

use super::{
    Checkpointer, VerifyState,
    writer::{Changes, Follower, MAX_BATCH_BYTES},
};
use crate::{
    damage::{GONE_VALUE, KnownDamage, gone_key},
    gc::ReplacedFile,
    index::IndexError,
    keyspace::{Sweeps, intent_key, logical_key},
    record::Record,
    view::{Latest, LatestChange, Memtable, live_below},
};

/// The maximum number of entries below an erased prefix that are removed directly; more are swept.
const MAX_DIRECT_ERASES: usize = 1000;

impl Checkpointer {
    /// Applies the frozen memtable, if one exists, and retires its part of the log.
    pub(super) fn apply_frozen(&mut self) -> Result<(), IndexError> {
        let Ok(parts) = self.views.parts() else { return Ok(()) };
        let Some(frozen) = &parts.frozen else {
            self.start_verification();
            return Ok(());
        };
        let sweeps = self.apply_erased(frozen, &parts.sweeps)?;
        self.apply_changes(frozen, &sweeps)?;
        self.apply_intents(frozen)?;
        self.writer.meta.applied = frozen.last_group().max(self.writer.meta.applied);
        self.apply_batch(Changes::new())?;
        self.writer.sync()?;
        let applied = self.writer.meta.applied;
        self.views.replace(|parts| {
            parts.frozen = None;
            parts.sweeps = sweeps;
        });
        self.timers.frozen = std::time::Instant::now();
        if let Err(error) = self.files.retire(applied) {
            tracing::warn!(%error, "could not retire an applied part of the log");
        }
        self.applied.notify_waiters();
        self.start_verification();
        Ok(())
    }

    /// Applies a batch, and reports it to the running verification and compaction.
    pub(super) fn apply_batch(&mut self, changes: Changes) -> Result<(), IndexError> {
        let mut followers: Vec<&mut dyn Follower> = Vec::new();
        if let VerifyState::Running(verification) = &mut self.verify {
            followers.push(verification);
        }
        if let Some((compaction, _)) = &mut self.compaction {
            followers.push(compaction);
        }
        self.writer.apply(changes, &mut followers)?;
        match &mut self.compaction {
            Some((compaction, _)) => compaction.catch_up(),
            None => Ok(()),
        }
    }

    /// Removes the entries below erased prefixes if they are few, and starts sweeps if they are many.
    fn apply_erased(&mut self, frozen: &Memtable, sweeps: &Arc<Sweeps>) -> Result<Arc<Sweeps>, IndexError> {
        let mut erased = frozen.erased();
        erased.sort_by_key(|(number, _)| *number);
        let mut sweeps = Arc::clone(sweeps);
        for (number, prefix) in erased {
            self.note_erased_prefix(&prefix)?;
            let found = live_below(&*self.writer.index, &sweeps, &prefix, MAX_DIRECT_ERASES)?;
            if found.len() > MAX_DIRECT_ERASES || sweeps.0.iter().any(|sweep| sweep.number == number) {
                sweeps = sweeps.with_sweep(number, &prefix);
                let started = sweeps.0.iter().find(|sweep| sweep.number == number);
                let started = started.map(|sweep| (sweep.key(), Some(sweep.encode())));
                self.apply_batch(started.into_iter().collect())?;
            } else {
                self.erase_directly(number, frozen, found)?;
            }
        }
        Ok(sweeps)
    }

    /// Records that a prefix was erased, if keys below it may be lost.
    fn note_erased_prefix(&mut self, prefix: &Prefix) -> Result<(), IndexError> {
        let Ok(parts) = self.views.parts() else { return Ok(()) };
        match parts.damage.below(prefix).next() {
            Some(_) => self.apply_batch(Changes::from([(gone_key(prefix.as_bytes()), Some(GONE_VALUE))])),
            None => Ok(()),
        }
    }

    fn erase_directly(&mut self, number: u64, frozen: &Memtable, found: Vec<(Bytes, Bytes)>) -> Result<(), IndexError> {
        let mut found = found.into_iter().peekable();
        while found.peek().is_some() {
            let limit = self.writer.limit();
            let batch: Vec<_> = found.by_ref().take(limit).collect();
            let files = batch.iter().filter_map(|(key, record)| self.replaced_file_of(number, key, record)).collect();
            // A key that was set again has a later change, and its new value may be in the index already.
            let set_again = |key: &Bytes| is_set(frozen, logical_key(key));
            let changes = batch.into_iter().filter(|(key, _)| !set_again(key)).map(|(key, _)| (key, None));
            self.apply_batch(changes.collect())?;
            self.collector.remove_replaced(number, files);
        }
        Ok(())
    }

    /// The value file that an erase with this number replaces.
    pub(super) fn replaced_file_of(&self, number: u64, physical: &[u8], record: &Bytes) -> Option<ReplacedFile> {
        let record = Record::decode(logical_key(physical), record.clone(), self.store_id)?;
        let file = record.file().filter(|_| record.commit < number)?;
        Some(ReplacedFile { id: file.id, size: file.size })
    }

    fn apply_changes(&mut self, frozen: &Memtable, sweeps: &Sweeps) -> Result<(), IndexError> {
        let (mut batch, mut bytes) = (Changes::new(), 0_usize);
        let mut from = String::new();
        let damage = self.views.parts().map(|parts| Arc::clone(&parts.damage)).unwrap_or_default();
        while let Some(key) = frozen.next_key(&from) {
            from = format!("{key}\0");
            let Some(latest) = frozen.latest(&key, u64::MAX) else { continue };
            let record = self.encoded(&key, latest)?;
            bytes = bytes.saturating_add(record.as_ref().map_or(0, Bytes::len)).saturating_add(key.len());
            if let Some(moved) = sweeps.old_physical_key(key.as_bytes()) {
                batch.insert(moved, None);
            }
            if record.is_none() && is_among_lost(&damage, &key) {
                batch.insert(gone_key(key.as_bytes()), Some(GONE_VALUE));
            }
            batch.insert(sweeps.physical_key(key.as_bytes()), record);
            self.collect_erased_files(frozen, &key);
            if batch.len() >= self.writer.limit() || bytes >= MAX_BATCH_BYTES {
                self.ballast.free_space(self.batch_space());
                self.apply_batch(std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        self.ballast.free_space(self.batch_space());
        self.apply_batch(batch)
    }

    fn apply_intents(&mut self, frozen: &Memtable) -> Result<(), IndexError> {
        let (mut batch, mut bytes) = (Changes::new(), 0_usize);
        for (id, record) in frozen.intents(u64::MAX) {
            bytes = bytes.saturating_add(record.as_ref().map_or(0, Bytes::len));
            batch.insert(intent_key(id), record);
            if bytes >= MAX_BATCH_BYTES {
                self.ballast.free_space(self.batch_space());
                self.apply_batch(std::mem::take(&mut batch))?;
                bytes = 0;
            }
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.ballast.free_space(self.batch_space());
        self.apply_batch(batch)
    }

    fn encoded(&self, key: &str, latest: Latest) -> Result<Option<Bytes>, IndexError> {
        match latest.change {
            LatestChange::Record(record) => Ok(Some(record)),
            LatestChange::Erased => Ok(None),
            LatestChange::InBulk(bulk, place) => {
                let damaged = |error: &dyn std::error::Error| IndexError::Io(std::io::Error::other(error.to_string()));
                let key = Key::from_stored(key.as_bytes()).map_err(|error| damaged(&error))?;
                let record = bulk.record(&key, place).map_err(|error| damaged(&error))?;
                Ok(Some(record.encode(key.as_bytes(), self.store_id)))
            }
        }
    }

    /// Removes the files of values that never reach the index, because a prefix was erased after them in the same
    /// memtable.
    fn collect_erased_files(&self, frozen: &Memtable, key: &str) {
        let erases = frozen.erases_of(key);
        if erases.is_empty() {
            return;
        }
        let mut versions: Vec<(u64, Option<ReplacedFile>)> = Vec::new();
        let file_of = |record: &Record| record.file().map(|file| ReplacedFile { id: file.id, size: file.size });
        for (number, record) in frozen.versions(key) {
            let record = record.and_then(|record| Record::decode(key.as_bytes(), record, self.store_id));
            versions.push((number, record.as_ref().and_then(file_of)));
        }
        versions.extend(frozen.bulk_versions(key));
        for number in erases {
            let last = versions.iter().filter(|(version, _)| *version < number).max_by_key(|(version, _)| *version);
            if let Some((_, Some(file))) = last {
                self.collector.remove_replaced(number, vec![*file]);
            }
        }
    }
}

fn is_among_lost(damage: &KnownDamage, key: &str) -> bool {
    !damage.0.is_empty() && Key::parse(key).is_ok_and(|key| damage.of_key(&key).next().is_some())
}

fn is_set(frozen: &Memtable, key: &[u8]) -> bool {
    let latest = std::str::from_utf8(key).ok().and_then(|key| frozen.latest(key, u64::MAX));
    latest.is_some_and(|latest| !matches!(latest.change, LatestChange::Erased))
}
