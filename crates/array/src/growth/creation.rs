//! Holding the claim of an array that is created with its elements.

use std::sync::Arc;

use tokio::time::Instant;
use zarrd_meta::{ArrayModel, NodePath};
use zarrd_store::{Change, Key, PageRequest, Precondition, StoreError, Version, not_before};

use super::{
    claim::CLAIM,
    clock::key_of,
    outcome::MayBeUnknown,
    record::{Found, Record},
};
use crate::{context::Context, error::ArrayError, metadata::tree::NodeTree};

/// The claim of an array that does not exist yet: two servers that create it do not both store chunks. It is neither renewed
/// nor taken over: what a creation leaves that was cut is refused by the next one until it is erased, with its claim.
pub(crate) struct CreationClaim {
    context: Arc<Context>,
    path: NodePath,
    key: Key,
    record: Record,
    version: Version,
}

impl CreationClaim {
    /// Takes the claim of an array. Fails with [`StoreError::PreconditionFailed`] if another change holds it.
    pub(crate) async fn acquire(context: &Arc<Context>, path: &NodePath, key: Key) -> Result<Self, StoreError> {
        let found = Found::read(context, &key).await?;
        if let Some(found) = found.as_ref().filter(|found| !found.is_free()) {
            return Err(StoreError::PreconditionFailed { key, current: Some(found.version) });
        }
        let record = Record::of_creation();
        let version = record.set(context, &key, Precondition::unchanged(found.map(|found| found.version))).await?;
        Ok(Self { context: context.clone(), path: path.clone(), key, record, version })
    }

    /// Removes the conditions that prefixes are empty from changes, and fails with [`StoreError::NotEmpty`] if one has a key that
    /// is not the claim. Another creation that ended before the claim was taken is found by its document.
    pub(crate) async fn check_empty(&self, changes: &mut Vec<Change>) -> Result<(), StoreError> {
        let checks: Vec<Change> =
            changes.extract_if(.., |change| matches!(change, Change::CheckEmpty { .. })).collect();
        for check in checks {
            let Change::CheckEmpty { prefix } = check else { continue };
            let listing = self.context.store.list_prefix(&prefix, PageRequest::first(2));
            let found = not_before(Some(Instant::now()), listing).await?;
            if let Some(other) = found.keys.into_iter().find(|entry| entry.key != self.key) {
                return Err(StoreError::NotEmpty { prefix, key: other.key });
            }
        }
        Ok(())
    }

    /// Frees the claim after a creation, unless the array may still be created.
    pub(crate) async fn settle<T>(self, done: &Result<T, StoreError>) {
        if done.as_ref().err().is_some_and(MayBeUnknown::is_outcome_unknown) {
            tracing::warn!(key = %self.key, "a claim is left, since the outcome of its creation is unknown");
            return;
        }
        if let Err(error) = self.free().await {
            tracing::debug!(key = %self.key, %error, "a claim could not be freed");
        }
    }

    async fn free(&self) -> Result<(), StoreError> {
        let held = Precondition::at(self.version);
        match self.context.guarantees_at(&self.path).conditional_erase {
            true => self.context.writes()?.erase(&self.key, held).await.map(drop),
            false => self.record.freed().set(&self.context, &self.key, held).await.map(drop),
        }
    }
}

/// The key of the claim of an array that a declaration has at its top.
pub(crate) fn claim_key(top: &NodeTree, model: &ArrayModel) -> Result<Key, ArrayError> {
    key_of(model, &top.path, top.root.as_ref().map(|root| &root.prefix), CLAIM)
}
