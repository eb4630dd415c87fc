//! Watermarks of commits.

use std::collections::HashSet;

use super::{
    Factory, Reopen, Storage,
    concurrency::at_once,
    intents::{add_intent, intent, remove_intent},
    tools::{get, key, list_children, list_keys, prefix, put, put_names},
    transaction::{check, check_empty, erase, erase_prefix, set},
};
use zarrd_store::{Precondition, StoreError, TransactionalStore, Watermark, WriteableStore};

/// The current watermark. Asserts that it was not used before.
async fn assert_new_watermark(store: &impl TransactionalStore, seen: &mut HashSet<Watermark>, after: &str) {
    let watermark = store.watermark().await.unwrap().expect("a store of commits has watermarks");
    assert!(seen.insert(watermark), "the watermark is not another one after {after}");
}

pub(super) async fn every_commit_gives_a_new_watermark(store: impl Storage + TransactionalStore) {
    let mut seen = HashSet::new();
    assert_new_watermark(&store, &mut seen, "nothing").await;
    for _ in 0..3 {
        put_names(&store, &["a", "b/c", "b/d", "e/f"]).await;
        assert_new_watermark(&store, &mut seen, "sets").await;
        put(&store, "a", "a").await;
        assert_new_watermark(&store, &mut seen, "a set of the same").await;
        store.erase(&key("a"), Precondition::none()).await.unwrap();
        assert_new_watermark(&store, &mut seen, "an erase").await;
        store.erase_prefix(&prefix("b/")).await.unwrap();
        assert_new_watermark(&store, &mut seen, "an erase of a prefix").await;
        store.commit(vec![set(&store, "x", "1").await, check_empty("b/")]).await.unwrap();
        assert_new_watermark(&store, &mut seen, "a commit that sets").await;
        store.commit(vec![erase("x")]).await.unwrap();
        assert_new_watermark(&store, &mut seen, "a commit that erases").await;
        store.commit(vec![erase_prefix("e/")]).await.unwrap();
        assert_new_watermark(&store, &mut seen, "a commit that erases a prefix").await;
        let intent = intent("one");
        store.commit(vec![add_intent(&intent)]).await.unwrap();
        assert_new_watermark(&store, &mut seen, "an intent").await;
        store.commit(vec![remove_intent(&intent)]).await.unwrap();
        assert_new_watermark(&store, &mut seen, "what settles it").await;
    }
    let mut many = Vec::new();
    for number in 0..300 {
        many.push(set(&store, &format!("many/{number}"), "1").await);
    }
    store.commit(many).await.unwrap();
    assert_new_watermark(&store, &mut seen, "a commit of many changes").await;
}

pub(super) async fn a_watermark_stays_while_nothing_is_committed(store: impl Storage + TransactionalStore) {
    let version = put(&store, "a", "1").await;
    put_names(&store, &["b/c", "b/d"]).await;
    let before = store.watermark().await.unwrap();
    for _ in 0..3 {
        assert_eq!(get(&store, "a").await.as_deref(), Some(&b"1"[..]));
        list_keys(&store, "").await;
        list_children(&store, "b/").await;
        drop(store.snapshot(&[key("a")]).await.unwrap());
        drop(set(&store, "a", "staged").await);
        let rejected = store.commit(vec![set(&store, "a", "2").await, check("b/c", Precondition::at(version))]).await;
        assert_fails!(rejected, StoreError::PreconditionFailed { .. });
        assert_eq!(store.watermark().await.unwrap(), before);
    }
}

/// Reads between two equal watermarks see one commit.
pub(super) async fn reads_between_equal_watermarks_see_one_commit(store: impl Storage + TransactionalStore) {
    const ROUNDS: usize = 300;
    let written = |round: usize| format!("{round}");
    for at in ["p/a", "p/z"] {
        put(&store, at, written(0)).await;
    }
    let equal = at_once(&store, 3, |store, task| async move {
        let mut equal = 0;
        if task == 0 {
            for round in 1..=ROUNDS {
                let mut changes =
                    vec![set(&store, "p/a", written(round)).await, set(&store, "p/z", written(round)).await];
                changes.push(if round % 2 == 1 { set(&store, "p/odd", "1").await } else { erase("p/odd") });
                store.commit(changes).await.unwrap();
                tokio::task::yield_now().await;
            }
            return equal;
        }
        loop {
            let before = store.watermark().await.unwrap();
            let first = get(&store, "p/a").await.unwrap();
            let odd = list_keys(&store, "p/").await.contains(&"p/odd".to_owned());
            let last = get(&store, "p/z").await.unwrap();
            let round: usize = std::str::from_utf8(&last).unwrap().parse().unwrap();
            if store.watermark().await.unwrap() == before {
                assert_eq!(first, last, "a commit was seen that the watermark does not count");
                assert_eq!(odd, round % 2 == 1, "a commit was seen that the watermark does not count");
                equal += 1;
            }
            if round == ROUNDS {
                return equal;
            }
            // A store in memory never waits, and the writer needs a thread.
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(equal.iter().sum::<u32>() > 0, "no two watermarks were equal");
}

pub(super) async fn watermarks_are_never_reused<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let (mut store, mut fixture) = factory.create().await;
    let mut seen = HashSet::new();
    for _ in 0..3 {
        for at in ["a", "a", "b"] {
            put(&store, at, "equal").await;
            assert_new_watermark(&store, &mut seen, "a set").await;
        }
        store.erase(&key("a"), Precondition::none()).await.unwrap();
        assert_new_watermark(&store, &mut seen, "an erase").await;
        (store, fixture) = factory.reopen(store, fixture).await;
    }
    drop((store, fixture));
}
