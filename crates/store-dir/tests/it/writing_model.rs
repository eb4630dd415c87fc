//! Changes with generated names and conditions, compared with a map, and with what other programs see.

use std::{collections::BTreeMap, fs};

use proptest::prelude::*;
use zarrd_store::{KeyCount, Precondition, Prefix, ReadableStore, StoreError, Version, VersionMatch, WriteableStore};
use zarrd_store_dir::{Durability, Options, WriteOptions};

use crate::{
    common::Fixture,
    writing::{key, names},
};

#[derive(Clone, Debug)]
enum Step {
    Set(String, Condition),
    Erase(String, Condition),
    ErasePrefix(String),
    /// Another program sets or removes a value, if the names allow that.
    Theirs(String),
    TheirsRemoved(String),
}

#[derive(Clone, Copy, Debug)]
enum Condition {
    None,
    Absent,
    Present,
    /// The version that the last read found.
    Known,
    /// A version that the key does not have.
    Stale,
    NotKnown,
}

fn names_of_keys() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(vec!["a", "b", "c", "zarr.json", ".zattrs"]), 1..4)
        .prop_map(|names| names.join("/"))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let condition = || {
        prop_oneof![
            4 => Just(Condition::None),
            1 => Just(Condition::Absent),
            1 => Just(Condition::Present),
            2 => Just(Condition::Known),
            1 => Just(Condition::Stale),
            1 => Just(Condition::NotKnown),
        ]
    };
    let step = prop_oneof![
        8 => (names_of_keys(), condition()).prop_map(|(at, condition)| Step::Set(at, condition)),
        4 => (names_of_keys(), condition()).prop_map(|(at, condition)| Step::Erase(at, condition)),
        1 => names_of_keys().prop_map(|at| Step::ErasePrefix(format!("{at}/"))),
        1 => names_of_keys().prop_map(Step::Theirs),
        1 => names_of_keys().prop_map(Step::TheirsRemoved),
    ];
    prop::collection::vec(step, 1..40)
}

/// The values by key, with the version that was returned for each; `None` if another program set it.
#[derive(Default)]
struct Model {
    values: BTreeMap<String, (String, Option<Version>)>,
    /// All versions that were returned, by key.
    returned: Vec<(String, Version)>,
}

impl Model {
    /// The key, or the prefix, in the way of a key.
    fn obstacle(&self, at: &str) -> Option<String> {
        let below = format!("{at}/");
        if self.values.keys().any(|key| key.starts_with(&below)) {
            return Some(below);
        }
        at.match_indices('/')
            .filter_map(|(end, _)| at.get(..end).map(str::to_owned))
            .find(|above| self.values.contains_key(above))
    }

    fn precondition(&self, at: &str, condition: Condition) -> (Precondition, bool) {
        let current = self.values.get(at).and_then(|(_, version)| *version);
        let exists = self.values.contains_key(at);
        let one_of = |version: Option<Version>| Some(VersionMatch::OneOf(version.into_iter().collect()));
        let stale = Some(Version::from_u128(7));
        match condition {
            Condition::None => (Precondition::none(), true),
            Condition::Absent => (Precondition::absent(), !exists),
            Condition::Present => (Precondition::present(), exists),
            Condition::Known => (Precondition { if_match: one_of(current), if_none_match: None }, current.is_some()),
            Condition::Stale => (Precondition { if_match: one_of(stale), if_none_match: None }, false),
            Condition::NotKnown => (Precondition { if_match: None, if_none_match: one_of(current) }, current.is_none()),
        }
    }
}

async fn run(fixture: &Fixture, model: &mut Model, step: Step, number: usize) {
    let store = &fixture.store;
    match step {
        Step::Set(at, condition) => {
            let (precondition, holds) = model.precondition(&at, condition);
            let value = format!("{number}");
            let existed = model.values.contains_key(&at);
            match (store.set(&key(&at), value.clone().into(), precondition).await, model.obstacle(&at)) {
                (Ok(written), None) => {
                    assert!(holds, "set {at} despite {condition:?}");
                    assert_eq!(written.replaced, existed);
                    assert!(!model.returned.contains(&(at.clone(), written.version)), "a version was assigned twice");
                    model.returned.push((at.clone(), written.version));
                    model.values.insert(at, (value, Some(written.version)));
                }
                (Err(StoreError::PreconditionFailed { .. }), _) => assert!(!holds, "{at} {condition:?}"),
                (Err(StoreError::NameConflict { existing, .. }), Some(obstacle)) => assert_eq!(existing, obstacle),
                (result, obstacle) => panic!("{at} {condition:?}: {result:?} although {obstacle:?}"),
            }
        }
        Step::Erase(at, condition) => {
            let (precondition, holds) = model.precondition(&at, condition);
            match store.erase(&key(&at), precondition).await {
                Ok(existed) => {
                    assert!(holds, "erased {at} despite {condition:?}");
                    assert_eq!(existed, model.values.remove(&at).is_some(), "{at}");
                }
                Err(StoreError::PreconditionFailed { .. }) => assert!(!holds, "{at} {condition:?}"),
                Err(error) => panic!("{at}: {error:?}"),
            }
        }
        Step::ErasePrefix(below) => {
            let count = store.erase_prefix(&Prefix::parse(&below).unwrap()).await.unwrap();
            let before = model.values.len();
            model.values.retain(|at, _| !at.starts_with(&below));
            assert_eq!(count, KeyCount::exact((before - model.values.len()) as u64), "{below}");
        }
        Step::Theirs(at) if model.obstacle(&at).is_none() => {
            let path = fixture.path(&at);
            if fs::create_dir_all(path.parent().unwrap()).is_ok() {
                let temporary = path.with_extension("0123.partial");
                fs::write(&temporary, "theirs").unwrap();
                if fs::rename(&temporary, &path).is_ok() {
                    model.values.insert(at, ("theirs".to_owned(), None));
                } else {
                    fs::remove_file(temporary).unwrap();
                }
            }
        }
        Step::TheirsRemoved(at) if model.values.contains_key(&at) => {
            fs::remove_file(fixture.path(&at)).unwrap();
            let mut path = fixture.path(&at);
            while path.pop() && path != fixture.dir.path() && fs::remove_dir(&path).is_ok() {}
            model.values.remove(&at);
        }
        Step::Theirs(_) | Step::TheirsRemoved(_) => {}
    }
}

/// The store, the files and the map agree.
async fn assert_agrees(fixture: &Fixture, model: &Model) {
    let files: Vec<_> = names(fixture.dir.path()).into_iter().filter(|name| !name.ends_with('/')).collect();
    assert_eq!(files, model.values.keys().cloned().collect::<Vec<_>>());
    for (at, (value, version)) in &model.values {
        assert_eq!(fs::read_to_string(fixture.path(at)).unwrap(), *value, "{at}");
        if version.is_some() {
            let meta = fixture.store.head(&key(at)).await.unwrap().unwrap();
            assert_eq!(Some(meta.version), *version, "{at}");
            assert_eq!(fixture.read(at).await.unwrap().1, *value, "{at}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn changes_agree_with_a_map_and_with_the_files(steps in steps(), synced in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let durability = if synced { Durability::Synced } else { Durability::Unsynced };
            let options = Options::new("dir:test").writes(WriteOptions::default().durability(durability));
            let fixture = Fixture::with(options).await;
            let mut model = Model::default();
            for (number, step) in steps.into_iter().enumerate() {
                run(&fixture, &mut model, step, number).await;
            }
            assert_agrees(&fixture, &model).await;
        });
    }
}
