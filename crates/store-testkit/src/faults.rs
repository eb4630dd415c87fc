//! Visibility of commits before they are durable, and after a failed sync.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::{
    Factory, FaultInjection, Storage,
    tools::{get, key, list_keys, put, put_names},
    transaction::{erase, erase_prefix, set},
};
use zarrd_store::{
    Change, ChangeOutcome, Precondition, ReadableStore, StoreError, TransactionalStore, Version, WriteableStore,
};

/// The number of reads while a commit is paused.
const READS_WHILE_PAUSED: usize = 2_000;
/// The time within which a commit completes if its sync is not paused.
const SETTLE_TIME: Duration = Duration::from_millis(200);

type Commit = JoinHandle<Result<Vec<ChangeOutcome>, StoreError>>;

/// Sets three keys to their own names. Returns the version of the first.
async fn old(store: &impl Storage) -> Version {
    put_names(store, &["replaced", "erased", "below/erased"]).await;
    store.head(&key("replaced")).await.unwrap().unwrap().version
}

/// Changes all keys, and sets a small and a large one.
async fn change_all(store: &(impl Storage + TransactionalStore)) -> Vec<Change> {
    vec![
        set(store, "replaced", "new").await,
        erase("erased"),
        erase_prefix("below/"),
        set(store, "added/small", "new").await,
        set(store, "added/large", vec![1; 100_000]).await,
    ]
}

fn commit<S: Storage + TransactionalStore>(store: &S, changes: Vec<Change>) -> Commit {
    let store = store.clone();
    tokio::spawn(async move { store.commit(changes).await })
}

/// Asserts that reads, listings and snapshots show the state before the changes.
async fn assert_unchanged_state(store: &(impl Storage + TransactionalStore), version: Version) {
    for at in ["replaced", "erased", "below/erased"] {
        assert_eq!(get(store, at).await.as_deref(), Some(at.as_bytes()), "{at:?}");
    }
    assert_eq!(store.head(&key("replaced")).await.unwrap().unwrap().version, version);
    for at in ["added/small", "added/large"] {
        assert_eq!(store.head(&key(at)).await.unwrap(), None, "{at:?}");
    }
    assert_eq!(list_keys(store, "").await, ["below/erased", "erased", "replaced"]);
    let snapshot = store.snapshot(&[key("replaced"), key("added/small")]).await.unwrap();
    assert_eq!(snapshot.meta(&key("replaced")).await.unwrap().map(|meta| meta.version), Some(version));
    assert_eq!(snapshot.meta(&key("added/small")).await.unwrap(), None);
}

async fn assert_changed_state(store: &impl Storage) {
    assert_eq!(list_keys(store, "").await, ["added/large", "added/small", "replaced"]);
    assert_eq!(get(store, "replaced").await.as_deref(), Some(&b"new"[..]));
}

pub(super) async fn changes_are_invisible_until_durable<F: FaultInjection + Factory<Store: TransactionalStore>>(
    factory: &F,
) {
    let (store, fixture) = factory.create().await;
    let version = old(&store).await;
    let changes = change_all(&store).await;
    factory.pause_syncs(&fixture);
    let committing = commit(&store, changes);
    tokio::time::sleep(SETTLE_TIME).await;
    for _ in 0..READS_WHILE_PAUSED {
        assert_unchanged_state(&store, version).await;
    }
    assert!(!committing.is_finished(), "a commit was answered before it was durable");
    factory.resume_syncs(&fixture);
    committing.await.unwrap().unwrap();
    assert_changed_state(&store).await;
}

/// A rejection reveals the conflicting commit, so it waits until that commit is durable.
pub(super) async fn rejections_wait_until_the_conflicting_commit_is_durable<
    F: FaultInjection + Factory<Store: TransactionalStore>,
>(
    factory: &F,
) {
    let (store, fixture) = factory.create().await;
    let version = old(&store).await;
    let (changes, rejected) = queue_behind_commit(factory, &store, &fixture, version).await;
    assert_unchanged_state(&store, version).await;
    factory.resume_syncs(&fixture);
    changes.await.unwrap().unwrap();
    for commit in rejected {
        let refusal = commit.await.unwrap();
        assert!(matches!(refusal, Err(StoreError::PreconditionFailed { .. })), "{refusal:?}");
    }
}

pub(super) async fn rejections_fail_if_the_conflicting_commit_does<F>(factory: &F)
where
    F: FaultInjection + Factory<Store: TransactionalStore>,
{
    let (store, fixture) = factory.create().await;
    let version = old(&store).await;
    let (changes, rejected) = queue_behind_commit(factory, &store, &fixture, version).await;
    factory.fail_syncs(&fixture);
    let failed = changes.await.unwrap();
    assert!(matches!(failed, Err(StoreError::ReadOnly)), "{failed:?}");
    for commit in rejected {
        let refusal = commit.await.unwrap();
        assert!(matches!(refusal, Err(StoreError::ReadOnly)), "{refusal:?}");
    }
    assert_unchanged_state(&store, version).await;
}

/// Two changes, and commits that conflict with them, all waiting to become durable.
async fn queue_behind_commit<F: FaultInjection + Factory<Store: TransactionalStore>>(
    factory: &F,
    store: &F::Store,
    fixture: &F::Fixture,
    version: Version,
) -> (Commit, Vec<Commit>) {
    put(store, "first", "first").await;
    let first = vec![erase("first")];
    let changes = vec![set(store, "replaced", "new").await, set(store, "added/small", "new").await];
    let precondition = Precondition::at(version);
    let stale = vec![Change::Check { key: key("replaced"), precondition }, set(store, "other", "other").await];
    let precondition = Precondition::absent();
    let second = vec![Change::Check { key: key("added/small"), precondition }, set(store, "another", "other").await];
    factory.pause_syncs(fixture);
    let first = commit(store, first);
    tokio::time::sleep(SETTLE_TIME).await;
    let changes = commit(store, changes);
    tokio::time::sleep(SETTLE_TIME).await;
    let rejected: Vec<_> = [stale, second].into_iter().map(|changes| commit(store, changes)).collect();
    tokio::time::sleep(SETTLE_TIME).await;
    // The first commit becomes durable, and the others are checked.
    factory.allow_one_sync(fixture);
    tokio::time::sleep(SETTLE_TIME).await;
    assert!(first.is_finished(), "the first commit was not answered");
    assert!(!changes.is_finished(), "a commit was answered before it was durable");
    assert!(!rejected.iter().any(JoinHandle::is_finished), "a commit was rejected because of one that is not durable");
    (changes, rejected)
}

pub(super) async fn a_failed_sync_is_invisible_until_reopened<F>(factory: &F)
where
    F: FaultInjection + Factory<Store: TransactionalStore>,
{
    let (store, fixture) = factory.create().await;
    let version = old(&store).await;
    let changes = change_all(&store).await;
    factory.fail_syncs(&fixture);
    let failed = commit(&store, changes).await.unwrap();
    assert!(matches!(failed, Err(StoreError::ReadOnly)), "{failed:?}");
    for _ in 0..READS_WHILE_PAUSED / 10 {
        assert_unchanged_state(&store, version).await;
    }
    let set = store.set(&key("replaced"), "later".into(), Precondition::none()).await;
    assert!(matches!(set, Err(StoreError::ReadOnly)), "{set:?}");
    let erased = store.erase(&key("erased"), Precondition::none()).await;
    assert!(matches!(erased, Err(StoreError::ReadOnly)), "{erased:?}");
    assert_unchanged_state(&store, version).await;
    let (store, _fixture) = factory.reopen(store, fixture).await;
    // The disk may have the commit or not, but not a part of it.
    if store.head(&key("added/small")).await.unwrap().is_some() {
        assert_changed_state(&store).await;
    } else {
        assert_unchanged_state(&store, version).await;
    }
    put(&store, "replaced", "later").await;
}
