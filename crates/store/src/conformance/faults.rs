//! What is seen of commits while the disk has not made them durable, and after it failed to.

use std::time::Duration;

use tokio::task::JoinHandle;

use super::{
    Factory, FaultInjection, Storage,
    tools::{get, key, list_keys, put, put_names},
    transaction::{erase, erase_prefix, set},
};
use crate::{
    Change, ChangeOutcome, Precondition, ReadableStore, StoreError, TransactionalStore, Version, WriteableStore,
};

/// How often everything is read while a commit is held up.
const READS: usize = 2_000;
/// How long a commit takes at most that nothing holds up.
const MOMENT: Duration = Duration::from_millis(200);

type Commit = JoinHandle<Result<Vec<ChangeOutcome>, StoreError>>;

/// Three keys, which have their own names for values, and the version of the first.
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

/// Fails unless everything is as before the changes, by all ways of asking.
async fn assert_old(store: &(impl Storage + TransactionalStore), version: Version) {
    for at in ["replaced", "erased", "below/erased"] {
        assert_eq!(get(store, at).await.as_deref(), Some(at.as_bytes()), "{at:?}");
    }
    assert_eq!(store.head(&key("replaced")).await.unwrap().unwrap().version, version);
    for at in ["added/small", "added/large"] {
        assert_eq!(store.head(&key(at)).await.unwrap(), None, "{at:?}");
    }
    assert_eq!(list_keys(store, "").await, ["below/erased", "erased", "replaced"]);
    let snapshot = store.snapshot(&[key("replaced"), key("added/small")]).await.unwrap();
    assert_eq!(snapshot.head(&key("replaced")).unwrap().map(|meta| meta.version), Some(version));
    assert_eq!(snapshot.head(&key("added/small")).unwrap(), None);
}

async fn assert_new(store: &impl Storage) {
    assert_eq!(list_keys(store, "").await, ["added/large", "added/small", "replaced"]);
    assert_eq!(get(store, "replaced").await.as_deref(), Some(&b"new"[..]));
}

pub(super) async fn what_is_not_durable_is_not_seen<F: FaultInjection + Factory<Store: TransactionalStore>>(
    factory: &F,
) {
    let (store, keep) = factory.create().await;
    let version = old(&store).await;
    let changes = change_all(&store).await;
    factory.pause_syncs(&keep);
    let committing = commit(&store, changes);
    tokio::time::sleep(MOMENT).await;
    for _ in 0..READS {
        assert_old(&store, version).await;
    }
    assert!(!committing.is_finished(), "a commit was answered before it was durable");
    factory.resume_syncs(&keep);
    committing.await.unwrap().unwrap();
    assert_new(&store).await;
}

/// A commit that is judged behind another one is answered after it: a refusal shows what the other one has done.
pub(super) async fn what_is_not_durable_decides_nothing<F: FaultInjection + Factory<Store: TransactionalStore>>(
    factory: &F,
) {
    let (store, keep) = factory.create().await;
    let version = old(&store).await;
    let (changes, refused) = wait_behind_another(factory, &store, &keep, version).await;
    assert_old(&store, version).await;
    factory.resume_syncs(&keep);
    changes.await.unwrap().unwrap();
    for commit in refused {
        let refusal = commit.await.unwrap();
        assert!(matches!(refusal, Err(StoreError::PreconditionFailed { .. })), "{refusal:?}");
    }
}

pub(super) async fn what_waits_for_a_commit_that_fails_is_not_answered_by_it<F>(factory: &F)
where
    F: FaultInjection + Factory<Store: TransactionalStore>,
{
    let (store, keep) = factory.create().await;
    let version = old(&store).await;
    let (changes, refused) = wait_behind_another(factory, &store, &keep, version).await;
    factory.fail_syncs(&keep);
    let failed = changes.await.unwrap();
    assert!(matches!(failed, Err(StoreError::ReadOnly)), "{failed:?}");
    for commit in refused {
        let refusal = commit.await.unwrap();
        assert!(matches!(refusal, Err(StoreError::ReadOnly)), "{refusal:?}");
    }
    assert_old(&store, version).await;
}

/// Two changes and commits that they would refuse, all of them waiting together to become durable.
async fn wait_behind_another<F: FaultInjection + Factory<Store: TransactionalStore>>(
    factory: &F,
    store: &F::Store,
    keep: &F::Fixture,
    version: Version,
) -> (Commit, Vec<Commit>) {
    put(store, "first", "first").await;
    let first = vec![erase("first")];
    let changes = vec![set(store, "replaced", "new").await, set(store, "added/small", "new").await];
    let precondition = Precondition::at(version);
    let stale = vec![Change::Check { key: key("replaced"), precondition }, set(store, "other", "other").await];
    let precondition = Precondition::absent();
    let second = vec![Change::Check { key: key("added/small"), precondition }, set(store, "another", "other").await];
    factory.pause_syncs(keep);
    let first = commit(store, first);
    tokio::time::sleep(MOMENT).await;
    let changes = commit(store, changes);
    tokio::time::sleep(MOMENT).await;
    let refused: Vec<_> = [stale, second].into_iter().map(|changes| commit(store, changes)).collect();
    tokio::time::sleep(MOMENT).await;
    // Now the first is durable, and all that came meanwhile is judged.
    factory.allow_one_sync(keep);
    tokio::time::sleep(MOMENT).await;
    assert!(first.is_finished(), "the first commit was not answered");
    assert!(!changes.is_finished(), "a commit was answered before it was durable");
    assert!(!refused.iter().any(JoinHandle::is_finished), "a commit was refused for one that is not durable");
    (changes, refused)
}

pub(super) async fn a_commit_that_failed_is_not_seen_before_a_restart<F>(factory: &F)
where
    F: FaultInjection + Factory<Store: TransactionalStore>,
{
    let (store, keep) = factory.create().await;
    let version = old(&store).await;
    let changes = change_all(&store).await;
    factory.fail_syncs(&keep);
    let failed = commit(&store, changes).await.unwrap();
    assert!(matches!(failed, Err(StoreError::ReadOnly)), "{failed:?}");
    for _ in 0..READS / 10 {
        assert_old(&store, version).await;
    }
    let set = store.set(&key("replaced"), "later".into(), Precondition::none()).await;
    assert!(matches!(set, Err(StoreError::ReadOnly)), "{set:?}");
    let erased = store.erase(&key("erased"), Precondition::none()).await;
    assert!(matches!(erased, Err(StoreError::ReadOnly)), "{erased:?}");
    assert_old(&store, version).await;
    let (store, _keep) = factory.reopen(store, keep).await;
    // Whether the disk has it is unknown; it has all of it or nothing.
    if store.head(&key("added/small")).await.unwrap().is_some() {
        assert_new(&store).await;
    } else {
        assert_old(&store, version).await;
    }
    put(&store, "replaced", "later").await;
}
