//! Erasing and checking prefixes in commits.

use std::collections::BTreeSet;

use super::{
    Storage,
    cancel::drop_after,
    concurrency::at_once,
    tools::{children, dir_pages, get, key, key_pages, list_keys, prefix, put, put_names},
    transaction::{check, check_empty, erase, erase_if, erase_prefix, set, set_if, written},
};
use zarrd_store::{
    Change, ChangeOutcome, Key, KeyCount, MAX_COUNTED_KEYS, PageRequest, Precondition, StoreError, TransactionalStore,
    Version,
};

/// Asserts by all operations that exactly these keys exist, each with the text that follows it. `former` are keys that
/// may have existed before.
pub(super) async fn assert_holds(store: &impl Storage, former: &[&str], expected: &[(&str, &str)]) {
    let mut prefixes = BTreeSet::from([String::new()]);
    for at in former.iter().copied().chain(expected.iter().map(|(at, _)| *at)) {
        let mut above = key(at).parent();
        while prefixes.insert(above.to_string()) {
            above = key(above.as_str().trim_end_matches('/')).parent();
        }
    }
    for below in &prefixes {
        let rest = || expected.iter().filter_map(|(at, _)| at.strip_prefix(below.as_str()));
        let keys: BTreeSet<String> = rest().map(|rest| format!("{below}{rest}")).collect();
        let names = rest().map(|rest| match rest.split_once('/') {
            Some((name, _)) => format!("{below}{name}/"),
            None => format!("{below}{rest}"),
        });
        let names: BTreeSet<String> = names.collect();
        for limit in [1, 2, 1_000] {
            let listed: Vec<_> =
                key_pages(store, below, limit).await.concat().iter().map(|entry| entry.key.to_string()).collect();
            assert_eq!(listed, Vec::from_iter(keys.clone()), "keys below {below:?} in pages of {limit}");
            let listed: Vec<_> = dir_pages(store, below, limit).await.iter().flat_map(children).collect();
            assert_eq!(listed, Vec::from_iter(names.clone()), "children of {below:?} in pages of {limit}");
        }
    }
    for (at, text) in expected {
        assert_eq!(get(store, at).await.as_deref(), Some(text.as_bytes()), "{at:?}");
    }
    for at in former.iter().filter(|at| !expected.iter().any(|(present, _)| present == *at)) {
        assert_eq!(get(store, at).await, None, "{at:?} has a value");
        assert_eq!(store.head(&key(at)).await.unwrap(), None, "{at:?} has a head");
    }
}

const SUBTREE: [&str; 8] = ["a", "a-/x", "a/b", "a/b/c", "a/b/d", "a/e", "a0", "b"];

pub(super) async fn a_commit_erases_a_prefix(store: impl Storage + TransactionalStore) {
    put_names(&store, &SUBTREE).await;
    let outcomes = store.commit(vec![erase_prefix("a/b/"), erase_prefix("none/")]).await.unwrap();
    assert_eq!(outcomes, [ChangeOutcome::PrefixErased, ChangeOutcome::PrefixErased]);
    let left = ["a", "a-/x", "a/b", "a/e", "a0", "b"].map(|at| (at, at));
    assert_holds(&store, &SUBTREE, &left).await;
    store.commit(vec![erase_prefix("a/")]).await.unwrap();
    assert_holds(&store, &SUBTREE, &["a", "a-/x", "a0", "b"].map(|at| (at, at))).await;
    store.commit(vec![erase_prefix("")]).await.unwrap();
    assert_holds(&store, &SUBTREE, &[]).await;
}

pub(super) async fn a_commit_replaces_what_is_below_a_prefix(store: impl Storage + TransactionalStore) {
    for position in 0..3 {
        put_names(&store, &SUBTREE).await;
        let before = store.head(&key("a/b")).await.unwrap().unwrap().version;
        let mut changes = vec![set(&store, "a/b", "new").await, set(&store, "a/f/g", "new").await];
        changes.insert(position, erase_prefix("a/"));
        let mut outcomes = store.commit(changes).await.unwrap();
        assert_eq!(outcomes.remove(position), ChangeOutcome::PrefixErased);
        let [replacing, creating] = [written(&outcomes[0]), written(&outcomes[1])];
        assert!(replacing.replaced && !creating.replaced, "sets speak of the state before the commit");
        assert_ne!(replacing.version, before);
        assert_eq!(store.head(&key("a/b")).await.unwrap().unwrap().version, replacing.version);
        let left = [("a", "a"), ("a-/x", "a-/x"), ("a/b", "new"), ("a/f/g", "new"), ("a0", "a0"), ("b", "b")];
        assert_holds(&store, &SUBTREE, &left).await;
        store.commit(vec![erase("a/f/g")]).await.unwrap();
    }
}

pub(super) async fn preconditions_see_keys_below_an_erased_prefix(store: impl Storage + TransactionalStore) {
    put_names(&store, &["a/b", "a/c", "a/d"]).await;
    let version = store.head(&key("a/d")).await.unwrap().unwrap().version;
    for wrong in [check("a/b", Precondition::absent()), erase_if("a/e", Precondition::present())] {
        let changes = vec![erase_prefix("a/"), wrong.clone()];
        assert_fails!(store.commit(changes).await, StoreError::PreconditionFailed { key, .. }
            if Some(&key) == wrong.key());
    }
    let changes = vec![
        erase("a/b"),
        erase("a/e"),
        check("a/c", Precondition::present()),
        erase_prefix("a/"),
        set_if(&store, "a/d", "new", Precondition::at(version)).await,
    ];
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!(outcomes[..2], [ChangeOutcome::Erased { existed: true }, ChangeOutcome::Erased { existed: false }]);
    assert_eq!(outcomes[2..4], [ChangeOutcome::Checked, ChangeOutcome::PrefixErased]);
    assert_holds(&store, &["a/b", "a/c", "a/e"], &[("a/d", "new")]).await;
}

pub(super) async fn a_prefix_may_be_named_more_than_once(store: impl Storage + TransactionalStore) {
    put_names(&store, &SUBTREE).await;
    let changes = vec![
        erase_prefix("a/b/"),
        check_empty("c/"),
        erase_prefix("a/"),
        check_empty("c/"),
        set(&store, "a/b/c", "new").await,
        erase_prefix("a/b/"),
        erase_prefix("c/"),
    ];
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == ChangeOutcome::PrefixErased).count(), 4);
    let left = [("a", "a"), ("a-/x", "a-/x"), ("a/b/c", "new"), ("a0", "a0"), ("b", "b")];
    assert_holds(&store, &SUBTREE, &left).await;
}

pub(super) async fn a_prefix_that_is_not_empty_fails_the_commit(store: impl Storage + TransactionalStore) {
    put_names(&store, &SUBTREE).await;
    let staged = store.stage(&key("new"), "new".into()).await.unwrap();
    let set = || Change::Set { staged: staged.clone(), precondition: Precondition::none() };
    for (below, first) in [("", "a"), ("a/", "a/b"), ("a/b/", "a/b/c"), ("a-/", "a-/x")] {
        for changes in [
            vec![check_empty(below)],
            vec![set(), check_empty("c/"), check_empty(below)],
            vec![erase_prefix(below), check_empty(below), set()],
            vec![check_empty(below), erase("a/b/c"), erase("a-/x"), check("b", Precondition::absent())],
        ] {
            assert_fails!(store.commit(changes).await, StoreError::NotEmpty { prefix: named, key: found }
                if (named.as_str(), found.as_str()) == (below, first));
        }
    }
    let changes = vec![check("b", Precondition::absent()), check_empty("a/")];
    assert_fails!(store.commit(changes).await, StoreError::PreconditionFailed { key: named, .. } if named == key("b"));
    assert_holds(&store, &["new"], &SUBTREE.map(|at| (at, at))).await;
    store.commit(vec![set()]).await.unwrap();
    assert_eq!(get(&store, "new").await.as_deref(), Some(&b"new"[..]));
}

pub(super) async fn a_prefix_is_empty_as_long_as_no_key_is_below(store: impl Storage + TransactionalStore) {
    put_names(&store, &SUBTREE).await;
    let changes = vec![check_empty("b/"), check_empty("a/b/c/"), check_empty("a-/x/"), check_empty("A/")];
    assert_eq!(store.commit(changes).await.unwrap(), [ChangeOutcome::Checked; 4]);
    // Sets of the same commit do not count.
    let changes = vec![set(&store, "c/d/e", "1").await, check_empty("c/d/"), check_empty("c/")];
    assert_eq!(store.commit(changes).await.unwrap()[1..], [ChangeOutcome::Checked; 2]);
    assert_fails!(store.commit(vec![check_empty("c/")]).await, StoreError::NotEmpty { key: found, .. }
        if found == key("c/d/e"));
    for emptied in ["c/d/", "a/"] {
        assert!(store.erase_prefix(&prefix(emptied)).await.unwrap().count > 0);
        let changes = vec![check_empty(emptied), set(&store, &format!("{emptied}new"), "2").await];
        store.commit(changes).await.unwrap();
        assert_fails!(store.commit(vec![check_empty(emptied)]).await, StoreError::NotEmpty { .. });
        store.erase(&key(&format!("{emptied}new")), Precondition::none()).await.unwrap();
        store.commit(vec![check_empty(emptied)]).await.unwrap();
    }
}

pub(super) async fn one_creator_below_an_empty_prefix_wins(store: impl Storage + TransactionalStore) {
    for round in 0..40 {
        let below = format!("r/{round}/");
        let results = at_once(&store, 4, |store, task| {
            let below = below.clone();
            async move {
                let mut changes = vec![check_empty(&below)];
                for name in ["x", "y/z"] {
                    changes.push(set(&store, &format!("{below}{task}/{name}"), task.to_string()).await);
                }
                (task, store.commit(changes).await)
            }
        })
        .await;
        let (winners, losers): (Vec<_>, Vec<_>) = results.into_iter().partition(|(_, result)| result.is_ok());
        let [(winner, _)] = winners[..] else { panic!("{} of 4 created {below}", winners.len()) };
        let first = key(&format!("{below}{winner}/x"));
        for (_, result) in losers {
            assert_fails!(result, StoreError::NotEmpty { prefix: named, key: found }
                if named == prefix(&below) && found == first);
        }
        assert_eq!(list_keys(&store, &below).await, [format!("{first}"), format!("{below}{winner}/y/z")]);
    }
}

/// Each set and erase reports whether the key had a value; together these results must form a consistent history.
pub(super) async fn sets_and_prefix_erases_are_serialized(store: impl Storage + TransactionalStore) {
    let (mut sets, mut erases) = (0, 0);
    for _ in 0..10 {
        let results = at_once(&store, 12, |store, task| async move {
            if task % 2 == 0 {
                let written = store.set(&key("a/b/c"), task.to_string().into(), Precondition::none()).await;
                return (u32::from(!written.expect("set").replaced), 0);
            }
            let below = if task % 4 == 1 { "a/b/" } else { "a/" };
            let outcomes = store.commit(vec![erase("a/b/c"), erase_prefix(below)]).await.expect("commit");
            (0, u32::from(outcomes[0] == ChangeOutcome::Erased { existed: true }))
        })
        .await;
        for (set, erased) in results {
            sets += set;
            erases += erased;
        }
        let present = u32::from(get(&store, "a/b/c").await.is_some());
        assert_eq!(sets, erases + present, "each set was erased once, or still exists");
        assert_eq!(list_keys(&store, "").await.len(), present as usize);
    }
}

pub(super) async fn writers_read_their_changes_below_a_prefix(store: impl Storage + TransactionalStore) {
    at_once(&store, 6, |store, task| async move {
        let below = format!("w/{task}/");
        for step in 0..6 {
            let names = ["a", "b/c", "b/d"].map(|name| format!("{below}{name}"));
            let mut changes = Vec::new();
            for name in &names {
                changes.push(set(&store, name, step.to_string()).await);
            }
            store.commit(changes).await.expect("a commit");
            assert_eq!(list_keys(&store, &below).await, names);
            let changes = vec![set(&store, &names[1], "new").await, erase_prefix(&below)];
            store.commit(changes).await.expect("a commit");
            assert_eq!(list_keys(&store, &below).await, [names[1].clone()]);
            assert_eq!(store.erase_prefix(&prefix(&below)).await.expect("erase_prefix"), KeyCount::exact(1));
            assert_eq!(list_keys(&store, &below).await, Vec::<String>::new());
            assert_eq!(get(&store, &names[1]).await, None);
        }
    })
    .await;
}

pub(super) async fn a_commit_erases_more_keys_than_are_counted(store: impl Storage + TransactionalStore) {
    let half = MAX_COUNTED_KEYS / 2 + 1;
    for half_number in 0..2 {
        let mut changes = Vec::with_capacity(half);
        for number in 0..half {
            changes.push(set(&store, &format!("m/{half_number}/{number:05}"), "").await);
        }
        store.commit(changes).await.unwrap();
    }
    put_names(&store, &["m", "m-", "m0"]).await;
    let many = store.erase_prefix(&prefix("m/")).await.unwrap();
    assert_eq!(many, KeyCount { count: MAX_COUNTED_KEYS as u64, exact: false });
    assert_holds(&store, &["m/0/00000", "m/1/49999"], &["m", "m-", "m0"].map(|at| (at, at))).await;
}

/// A commit that erases a prefix and sets a key below it is atomic.
pub(super) async fn a_cancelled_prefix_erase_is_atomic(store: impl Storage + TransactionalStore) {
    for polls in 0..12 {
        let names: Vec<String> = (0..50).map(|number| format!("{polls}/{number:02}")).collect();
        let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
        let below = format!("{polls}/");
        for replacing in [false, true] {
            let mut changes = Vec::new();
            for name in &names {
                changes.push(set(&store, name, "old").await);
            }
            store.commit(changes).await.unwrap();
            let ended = if replacing {
                let changes = vec![set(&store, &names[7], "new").await, erase_prefix(&below)];
                drop_after(polls, store.commit(changes)).await.map(|result| result.map(drop))
            } else {
                drop_after(polls, store.erase_prefix(&prefix(&below))).await.map(|result| result.map(drop))
            };
            if let Some(result) = &ended {
                assert!(result.is_ok(), "{result:?}");
            }
            let snapshot = store.snapshot(&keys).await.unwrap();
            let mut left = 0;
            for key in &keys {
                left += usize::from(snapshot.meta(key).await.unwrap().is_some());
            }
            let made = left == usize::from(replacing);
            assert!(made || left == keys.len() && ended.is_none(), "{left} keys are left");
            if made && replacing {
                assert_eq!(snapshot.get(&keys[7], None).await.unwrap().unwrap().bytes().await.unwrap(), "new");
            }
        }
    }
}

/// The order in which nested prefixes are set and erased.
pub(super) const NESTINGS: [[&str; 4]; 4] = [
    ["a/", "a/b/", "a/b/c/", ""],
    ["a/b/c/", "a/b/", "a/", "a/b/"],
    ["a/b/", "a/", "a/b/", "a/b/c/"],
    ["a/b/", "a/b/", "a/", "a/"],
];

pub(super) const NESTED: [&str; 6] = ["a/b/c/d", "a/b/c/e", "a/b/f", "a/g", "a0", "b/h"];

/// Sets the nested keys, except some that differ between steps, and returns what exists then.
pub(super) async fn set_some_nested(
    store: &impl Storage,
    step: usize,
    before: &[(&'static str, String)],
) -> (Vec<(&'static str, String)>, Vec<Version>) {
    let (mut now, mut versions) = (before.to_vec(), Vec::new());
    for (number, at) in NESTED.into_iter().enumerate().filter(|(number, _)| !(number + step).is_multiple_of(3)) {
        let text = format!("{step} {number}");
        versions.push(put(store, at, text.clone()).await);
        now.retain(|(present, _)| *present != at);
        now.push((at, text));
    }
    now.sort_unstable();
    (now, versions)
}

pub(super) async fn prefixes_within_each_other_are_set_and_erased(store: impl Storage + TransactionalStore) {
    let mut assigned = BTreeSet::new();
    for nesting in NESTINGS {
        let mut present = Vec::new();
        store.erase_prefix(&prefix("")).await.unwrap();
        for (step, below) in nesting.into_iter().enumerate() {
            let (set, versions) = set_some_nested(&store, step, &present).await;
            for version in versions {
                assert!(assigned.insert(version), "a version was assigned twice");
            }
            assert_holds(&store, &NESTED, &borrowed(&set)).await;
            let expected = set.iter().filter(|(at, _)| at.starts_with(below)).count() as u64;
            assert_eq!(store.erase_prefix(&prefix(below)).await.unwrap(), KeyCount::exact(expected), "{below:?}");
            assert_eq!(store.erase_prefix(&prefix(below)).await.unwrap(), KeyCount::exact(0), "{below:?}");
            present = set.into_iter().filter(|(at, _)| !at.starts_with(below)).collect();
            assert_holds(&store, &NESTED, &borrowed(&present)).await;
        }
    }
}

pub(super) fn borrowed<'s>(present: &'s [(&'static str, String)]) -> Vec<(&'static str, &'s str)> {
    present.iter().map(|(at, text)| (*at, text.as_str())).collect()
}

/// Keys below an erased prefix do not exist for later changes either.
pub(super) async fn writers_find_nothing_below_an_erased_prefix(store: impl Storage + TransactionalStore) {
    let version = put(&store, "a/b", "old").await;
    put_names(&store, &["a/c", "a/d"]).await;
    store.commit(vec![erase_prefix("a/")]).await.unwrap();
    for precondition in [Precondition::present(), Precondition::at(version)] {
        let result = store.set(&key("a/b"), "new".into(), precondition).await;
        assert_fails!(result, StoreError::PreconditionFailed { current: None, .. });
    }
    assert!(!store.erase(&key("a/c"), Precondition::none()).await.unwrap());
    assert_eq!(store.commit(vec![erase("a/d")]).await.unwrap(), [ChangeOutcome::Erased { existed: false }]);
    let written = store.set(&key("a/b"), "new".into(), Precondition::absent()).await.unwrap();
    assert!(!written.replaced && written.version != version);
    assert_holds(&store, &["a/c", "a/d"], &[("a/b", "new")]).await;
}

/// A listing continues if its cursor is before, in or behind a prefix that is erased meanwhile.
pub(super) async fn a_listing_continues_after_an_erased_prefix(store: impl Storage + TransactionalStore) {
    let names: Vec<String> =
        ["l/a", "l/b", "l/c"].iter().flat_map(|at| (0..4).map(move |n| format!("{at}/{n}"))).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for limit in 1..names.len() {
        put_names(&store, &names).await;
        let first = store.list_prefix(&prefix("l/"), PageRequest::first(limit)).await.unwrap();
        let changes = vec![erase_prefix("l/b/"), set(&store, "l/b/2", "new").await];
        store.commit(changes).await.unwrap();
        let cursor = first.cursor.expect("there is more");
        let rest = store.list_prefix(&prefix("l/"), PageRequest::after(1_000, cursor)).await.unwrap();
        let listed: Vec<String> = rest.keys.iter().map(|entry| entry.key.to_string()).collect();
        let left = names[limit..].iter().filter(|at| !at.starts_with("l/b/") || **at == "l/b/2");
        assert_eq!(listed, left.copied().collect::<Vec<_>>(), "after {limit} keys");
    }
    for limit in 1..3 {
        put_names(&store, &names).await;
        let first = store.list_dir(&prefix("l/"), PageRequest::first(limit)).await.unwrap();
        store.commit(vec![erase_prefix("l/b/")]).await.unwrap();
        let cursor = first.cursor.expect("there is more");
        let rest = store.list_dir(&prefix("l/"), PageRequest::after(1_000, cursor)).await.unwrap();
        assert_eq!(rest.prefixes, [prefix("l/c/")], "after {limit} prefixes");
    }
}
