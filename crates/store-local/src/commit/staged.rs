//! Staged values.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::StoreError;

use crate::{
    record::Location,
    spill::SpilledValue,
    values::{StagedFile, ValueForm},
};

/// A value that can be committed once.
pub(crate) struct StagedValue {
    pub(crate) content: StagedContent,
    /// Set only by the committer, when the value joins a group.
    committed: AtomicBool,
}

/// The bytes of a staged value.
pub(crate) enum StagedContent {
    Inline(InlineValue),
    /// In a spill file: a small value that did not fit into memory.
    Spilled(SpilledValue),
    File(StagedFile),
}

/// A small value in memory.
pub(crate) struct InlineValue {
    pub(crate) bytes: Bytes,
    /// The share of the memory limit that the value occupies.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl StagedValue {
    pub(crate) fn new(content: StagedContent) -> Self {
        Self { content, committed: AtomicBool::new(false) }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.content {
            StagedContent::Inline(value) => value.bytes.len() as u64,
            StagedContent::Spilled(spilled) => spilled.len(),
            StagedContent::File(staged) => staged.file.size,
        }
    }

    /// Fails if the value was committed.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.committed.load(Ordering::Relaxed) { Err(StoreError::InvalidStaged) } else { Ok(()) }
    }

    pub(crate) fn mark_committed(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    /// The location of the value once it is committed. Reads a spilled value.
    pub(crate) fn location(&self) -> Result<Location, StoreError> {
        Ok(match &self.content {
            StagedContent::Inline(value) => Location::Inline(value.bytes.clone()),
            StagedContent::Spilled(spilled) => Location::Inline(spilled.read()?),
            StagedContent::File(staged) => Location::File(staged.file),
        })
    }

    /// True if the value is in several files.
    pub(crate) fn is_joined(&self) -> bool {
        self.file().is_some_and(|staged| staged.form == ValueForm::Joined)
    }

    pub(crate) fn file(&self) -> Option<&StagedFile> {
        match &self.content {
            StagedContent::Inline(_) | StagedContent::Spilled(_) => None,
            StagedContent::File(staged) => Some(staged),
        }
    }
}
