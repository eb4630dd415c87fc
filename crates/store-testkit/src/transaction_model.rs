//! Random commits, operations and snapshots, compared with a model.

use std::collections::BTreeMap;

use proptest::{
    collection::{btree_map, vec},
    prelude::{Just, Strategy},
    prop_oneof,
};

use super::{
    Factory, Reopen, Storage,
    model::{Condition, Model, Operation, check_sequences, conditions, keys, lengths, operations, prefixes},
    test_value::TestValue,
    tools::{key, key_pages, prefix},
    transaction::{check, check_empty, erase_if, erase_prefix, set_if},
};
use zarrd_store::{Change, ChangeOutcome, Key, Snapshot, StoreError, TransactionalStore};

/// Steps of several staged values are slow, so this runs fewer sequences than the model of single operations.
const CASES: u32 = 40;

/// The page limits with which all keys are listed after each step, in turn.
const LIMITS: [usize; 5] = [1, 3, 1_000, 2, 7];

#[derive(Clone, Debug)]
enum Step {
    Commit {
        keys: BTreeMap<String, (Action, Condition)>,
        /// Each with its position among the other changes, if such a position exists.
        prefixes: Vec<(usize, PrefixAction, String)>,
    },
    Operation(Operation),
    /// Takes a snapshot of these keys, which is compared after every later step until the next is taken.
    Snapshot(Vec<String>),
    /// Closes the store and opens it again.
    Reopen,
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Set(u64),
    Erase,
    Check,
}

#[derive(Clone, Copy, Debug)]
enum PrefixAction {
    Erase,
    CheckEmpty,
}

/// A change in terms of the model.
#[derive(Debug)]
enum Planned {
    Key { at: String, action: Action, condition: Condition, payload: TestValue },
    Prefix { below: String, action: PrefixAction },
}

/// A snapshot, and its expected content.
struct TakenChange {
    snapshot: Box<dyn Snapshot>,
    values: Vec<(String, Option<bytes::Bytes>)>,
}

/// A store, and its expected content.
struct Run<S> {
    store: S,
    model: Model,
    taken: Option<TakenChange>,
    steps: usize,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => commits(),
        6 => operations().prop_map(Step::Operation),
        1 => vec(keys(), 0..6).prop_map(Step::Snapshot),
    ]
}

fn commits() -> impl Strategy<Value = Step> {
    let action = prop_oneof![
        5 => lengths().prop_map(Action::Set),
        2 => Just(Action::Erase),
        1 => Just(Action::Check),
    ];
    // Most changes are unconditional, so that most commits succeed.
    let condition = prop_oneof![4 => Just(Condition::None), 1 => conditions()];
    let prefix_action = prop_oneof![3 => Just(PrefixAction::Erase), 1 => Just(PrefixAction::CheckEmpty)];
    let keys = btree_map(keys(), (action, condition), 0..6);
    let prefixes = vec((0..6_usize, prefix_action, prefixes()), 0..3);
    (keys, prefixes).prop_map(|(keys, prefixes)| Step::Commit { keys, prefixes })
}

pub(super) async fn commits_agree_with_a_model(store: impl Storage + TransactionalStore) {
    check_sequences(CASES, steps(), |steps| {
        let store = store.clone();
        async move {
            store.erase_prefix(&prefix("")).await.expect("erase_prefix");
            let mut run = Run::new(store);
            for step in steps {
                run.step(step).await;
            }
        }
    })
    .await;
}

pub(super) async fn commits_agree_with_a_model_when_reopened<F>(factory: &F)
where
    F: Reopen + Factory<Store: TransactionalStore>,
{
    let steps = prop_oneof![9 => steps(), 1 => Just(Step::Reopen)];
    check_sequences(CASES / 2, steps, |steps| async move {
        let (store, mut fixture) = factory.create().await;
        let mut run = Run::new(store);
        for step in steps.into_iter().chain([Step::Reopen]) {
            if let Step::Reopen = step {
                let (store, model) = (run.store, run.model);
                drop(run.taken);
                let reopened = factory.reopen(store, fixture).await;
                fixture = reopened.1;
                run = Run { model, ..Run::new(reopened.0) };
            }
            run.step(step).await;
        }
        drop((run, fixture));
    })
    .await;
}

impl<S: Storage + TransactionalStore> Run<S> {
    fn new(store: S) -> Self {
        Self { store, model: Model::default(), taken: None, steps: 0 }
    }

    /// Runs the step, and compares all that is visible afterwards.
    async fn step(&mut self, step: Step) {
        let Self { store, model, taken, steps } = self;
        match step {
            Step::Commit { keys, prefixes } => {
                let planned = plan(model, keys, prefixes);
                compare_commit(store, model, planned).await;
            }
            Step::Operation(operation) => model.compare(store, &operation).await,
            Step::Snapshot(keys) => *taken = Some(take(store, model, keys).await),
            Step::Reopen => {}
        }
        *steps += 1;
        let found = key_pages(store, "", LIMITS[*steps % LIMITS.len()]).await.concat();
        let found: Vec<_> =
            found.iter().map(|entry| (entry.key.to_string(), entry.meta.version, entry.meta.size)).collect();
        assert_eq!(found, model.keys_below(""));
        if let Some(taken) = &taken {
            taken.compare().await;
        }
    }
}

fn plan(
    model: &mut Model,
    keys: BTreeMap<String, (Action, Condition)>,
    prefixes: Vec<(usize, PrefixAction, String)>,
) -> Vec<Planned> {
    let mut planned = Vec::new();
    for (at, (action, condition)) in keys {
        let payload = model.new_payload(if let Action::Set(len) = action { len } else { 0 });
        planned.push(Planned::Key { at, action, condition, payload });
    }
    for (position, action, below) in prefixes {
        planned.insert(position.min(planned.len()), Planned::Prefix { below, action });
    }
    planned
}

/// The changes, and the expected error: the key of the first change whose precondition fails, and the prefix that is
/// not empty.
async fn changes(
    store: &impl TransactionalStore,
    model: &Model,
    planned: &[Planned],
) -> (Vec<Change>, Option<(String, Option<String>)>) {
    let (mut changes, mut failing) = (Vec::new(), None);
    for change in planned {
        match change {
            Planned::Key { at, action, condition, payload } => {
                let precondition = model.precondition(at, *condition);
                if failing.is_none() && !precondition.is_met_by(model.version(at)) {
                    failing = Some((at.clone(), None));
                }
                changes.push(match action {
                    Action::Set(_) => set_if(store, at, payload.payload(), precondition).await,
                    Action::Erase => erase_if(at, precondition),
                    Action::Check => check(at, precondition),
                });
            }
            Planned::Prefix { below, action: PrefixAction::Erase } => changes.push(erase_prefix(below)),
            Planned::Prefix { below, action: PrefixAction::CheckEmpty } => {
                if let (None, Some(first)) = (&failing, model.first_below(below)) {
                    failing = Some((first.to_owned(), Some(below.clone())));
                }
                changes.push(check_empty(below));
            }
        }
    }
    (changes, failing)
}

async fn compare_commit(store: &impl TransactionalStore, model: &mut Model, planned: Vec<Planned>) {
    let (changes, failing) = changes(store, model, &planned).await;
    match (store.commit(changes).await, failing) {
        (Ok(outcomes), None) => apply(model, planned, outcomes),
        (Err(StoreError::PreconditionFailed { key: named, .. }), Some((failing, None))) => {
            assert_eq!(named, key(&failing));
        }
        (Err(StoreError::NotEmpty { prefix: named, key: first }), Some((failing, Some(below)))) => {
            assert_eq!((named, first), (prefix(&below), key(&failing)));
        }
        (result, failing) => panic!("{result:?}, where {failing:?} should fail"),
    }
}

fn apply(model: &mut Model, planned: Vec<Planned>, outcomes: Vec<ChangeOutcome>) {
    assert_eq!(outcomes.len(), planned.len());
    model.assert_changed_state(outcomes.iter().filter_map(|outcome| match outcome {
        ChangeOutcome::Set(written) => Some(written.version),
        _ => None,
    }));
    let existed: Vec<bool> = planned
        .iter()
        .map(|change| match change {
            Planned::Key { at, .. } => model.version(at).is_some(),
            Planned::Prefix { .. } => false,
        })
        .collect();
    for change in &planned {
        if let Planned::Prefix { below, action: PrefixAction::Erase } = change {
            model.erase_prefix(below);
        }
    }
    for ((change, outcome), before) in planned.into_iter().zip(outcomes).zip(existed) {
        match (change, outcome) {
            (Planned::Key { at, action: Action::Set(_), payload, .. }, ChangeOutcome::Set(written)) => {
                assert_eq!(written.replaced, before, "{at}");
                model.set(&at, written.version, payload);
            }
            (Planned::Key { at, action: Action::Erase, .. }, ChangeOutcome::Erased { existed }) => {
                assert_eq!(existed, before, "{at}");
                model.erase(&at);
            }
            (
                Planned::Key { action: Action::Check, .. } | Planned::Prefix { action: PrefixAction::CheckEmpty, .. },
                ChangeOutcome::Checked,
            )
            | (Planned::Prefix { action: PrefixAction::Erase, .. }, ChangeOutcome::PrefixErased) => {}
            (change, outcome) => panic!("{outcome:?} of {change:?}"),
        }
    }
}

async fn take(store: &impl TransactionalStore, model: &Model, keys: Vec<String>) -> TakenChange {
    let parsed: Vec<Key> = keys.iter().map(|at| key(at)).collect();
    let values = keys.iter().map(|at| (at.clone(), model.bytes(at).cloned())).collect();
    TakenChange { snapshot: store.snapshot(&parsed).await.expect("a snapshot"), values }
}

impl TakenChange {
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
