//! Changes of stores that are written key by key: the node's own documents are the point at which a change is made, and
//! consolidated metadata follow.

use std::{cmp::Reverse, sync::Arc};

use bytes::Bytes;
use futures::TryStreamExt;
use tokio::time::Instant;
use zarrd_store::{Batch, Change, ChangeOutcome, Precondition, PutResult, StoreError, Version, not_before};

use super::{
    change_set::ChangeSet,
    consolidated::{CopyState, bring_up_to_date},
    copy_update::ConsolidatedUpdate,
    error::NodeError,
};
use crate::context::Context;

/// The number of attempts to bring consolidated metadata up to date.
const COPY_ATTEMPTS: usize = 3;

/// The error of a change that would be made in part if it failed in the middle.
const SEVERAL_DOCUMENTS: StoreError =
    StoreError::Unsupported { what: "a change of several documents at once: it is written key by key" };

/// The documents that a change may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Documents {
    /// One: so it is made as a whole, or not at all.
    One,
    /// The documents of a new tree, which is there once the last of them is.
    Tree,
}

/// Makes a batch of changes, and brings consolidated metadata up to date afterwards. The outcomes are of the
/// documents first, and then of the chunks that were changed.
pub(crate) async fn apply(
    context: &Context,
    batch: Batch,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let Batch { mut chunks, documents } = batch;
    if documents.iter().filter(|change| !change.is_check()).count() > 1 {
        return Err(SEVERAL_DOCUMENTS);
    }
    chunks.retain(|change| !erases_nothing(change));
    let outcomes = context.writes()?.apply(Batch { chunks, documents }).await?;
    follow(context, update).await;
    Ok(outcomes)
}

/// Makes the changes of documents of a change set: `None` if a condition did not hold, and nothing was changed. The
/// outcomes are in the order of the changes.
pub(crate) async fn apply_documents(
    context: &Context,
    change_set: ChangeSet,
    documents: Documents,
) -> Result<Option<Vec<ChangeOutcome>>, NodeError> {
    let update = change_set.consolidated();
    let changes = change_set.stage(&**context.writes()?).await?;
    let applied = match documents {
        Documents::One => apply(context, Batch::of_documents(changes), update.as_ref()).await,
        Documents::Tree => apply_tree(context, Batch::of_documents(changes), update.as_ref()).await,
    };
    match applied {
        Ok(outcomes) => Ok(Some(outcomes)),
        Err(StoreError::PreconditionFailed { .. } | StoreError::NotEmpty { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails if a change set has the changes of several documents, before anything is changed.
pub(crate) fn check_documents(change_set: &ChangeSet) -> Result<(), StoreError> {
    match change_set.changed_keys() {
        0 | 1 => Ok(()),
        _ => Err(SEVERAL_DOCUMENTS),
    }
}

/// Makes a tree, and elements before it: its deepest nodes first, and of each node the attributes of v2 before the document
/// that makes it one.
pub(crate) async fn apply_tree(
    context: &Context,
    Batch { chunks, documents }: Batch,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let mut numbered: Vec<(usize, Change)> = documents.into_iter().enumerate().collect();
    numbered.sort_by_key(|(_, change)| {
        let key = change.key().map_or("", |key| key.as_str());
        (Reverse(key.matches('/').count()), !key.ends_with(".zattrs"))
    });
    let (numbers, mut documents): (Vec<usize>, Vec<Change>) = numbered.into_iter().unzip();
    let store = context.writes()?;
    let outcomes = match store.apply(Batch { chunks: chunks.clone(), documents: documents.clone() }).await {
        Err(StoreError::PreconditionFailed { key, current }) => {
            let existing = adopt(context, &mut documents).await?;
            if existing.iter().all(Option::is_none) {
                return Err(StoreError::PreconditionFailed { key, current });
            }
            let mut outcomes = store.apply(Batch { chunks, documents }).await?;
            for (outcome, version) in outcomes.iter_mut().zip(existing) {
                let written = |version| ChangeOutcome::Set(PutResult { version, replaced: false });
                *outcome = version.map_or(*outcome, written);
            }
            outcomes
        }
        applied => applied?,
    };
    follow(context, update).await;
    let mut numbered: Vec<(usize, ChangeOutcome)> = numbers.into_iter().zip(outcomes).collect();
    numbered.sort_by_key(|(number, _)| *number);
    Ok(numbered.into_iter().map(|(_, outcome)| outcome).collect())
}

/// Turns the changes of documents that exist already as they would be set into checks, and returns their versions: a tree
/// that was made in part is completed by declaring it again.
async fn adopt(context: &Context, documents: &mut [Change]) -> Result<Vec<Option<Version>>, StoreError> {
    let mut existing = Vec::with_capacity(documents.len());
    for change in documents {
        let is_new = change.precondition().is_some_and(|condition| *condition == Precondition::absent());
        let value = match &*change {
            Change::Put { value, .. } if is_new => Some(value.clone()),
            Change::Set { staged, .. } if is_new => {
                let pieces = context.writes()?.read_staged(staged, None).await?;
                let pieces: Vec<Bytes> = pieces.try_collect().await?;
                Some(pieces.concat().into())
            }
            _ => None,
        };
        let mut found = None;
        if let (Some(value), Some(key)) = (value, change.key().cloned())
            && let Some(stored) = not_before(Some(Instant::now()), context.store.get(&key, None)).await?
            && stored.meta.size == value.len() as u64
        {
            let version = stored.meta.version;
            if stored.bytes().await? == value {
                found = Some(version);
                *change = Change::Check { key, precondition: Precondition::at(version) };
            }
        }
        existing.push(found);
    }
    Ok(existing)
}

/// Brings consolidated metadata up to date. Where that fails they are unchanged, and the answer says so.
pub(crate) async fn follow(context: &Context, update: Option<&Arc<ConsolidatedUpdate>>) {
    let Some(update) = update else { return };
    context.removed_copies.extend(&update.removed);
    for copy in &update.copies {
        let mut state = CopyState::Stale;
        for _ in 0..COPY_ATTEMPTS {
            match bring_up_to_date(context, copy, update).await {
                Ok(CopyState::Stale) => {}
                Ok(found) => {
                    state = found;
                    break;
                }
                Err(error) => tracing::debug!(key = %copy.key, %error, "consolidated metadata could not be written"),
            }
        }
        match state {
            CopyState::Current => {}
            CopyState::Removed => context.removed_copies.extend(std::slice::from_ref(&copy.key)),
            CopyState::Stale => context.removed_copies.add_stale(&copy.key),
        }
    }
}

/// True for the erase of a chunk that was not there when it was read. If it is by now, another write came after.
fn erases_nothing(change: &Change) -> bool {
    matches!(change, Change::Erase { precondition, .. } if *precondition == Precondition::absent())
}
