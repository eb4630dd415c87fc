//! Staging and committing.

use std::collections::HashSet;

use futures::TryStreamExt;
use tokio::task::JoinSet;

use super::{
    Storage,
    cancel::drop_after,
    test_value::{TestValue, broken_payload},
    tools::{SIZES, assert_absent, assert_has, get, key, key_pages, list_keys, prefix, put, put_names},
};
use zarrd_store::{
    BatchStore, ByteRange, Change, ChangeOutcome, KeyCount, MAX_COMMIT_CHANGES, MAX_PAGE_ENTRIES, MemoryStore,
    PageRequest, Payload, Precondition, PutResult, StoreError, TransactionalStore, UploadError, Version,
};

/// Stages a value and returns the change that sets it.
pub(super) async fn set(store: &impl TransactionalStore, at: &str, payload: impl Into<Payload>) -> Change {
    set_if(store, at, payload, Precondition::none()).await
}

pub(super) async fn set_if(
    store: &impl TransactionalStore,
    at: &str,
    payload: impl Into<Payload>,
    precondition: Precondition,
) -> Change {
    let staged = store.stage(&key(at), payload.into()).await;
    Change::Set { staged: staged.unwrap_or_else(|error| panic!("could not stage {at:?}: {error:?}")), precondition }
}

pub(super) fn erase(at: &str) -> Change {
    erase_if(at, Precondition::none())
}

pub(super) fn erase_if(at: &str, precondition: Precondition) -> Change {
    Change::Erase { key: key(at), precondition }
}

pub(super) fn check(at: &str, precondition: Precondition) -> Change {
    Change::Check { key: key(at), precondition }
}

pub(super) fn erase_prefix(below: &str) -> Change {
    Change::ErasePrefix { prefix: prefix(below) }
}

pub(super) fn check_empty(below: &str) -> Change {
    Change::CheckEmpty { prefix: prefix(below) }
}

pub(super) fn written(outcome: &ChangeOutcome) -> PutResult {
    let ChangeOutcome::Set(written) = outcome else { panic!("{outcome:?} where a key was set") };
    *written
}

pub(super) async fn a_staged_value_is_invisible(store: impl Storage + TransactionalStore) {
    let old = TestValue::new(1, 5_000);
    let version = put(&store, "a/b", old.payload()).await;
    let mut staged = Vec::new();
    for at in ["a/b", "a/c", "d/e/f"] {
        let value = store.stage(&key(at), TestValue::new(2, 6_000).payload()).await.unwrap();
        assert_eq!((value.key(), value.size()), (&key(at), 6_000));
        staged.push(value);
    }
    assert_has(&store, "a/b", old).await;
    assert_eq!(store.head(&key("a/b")).await.unwrap().unwrap().version, version);
    assert_absent(&store, "a/c").await;
    assert_eq!(list_keys(&store, "").await, ["a/b"]);
    assert_eq!(store.erase_prefix(&prefix("d/")).await.unwrap(), KeyCount::exact(0));
    // Neither another writer of the key nor an erase prevents the commit.
    assert!(store.erase(&key("a/b"), Precondition::none()).await.unwrap());
    let changes = staged.into_iter().map(|staged| Change::Set { staged, precondition: Precondition::none() });
    store.commit(changes.collect()).await.unwrap();
    for at in ["a/b", "a/c", "d/e/f"] {
        assert_has(&store, at, TestValue::new(2, 6_000)).await;
    }
}

pub(super) async fn a_staged_value_that_is_dropped_is_discarded(store: impl Storage + TransactionalStore) {
    put(&store, "a", "old").await;
    for size in SIZES {
        for at in ["a", "b"] {
            drop(store.stage(&key(at), TestValue::new(1, size).payload()).await.unwrap());
        }
    }
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"old"[..]));
    assert_absent(&store, "b").await;
    put(&store, "b", "new").await;
    assert_eq!(get(&store, "b").await.as_deref(), Some(&b"new"[..]));
}

pub(super) async fn staged_values_of_every_size_can_be_committed(store: impl Storage + TransactionalStore) {
    let mut changes = Vec::new();
    for (seed, size) in (0..).zip(SIZES) {
        let payload = TestValue::new(seed, size);
        changes.push(set(&store, &format!("known/{size}"), payload.payload()).await);
        changes.push(set(&store, &format!("unknown/{size}"), payload.payload_of_unknown_size()).await);
    }
    let outcomes = store.commit(changes).await.unwrap();
    for ((seed, size), outcomes) in (0..).zip(SIZES).zip(outcomes.chunks(2)) {
        for (at, outcome) in [format!("known/{size}"), format!("unknown/{size}")].iter().zip(outcomes) {
            assert_has(&store, at, TestValue::new(seed, size)).await;
            assert_eq!(store.head(&key(at)).await.unwrap().unwrap().version, written(outcome).version);
        }
    }
}

pub(super) async fn a_failed_commit_leaves_staged_values_unchanged(store: impl Storage + TransactionalStore) {
    put(&store, "guard", "1").await;
    let mut staged = Vec::new();
    for (seed, size) in (0..).zip(SIZES) {
        staged.push(store.stage(&key(&format!("v/{size}")), TestValue::new(seed, size).payload()).await.unwrap());
    }
    let changes = |staged: &[zarrd_store::Staged]| -> Vec<Change> {
        let change =
            |staged: &zarrd_store::Staged| Change::Set { staged: staged.clone(), precondition: Precondition::none() };
        staged.iter().map(change).collect()
    };
    for wrong in [check("guard", Precondition::absent()), erase_if("none", Precondition::present()), erase("v/0")] {
        let mut changes = changes(&staged);
        changes.push(wrong);
        let result = store.commit(changes).await;
        assert_fails!(result, StoreError::PreconditionFailed { .. } | StoreError::DuplicateKey { .. });
        assert_eq!(list_keys(&store, "").await, ["guard"]);
    }
    store.commit(changes(&staged)).await.unwrap();
    drop(staged);
    for (seed, size) in (0..).zip(SIZES) {
        assert_has(&store, &format!("v/{size}"), TestValue::new(seed, size)).await;
    }
}

pub(super) async fn a_staged_value_is_committed_once(store: impl Storage + TransactionalStore) {
    for size in SIZES {
        let staged = store.stage(&key("a"), TestValue::new(1, size).payload()).await.unwrap();
        let change = || Change::Set { staged: staged.clone(), precondition: Precondition::none() };
        store.commit(vec![change()]).await.unwrap();
        let version = store.head(&key("a")).await.unwrap().unwrap().version;
        assert_fails!(store.commit(vec![set(&store, "b", "new").await, change()]).await, StoreError::InvalidStaged);
        assert!(matches!(store.read_staged(&staged, None).await, Err(StoreError::InvalidStaged)));
        assert_eq!(store.head(&key("a")).await.unwrap().unwrap().version, version);
        assert_absent(&store, "b").await;
        put(&store, "a", "newer").await;
        drop(staged);
        assert_eq!(get(&store, "a").await.as_deref(), Some(&b"newer"[..]));
    }
}

pub(super) async fn staged_values_can_be_read(store: impl Storage + TransactionalStore) {
    for (seed, size) in (0..).zip(SIZES) {
        let payload = TestValue::new(seed, size);
        put(&store, "visible", payload.payload()).await;
        let staged = store.stage(&key("a"), payload.payload()).await.unwrap();
        let ranges = [
            None,
            Some(ByteRange::From(size / 2)),
            Some(ByteRange::From(size)),
            ByteRange::bounded(size / 3, size / 3 + 1).ok(),
            ByteRange::bounded(size / 4, size.saturating_mul(2) + 1).ok(),
        ];
        for range in ranges {
            let read: Vec<_> = store.read_staged(&staged, range).await.unwrap().try_collect().await.unwrap();
            let expected = match store.get(&key("visible"), range).await {
                Ok(value) => value.unwrap().bytes().await.unwrap(),
                Err(error) => {
                    assert!(matches!(error, StoreError::RangeNotSatisfiable { .. }), "{error:?}");
                    Default::default()
                }
            };
            assert_eq!(read.concat(), expected, "{range:?} of {size}");
        }
    }
    let foreign = MemoryStore::new().stage(&key("a"), "value".into()).await.unwrap();
    assert!(matches!(store.read_staged(&foreign, None).await, Err(StoreError::InvalidStaged)));
    assert_absent(&store, "a").await;
}

pub(super) async fn outcomes_are_in_the_order_of_the_changes(store: impl Storage + TransactionalStore) {
    let before: HashSet<Version> = [put(&store, "z", "1").await, put(&store, "y", "1").await].into();
    let changes = vec![
        set(&store, "z", "2").await,
        erase("none"),
        check("x", Precondition::absent()),
        set(&store, "b", "2").await,
        erase("y"),
        set(&store, "a", "2").await,
    ];
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!(outcomes.len(), 6);
    assert!(written(&outcomes[0]).replaced && !written(&outcomes[3]).replaced && !written(&outcomes[5]).replaced);
    assert_eq!(outcomes[1], ChangeOutcome::Erased { existed: false });
    assert_eq!(outcomes[2], ChangeOutcome::Checked);
    assert_eq!(outcomes[4], ChangeOutcome::Erased { existed: true });
    for (at, number) in [("z", 0), ("b", 3), ("a", 5)] {
        let version = written(&outcomes[number]).version;
        assert!(!before.contains(&version), "{at} has a version that was assigned before");
        assert_eq!(store.head(&key(at)).await.unwrap().unwrap().version, version, "{at}");
    }
    assert_eq!(list_keys(&store, "").await, ["a", "b", "z"]);
}

pub(super) async fn an_empty_commit_changes_nothing(store: impl Storage + TransactionalStore) {
    assert_eq!(store.commit(vec![]).await.unwrap(), vec![]);
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
}

pub(super) async fn a_failed_commit_changes_nothing(store: impl Storage + TransactionalStore) {
    put_names(&store, &["a", "b", "c"]).await;
    let before = key_pages(&store, "", 10).await;
    let wrong = [erase_if as fn(&str, Precondition) -> Change, check as fn(&str, Precondition) -> Change];
    for position in 0..4 {
        for (number, wrong) in wrong.iter().enumerate() {
            let mut changes = vec![set(&store, "a", "new").await, erase("b"), set(&store, "d/new", "new").await];
            changes.insert(position, wrong("c", Precondition::absent()));
            let result = store.commit(changes).await;
            assert_fails!(result, StoreError::PreconditionFailed { key: reported, current: Some(_) } if reported == key("c"));
            assert_eq!(key_pages(&store, "", 10).await, before, "change {number} failed at position {position}");
        }
        let mut changes = vec![set(&store, "a", "new").await, erase("b")];
        changes.insert(position % 3, set_if(&store, "e", "new", Precondition::present()).await);
        let result = store.commit(changes).await;
        assert_fails!(result, StoreError::PreconditionFailed { key: reported, current: None } if reported == key("e"));
        assert_eq!(key_pages(&store, "", 10).await, before, "a set failed at position {position}");
    }
    for name in ["a", "b", "c"] {
        assert_eq!(get(&store, name).await.as_deref(), Some(name.as_bytes()));
    }
}

/// The error names the first change whose precondition fails, and changes of one commit do not affect each other's
/// preconditions.
pub(super) async fn preconditions_see_the_state_before_the_commit(store: impl Storage + TransactionalStore) {
    let version = put(&store, "b", "old").await;
    let changes = vec![
        set_if(&store, "a", "new", Precondition::absent()).await,
        check("c", Precondition::present()),
        check("b", Precondition::absent()),
    ];
    let result = store.commit(changes).await;
    assert_fails!(result, StoreError::PreconditionFailed { key: reported, current: None } if reported == key("c"));
    let changes = vec![
        erase_if("b", Precondition::at(version)),
        set_if(&store, "a", "new", Precondition::absent()).await,
        check("c", Precondition::absent()),
        erase_if("d", Precondition::absent()),
    ];
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!(outcomes[0], ChangeOutcome::Erased { existed: true });
    assert_eq!(outcomes[3], ChangeOutcome::Erased { existed: false });
    assert_eq!(list_keys(&store, "").await, ["a"]);
}

pub(super) async fn checks_guard_a_commit(store: impl Storage + TransactionalStore) {
    let version = put(&store, "guard", "1").await;
    store.commit(vec![check("guard", Precondition::at(version)), check("a", Precondition::absent())]).await.unwrap();
    let changes = vec![check("guard", Precondition::at(version)), set(&store, "a", "1").await];
    assert_eq!(store.commit(changes).await.unwrap()[0], ChangeOutcome::Checked);
    assert_eq!(store.head(&key("guard")).await.unwrap().unwrap().version, version, "a check is no change");
    let newer = put(&store, "guard", "2").await;
    let changes = vec![set(&store, "a", "2").await, check("guard", Precondition::at(version))];
    let result = store.commit(changes).await;
    assert_fails!(result, StoreError::PreconditionFailed { current: Some(reported), .. } if reported == newer);
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"1"[..]));
}

pub(super) async fn duplicate_keys_are_rejected(store: impl Storage + TransactionalStore) {
    put(&store, "a", "old").await;
    for pair in [
        [set(&store, "a", "1").await, set(&store, "a", "2").await],
        [set(&store, "a", "1").await, erase("a")],
        [erase("a"), erase("a")],
        [erase("a"), check("a", Precondition::none())],
        [check("a", Precondition::none()), check("a", Precondition::present())],
    ] {
        let [first, second] = pair;
        let changes = vec![first, set(&store, "b", "new").await, second];
        assert_fails!(store.commit(changes).await, StoreError::DuplicateKey { key: reported } if reported == key("a"));
    }
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"old"[..]));
    assert_absent(&store, "b").await;
}

pub(super) async fn too_many_changes_are_rejected(store: impl Storage + TransactionalStore) {
    put_names(&store, &["k/5", "other"]).await;
    let erases = |count: usize| (0..count).map(|number| erase(&format!("k/{number}"))).collect::<Vec<_>>();
    let result = store.commit(erases(MAX_COMMIT_CHANGES + 1)).await;
    assert_fails!(result, StoreError::TooManyChanges { changes, limit: MAX_COMMIT_CHANGES }
        if changes == MAX_COMMIT_CHANGES + 1);
    assert_eq!(list_keys(&store, "").await, ["k/5", "other"]);
    let outcomes = store.commit(erases(MAX_COMMIT_CHANGES)).await.unwrap();
    assert_eq!(outcomes.len(), MAX_COMMIT_CHANGES);
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == ChangeOutcome::Erased { existed: true }).count(), 1);
    assert_eq!(list_keys(&store, "").await, ["other"]);
}

pub(super) async fn staging_fails_like_sets(store: impl Storage + TransactionalStore) {
    for (size, announced) in [(9, 10), (11, 10), (5_000, 4_999), (5_000, 5_001), (1 << 20, 1 << 21)] {
        let payload = || Payload { size: Some(announced), ..TestValue::new(1, size).payload() };
        // A payload that is too long may be rejected early.
        let fits = |received: u64| {
            if size < announced { received == size } else { (announced + 1..=size).contains(&received) }
        };
        let result = store.stage(&key("a"), payload()).await;
        assert_fails!(result, StoreError::Upload(UploadError::LengthMismatch { announced: reported, received })
            if reported == announced && fits(received));
        let result = store.set(&key("a"), payload(), Precondition::none()).await;
        assert_fails!(result, StoreError::Upload(UploadError::LengthMismatch { announced: reported, received })
            if reported == announced && fits(received));
    }
    for size in [10, 10_000, 1 << 20] {
        let payload = || broken_payload(TestValue::new(1, size), 3, UploadError::TimedOut.into());
        assert_fails!(store.stage(&key("a"), payload()).await, StoreError::Upload(UploadError::TimedOut));
        let result = store.set(&key("a"), payload(), Precondition::none()).await;
        assert_fails!(result, StoreError::Upload(UploadError::TimedOut));
    }
    assert_absent(&store, "a").await;
}

/// More keys than fit on one page.
pub(super) async fn many_keys_in_one_commit(store: impl Storage + TransactionalStore) {
    const KEYS: usize = MAX_PAGE_ENTRIES + 50;
    let mut changes = Vec::with_capacity(KEYS);
    for number in 0..KEYS {
        changes.push(set(&store, &format!("m/{number:05}"), number.to_string()).await);
    }
    assert_eq!(store.commit(changes).await.unwrap().len(), KEYS);
    for limit in [MAX_PAGE_ENTRIES, MAX_PAGE_ENTRIES + 1, usize::MAX] {
        let pages = key_pages(&store, "m/", limit).await;
        assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [MAX_PAGE_ENTRIES, 50], "pages of {limit}");
        let page = store.list_dir(&prefix("m/"), PageRequest::first(limit)).await.unwrap();
        assert_eq!((page.keys.len(), page.cursor.is_some()), (MAX_PAGE_ENTRIES, true), "pages of {limit}");
    }
    for number in [0, 1, MAX_PAGE_ENTRIES, KEYS - 1] {
        assert_eq!(get(&store, &format!("m/{number:05}")).await.unwrap(), number.to_string());
    }
    assert_eq!(store.erase_prefix(&prefix("m/")).await.unwrap(), KeyCount::exact(KEYS as u64));
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
}

pub(super) async fn one_of_overlapping_commits_wins(store: impl Storage + TransactionalStore) {
    for round in 0..5 {
        let mut running = JoinSet::new();
        for task in 0..8_usize {
            let store = store.clone();
            running.spawn(async move {
                let mut names = [format!("{round}/x"), format!("{round}/y"), format!("{round}/z")];
                names.rotate_left(task % 3);
                let mut changes = Vec::new();
                for name in &names {
                    changes.push(set_if(&store, name, task.to_string(), Precondition::absent()).await);
                }
                (task, store.commit(changes).await)
            });
        }
        let mut winners = Vec::new();
        for (task, result) in running.join_all().await {
            match result {
                Ok(_) => winners.push(task),
                Err(error) => assert!(matches!(error, StoreError::PreconditionFailed { .. }), "{error:?}"),
            }
        }
        let [winner] = winners[..] else { panic!("{} of 8 commits of the same keys were made", winners.len()) };
        for name in ["x", "y", "z"] {
            assert_eq!(get(&store, &format!("{round}/{name}")).await.unwrap(), winner.to_string());
        }
    }
}

pub(super) async fn a_cancelled_commit_is_atomic(store: impl Storage + TransactionalStore) {
    for polls in 0..12 {
        let names: Vec<_> = (0..10).map(|number| format!("{polls}/{number}")).collect();
        let mut changes = Vec::new();
        for (seed, name) in (0..).zip(&names) {
            changes.push(set(&store, name, TestValue::new(seed, 5_000).payload()).await);
        }
        let ended = drop_after(polls, store.commit(changes)).await;
        let count = list_keys(&store, &format!("{polls}/")).await.len();
        assert!(count == 10 || (count == 0 && ended.is_none()), "{count} of 10 keys were set");
        if count == 10 {
            for (seed, name) in (0..).zip(&names) {
                assert_has(&store, name, TestValue::new(seed, 5_000)).await;
            }
        }
    }
}

pub(super) async fn values_staged_by_another_store_are_rejected(
    store: impl Storage + TransactionalStore,
    other: impl Storage + TransactionalStore,
) {
    put(&store, "b", "old").await;
    for size in [10, 5_000, 1 << 20] {
        let foreign = set(&other, "a", TestValue::new(1, size).payload()).await;
        let changes = vec![erase("b"), foreign, set(&store, "c", "new").await];
        assert_fails!(store.commit(changes).await, StoreError::InvalidStaged);
    }
    let foreign = set(&MemoryStore::new(), "a", "value").await;
    assert_fails!(store.commit(vec![foreign]).await, StoreError::InvalidStaged);
    assert_eq!(list_keys(&store, "").await, ["b"]);
    assert_eq!(list_keys(&other, "").await, Vec::<String>::new());
}
