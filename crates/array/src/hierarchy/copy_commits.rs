//! The commits of a copy's chunks.

use zarrd_store::{Change, IntentId};

use crate::{context::Context, metadata::error::NodeError};

/// The number of chunks that are committed together.
const BATCH: usize = 256;

/// The commits of many changes, some of them at a time, each on condition that the intent of the copy exists.
pub(super) struct CopyCommits<'a> {
    context: &'a Context,
    intent: IntentId,
    waiting: Vec<Change>,
    /// The number of all changes.
    changes: u64,
}

impl<'a> CopyCommits<'a> {
    pub(super) fn new(context: &'a Context, intent: IntentId) -> Self {
        Self { context, intent, waiting: Vec::with_capacity(BATCH), changes: 0 }
    }

    /// Adds changes, and commits if there are many.
    pub(super) async fn add(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<(), NodeError> {
        let before = self.waiting.len();
        self.waiting.extend(changes);
        self.changes = self.changes.saturating_add(self.waiting.len().saturating_sub(before) as u64);
        if self.waiting.len() >= BATCH { self.commit().await } else { Ok(()) }
    }

    /// Commits what is left; returns the number of all changes.
    pub(super) async fn finish(mut self) -> Result<u64, NodeError> {
        self.commit().await?;
        Ok(self.changes)
    }

    async fn commit(&mut self) -> Result<(), NodeError> {
        if !self.waiting.is_empty() {
            self.waiting.push(Change::CheckIntent { id: self.intent });
            self.context.commits()?.commit(std::mem::take(&mut self.waiting)).await?;
        }
        Ok(())
    }
}
