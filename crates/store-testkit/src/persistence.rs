//! State that survives closing and reopening a store.

use std::{collections::HashSet, time::Duration};

use futures::{StreamExt, stream};

use super::{
    Factory, Reopen,
    prefixes::{NESTED, NESTINGS, assert_holds, borrowed, set_some_nested},
    test_value::TestValue,
    tools::{SIZES, assert_absent, assert_has, get, key, key_pages, list_keys, prefix, put, put_names},
    transaction::{erase, erase_prefix, set},
};
use zarrd_store::{KeyCount, Payload, Precondition, ReadableStore, TransactionalStore, WriteableStore};

pub(super) async fn values_versions_and_times_persist<F: Reopen>(factory: &F) {
    let (store, fixture) = factory.create().await;
    for (seed, size) in (0..).zip(SIZES) {
        put(&store, &format!("a/{size}"), TestValue::new(seed, size).payload()).await;
    }
    put_names(&store, &["ä/\u{10ffff}", " "]).await;
    if factory.guarantees(&store).shared_names {
        put_names(&store, &["a", &"k".repeat(1024)]).await;
    }
    let before = key_pages(&store, "", 1_000).await;
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_eq!(key_pages(&store, "", 1_000).await, before);
    for (seed, size) in (0..).zip(SIZES) {
        assert_has(&store, &format!("a/{size}"), TestValue::new(seed, size)).await;
    }
    for entry in before.concat() {
        assert_eq!(store.head(&entry.key).await.unwrap(), Some(entry.meta));
    }
    // A version that was read before the restart can be used in a precondition.
    let entry = &before[0][0];
    store.set(&entry.key, "new".into(), Precondition::at(entry.meta.version)).await.unwrap();
}

pub(super) async fn erased_keys_stay_erased<F: Reopen>(factory: &F) {
    let (store, fixture) = factory.create().await;
    for (seed, at) in (0..).zip(["a", "b/c", "b/d", "e", "f"]) {
        put(&store, at, TestValue::new(seed, 10_000 * seed).payload()).await;
    }
    assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
    assert_eq!(store.erase_prefix(&prefix("b/")).await.unwrap(), KeyCount::exact(2));
    put(&store, "e", "new").await;
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_eq!(list_keys(&store, "").await, ["e", "f"]);
    for erased in ["a", "b/c", "b/d"] {
        assert_absent(&store, erased).await;
    }
    assert_eq!(get(&store, "e").await.as_deref(), Some(&b"new"[..]));
    assert_has(&store, "f", TestValue::new(4, 40_000)).await;
}

pub(super) async fn versions_are_never_reused<F: Reopen>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    let mut versions = HashSet::new();
    for _ in 0..3 {
        for at in ["a", "a", "b"] {
            assert!(versions.insert(put(&store, at, "equal").await), "a version was assigned again");
        }
        assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
        (store, fixture) = factory.reopen(store, fixture).await;
    }
    drop((store, fixture));
}

pub(super) async fn a_store_can_be_reopened_many_times<F: Reopen>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    for round in 0..5 {
        for earlier in 0..round {
            assert_has(&store, &format!("r/{earlier}"), TestValue::new(earlier, 3_000 * earlier)).await;
        }
        put(&store, &format!("r/{round}"), TestValue::new(round, 3_000 * round).payload()).await;
        (store, fixture) = factory.reopen(store, fixture).await;
    }
    assert_eq!(list_keys(&store, "r/").await.len(), 5);
    drop((store, fixture));
}

pub(super) async fn partial_uploads_do_not_persist<F: Reopen>(factory: &F) {
    let (store, fixture) = factory.create().await;
    let old = TestValue::new(1, 9_000);
    put(&store, "old", old.payload()).await;
    for at in ["old", "absent"] {
        let chunks: Vec<_> = TestValue::new(2, 1 << 20).chunks().take(20).map(Ok).collect();
        let payload = Payload::sized(1 << 20, stream::iter(chunks).chain(stream::pending()));
        let key = key(at);
        let set = store.set(&key, payload, Precondition::none());
        assert!(tokio::time::timeout(Duration::from_millis(50), set).await.is_err(), "a set ended without its content");
    }
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_has(&store, "old", old).await;
    assert_absent(&store, "absent").await;
    assert_eq!(list_keys(&store, "").await, ["old"]);
}

pub(super) async fn commits_persist<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let (store, fixture) = factory.create().await;
    put_names(&store, &["replaced", "erased"]).await;
    let mut changes = vec![erase("erased"), set(&store, "replaced", "new").await];
    for (seed, size) in (0..).zip(SIZES) {
        changes.push(set(&store, &format!("a/{size}"), TestValue::new(seed, size).payload()).await);
    }
    store.commit(changes).await.unwrap();
    let before = key_pages(&store, "", 1_000).await;
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_eq!(key_pages(&store, "", 1_000).await, before);
    assert_eq!(get(&store, "replaced").await.as_deref(), Some(&b"new"[..]));
    assert_absent(&store, "erased").await;
    for (seed, size) in (0..).zip(SIZES) {
        assert_has(&store, &format!("a/{size}"), TestValue::new(seed, size)).await;
    }
}

pub(super) async fn staged_values_do_not_persist<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let (store, fixture) = factory.create().await;
    put(&store, "old", "old").await;
    let mut stale = Vec::new();
    for size in [10, 10_000, 1 << 20] {
        stale.push((size, set(&store, "old", TestValue::new(1, size).payload()).await));
        drop(set(&store, "absent", TestValue::new(1, size).payload()).await);
    }
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_eq!(list_keys(&store, "").await, ["old"]);
    for (size, change) in stale {
        let result = store.commit(vec![change]).await;
        assert!(result.is_err(), "{size} bytes that were staged before the store was closed were committed");
    }
    assert_eq!(get(&store, "old").await.as_deref(), Some(&b"old"[..]));
}

/// Nested prefixes are set and erased, and the store is reopened after each step.
pub(super) async fn erased_prefixes_stay_erased<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let mut versions = HashSet::new();
    let (mut store, mut fixture) = factory.create().await;
    for nesting in NESTINGS {
        let mut present = Vec::new();
        store.commit(vec![erase_prefix("")]).await.unwrap();
        for (step, below) in nesting.into_iter().enumerate() {
            let (set, assigned) = set_some_nested(&store, step, &present).await;
            assert!(assigned.into_iter().all(|version| versions.insert(version)), "a version was assigned again");
            store.commit(vec![erase_prefix(below)]).await.unwrap();
            (store, fixture) = factory.reopen(store, fixture).await;
            present = set.into_iter().filter(|(at, _)| !at.starts_with(below)).collect();
            assert_holds(&store, &NESTED, &borrowed(&present)).await;
        }
    }
    drop((store, fixture));
}

/// After a large prefix is erased, keys that are set below it survive an immediate restart, and the erased ones do not.
pub(super) async fn a_large_prefix_stays_erased<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let (mut store, mut fixture) = factory.create().await;
    for round in 0..3 {
        let mut changes = Vec::new();
        for number in 0..3_000 {
            let size = if number % 50 == 0 { 5_000 } else { 5 };
            changes
                .push(set(&store, &format!("p/{}/{number}", number % 7), TestValue::new(number, size).payload()).await);
        }
        store.commit(changes).await.unwrap();
        let changes = vec![erase_prefix("p/"), set(&store, "p/3/3", "kept").await];
        store.commit(changes).await.unwrap();
        put(&store, "p/5/5", format!("{round}")).await;
        for _ in 0..2 {
            (store, fixture) = factory.reopen(store, fixture).await;
            let present = [("p/3/3", "kept"), ("p/5/5", &*format!("{round}"))];
            assert_holds(&store, &["p/0/0", "p/1/1", "p/6/2999"], &present).await;
        }
        assert_eq!(store.erase_prefix(&prefix("p/3/")).await.unwrap(), KeyCount::exact(1));
    }
    drop((store, fixture));
}
