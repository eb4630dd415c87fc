//! Commits of writers that update the same consolidated metadata.
//!
//! Writers of different nodes below a group with consolidated metadata have one document in common. Of those who plan at
//! the same time one commits, and the others would plan anew, over and over. So a writer whose commit fails because that
//! document has changed, or that finds others waiting, queues its changes, and one commit is made for all who wait: their
//! entries are edited into the document as it is then.
//!
//! Queues and locks are for speed. Each commit has the conditions of all its writers, and that the document is still the
//! one that was edited.

use std::{collections::VecDeque, sync::Arc};

use tokio::sync::oneshot;
use zarrd_store::{Change, ChangeOutcome, IntentError, IntentId, Key, StoreError, Version};

use super::{
    commit_queue::{JoinedChanges, MAX_CHANGES, Outcomes, RunningCommit, SharedCommits, Waiting},
    consolidated::update_together,
    copy_update::{ConsolidatedCopy, ConsolidatedUpdate},
};
use crate::{context::Context, retry::MAX_ATTEMPTS};

/// Commits changes, with those of other writers if the consolidated metadata that they update has changed since they were
/// planned. The outcomes are those of `changes`, in order.
///
/// # Errors
///
/// Those of a [commit](zarrd_store::TransactionalStore::commit).
pub(crate) async fn commit(
    context: &Context,
    changes: Vec<Change>,
    update: Option<&Arc<ConsolidatedUpdate>>,
) -> Outcomes {
    let committed = commit_in_turn(context, changes, update).await?;
    if let Some(update) = update {
        context.removed_copies.extend(&update.removed);
    }
    Ok(committed)
}

/// Commits changes, alone or with those of others.
async fn commit_in_turn(context: &Context, changes: Vec<Change>, update: Option<&Arc<ConsolidatedUpdate>>) -> Outcomes {
    let store = context.commits()?;
    let can_wait = |update: &&Arc<ConsolidatedUpdate>| {
        changes.len() <= MAX_CHANGES && update.removed.is_empty() && !update.copies.is_empty()
    };
    let Some(update) = update.filter(can_wait) else { return store.commit(changes).await };
    let shared = &context.shared_commits;
    let keys: Vec<Key> = update.copies.iter().map(|copy| copy.key.clone()).collect();
    if !shared.is_running(&keys) {
        let together = shared.locks.lock_shared(keys.iter().map(Key::as_bytes)).await;
        let committed = store.commit(changes.clone()).await;
        drop(together);
        match committed {
            Err(StoreError::PreconditionFailed { key, .. }) if keys.contains(&key) => {}
            committed => return committed,
        }
    }
    let (sender, receiver) = oneshot::channel();
    let waiting = Waiting { changes, update: update.clone(), outcomes: sender };
    let running = SharedCommits::announce(shared, &keys);
    shared.push(&keys, waiting);
    // A task of its own: others may wait for the commit that it makes.
    tokio::spawn(commit_waiting(context.clone(), running));
    receiver.await.unwrap_or(Err(StoreError::Closed))
}

/// Commits the changes of writers that wait, the first of them in any case. Each writer that queues starts one such task.
async fn commit_waiting(context: Context, running: RunningCommit) {
    let (shared, keys) = (context.shared_commits.clone(), running.keys().to_vec());
    let _alone = shared.locks.lock_exclusive(keys.iter().map(Key::as_bytes), []).await;
    let mut writers = shared.take(&keys);
    let Some(copies) = writers.first().map(|writer| writer.update.copies.clone()) else { return };
    for _ in 0..MAX_ATTEMPTS {
        match commit_together(&context, &copies, &writers).await {
            Ok(Some(outcomes)) => {
                for (writer, outcomes) in writers.into_iter().zip(outcomes) {
                    // The caller may have left.
                    let _ = writer.outcomes.send(Ok(outcomes));
                }
                return;
            }
            Ok(None) => break,
            Err(StoreError::PreconditionFailed { key, .. }) if keys.contains(&key) => {}
            Err(StoreError::Intent(error @ IntentError::Excludes { id })) => {
                writers = without_excluded(&context, writers, (error, id)).await;
            }
            Err(error) => writers = without_failed(writers, error),
        }
        if writers.is_empty() {
            return;
        }
    }
    // They plan anew.
    for Waiting { outcomes, .. } in writers {
        let _ = outcomes.send(Err(changed(&copies)));
    }
}

/// The error of a commit for which consolidated metadata changed too often, or is no longer such.
fn changed(copies: &[ConsolidatedCopy]) -> StoreError {
    match copies.first() {
        Some(copy) => StoreError::PreconditionFailed { key: copy.key.clone(), current: None },
        None => StoreError::Closed,
    }
}

/// Makes one commit for several writers, and returns the outcomes of each; `None` if consolidated metadata is no longer
/// there, or cannot be updated.
async fn commit_together(
    context: &Context,
    copies: &[ConsolidatedCopy],
    writers: &[Waiting],
) -> Result<Option<Vec<Vec<ChangeOutcome>>>, StoreError> {
    let updates: Vec<&ConsolidatedUpdate> = writers.iter().map(|writer| &*writer.update).collect();
    let Some(changes) = update_together(context, copies, &updates).await? else { return Ok(None) };
    let mut joined = JoinedChanges::default();
    for change in changes {
        joined.push(change);
    }
    let indices = writers.iter().map(|writer| joined.add(&writer.changes));
    let indices: Vec<Vec<usize>> = indices.collect();
    let outcomes = context.commits()?.commit(joined.changes).await?;
    let of_writer = |indices: Vec<usize>| indices.iter().filter_map(|index| outcomes.get(*index).copied()).collect();
    Ok(Some(indices.into_iter().map(of_writer).collect()))
}

/// The writers that an unfinished operation does not exclude; the others receive the error. If the operation was settled
/// since, it excludes none.
async fn without_excluded(
    context: &Context,
    writers: Vec<Waiting>,
    (error, id): (IntentError, IntentId),
) -> Vec<Waiting> {
    let intents = match context.commits() {
        Ok(store) => store.intents().await,
        Err(error) => Err(error),
    };
    let mut intents = match intents {
        Ok(intents) => intents,
        Err(error) => return without_failed(writers, error),
    };
    intents.retain(|intent| intent.id == id);
    let is_excluded = |writer: &Waiting| writer.changes.iter().any(|change| change.excluding(&intents).is_some());
    let (excluded, others): (Vec<_>, Vec<_>) = writers.into_iter().partition(is_excluded);
    for Waiting { outcomes, .. } in excluded {
        let _ = outcomes.send(Err(error.into()));
    }
    others
}

/// The writers whose changes may succeed after a commit of all failed: without those that the error is about, which
/// receive it. If it is about none in particular, the first receives it.
fn without_failed(writers: Vec<Waiting>, error: StoreError) -> Vec<Waiting> {
    let failed: Option<(Key, Option<Version>)> = match &error {
        StoreError::PreconditionFailed { key, current } => Some((key.clone(), *current)),
        _ => None,
    };
    let Some((key, current)) = failed else {
        let mut writers = VecDeque::from(writers);
        if let Some(Waiting { outcomes, .. }) = writers.pop_front() {
            let _ = outcomes.send(Err(error));
        }
        return writers.into();
    };
    let names = |writer: &Waiting| writer.changes.iter().any(|change| change.key() == Some(&key));
    let (failed, others): (Vec<_>, Vec<_>) = writers.into_iter().partition(names);
    for Waiting { outcomes, .. } in failed {
        let _ = outcomes.send(Err(StoreError::PreconditionFailed { key: key.clone(), current }));
    }
    others
}
