//! Values that are to be committed.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use store::StoreError;
use tokio::sync::OwnedSemaphorePermit;

use crate::{record::Location, spill::SpilledValue, values::StagedFile};

/// A value that is to be committed, once.
pub(crate) struct StagedValue {
    pub(crate) content: StagedContent,
    /// Set by the committer alone, when the value goes into a round.
    committed: AtomicBool,
}

/// The location of a staged value.
pub(crate) enum StagedContent {
    Inline(InlineValue),
    /// In the spill file: a small value for which there was no memory.
    SpilledValue(SpilledValue),
    File(StagedFile),
}

/// A small value in memory.
pub(crate) struct InlineValue {
    pub(crate) bytes: Bytes,
    /// The right to hold that much.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl StagedValue {
    pub(crate) fn new(content: StagedContent) -> Self {
        Self { content, committed: AtomicBool::new(false) }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.content {
            StagedContent::Inline(value) => value.bytes.len() as u64,
            StagedContent::SpilledValue(spilled) => spilled.len(),
            StagedContent::File(staged) => staged.file.size,
        }
    }

    /// Fails if it was committed before.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        if self.committed.load(Ordering::Relaxed) { Err(StoreError::InvalidStaged) } else { Ok(()) }
    }

    pub(crate) fn mark_committed(&self) {
        self.committed.store(true, Ordering::Relaxed);
    }

    /// The value's location once it is committed. Reads it if it was spilled.
    pub(crate) fn location(&self) -> Result<Location, StoreError> {
        Ok(match &self.content {
            StagedContent::Inline(value) => Location::Inline(value.bytes.clone()),
            StagedContent::SpilledValue(spilled) => Location::Inline(spilled.read()?),
            StagedContent::File(staged) => Location::File(staged.file),
        })
    }

    pub(crate) fn file(&self) -> Option<&StagedFile> {
        match &self.content {
            StagedContent::Inline(_) | StagedContent::SpilledValue(_) => None,
            StagedContent::File(staged) => Some(staged),
        }
    }
}
