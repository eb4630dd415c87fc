//! Random commits and snapshots, compared with the same on a `BTreeMap`.

use std::collections::BTreeMap;

use proptest::{
    collection::{btree_map, vec},
    prelude::{Just, Strategy},
    prop_oneof,
};

use super::{
    Storage,
    model::{Condition, Model, check_sequences, conditions, keys, lengths},
    payload::Payload,
    tools::{key, key_pages, prefix},
    transaction::{check, erase_if, set_if},
};
use crate::{Key, Outcome, Snapshot, StoreError, TransactionalStore};

/// A step stages and commits several values, so there are fewer sequences of them than of single operations.
const CASES: u32 = 24;

#[derive(Clone, Debug)]
enum Step {
    Commit(BTreeMap<String, (Action, Condition)>),
    /// Takes a snapshot of these keys. It is compared again after every later step, until the next is taken.
    Snapshot(Vec<String>),
}

#[derive(Clone, Debug)]
enum Action {
    Set(u64),
    Erase,
    Check,
}

/// A snapshot, and what it should hold.
struct Taken {
    snapshot: Box<dyn Snapshot>,
    values: Vec<(String, Option<bytes::Bytes>)>,
}

fn steps() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        5 => lengths().prop_map(Action::Set),
        2 => Just(Action::Erase),
        1 => Just(Action::Check),
    ];
    // Most changes are unconditional, so that most commits of several succeed.
    let condition = prop_oneof![4 => Just(Condition::None), 1 => conditions()];
    prop_oneof![
        4 => btree_map(keys(), (action, condition), 0..6).prop_map(Step::Commit),
        1 => vec(keys(), 0..6).prop_map(Step::Snapshot),
    ]
}

pub(super) async fn commits_agree_with_a_model(store: impl Storage + TransactionalStore) {
    check_sequences(CASES, steps(), move |steps| {
        let store = store.clone();
        async move {
            store.erase_prefix(&prefix("")).await.expect("erase_prefix");
            let (mut model, mut taken) = (Model::default(), None);
            for step in steps {
                match step {
                    Step::Commit(changes) => compare_commit(&store, &mut model, changes).await,
                    Step::Snapshot(keys) => taken = Some(take(&store, &model, keys).await),
                }
                let found = key_pages(&store, "", 1_000).await.concat();
                let found: Vec<_> =
                    found.iter().map(|entry| (entry.key.to_string(), entry.info.version, entry.info.size)).collect();
                assert_eq!(found, model.keys_below(""));
                if let Some(taken) = &taken {
                    taken.compare().await;
                }
            }
        }
    })
    .await;
}

async fn compare_commit(
    store: &impl TransactionalStore,
    model: &mut Model,
    planned: BTreeMap<String, (Action, Condition)>,
) {
    let (mut changes, mut payloads, mut failing) = (Vec::new(), Vec::new(), None);
    for (at, (action, condition)) in &planned {
        let precondition = model.precondition(at, *condition);
        if failing.is_none() && !precondition.holds(model.version(at)) {
            failing = Some(at.clone());
        }
        let payload = model.new_payload(if let Action::Set(len) = action { *len } else { 0 });
        payloads.push(payload);
        changes.push(match action {
            Action::Set(_) => set_if(store, at, payload.content(), precondition).await,
            Action::Erase => erase_if(at, precondition),
            Action::Check => check(at, precondition),
        });
    }
    match (store.commit(changes).await, failing) {
        (Ok(outcomes), None) => {
            assert_eq!(outcomes.len(), planned.len());
            model.assert_new(outcomes.iter().filter_map(|outcome| match outcome {
                Outcome::Set(written) => Some(written.version),
                _ => None,
            }));
            for (((at, (action, _)), outcome), payload) in planned.iter().zip(outcomes).zip(payloads) {
                apply(model, at, action, outcome, payload);
            }
        }
        (Err(StoreError::PreconditionFailed { key: told, .. }), Some(failing)) => assert_eq!(told, key(&failing)),
        (result, failing) => panic!("{result:?}, where {failing:?} should fail"),
    }
}

fn apply(model: &mut Model, at: &str, action: &Action, outcome: Outcome, payload: Payload) {
    match (action, outcome) {
        (Action::Set(_), Outcome::Set(written)) => {
            assert_eq!(written.replaced, model.version(at).is_some(), "{at}");
            model.set(at, written.version, payload);
        }
        (Action::Erase, Outcome::Erased { existed }) => assert_eq!(existed, model.erase(at), "{at}"),
        (Action::Check, Outcome::Checked) => {}
        (action, outcome) => panic!("{outcome:?} of {action:?}"),
    }
}

async fn take(store: &impl TransactionalStore, model: &Model, keys: Vec<String>) -> Taken {
    let parsed: Vec<Key> = keys.iter().map(|at| key(at)).collect();
    let values = keys.iter().map(|at| (at.clone(), model.bytes(at).cloned())).collect();
    Taken { snapshot: store.snapshot(&parsed).await.expect("a snapshot"), values }
}

impl Taken {
    async fn compare(&self) {
        for (at, expected) in &self.values {
            let found = match self.snapshot.get(&key(at), None).await.expect("get") {
                Some(value) => Some(value.bytes().await.expect("bytes")),
                None => None,
            };
            assert!(found == *expected, "{at} in a snapshot: {:?} bytes", found.map(|bytes| bytes.len()));
        }
    }
}
