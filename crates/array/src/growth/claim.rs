//! Holding the claim of an array.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::JoinHandle,
    time::{Instant, sleep},
};
use zarrd_meta::NodePath;
use zarrd_store::{Key, Precondition, StoreError, Version, WriteableStore, not_before};

use super::{
    clock::{SETTLED, StoreClock, key_below},
    outcome::MayBeUnknown,
    record::{Found, Record},
};
use crate::{context::Context, error::ArrayError, node::resolved::ResolvedArray, retry::MAX_ATTEMPTS};

/// The name of the claim below its array.
pub(super) const CLAIM: &str = ".zarrd/append";

/// The time after which a claim is renewed.
const RENEWAL: Duration = Duration::from_secs(2 * 60);

/// The time after which a renewal that failed is tried again.
const RENEWAL_RETRY: Duration = Duration::from_secs(10);

/// The shortest and the longest wait before a claim of another server is read again.
const DELAYS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

/// The most newlines at the end of a document to which a takeover adds one.
const MAX_NEWLINES: usize = 16;

/// The claim of an array that is held. Unless it is [freed](Self::settle), it is left to expire.
pub(crate) struct GrowthClaim {
    held: Arc<Held>,
    renewals: JoinHandle<()>,
}

struct Held {
    context: Arc<Context>,
    path: NodePath,
    key: Key,
    state: Mutex<State>,
}

struct State {
    record: Record,
    version: Version,
    /// True once another change holds the claim, or none.
    is_lost: bool,
}

impl GrowthClaim {
    /// Takes the claim of an array, or waits for it as long as requests wait for memory. Fails with
    /// [`ArrayError::Claimed`] if another change holds it then.
    pub(crate) async fn acquire(context: &Arc<Context>, resolved: &ResolvedArray) -> Result<Self, ArrayError> {
        let (path, key) = (resolved.array.path(), key_below(resolved, CLAIM)?);
        let mut clock = StoreClock::of_array(context, resolved)?;
        let record = Record::new(resolved);
        let mut waits = Waits::new(context);
        // A takeover whose answer was lost may have been made.
        let mut takes_over = false;
        loop {
            let before = match Found::read(context, &key).await? {
                None => None,
                Some(found) if found.is_of(&record) => {
                    return Self::hold(context, resolved, (key, found.version), record, takes_over).await;
                }
                Some(found) if found.is_free() => Some(found.version),
                Some(found) if clock.age(found.modified).await? >= SETTLED => {
                    takes_over = true;
                    Some(found.version)
                }
                Some(_) => {
                    waits.wait(path).await?;
                    continue;
                }
            };
            match record.set(context, &key, Precondition::unchanged(before)).await {
                Ok(version) => return Self::hold(context, resolved, (key, version), record, takes_over).await,
                Err(StoreError::PreconditionFailed { .. } | StoreError::OutcomeUnknown { .. }) => {
                    waits.wait(path).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    async fn hold(
        context: &Arc<Context>,
        resolved: &ResolvedArray,
        (key, version): (Key, Version),
        record: Record,
        takes_over: bool,
    ) -> Result<Self, ArrayError> {
        if takes_over {
            tracing::info!(%key, "a claim that was left is taken over");
            fence(context, resolved).await?;
        }
        let state = Mutex::new(State { record, version, is_lost: false });
        let held = Arc::new(Held { context: context.clone(), path: resolved.array.path().clone(), key, state });
        let renewals = tokio::spawn(renew(held.clone()));
        Ok(Self { held, renewals })
    }

    /// Renews the claim of a change that starts from an array. If that succeeds, nothing that was read before was changed by
    /// another holder. Fails with [`ArrayError::Claimed`] if the claim was taken over.
    pub(crate) async fn verify(&self, start: &ResolvedArray) -> Result<(), ArrayError> {
        self.held.renew(Some(start)).await
    }

    /// Frees the claim after a change, unless the change may still be made.
    pub(crate) async fn settle<T, E: MayBeUnknown>(self, done: &Result<T, E>) {
        if done.as_ref().err().is_some_and(MayBeUnknown::is_outcome_unknown) {
            tracing::warn!(key = %self.held.key, "a claim is left to expire, since the outcome of its change is unknown");
            return;
        }
        if let Err(error) = self.held.free().await {
            tracing::debug!(key = %self.held.key, %error, "a claim is left to expire");
        }
    }
}

impl Drop for GrowthClaim {
    fn drop(&mut self) {
        self.renewals.abort();
    }
}

impl Held {
    async fn renew(&self, start: Option<&ResolvedArray>) -> Result<(), ArrayError> {
        let mut state = self.state.lock().await;
        let next = state.record.renewed(start);
        self.swap(&mut state, next).await
    }

    async fn free(&self) -> Result<(), ArrayError> {
        let mut state = self.state.lock().await;
        let next = state.record.freed();
        if self.context.guarantees_at(&self.path).conditional_erase {
            state.is_lost = true;
            let erased = self.context.writes()?.erase(&self.key, Precondition::at(state.version)).await;
            return Ok(erased.map(drop)?);
        }
        self.swap(&mut state, next).await?;
        state.is_lost = true;
        Ok(())
    }

    /// Replaces the record, unless another change holds the claim. A change whose answer was lost is found, or made again.
    async fn swap(&self, state: &mut State, next: Record) -> Result<(), ArrayError> {
        for _ in 0..MAX_ATTEMPTS {
            if state.is_lost {
                break;
            }
            match next.set(&self.context, &self.key, Precondition::at(state.version)).await {
                Ok(version) => {
                    (state.version, state.record) = (version, next);
                    return Ok(());
                }
                Err(StoreError::PreconditionFailed { .. } | StoreError::OutcomeUnknown { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            match Found::read(&self.context, &self.key).await? {
                Some(found) if found.is_of(&next) => {
                    state.version = found.version;
                    if found.record.as_ref() == Some(&next) {
                        state.record = next;
                        return Ok(());
                    }
                }
                _ => state.is_lost = true,
            }
        }
        Err(self.lost())
    }

    fn lost(&self) -> ArrayError {
        ArrayError::Claimed { path: self.path.clone() }
    }
}

/// Renews a claim from time to time, until it is lost.
async fn renew(held: Arc<Held>) {
    let mut pause = RENEWAL;
    loop {
        sleep(pause).await;
        pause = match held.renew(None).await {
            Ok(()) => RENEWAL,
            Err(ArrayError::Claimed { .. }) => return,
            Err(error) => {
                tracing::warn!(key = %held.key, %error, "a claim could not be renewed");
                RENEWAL_RETRY
            }
        };
    }
}

/// Changes the documents of an array whose claim was taken over, so that the former holder cannot: each has one newline more
/// at its end.
async fn fence(context: &Context, resolved: &ResolvedArray) -> Result<(), ArrayError> {
    let counterpart = resolved.counterpart.iter().flat_map(|counterpart| counterpart.versions.keys());
    for key in resolved.versions.keys().chain(counterpart).filter(|key| key.name() != ".zattrs") {
        fence_document(context, key, resolved.array.path()).await?;
    }
    Ok(())
}

async fn fence_document(context: &Context, key: &Key, path: &NodePath) -> Result<(), ArrayError> {
    for _ in 0..MAX_ATTEMPTS {
        let found = not_before(Some(Instant::now()), context.store.get(key, None)).await?;
        let Some(found) = found else { return Ok(()) };
        let version = found.meta.version;
        let mut document = found.bytes().await?.to_vec();
        let newlines = document.iter().rev().take_while(|byte| **byte == b'\n').count();
        match newlines < MAX_NEWLINES {
            true => document.push(b'\n'),
            false => document.truncate(document.len().saturating_sub(newlines)),
        }
        match context.writes()?.set(key, document.into(), Precondition::at(version)).await {
            Ok(_) => return Ok(()),
            // The former holder came first, or another change.
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(ArrayError::TooManyConflicts { path: path.clone() })
}

/// The waits for a claim, each about twice as long as the one before.
struct Waits {
    delay: Duration,
    deadline: Instant,
}

impl Waits {
    fn new(context: &Context) -> Self {
        let now = Instant::now();
        Self { delay: DELAYS.0, deadline: now.checked_add(context.options.memory_timeout).unwrap_or(now) }
    }

    async fn wait(&mut self, path: &NodePath) -> Result<(), ArrayError> {
        if Instant::now() >= self.deadline {
            return Err(ArrayError::Claimed { path: path.clone() });
        }
        // Servers that wait for the same claim do not ask at the same time.
        let share = zarrd_store::RunId::random().as_u64() % 50 + 50;
        sleep(self.delay.saturating_mul(u32::try_from(share).unwrap_or(100)) / 100).await;
        self.delay = self.delay.saturating_mul(2).min(DELAYS.1);
        Ok(())
    }
}
