//! Snapshots with any guarantee, while their keys change.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::TryStreamExt;
use proptest::{
    prelude::{Just, Strategy},
    prop_oneof,
};
use tokio::task::JoinSet;

use super::{
    Storage,
    model::{check_sequences, keys as key_names, lengths},
    test_value::TestValue,
    tools::{SIZES, get, key, list_keys, prefix, put, put_names},
};
use zarrd_store::{
    ByteRange, CachedMeta, Conditions, GetResult, Guarantees, Key, Precondition, Reads, Snapshot, SnapshotStore,
    StoreError, Writes,
};

async fn snapshot(store: &impl SnapshotStore, keys: &[&str]) -> Box<dyn Snapshot> {
    let keys: Vec<Key> = keys.iter().map(|name| key(name)).collect();
    store.snapshot(&keys).await.expect("a snapshot")
}

/// The bytes of a value; `None` if the store finds that it changed before they were read. A store with snapshots of
/// commits must not.
async fn unless_changed(
    store: &impl SnapshotStore,
    result: Result<Option<GetResult>, StoreError>,
) -> Option<Option<Bytes>> {
    let bytes = match result {
        Ok(None) => return Some(None),
        Ok(Some(value)) => value.bytes().await,
        Err(error) => Err(error),
    };
    match bytes {
        Ok(bytes) => Some(Some(bytes)),
        Err(StoreError::Changed { .. }) if store.guarantees().reads == Reads::Key => None,
        Err(error) => panic!("{error:?}"),
    }
}

pub(super) async fn guarantees_do_not_contradict_each_other(store: impl Storage + SnapshotStore) {
    let declared = store.guarantees();
    if declared.writes == Writes::None {
        assert_eq!(declared.conditions, Conditions::None, "there is no change to have conditions");
    }
    if declared.writes == Writes::Commit {
        assert_eq!(declared.reads, Reads::Commit, "the state before a commit can be read");
    }
    put(&store, "a", "1").await;
    assert_eq!(store.guarantees(), declared);
}

pub(super) async fn stores_with_commits_have_watermarks(store: impl Storage + SnapshotStore) {
    for round in 0..3 {
        put(&store, "a", format!("{round}")).await;
        let watermark = store.watermark().await.unwrap();
        assert_eq!(watermark.is_some(), store.guarantees().reads == Reads::Commit);
    }
}

pub(super) async fn a_snapshot_reads_as_the_store_does(store: impl Storage + SnapshotStore) {
    let payload = TestValue::new(1, 140_000);
    put(&store, "a", payload.payload()).await;
    put(&store, "empty", "").await;
    // Keys may be repeated, in any order.
    let snapshot = snapshot(&store, &["none", "a", "empty", "a"]).await;
    for at in ["a", "empty", "none"] {
        let meta = store.head(&key(at)).await.unwrap();
        assert_eq!(snapshot.meta(&key(at)).await.unwrap(), meta);
        assert_eq!(
            snapshot.cached(&key(at)).unwrap(),
            CachedMeta::Known(meta.clone()),
            "a read makes the metadata known"
        );
        assert_eq!(snapshot.meta(&key(at)).await.unwrap(), meta);
        assert_eq!(snapshot.get(&key(at), None).await.unwrap().map(|value| value.meta), meta);
    }
    for range in [None, Some(ByteRange::From(131_000)), Some(ByteRange::bounded(5, 131_073).unwrap())] {
        payload.assert_is(snapshot.get(&key("a"), range).await.unwrap().unwrap()).await;
    }
    let last = ByteRange::last(7).unwrap();
    let value = snapshot.get(&key("empty"), Some(last)).await.unwrap().unwrap();
    assert_eq!(value.range, 0..0);
    assert!(snapshot.get(&key("none"), Some(last)).await.unwrap().is_none());
    let result = snapshot.get(&key("a"), Some(ByteRange::From(140_000))).await;
    assert_fails!(result, StoreError::RangeNotSatisfiable { meta } if meta.size == 140_000);
}

pub(super) async fn a_snapshot_has_only_its_keys(store: impl Storage + SnapshotStore) {
    put_names(&store, &["a", "b/c", "d"]).await;
    let ends = snapshot(&store, &["a", "none"]).await;
    for other in ["a/b", "b", "b/c", "d", "none/either"] {
        let other = key(other);
        assert_fails!(ends.cached(&other), StoreError::NotInSnapshot { key: reported } if reported == other);
        assert_fails!(ends.meta(&other).await, StoreError::NotInSnapshot { key: reported } if reported == other);
        let result = ends.get(&other, None).await;
        assert_fails!(result, StoreError::NotInSnapshot { key: reported } if reported == other);
    }
    assert_eq!(ends.meta(&key("none")).await.unwrap(), None);
    let empty = snapshot(&store, &[]).await;
    assert_fails!(empty.meta(&key("a")).await, StoreError::NotInSnapshot { .. });
}

/// The first read of a key in a snapshot fixes its version, whether it was of the metadata or the value.
pub(super) async fn the_first_read_fixes_the_version_of_a_key(store: impl Storage + SnapshotStore) {
    put_names(&store, &["headed", "got", "removed"]).await;
    let snapshot = snapshot(&store, &["headed", "got", "removed", "absent", "unread"]).await;
    assert_eq!(&unless_changed(&store, snapshot.get(&key("got"), None).await).await.unwrap().unwrap()[..], b"got");
    let names = ["headed", "got", "removed", "absent", "unread"];
    let mut before = Vec::new();
    for name in names {
        before.push(snapshot.meta(&key(name)).await.unwrap());
    }
    assert_eq!(before.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, true, false, false]);
    for round in 0..2 {
        for name in ["headed", "got", "absent", "unread"] {
            put(&store, name, format!("longer than before {round}")).await;
        }
        store.erase(&key("removed"), Precondition::none()).await.unwrap();
        for (name, before) in names.iter().zip(&before) {
            assert_eq!(snapshot.meta(&key(name)).await.unwrap(), *before, "{name}");
            let expected = before.as_ref().map(|_| Bytes::copy_from_slice(name.as_bytes()));
            match unless_changed(&store, snapshot.get(&key(name), None).await).await {
                Some(read) => assert_eq!(read, expected, "{name}"),
                None => assert!(before.is_some(), "{name} had no value, so none of it is read"),
            }
        }
    }
}

/// A value that is replaced or removed while it is open is read to its end, or fails.
pub(super) async fn an_open_value_is_never_mixed(store: impl Storage + SnapshotStore) {
    for (seed, size) in (40..).zip(SIZES) {
        let (old, new) = (TestValue::new(seed, size), TestValue::new(seed + 100, size));
        for removed in [false, true] {
            put(&store, "a", old.payload()).await;
            let snapshot = snapshot(&store, &["a"]).await;
            let mut open = [
                store.get(&key("a"), None).await.unwrap().unwrap(),
                snapshot.get(&key("a"), None).await.unwrap().unwrap(),
            ];
            let mut readers = [old.reader(&open[0]), old.reader(&open[1])];
            for (value, reader) in open.iter_mut().zip(&mut readers) {
                if let Some(chunk) = value.stream.try_next().await.unwrap() {
                    reader.take(&chunk);
                }
            }
            if removed {
                assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
            } else {
                put(&store, "a", new.payload()).await;
            }
            for (value, mut reader) in open.into_iter().zip(readers) {
                let mut stream = value.stream;
                loop {
                    match stream.try_next().await {
                        Ok(Some(chunk)) => reader.take(&chunk),
                        Ok(None) => break reader.finish(),
                        Err(StoreError::Changed { .. }) if store.guarantees().reads == Reads::Key => break,
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        }
    }
}

/// Readers of a value that is replaced all the time see one value, or that it changed.
pub(super) async fn readers_see_one_value_or_a_change(store: impl Storage + SnapshotStore) {
    const ROUNDS: u64 = 60;
    // The size tells which value it is.
    let value = |round: u64| TestValue::new(round, 70_000 + round);
    put(&store, "a", value(0).payload()).await;
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        let store = store.clone();
        readers.spawn(async move {
            loop {
                let snapshot = snapshot(&store, &["a"]).await;
                let size = snapshot.meta(&key("a")).await.expect("a head").expect("a value").size;
                let range = ByteRange::From(size / 2);
                for range in [None, Some(range)] {
                    let read = unless_changed(&store, snapshot.get(&key("a"), range).await).await;
                    let Some(read) = read else { continue };
                    let start = if range.is_some() { size / 2 } else { 0 };
                    let expected = value(size - 70_000).bytes().slice(start as usize..);
                    assert!(read.expect("a value") == expected, "a value of {size} bytes is read as another one");
                }
                if size == 70_000 + ROUNDS {
                    return;
                }
                tokio::task::yield_now().await;
            }
        });
    }
    for round in 1..=ROUNDS {
        put(&store, "a", value(round).payload()).await;
        tokio::task::yield_now().await;
    }
    while let Some(ended) = readers.join_next().await {
        ended.expect("a reader");
    }
}

/// A change of the model's data, or a check of one key.
#[derive(Clone, Debug)]
enum Step {
    Put { at: String, len: u64 },
    Remove { at: String },
    Read { at: String },
    List,
}

/// The store and new snapshots read the current values, which change between reads.
pub(super) async fn reads_agree_with_a_model(store: impl Storage + SnapshotStore) {
    let steps = prop_oneof![
        4 => (key_names(), lengths()).prop_map(|(at, len)| Step::Put { at, len }),
        2 => key_names().prop_map(|at| Step::Remove { at }),
        4 => key_names().prop_map(|at| Step::Read { at }),
        1 => Just(Step::List),
    ];
    check_sequences(8, steps, move |steps| {
        let store = store.clone();
        async move {
            store.erase_prefix(&prefix("")).await.expect("erase_prefix");
            let (mut model, shared) = (BTreeMap::new(), store.guarantees().shared_names);
            for (number, step) in (0..).zip(steps) {
                match step {
                    Step::Put { at, .. } if !shared && shares_a_name(&model, &at) => {}
                    Step::Put { at, len } => {
                        put(&store, &at, TestValue::new(number, len).payload()).await;
                        model.insert(at, TestValue::new(number, len).bytes());
                    }
                    Step::Remove { at } => {
                        let existed = store.erase(&key(&at), Precondition::none()).await.expect("erase");
                        assert_eq!(existed, model.remove(&at).is_some(), "{at}");
                    }
                    Step::Read { at } => {
                        let snapshot = snapshot(&store, &[&at]).await;
                        let read = snapshot.get(&key(&at), None).await;
                        assert_eq!(unless_changed(&store, read).await, Some(model.get(&at).cloned()), "{at}");
                        assert_eq!(get(&store, &at).await, model.get(&at).cloned(), "{at}");
                        let size = snapshot.meta(&key(&at)).await.expect("a head").map(|meta| meta.size);
                        assert_eq!(size, model.get(&at).map(|bytes| bytes.len() as u64), "{at}");
                    }
                    Step::List => {
                        assert_eq!(list_keys(&store, "").await, model.keys().cloned().collect::<Vec<_>>());
                    }
                }
            }
        }
    })
    .await;
}

/// True if a key is a prefix of another one, or has one as its prefix.
fn shares_a_name(model: &BTreeMap<String, Bytes>, at: &str) -> bool {
    let is_below = |lower: &str, upper: &str| lower.strip_prefix(upper).is_some_and(|rest| rest.starts_with('/'));
    model.keys().any(|other| is_below(other, at) || is_below(at, other))
}

/// A store of commits has all their guarantees.
pub(super) async fn transactional_stores_guarantee_commits(store: impl Storage + SnapshotStore) {
    let declared = store.guarantees();
    assert_eq!(declared, Guarantees { checked: declared.checked, ..Guarantees::COMMITS });
}
