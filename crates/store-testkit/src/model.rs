//! Random operations, compared with a model.

use std::{
    any::Any,
    collections::{BTreeMap, BTreeSet, HashSet},
    panic::AssertUnwindSafe,
};

use bytes::Bytes;
use futures::FutureExt;
use proptest::{
    collection::vec,
    prelude::{Just, Strategy},
    prop_oneof,
    sample::select,
    strategy::ValueTree,
    test_runner::{Config, TestRunner},
};

use super::{
    Storage,
    test_value::TestValue,
    tools::{children, dir_pages, key, key_pages, panic_message, prefix},
};
use zarrd_store::{ByteRange, KeyCount, Precondition, StoreError, Version, VersionMatch};

const CASES: u32 = 64;
const OPERATIONS: usize = 60;
/// The number of shorter sequences that are tried after a failure.
const SHRINKS: usize = 300;

/// An operation on the store and on its model.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Get { at: String, range: Option<ByteRange> },
    Set { at: String, len: u64, condition: Condition },
    Erase { at: String, condition: Condition },
    ErasePrefix { below: String },
    ListKeys { below: String, limit: usize },
    ListDir { below: String, limit: usize },
}

/// A precondition in terms of the model's versions of the key.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition {
    None,
    Absent,
    Present,
    AtCurrent,
    AtOther,
    NotCurrent,
    NotOther,
}

/// The expected content of a store.
#[derive(Default)]
pub(super) struct Model {
    values: BTreeMap<String, (Version, Bytes)>,
    /// The version of the last set of any key, even if it was erased or replaced.
    last: Option<Version>,
    /// All versions assigned so far.
    assigned: HashSet<Version>,
    sets: u64,
}

/// Names with many prefixes in common, including neighbours of `/` in the order of bytes.
fn segments() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just("a"), 4 => select(vec!["b", "a-", "a0", "é"])]
}

pub(super) fn keys() -> impl Strategy<Value = String> {
    vec(segments(), 1..=4).prop_map(|segments| segments.join("/"))
}

/// Prefixes of such keys: the root, and up to three nested ones.
pub(super) fn prefixes() -> impl Strategy<Value = String> {
    let below_root = vec(segments(), 1..=3).prop_map(|segments| segments.join("/") + "/");
    prop_oneof![1 => Just(String::new()), 5 => below_root]
}

fn ranges() -> impl Strategy<Value = Option<ByteRange>> {
    let edge = prop_oneof![0..12_u64, 4_090..4_100_u64, Just(u64::MAX - 1)];
    prop_oneof![
        2 => Just(None),
        2 => (edge.clone(), edge.clone()).prop_map(|(a, b)| ByteRange::bounded(a.min(b), a.max(b).saturating_add(1)).ok()),
        1 => edge.clone().prop_map(|start| Some(ByteRange::From(start))),
        1 => edge.prop_map(|count| ByteRange::last(count).ok()),
    ]
}

pub(super) fn lengths() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..12_u64, 2 => 4_090..4_100_u64, 1 => 131_000..131_100_u64]
}

pub(super) fn conditions() -> impl Strategy<Value = Condition> {
    use Condition::{Absent, AtCurrent, AtOther, None, NotCurrent, NotOther, Present};
    prop_oneof![5 => Just(None), 5 => select(vec![Absent, Present, AtCurrent, AtOther, NotCurrent, NotOther])]
}

pub(super) fn operations() -> impl Strategy<Value = Operation> {
    let limits = || prop_oneof![1..5_usize, Just(1_000)];
    prop_oneof![
        3 => (keys(), ranges()).prop_map(|(at, range)| Operation::Get { at, range }),
        6 => (keys(), lengths(), conditions()).prop_map(|(at, len, condition)| Operation::Set { at, len, condition }),
        2 => (keys(), conditions()).prop_map(|(at, condition)| Operation::Erase { at, condition }),
        1 => prefixes().prop_map(|below| Operation::ErasePrefix { below }),
        2 => (prefixes(), limits()).prop_map(|(below, limit)| Operation::ListKeys { below, limit }),
        2 => (prefixes(), limits()).prop_map(|(below, limit)| Operation::ListDir { below, limit }),
    ]
}

pub(super) async fn operations_agree_with_a_model(store: impl Storage) {
    check_sequences(CASES, operations(), move |operations| {
        let store = store.clone();
        async move {
            store.erase_prefix(&prefix("")).await.expect("erase_prefix");
            let mut model = Model::default();
            for operation in operations {
                model.compare(&store, &operation).await;
            }
        }
    })
    .await;
}

/// Runs random sequences of operations. After a failure, searches for the shortest sequence that fails.
pub(super) async fn check_sequences<T, F>(cases: u32, operations: impl Strategy<Value = T>, check: impl Fn(Vec<T>) -> F)
where
    T: std::fmt::Debug,
    F: Future<Output = ()>,
{
    let mut runner = TestRunner::new(Config::default());
    let sequences = vec(operations, 1..=OPERATIONS);
    for _ in 0..cases {
        let mut tree = sequences.new_tree(&mut runner).expect("a sequence");
        if run(&check, tree.current()).await.is_ok() {
            continue;
        }
        let (mut shortest, mut failed) = (tree.current(), true);
        for _ in 0..SHRINKS {
            if !(if failed { tree.simplify() } else { tree.complicate() }) {
                break;
            }
            failed = run(&check, tree.current()).await.is_err();
            if failed {
                shortest = tree.current();
            }
        }
        let said = format!("{shortest:#?}");
        let Err(cause) = run(&check, shortest).await else { panic!("this failed, though not always: {said}") };
        panic!("{}\nafter: {said}", panic_message(&*cause));
    }
}

async fn run<T, F: Future<Output = ()>>(
    check: impl Fn(Vec<T>) -> F,
    operations: Vec<T>,
) -> Result<(), Box<dyn Any + Send>> {
    AssertUnwindSafe(check(operations)).catch_unwind().await
}

impl Model {
    pub(super) fn version(&self, at: &str) -> Option<Version> {
        self.values.get(at).map(|(version, _)| *version)
    }

    pub(super) fn bytes(&self, at: &str) -> Option<&Bytes> {
        self.values.get(at).map(|(_, bytes)| bytes)
    }

    /// A payload that no key has had.
    pub(super) fn new_payload(&mut self, len: u64) -> TestValue {
        self.sets += 1;
        TestValue::new(self.sets, len)
    }

    /// Fails if a commit reused a version.
    pub(super) fn assert_changed_state(&mut self, versions: impl IntoIterator<Item = Version>) {
        let versions: HashSet<_> = versions.into_iter().collect();
        assert!(self.assigned.is_disjoint(&versions), "a version was assigned twice");
        self.assigned.extend(versions);
    }

    pub(super) fn set(&mut self, at: &str, version: Version, payload: TestValue) {
        self.values.insert(at.to_owned(), (version, payload.bytes()));
        self.last = Some(version);
    }

    pub(super) fn erase(&mut self, at: &str) -> bool {
        self.values.remove(at).is_some()
    }

    /// Erases the keys below a prefix and returns their number.
    pub(super) fn erase_prefix(&mut self, below: &str) -> u64 {
        let before = self.values.len();
        self.values.retain(|at, _| !at.starts_with(below));
        (before - self.values.len()) as u64
    }

    /// The first key below a prefix.
    pub(super) fn first_below(&self, below: &str) -> Option<&str> {
        self.values.keys().map(String::as_str).find(|at| at.starts_with(below))
    }

    pub(super) fn precondition(&self, at: &str, condition: Condition) -> Precondition {
        let one_of = |version: Option<Version>| Some(VersionMatch::OneOf(version.into_iter().collect()));
        let current = self.version(at);
        let other = self.last.filter(|last| Some(*last) != current).or(Some(Version::from_u128(1)));
        match condition {
            Condition::None => Precondition::none(),
            Condition::Absent => Precondition::absent(),
            Condition::Present => Precondition::present(),
            Condition::AtCurrent => Precondition::unchanged(current),
            Condition::AtOther => Precondition { if_match: one_of(other), if_none_match: None },
            Condition::NotCurrent => Precondition { if_match: None, if_none_match: one_of(current) },
            Condition::NotOther => Precondition { if_match: None, if_none_match: one_of(other) },
        }
    }

    pub(super) async fn compare(&mut self, store: &impl Storage, operation: &Operation) {
        match operation {
            Operation::Get { at, range } => self.compare_get(store, at, *range).await,
            Operation::Set { at, len, condition } => self.compare_set(store, at, *len, *condition).await,
            Operation::Erase { at, condition } => {
                let precondition = self.precondition(at, *condition);
                let holds = precondition.is_met_by(self.version(at));
                match store.erase(&key(at), precondition).await {
                    Ok(existed) => assert_eq!((true, existed), (holds, self.erase(at)), "{operation:?}"),
                    Err(error) => assert_condition_failed(&error, holds, operation),
                }
            }
            Operation::ErasePrefix { below } => {
                let expected = KeyCount::exact(self.erase_prefix(below));
                let erased = store.erase_prefix(&prefix(below)).await.expect("erase_prefix");
                assert_eq!(erased, expected, "{operation:?}");
            }
            Operation::ListKeys { below, limit } => {
                let found = key_pages(store, below, *limit).await.concat();
                let found: Vec<_> =
                    found.iter().map(|entry| (entry.key.to_string(), entry.meta.version, entry.meta.size)).collect();
                assert_eq!(found, self.keys_below(below), "{operation:?}");
            }
            Operation::ListDir { below, limit } => {
                let found: Vec<_> = dir_pages(store, below, *limit).await.iter().flat_map(children).collect();
                assert_eq!(found, self.children_of(below), "{operation:?}");
            }
        }
    }

    async fn compare_get(&self, store: &impl Storage, at: &str, range: Option<ByteRange>) {
        let meta = store.head(&key(at)).await.expect("head");
        let expected = self.values.get(at).map(|(version, bytes)| (*version, bytes.len() as u64));
        assert_eq!(meta.map(|meta| (meta.version, meta.size)), expected, "head {at}");
        let result = store.get(&key(at), range).await;
        let Some((version, bytes)) = self.values.get(at) else {
            assert!(matches!(result, Ok(None)), "get {at} {range:?}: {result:?}");
            return;
        };
        let expected = range.map_or(Some(0..bytes.len() as u64), |range| range.resolve(bytes.len() as u64));
        let Some(expected) = expected else {
            assert_fails!(result, StoreError::RangeNotSatisfiable { .. });
            return;
        };
        let value = result.expect("get").expect("a value");
        assert_eq!((value.meta.version, value.range.clone()), (*version, expected.clone()), "get {at} {range:?}");
        let expected = bytes.slice(expected.start as usize..expected.end as usize);
        assert!(value.bytes().await.expect("bytes") == expected, "get {at} {range:?}: other bytes");
    }

    async fn compare_set(&mut self, store: &impl Storage, at: &str, len: u64, condition: Condition) {
        let precondition = self.precondition(at, condition);
        let holds = precondition.is_met_by(self.version(at));
        let payload = self.new_payload(len);
        match store.set(&key(at), payload.payload(), precondition).await {
            Ok(written) => {
                assert_eq!((true, written.replaced), (holds, self.version(at).is_some()), "set {at} {condition:?}");
                self.assert_changed_state([written.version]);
                self.set(at, written.version, payload);
            }
            Err(error) => assert_condition_failed(&error, holds, &(at, condition)),
        }
    }

    pub(super) fn keys_below(&self, below: &str) -> Vec<(String, Version, u64)> {
        let found = self.values.iter().filter(|(at, _)| at.starts_with(below));
        found.map(|(at, (version, bytes))| (at.clone(), *version, bytes.len() as u64)).collect()
    }

    fn children_of(&self, below: &str) -> Vec<String> {
        let rest = self.values.keys().filter_map(|at| at.strip_prefix(below));
        let names: BTreeSet<_> = rest
            .map(|rest| match rest.split_once('/') {
                Some((name, _)) => format!("{below}{name}/"),
                None => format!("{below}{rest}"),
            })
            .collect();
        names.into_iter().collect()
    }
}

pub(super) fn assert_condition_failed(error: &StoreError, holds: bool, context: &impl std::fmt::Debug) {
    assert!(!holds && matches!(error, StoreError::PreconditionFailed { .. }), "{context:?}: {error:?}");
}
