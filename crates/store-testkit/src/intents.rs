//! Intents.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;

use super::{
    Reopen, Storage,
    cancel::drop_after,
    concurrency::at_once,
    prefixes::assert_holds,
    tools::{get, prefix, put, put_names},
    transaction::{check, check_empty, erase, erase_prefix, set},
};
use zarrd_store::{
    Change, ChangeOutcome, Intent, IntentError, IntentFilter, IntentId, KeyCount, MAX_INTENT_LEN, MAX_INTENTS,
    Precondition, StoreError, TransactionalStore,
};

/// Matches intents whose records begin with some bytes.
#[derive(Debug)]
struct BeginsWith(&'static [u8]);

impl IntentFilter for BeginsWith {
    fn matches(&self, record: &[u8]) -> bool {
        record.starts_with(self.0)
    }
}

fn check_intent(intent: &Intent) -> Change {
    Change::CheckIntent { id: intent.id }
}

fn check_no_intent(start: &'static [u8]) -> Change {
    Change::CheckNoIntent { filter: Arc::new(BeginsWith(start)) }
}

pub(super) fn intent(record: impl Into<Bytes>) -> Intent {
    Intent { id: IntentId::random(), record: record.into() }
}

pub(super) fn add_intent(Intent { id, record }: &Intent) -> Change {
    Change::AddIntent { id: *id, record: record.clone() }
}

pub(super) fn remove_intent(intent: &Intent) -> Change {
    Change::RemoveIntent { id: intent.id }
}

/// Asserts that exactly these intents exist.
pub(super) async fn assert_intents(store: &impl TransactionalStore, expected: &[&Intent]) {
    let mut expected: Vec<Intent> = expected.iter().map(|intent| (*intent).clone()).collect();
    expected.sort_by_key(|intent| intent.id);
    assert_eq!(store.intents().await.unwrap(), expected);
}

pub(super) async fn an_intent_persists_until_it_is_removed(store: impl Storage + TransactionalStore) {
    assert_intents(&store, &[]).await;
    let intents = [intent("one"), intent(""), intent(vec![7; MAX_INTENT_LEN])];
    let [one, two, three] = &intents;
    assert_eq!(store.commit(vec![add_intent(one)]).await.unwrap(), [ChangeOutcome::IntentAdded]);
    assert_eq!(store.commit(vec![add_intent(two), add_intent(three)]).await.unwrap(), [ChangeOutcome::IntentAdded; 2]);
    assert_intents(&store, &[one, two, three]).await;
    let outcomes =
        store.commit(vec![set(&store, "a", "1").await, remove_intent(two), check_empty("b/")]).await.unwrap();
    assert_eq!(outcomes[1..], [ChangeOutcome::IntentRemoved, ChangeOutcome::Checked]);
    assert_intents(&store, &[one, three]).await;
    // One may replace another.
    let four = intent("four");
    assert_eq!(
        store.commit(vec![remove_intent(one), add_intent(&four)]).await.unwrap(),
        [ChangeOutcome::IntentRemoved, ChangeOutcome::IntentAdded]
    );
    assert_intents(&store, &[three, &four]).await;
    store.commit(vec![remove_intent(three), remove_intent(&four)]).await.unwrap();
    assert_intents(&store, &[]).await;
}

pub(super) async fn an_intent_is_removed_once(store: impl Storage + TransactionalStore) {
    let (one, never) = (intent("one"), intent("never"));
    store.commit(vec![add_intent(&one)]).await.unwrap();
    store.commit(vec![remove_intent(&one)]).await.unwrap();
    for id in [one.id, never.id] {
        let changes = vec![set(&store, "a", "1").await, erase_prefix(""), Change::RemoveIntent { id }];
        assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::NotFound { id: missing })
            if missing == id);
    }
    assert_holds(&store, &["a"], &[]).await;
    for round in 0..20 {
        let contended = intent(format!("{round}"));
        store.commit(vec![add_intent(&contended)]).await.unwrap();
        let id = contended.id;
        let results = at_once(&store, 4, |store, task| async move {
            let changes =
                vec![set(&store, &format!("w/{task}"), format!("{round}")).await, Change::RemoveIntent { id }];
            store.commit(changes).await
        })
        .await;
        let settled = results.iter().filter(|result| result.is_ok()).count();
        assert_eq!(settled, 1, "{results:?}");
        for result in results.into_iter().filter(Result::is_err) {
            assert_fails!(result, StoreError::Intent(IntentError::NotFound { .. }));
        }
        let mut written = 0;
        for task in 0..4 {
            written +=
                usize::from(get(&store, &format!("w/{task}")).await.as_deref() == Some(format!("{round}").as_bytes()));
        }
        assert_eq!(written, 1, "the others changed something");
    }
}

pub(super) async fn an_intent_is_added_with_its_commit_or_not_at_all(store: impl Storage + TransactionalStore) {
    put(&store, "a", "old").await;
    let (existing, new) = (intent("kept"), intent("new"));
    store.commit(vec![add_intent(&existing)]).await.unwrap();
    for wrong in [check("a", Precondition::absent()), check_empty(""), Change::RemoveIntent { id: IntentId::random() }]
    {
        let changes = vec![add_intent(&new), remove_intent(&existing), set(&store, "b", "new").await, wrong];
        assert!(store.commit(changes).await.is_err());
        assert_intents(&store, &[&existing]).await;
        assert_holds(&store, &["b"], &[("a", "old")]).await;
    }
    store
        .commit(vec![add_intent(&new), remove_intent(&existing), set(&store, "b", "new").await, erase("a")])
        .await
        .unwrap();
    assert_intents(&store, &[&new]).await;
    assert_holds(&store, &["a"], &[("b", "new")]).await;
}

pub(super) async fn an_intent_is_in_a_commit_of_many_changes(store: impl Storage + TransactionalStore) {
    let (one, two) = (intent("one"), intent("two"));
    let mut changes = vec![add_intent(&one), check_empty("m/"), erase_prefix("n/")];
    for number in 0..1_500 {
        changes.push(set(&store, &format!("m/{number:04}"), "v").await);
    }
    changes.push(add_intent(&two));
    let rejected = [changes.clone(), vec![check("x", Precondition::present())]].concat();
    assert_fails!(store.commit(rejected).await, StoreError::PreconditionFailed { .. });
    assert_intents(&store, &[]).await;
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!((outcomes[0], outcomes[1_503]), (ChangeOutcome::IntentAdded, ChangeOutcome::IntentAdded));
    assert_intents(&store, &[&one, &two]).await;
    let mut changes: Vec<Change> = (0..1_500).map(|number| erase(&format!("m/{number:04}"))).collect();
    changes.push(remove_intent(&one));
    store.commit(changes.clone()).await.unwrap();
    assert_intents(&store, &[&two]).await;
    assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::NotFound { .. }));
}

pub(super) async fn intents_are_not_keys(store: impl Storage + TransactionalStore) {
    let intents = [intent("one"), intent("two")];
    store.commit(intents.iter().map(add_intent).collect()).await.unwrap();
    let [one, two] = &intents;
    assert_holds(&store, &["a/b"], &[]).await;
    store.commit(vec![check_empty("")]).await.unwrap();
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(0));
    put_names(&store, &["a/b", "c"]).await;
    assert_holds(&store, &[], &[("a/b", "a/b"), ("c", "c")]).await;
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(2));
    put_names(&store, &["a/b"]).await;
    let three = intent("three");
    store.commit(vec![erase_prefix(""), remove_intent(one), add_intent(&three)]).await.unwrap();
    assert_holds(&store, &["a/b", "c"], &[]).await;
    assert_intents(&store, &[two, &three]).await;
}

pub(super) async fn too_many_or_too_long_intents_are_rejected(store: impl Storage + TransactionalStore) {
    let long = intent(vec![1; MAX_INTENT_LEN + 1]);
    let changes = vec![set(&store, "a", "1").await, add_intent(&long)];
    assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::TooLong { len, limit: MAX_INTENT_LEN })
        if len == MAX_INTENT_LEN + 1);
    let one = intent("one");
    for changes in [vec![add_intent(&one), add_intent(&one)], vec![add_intent(&one), remove_intent(&one)]] {
        assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::Duplicate { id }) if id == one.id);
    }
    let all: Vec<Intent> = (0..MAX_INTENTS).map(|number| intent(format!("{number}"))).collect();
    for chunk in all.chunks(300) {
        store.commit(chunk.iter().map(add_intent).collect()).await.unwrap();
    }
    let changes = vec![set(&store, "a", "1").await, add_intent(&one)];
    assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::TooMany { limit: MAX_INTENTS }));
    assert_fails!(store.commit(vec![add_intent(&all[7])]).await, StoreError::Intent(IntentError::AlreadyExists { id })
        if id == all[7].id);
    assert_intents(&store, &all.iter().collect::<Vec<_>>()).await;
    assert_holds(&store, &["a"], &[]).await;
    store.commit(vec![remove_intent(&all[0]), add_intent(&one)]).await.unwrap();
    store.commit(all[1..].iter().map(remove_intent).collect()).await.unwrap();
    assert_intents(&store, &[&one]).await;
}

pub(super) async fn a_commit_checks_that_an_intent_exists(store: impl Storage + TransactionalStore) {
    let (one, other) = (intent("one"), intent("other"));
    store.commit(vec![add_intent(&one)]).await.unwrap();
    let outcomes = store.commit(vec![set(&store, "a", "1").await, check_intent(&one)]).await.unwrap();
    assert_eq!(outcomes[1], ChangeOutcome::Checked);
    for missing in [&other, &one] {
        let many: Vec<Change> = (0..1_500).map(|number| erase(&format!("m/{number:04}"))).collect();
        for changes in [vec![set(&store, "a", "2").await], many] {
            if missing.id == one.id {
                let _ = store.commit(vec![remove_intent(&one)]).await;
            }
            let changes = [changes, vec![check_intent(missing)]].concat();
            assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::NotFound { id })
                if id == missing.id);
        }
    }
    assert_holds(&store, &[], &[("a", "1")]).await;
    // What a commit adds is not there before it.
    assert_fails!(
        store.commit(vec![add_intent(&other), check_intent(&other)]).await,
        StoreError::Intent(IntentError::Duplicate { .. })
    );
}

pub(super) async fn a_commit_is_excluded_by_intents_that_match(store: impl Storage + TransactionalStore) {
    let (copy, shrink) = (intent("copy a"), intent("shrink b"));
    store.commit(vec![add_intent(&copy)]).await.unwrap();
    store.commit(vec![set(&store, "a", "1").await, check_no_intent(b"shrink"), add_intent(&shrink)]).await.unwrap();
    let many: Vec<Change> = (0..1_500).map(|number| erase(&format!("m/{number:04}"))).collect();
    for changes in [vec![set(&store, "a", "2").await], many] {
        for (start, excluding) in [(&b"copy"[..], &copy), (b"shrink b", &shrink)] {
            let changes = [changes.clone(), vec![check_no_intent(b"other"), check_no_intent(start)]].concat();
            assert_fails!(store.commit(changes).await, StoreError::Intent(IntentError::Excludes { id })
                if id == excluding.id);
        }
    }
    // The state before the commit counts.
    assert!(store.commit(vec![remove_intent(&copy), check_no_intent(b"copy")]).await.is_err());
    assert_intents(&store, &[&copy, &shrink]).await;
    assert_holds(&store, &[], &[("a", "1")]).await;
    store.commit(vec![remove_intent(&copy)]).await.unwrap();
    store.commit(vec![set(&store, "a", "3").await, check_no_intent(b"copy")]).await.unwrap();
    assert_holds(&store, &[], &[("a", "3")]).await;
}

/// Of commits that add an intent, each on condition that there is none, one succeeds at a time, whatever else is committed.
pub(super) async fn intents_exclude_each_other(store: impl Storage + TransactionalStore) {
    for round in 0..20 {
        let committed = at_once(&store, 8, |store, task| async move {
            let own = (task % 2 == 0).then(|| intent(format!("copy {task}")));
            let changes = match &own {
                Some(own) => vec![add_intent(own), check_no_intent(b"copy")],
                None => vec![set(&store, &format!("{task}"), format!("{round}")).await, check_no_intent(b"shrink")],
            };
            store.commit(changes).await.map(|_| own)
        })
        .await;
        assert_eq!(committed.iter().filter(|result| result.is_ok()).count(), 5, "one intent, and four values");
        let owners: Vec<Intent> = committed.into_iter().filter_map(|result| result.ok().flatten()).collect();
        assert_intents(&store, &owners.iter().collect::<Vec<_>>()).await;
        store.commit(owners.iter().map(remove_intent).collect()).await.unwrap();
        assert_eq!(get(&store, "1").await.as_deref(), Some(format!("{round}").as_bytes()));
    }
}

pub(super) async fn a_cancelled_add_of_an_intent_is_atomic(store: impl Storage + TransactionalStore) {
    for polls in 0..12 {
        let one = intent(format!("{polls}"));
        let changes = vec![add_intent(&one), set(&store, "a", polls.to_string()).await];
        let ended = drop_after(polls, store.commit(changes)).await;
        // The cancelled commit may still be made; a later commit decides.
        put(&store, "b", "after").await;
        let present = store.intents().await.unwrap().contains(&one);
        let set = get(&store, "a").await.as_deref() == Some(polls.to_string().as_bytes());
        assert_eq!(present, set);
        assert!(present || ended.is_none());
    }
}

pub(super) async fn intents_persist<F: Reopen<Store: TransactionalStore>>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    let mut present: Vec<Intent> = Vec::new();
    let mut ids = BTreeSet::new();
    for round in 0..6 {
        let new: Vec<Intent> = (0..4).map(|number| intent(vec![round; number * 2_000])).collect();
        assert!(new.iter().all(|intent| ids.insert(intent.id)));
        let mut changes: Vec<Change> = new.iter().map(add_intent).collect();
        changes.push(set(&store, "a/b", round.to_string()).await);
        if round % 2 == 1 {
            changes.push(erase_prefix(""));
        }
        let settled: Vec<Intent> = present.drain(..present.len() / 2).collect();
        changes.extend(settled.iter().map(remove_intent));
        store.commit(changes).await.unwrap();
        present.extend(new);
        assert_intents(&store, &present.iter().collect::<Vec<_>>()).await;
        (store, fixture) = factory.reopen(store, fixture).await;
        assert_intents(&store, &present.iter().collect::<Vec<_>>()).await;
        assert_holds(&store, &[], &[("a/b", &round.to_string())]).await;
        for removed in &settled {
            assert_fails!(
                store.commit(vec![remove_intent(removed)]).await,
                StoreError::Intent(IntentError::NotFound { .. })
            );
        }
    }
    store.commit(present.iter().map(remove_intent).collect()).await.unwrap();
    let (store, _fixture) = factory.reopen(store, fixture).await;
    assert_intents(&store, &[]).await;
}

pub(super) async fn each_opening_is_a_run_of_its_own<F: Reopen<Store: TransactionalStore>>(factory: &F) {
    let (mut store, mut fixture) = factory.create().await;
    let mut runs = Vec::new();
    for _ in 0..4 {
        let run = store.run().unwrap();
        assert!(store.is_running(run) && store.run().unwrap() == run);
        assert!(!runs.contains(&run) && !runs.iter().any(|ended| store.is_running(*ended)));
        runs.push(run);
        (store, fixture) = factory.reopen(store, fixture).await;
    }
    drop((store, fixture));
}
