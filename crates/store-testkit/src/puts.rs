//! Setting keys to values in memory, without staging them.

use bytes::Bytes;

use super::{
    Storage,
    test_value::TestValue,
    tools::{SIZES, assert_absent, assert_has, get, key, list_keys, put},
    transaction::{check, erase, set, written},
};
use zarrd_store::{Change, ChangeOutcome, Precondition, StoreError, TransactionalStore};

/// More changes than stores have in memory as staged values.
const MANY: usize = 2000;

fn put_if(at: &str, value: impl Into<Bytes>, precondition: Precondition) -> Change {
    Change::Put { key: key(at), value: value.into(), precondition }
}

fn value(seed: u64, size: u64) -> Bytes {
    TestValue::new(seed, size).bytes()
}

pub(super) async fn values_of_every_size_can_be_put(store: impl Storage + TransactionalStore) {
    put(&store, "v/0", "old").await;
    let change = |(seed, size): (u64, u64)| put_if(&format!("v/{size}"), value(seed, size), Precondition::none());
    let changes = (0..).zip(SIZES).map(change).collect();
    let outcomes = store.commit(changes).await.unwrap();
    for ((seed, size), outcome) in (0..).zip(SIZES).zip(&outcomes) {
        assert_has(&store, &format!("v/{size}"), TestValue::new(seed, size)).await;
        let version = store.head(&key(&format!("v/{size}"))).await.unwrap().unwrap().version;
        assert_eq!((written(outcome).version, written(outcome).replaced), (version, size == 0));
    }
}

pub(super) async fn many_values_can_be_put(store: impl Storage + TransactionalStore) {
    for at in ["gone", "m/5"] {
        put(&store, at, "old").await;
    }
    // The keys are not in order, and one value is too large to be among the small ones of a commit.
    let mut changes: Vec<Change> =
        (0..MANY).rev().map(|at| put_if(&format!("m/{at}"), at.to_string(), Precondition::none())).collect();
    changes.push(put_if("large", value(1, 100_000), Precondition::absent()));
    changes.push(erase("gone"));
    changes.push(check("m", Precondition::absent()));
    changes.push(set(&store, "staged", TestValue::new(2, 5000).payload()).await);
    let outcomes = store.commit(changes).await.unwrap();
    assert_eq!(outcomes.len(), MANY + 4);
    for (at, outcome) in (0..MANY).rev().zip(&outcomes) {
        assert_eq!(get(&store, &format!("m/{at}")).await.unwrap(), at.to_string());
        let version = store.head(&key(&format!("m/{at}"))).await.unwrap().unwrap().version;
        assert_eq!((written(outcome).version, written(outcome).replaced), (version, at == 5), "m/{at}");
    }
    assert_has(&store, "large", TestValue::new(1, 100_000)).await;
    assert_has(&store, "staged", TestValue::new(2, 5000)).await;
    assert_absent(&store, "gone").await;
    assert_eq!(outcomes[MANY + 1..MANY + 3], [ChangeOutcome::Erased { existed: true }, ChangeOutcome::Checked]);
}

pub(super) async fn puts_have_preconditions(store: impl Storage + TransactionalStore) {
    let old = put(&store, "a", "old").await;
    let newer = put(&store, "a", "newer").await;
    for count in [0, MANY] {
        for (wrong, at) in [(Precondition::absent(), "a"), (Precondition::at(old), "a"), (Precondition::present(), "b")]
        {
            let mut changes: Vec<Change> =
                (0..count).map(|at| put_if(&format!("m/{at}"), "x", Precondition::none())).collect();
            changes.push(put_if(at, "new", wrong));
            let result = store.commit(changes).await;
            let Err(StoreError::PreconditionFailed { key, .. }) = result else { panic!("{result:?}") };
            assert_eq!(key.as_str(), at);
            assert_eq!(list_keys(&store, "").await, ["a"]);
            assert_eq!(get(&store, "a").await.unwrap(), "newer");
        }
    }
    let mut changes: Vec<Change> =
        (0..MANY).map(|at| put_if(&format!("m/{at}"), "x", Precondition::absent())).collect();
    changes.push(put_if("a", "new", Precondition::at(newer)));
    store.commit(changes).await.unwrap();
    assert_eq!(get(&store, "a").await.unwrap(), "new");
}
