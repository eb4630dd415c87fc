//! Snapshots of a store whose values others change, compared with a naive model.

use std::{collections::HashMap, sync::Arc};

use proptest::prelude::*;
use tokio::time::Instant;
use zarrd_store::{
    ByteRange, CachedMeta, Guarantees, Key, KeySource, Keyed, MemoryStore, Precondition, ReadableStore, Snapshot,
    SnapshotStore, StoreError, Version, WriteableStore,
};

/// The keys of the snapshot, and one that is not in it.
const NAMES: [&str; 5] = ["p/a", "p/b", "p/b/c", "other", "not-in-the-snapshot"];

#[derive(Clone, Copy, Debug)]
enum Step {
    Set { key: usize, len: usize },
    Erase { key: usize },
    Peek { key: usize },
    Head { key: usize },
    Meta { key: usize },
    Listed { key: usize },
    Get { key: usize, from: Option<u64> },
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || 0..NAMES.len();
    prop_oneof![
        3 => (key(), 0..4_usize).prop_map(|(key, len)| Step::Set { key, len }),
        1 => key().prop_map(|key| Step::Erase { key }),
        2 => key().prop_map(|key| Step::Peek { key }),
        2 => key().prop_map(|key| Step::Head { key }),
        1 => key().prop_map(|key| Step::Meta { key }),
        1 => key().prop_map(|key| Step::Listed { key }),
        4 => (key(), proptest::option::of(0..4_u64)).prop_map(|(key, from)| Step::Get { key, from }),
    ]
}

struct Listed(Vec<Key>);

impl KeySource for Listed {
    fn common_prefix(&self) -> &str {
        "p/"
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        self.0.iter().cloned().for_each(visit);
    }
}

/// The outcome of a read, in a form that can be compared.
#[derive(Debug, PartialEq)]
enum Said {
    Absent,
    Meta(Version),
    Value(Version, Vec<u8>),
    Unknown,
    OutOfRange(Version),
    Changed,
    NotInSnapshot,
}

fn said<T>(result: Result<T, StoreError>, of: impl FnOnce(T) -> Said) -> Said {
    match result {
        Ok(value) => of(value),
        Err(StoreError::Changed { .. }) => Said::Changed,
        Err(StoreError::NotInSnapshot { .. }) => Said::NotInSnapshot,
        Err(StoreError::RangeNotSatisfiable { meta }) => Said::OutOfRange(meta.version),
        Err(error) => panic!("{error:?}"),
    }
}

/// The current values, and what the snapshot saw first of each key.
#[derive(Default)]
struct Model {
    values: HashMap<usize, (Version, Vec<u8>)>,
    first: HashMap<usize, Option<Version>>,
}

impl Model {
    fn version(&self, key: usize) -> Option<Version> {
        self.values.get(&key).map(|(version, _)| *version)
    }

    /// The expected metadata.
    fn meta(&mut self, key: usize) -> Said {
        let current = self.version(key);
        self.first.entry(key).or_insert(current).map_or(Said::Absent, Said::Meta)
    }

    fn read(&mut self, key: usize, from: Option<u64>) -> Said {
        let current = self.version(key);
        match *self.first.entry(key).or_insert(current) {
            None => Said::Absent,
            first if first != current => Said::Changed,
            _ => {
                let (version, bytes) = self.values.get(&key).unwrap();
                match from {
                    Some(from) if from >= bytes.len() as u64 => Said::OutOfRange(*version),
                    from => Said::Value(*version, bytes.get(from.unwrap_or(0) as usize..).unwrap().to_vec()),
                }
            }
        }
    }
}

async fn read(snapshot: &dyn Snapshot, key: &Key, from: Option<u64>) -> Said {
    match snapshot.get(key, from.map(ByteRange::From)).await {
        Ok(Some(value)) => {
            let version = value.meta.version;
            Said::Value(version, value.bytes().await.unwrap().to_vec())
        }
        result => said(result, |_| Said::Absent),
    }
}

async fn check(before: &[Step], steps: &[Step], listed: bool) {
    let (memory, mut model) = (MemoryStore::new(), Model::default());
    let store = Keyed::new(memory.clone(), Guarantees::READ_ONLY);
    let keys = NAMES.map(|name| Key::parse(name).unwrap());
    change(&memory, &keys, before, &mut model).await;
    let some = keys.iter().take(NAMES.len() - 1).cloned().collect::<Vec<_>>();
    let snapshot = match listed {
        true => store.snapshot_of(Arc::new(Listed(some))).await.unwrap(),
        false => store.snapshot(&some).await.unwrap(),
    };
    for step in steps {
        let (Step::Peek { key: at }
        | Step::Head { key: at }
        | Step::Meta { key: at }
        | Step::Listed { key: at }
        | Step::Get { key: at, .. }) = *step
        else {
            change(&memory, &keys, &[*step], &mut model).await;
            continue;
        };
        let key = keys.get(at).unwrap();
        let is_outside = at == NAMES.len() - 1;
        let meta = |meta: Option<zarrd_store::ValueMeta>| meta.map_or(Said::Absent, |meta| Said::Meta(meta.version));
        let (found, expected) = match *step {
            Step::Peek { .. } => {
                let found = said(snapshot.cached(key), |peek| match peek {
                    CachedMeta::Known(known) => meta(known),
                    CachedMeta::Unknown => Said::Unknown,
                });
                (found, if model.first.contains_key(&at) { model.meta(at) } else { Said::Unknown })
            }
            Step::Head { .. } => (said(snapshot.meta(key).await, meta), model.meta(at)),
            Step::Meta { .. } => (said(snapshot.meta(key).await, meta), model.meta(at)),
            Step::Listed { .. } => {
                let current = memory.head(key).await.unwrap();
                let noted = snapshot.insert_listed(key, current, Instant::now());
                // The first read is of an entry of a listing, or there is none.
                let expected = model.meta(at);
                (
                    said(noted.and_then(|()| snapshot.cached(key)), |peek| match peek {
                        CachedMeta::Known(known) => meta(known),
                        CachedMeta::Unknown => Said::Unknown,
                    }),
                    expected,
                )
            }
            Step::Get { from, .. } => (read(&*snapshot, key, from).await, model.read(at, from)),
            Step::Set { .. } | Step::Erase { .. } => continue,
        };
        assert_eq!(found, if is_outside { Said::NotInSnapshot } else { expected }, "{step:?}");
    }
}

/// Applies the changes among the steps.
async fn change(memory: &MemoryStore, keys: &[Key], steps: &[Step], model: &mut Model) {
    for step in steps {
        match *step {
            Step::Set { key, len } => {
                let bytes = vec![len as u8; len];
                let set = memory.set(keys.get(key).unwrap(), bytes.clone().into(), Precondition::none()).await;
                model.values.insert(key, (set.unwrap().version, bytes));
            }
            Step::Erase { key } => {
                memory.erase(keys.get(key).unwrap(), Precondition::none()).await.unwrap();
                model.values.remove(&key);
            }
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn snapshots_of_changing_values_agree_with_a_model(
        before in prop::collection::vec(steps(), 0..8),
        steps in prop::collection::vec(steps(), 1..40),
        listed: bool,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check(&before, &steps, listed));
    }
}

#[tokio::test]
async fn a_store_without_commits_has_no_watermark() {
    let memory = MemoryStore::new();
    let store = Keyed::new(memory.clone(), Guarantees::READ_ONLY);
    assert_eq!(store.watermark().await.unwrap(), None);
    let key = Key::parse("a").unwrap();
    memory.set(&key, "1".into(), Precondition::none()).await.unwrap();
    assert_eq!(store.watermark().await.unwrap(), None);
    assert!(store.head(&key).await.unwrap().is_some());
}
