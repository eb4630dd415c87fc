//! Batches of changes that are made key by key.

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;

use super::Keyed;
use crate::{
    BackendErrorKind, Batch, Change, ChangeOutcome, Key, ListableStore, PageRequest, Precondition, Prefix,
    ReadableStore, StoreError, WriteableStore,
    batch::{ConditionalChange, check_condition},
    freshness, not_before,
};

/// The number of chunks of a batch that are changed at a time, and of keys whose conditions are checked.
const CONCURRENT: usize = 32;

/// Makes the changes of a batch, and finishes them even if the caller leaves.
pub(super) async fn apply<S: ReadableStore + ListableStore + WriteableStore + 'static>(
    store: &Keyed<S>,
    batch: Batch,
) -> Result<Vec<ChangeOutcome>, StoreError> {
    let all = || batch.documents.iter().chain(&batch.chunks);
    Change::validate(all())?;
    all().try_for_each(|change| check_supported(store, change))?;
    let applying = Applying { store: store.clone(), batch };
    let done = tokio::spawn(not_before(freshness::current(), applying.run()));
    done.await.unwrap_or_else(|error| Err(StoreError::backend(BackendErrorKind::Internal, error)))
}

/// Fails if the store cannot make a change at all.
fn check_supported<S>(store: &Keyed<S>, change: &Change) -> Result<(), StoreError> {
    match change {
        Change::Set { staged, precondition } => {
            store.spooled(staged)?;
            check_condition(&store.guarantees, precondition, ConditionalChange::Set)
        }
        Change::Put { precondition, .. } => check_condition(&store.guarantees, precondition, ConditionalChange::Set),
        Change::Erase { precondition, .. } => {
            check_condition(&store.guarantees, precondition, ConditionalChange::Erase)
        }
        // There are no intents, so none excludes anything.
        Change::Check { .. } | Change::CheckEmpty { .. } | Change::CheckNoIntent { .. } => Ok(()),
        Change::ErasePrefix { .. } => Ok(()),
        Change::AddIntent { .. } | Change::RemoveIntent { .. } | Change::CheckIntent { .. } => {
            Err(StoreError::Unsupported { what: "operations of several commits: it is written key by key" })
        }
    }
}

/// A batch, and the store that it changes.
struct Applying<S> {
    store: Keyed<S>,
    batch: Batch,
}

/// The outcomes of the chunks of a batch.
struct Chunks {
    outcomes: Vec<Option<ChangeOutcome>>,
    /// The keys whose conditions did not hold.
    conflicts: Vec<Key>,
    /// The first of the most severe errors: an unknown outcome, then any other but a condition that does not hold.
    error: Option<StoreError>,
}

impl<S: ReadableStore + ListableStore + WriteableStore + 'static> Applying<S> {
    async fn run(self) -> Result<Vec<ChangeOutcome>, StoreError> {
        let Batch { chunks, documents } = &self.batch;
        let is_one = chunks.len().saturating_add(documents.len()) == 1;
        let first = documents.iter().filter(|change| !is_one || change.is_check());
        self.check(first.chain(chunks.iter().filter(|change| change.is_check()))).await?;
        let mut progress =
            Progress { applied: 0, of: chunks.iter().chain(documents).filter(|change| !change.is_check()).count() };
        let Chunks { outcomes: of_chunks, conflicts, error } = self.change_chunks(&mut progress).await;
        if let Some(error) = error {
            return Err(progress.failed(conflicts, error));
        }
        let checks = || documents.iter().chain(chunks).filter(|change| matches!(change, Change::Check { .. }));
        // One document that changes is the last step, after which nothing can fail any more. So it is made only if the others
        // are as they were after the last chunk.
        let is_last_step = documents.iter().filter(|change| !change.is_check()).count() == 1;
        if is_last_step && progress.applied > 0 {
            self.check(checks()).await.map_err(|error| progress.failed(Vec::new(), error))?;
        }
        let mut outcomes = Vec::with_capacity(documents.len().saturating_add(chunks.len()));
        for document in documents {
            outcomes.push(self.change(document).await.map_err(|error| progress.failed(Vec::new(), error))?);
            progress.applied = progress.applied.saturating_add(usize::from(!document.is_check()));
        }
        if !is_last_step && progress.applied > 0 {
            self.check(checks()).await.map_err(|error| progress.failed(Vec::new(), error))?;
        }
        outcomes.extend(of_chunks.into_iter().flatten());
        Ok(outcomes)
    }

    /// Changes the chunks, several at a time. After an error other than a condition that does not hold, no more are started.
    async fn change_chunks(&self, progress: &mut Progress) -> Chunks {
        let chunks = &self.batch.chunks;
        let mut done = Chunks { outcomes: vec![None; chunks.len()], conflicts: Vec::new(), error: None };
        let mut waiting = chunks.iter().enumerate();
        let mut running = stream::FuturesUnordered::new();
        loop {
            let may_begin = done.error.as_ref().is_none_or(is_conflict);
            while may_begin && running.len() < CONCURRENT {
                let Some((index, change)) = waiting.next() else { break };
                running.push(async move { (index, change, self.change(change).await) });
            }
            let Some((index, change, changed)) = running.next().await else { return done };
            match changed {
                Ok(outcome) => {
                    progress.applied = progress.applied.saturating_add(usize::from(!change.is_check()));
                    if let Some(place) = done.outcomes.get_mut(index) {
                        *place = Some(outcome);
                    }
                }
                Err(error) => {
                    if let (true, Some(key)) = (is_conflict(&error), change.key()) {
                        done.conflicts.push(key.clone());
                    }
                    if done.error.as_ref().is_none_or(|first| severity(first) < severity(&error)) {
                        done.error = Some(error);
                    }
                }
            }
        }
    }

    /// Makes a change. Checks are compared before and after all changes, and not here.
    async fn change(&self, change: &Change) -> Result<ChangeOutcome, StoreError> {
        let store = &*self.store.store;
        match change {
            Change::Set { staged, precondition } => {
                let value = self.store.spooled(staged)?;
                let payload = value.payload().with_attributes(staged.attributes().clone());
                Ok(ChangeOutcome::Set(store.set(staged.key(), payload, precondition.clone()).await?))
            }
            Change::Put { key, value, precondition } => {
                Ok(ChangeOutcome::Set(store.set(key, value.clone().into(), precondition.clone()).await?))
            }
            Change::Erase { key, precondition } => {
                Ok(ChangeOutcome::Erased { existed: store.erase(key, precondition.clone()).await? })
            }
            Change::ErasePrefix { prefix } => {
                store.erase_prefix(prefix).await?;
                Ok(ChangeOutcome::PrefixErased)
            }
            Change::Check { .. } | Change::CheckEmpty { .. } | Change::CheckIntent { .. } => Ok(ChangeOutcome::Checked),
            Change::CheckNoIntent { .. } => Ok(ChangeOutcome::Checked),
            Change::AddIntent { .. } | Change::RemoveIntent { .. } => Err(StoreError::Unsupported { what: "intents" }),
        }
    }

    /// Compares the conditions of some changes with what the store has now.
    async fn check(&self, changes: impl Iterator<Item = &Change>) -> Result<(), StoreError> {
        let requests = changes.map(|change| async move {
            match change {
                Change::CheckEmpty { prefix } => self.check_empty(prefix).await,
                change => match (change.key(), change.precondition()) {
                    (Some(key), Some(precondition)) => self.check_key(key, precondition).await,
                    _ => Ok(()),
                },
            }
        });
        let requests: Vec<_> = requests.collect();
        stream::iter(requests).buffered(CONCURRENT).try_collect::<Vec<()>>().await?;
        Ok(())
    }

    async fn check_key(&self, key: &Key, precondition: &Precondition) -> Result<(), StoreError> {
        if *precondition == Precondition::none() {
            return Ok(());
        }
        let found = not_before(Some(Instant::now()), self.store.store.head(key)).await?;
        precondition.check(key, found.map(|meta| meta.version))
    }

    async fn check_empty(&self, prefix: &Prefix) -> Result<(), StoreError> {
        let found = self.store.store.list_prefix(prefix, PageRequest::first(1)).await?;
        match found.keys.into_iter().next() {
            None => Ok(()),
            Some(entry) => Err(StoreError::NotEmpty { prefix: prefix.clone(), key: entry.key }),
        }
    }
}

/// The number of changes that were made, of those that a batch has.
struct Progress {
    applied: usize,
    of: usize,
}

impl Progress {
    /// The error of a batch: the error of its failed change if nothing was changed.
    fn failed(&self, conflicts: Vec<Key>, error: StoreError) -> StoreError {
        match self.applied {
            0 => error,
            applied => StoreError::PartlyApplied {
                applied: applied as u64,
                of: self.of as u64,
                conflicts,
                source: Box::new(error),
            },
        }
    }
}

/// True for the error of a condition.
fn is_conflict(error: &StoreError) -> bool {
    matches!(error, StoreError::PreconditionFailed { .. })
}

/// The order in which one of several errors is reported.
fn severity(error: &StoreError) -> u8 {
    match error {
        StoreError::PreconditionFailed { .. } => 0,
        StoreError::OutcomeUnknown { .. } => 2,
        _ => 1,
    }
}
