//! The verification of all entries after a crash, which runs while the store is used.

use std::{sync::Arc, thread};

use bytes::Bytes;

use super::{Checkpointer, VerifyState, missing_values::report_missing, writer::Follower};
use crate::{
    damage::is_placeholder,
    index::{Index, IndexError},
    keyspace::{Meta, first_after, is_internal, logical_key},
    record::{FileId, Record},
};

/// The number of entries in one step.
const ENTRIES_PER_STEP: usize = 4096;

/// Counts all entries, and follows the batches that change counted ones.
#[derive(Default)]
pub(crate) struct Verification {
    /// The last key that was counted.
    cursor: Option<Bytes>,
    counted: Meta,
    /// The value files that entries refer to.
    files: Vec<FileId>,
    corrupt: u64,
    /// The number of placeholders.
    lost: u64,
}

impl Verification {
    /// Counts the next entries. Returns true if those were the last.
    pub(crate) fn step(&mut self, index: &dyn Index, store_id: u64) -> Result<bool, IndexError> {
        let from = first_after(self.cursor.as_ref());
        let mut checked = 0_usize;
        for entry in index.iter(&from)? {
            let (key, record) = entry?;
            if checked >= ENTRIES_PER_STEP {
                return Ok(false);
            }
            checked = checked.saturating_add(1);
            // Pages that were swapped have all entries, and so have those below damaged separators; look-ups miss them.
            let is_sorted = self.cursor.as_ref().is_none_or(|last| *last < key);
            if !is_sorted || index.get(&key)?.as_ref() != Some(&record) {
                return Err(IndexError::Misplaced);
            }
            if !is_internal(&key) {
                self.count(&key, &record, store_id);
            }
            self.cursor = Some(key);
        }
        Ok(true)
    }

    fn count(&mut self, key: &Bytes, record: &Bytes, store_id: u64) {
        self.counted.add(key, record);
        match Record::decode(logical_key(key), record.clone(), store_id) {
            Some(record) => self.files.extend(record.file().map(|file| file.id)),
            None if is_placeholder(record) => self.lost = self.lost.saturating_add(1),
            None => {
                self.corrupt = self.corrupt.saturating_add(1);
                tracing::error!(key = %String::from_utf8_lossy(logical_key(key)), "the record of a key is damaged");
            }
        }
    }

    /// True if the entries match the metadata of the index.
    pub(crate) fn agrees_with(&self, meta: &Meta) -> bool {
        self.corrupt == 0 && self.counted.same_entries(meta)
    }

    /// The number of entries counted.
    pub(crate) fn entries(&self) -> u64 {
        self.counted.entries
    }

    /// The value files that entries refer to, sorted.
    pub(crate) fn into_files(mut self) -> Vec<FileId> {
        self.files.sort_unstable();
        self.files
    }
}

impl Follower for Verification {
    fn changed(&mut self, key: &Bytes, old: Option<&Bytes>, new: Option<&Bytes>) -> Result<(), IndexError> {
        if self.cursor.as_ref().is_some_and(|cursor| key <= cursor) {
            self.counted.replace(key, old, new);
        }
        Ok(())
    }
}

impl Checkpointer {
    /// Starts the verification when the replayed groups are applied, so that index and log agree.
    pub(super) fn start_verification(&mut self) {
        if matches!(self.verify, VerifyState::Waiting) {
            self.verify = VerifyState::Running(Verification::default());
        }
    }

    pub(super) fn verify_step(&mut self) -> Result<(), IndexError> {
        let VerifyState::Running(verification) = &mut self.verify else { return Ok(()) };
        if !verification.step(&*self.writer.index, self.store_id)? {
            return Ok(());
        }
        let VerifyState::Running(verification) = std::mem::replace(&mut self.verify, VerifyState::Done) else {
            return Ok(());
        };
        if !verification.agrees_with(&self.writer.meta) {
            let (found, expected) = (verification.entries(), self.writer.meta.entries);
            return Err(IndexError::Entries { found, expected });
        }
        // Files without a record may be those of lost ones.
        if verification.lost == 0 {
            self.compare_files(verification.into_files());
        }
        Ok(())
    }

    /// Moves orphaned value files to `orphans`, and names the keys whose files are missing, on a thread of its own.
    fn compare_files(&self, referenced: Vec<FileId>) {
        let (orphans, directory) = (Arc::clone(&self.orphans), self.directory.clone());
        let (views, epoch) = (Arc::clone(&self.views), self.epoch);
        let work = move || match orphans.collect(&directory, &referenced, epoch) {
            Ok(suspected) => report_missing(&views, &directory, &suspected),
            Err(error) => tracing::warn!(%error, "could not collect orphaned value files"),
        };
        if let Err(error) = thread::Builder::new().name("zarrd-collector".into()).spawn(work) {
            tracing::warn!(%error, "could not start the thread that compares value files with the index");
        }
    }
}
