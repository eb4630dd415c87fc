//! The changes that store a copy's chunks.

use zarrd_store::{Batch, Change, Conditions, IntentId, Precondition, StoreError};

use crate::{context::Context, metadata::error::NodeError};

/// The number of chunks that are stored together.
const BATCH: usize = 256;

/// The steps in which the chunks of a copy are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopySteps {
    /// In commits, each on condition that the intent of the copy exists.
    Commits(IntentId),
    /// Key by key, where there were none.
    Keys(Conditions),
}

/// The changes of a copy's chunks, some of them at a time.
pub(super) struct CopyCommits<'a> {
    context: &'a Context,
    steps: CopySteps,
    waiting: Vec<Change>,
    /// The number of all changes.
    changes: u64,
}

impl<'a> CopyCommits<'a> {
    pub(super) fn new(context: &'a Context, steps: CopySteps) -> Self {
        Self { context, steps, waiting: Vec::with_capacity(BATCH), changes: 0 }
    }

    /// Adds changes, and makes them if there are many.
    pub(super) async fn add(&mut self, changes: impl IntoIterator<Item = Change>) -> Result<(), NodeError> {
        let before = self.waiting.len();
        self.waiting.extend(changes);
        self.changes = self.changes.saturating_add(self.waiting.len().saturating_sub(before) as u64);
        if self.waiting.len() >= BATCH { self.commit().await } else { Ok(()) }
    }

    /// Makes what is left; returns the number of all changes.
    pub(super) async fn finish(mut self) -> Result<u64, NodeError> {
        self.commit().await?;
        Ok(self.changes)
    }

    async fn commit(&mut self) -> Result<(), NodeError> {
        let mut changes = std::mem::take(&mut self.waiting);
        if changes.is_empty() {
            return Ok(());
        }
        match self.steps {
            CopySteps::Commits(id) => {
                changes.push(Change::CheckIntent { id });
                self.context.commits()?.commit(changes).await?;
            }
            CopySteps::Keys(conditions) => {
                changes.iter_mut().for_each(|change| create_only(change, conditions));
                self.context.writes()?.apply(Batch { chunks: changes, documents: Vec::new() }).await.map_err(first)?;
            }
        }
        Ok(())
    }
}

/// Makes a change fail if the key has a value: of two copies to one place, none is mixed with the other.
fn create_only(change: &mut Change, conditions: Conditions) {
    if let (Change::Set { precondition, .. }, true) = (change, conditions != Conditions::None) {
        *precondition = Precondition::absent();
    }
}

/// The error of a batch that was made in part, since earlier batches were made as well: that a condition does not hold says
/// no more about one of them than about the others.
fn first(error: StoreError) -> StoreError {
    match error {
        StoreError::PreconditionFailed { .. } => {
            StoreError::PartlyApplied { applied: 0, of: BATCH as u64, conflicts: Vec::new(), source: Box::new(error) }
        }
        error => error,
    }
}
