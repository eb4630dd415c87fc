//! Snapshots of a prefix beside checkpoints, and when their space is needed.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::TryStreamExt;
use zarrd_store::{
    Change, Key, Precondition, Prefix, PrefixSnapshot, ReadableStore, SnapshotStore, StoreError, TransactionalStore,
    WriteableStore, list_all,
};
use zarrd_store_local::{IndexKind, LocalStore, Options};

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// Options with which memtables are frozen and applied all the time.
fn restless(index: IndexKind) -> Options {
    Options { commit_buffer_bytes: Some(1 << 20), ..Options::new(index) }
}

async fn texts(snapshot: &dyn PrefixSnapshot) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    let entries: Vec<_> = list_all(snapshot, &Prefix::root()).try_collect().await.unwrap();
    for entry in entries {
        let value = snapshot.get(&entry.key, None).await.unwrap().unwrap().bytes().await.unwrap();
        texts.insert(entry.key.to_string(), String::from_utf8(value.to_vec()).unwrap());
    }
    texts
}

async fn commit(store: &LocalStore, values: impl IntoIterator<Item = (String, String)>) {
    let changes = values.into_iter().map(|(name, value)| Change::Put {
        key: key(&name),
        value: value.into(),
        precondition: Precondition::none(),
    });
    store.commit(changes.collect()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_outlive_many_checkpoints() {
    for index in [IndexKind::Sled, IndexKind::Redb] {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path(), restless(index)).await.unwrap();
        let value = |round: usize, number: usize| format!("{round}/{number}/").repeat(1 + number % 90);
        let all =
            |round: usize| (0..800).map(move |number| (format!("a/{}/{number}", number % 7), value(round, number)));
        let mut expected = BTreeMap::new();
        let mut snapshots = Vec::new();
        for round in 0..8 {
            commit(&store, all(round)).await;
            expected.extend(all(round));
            if round % 3 == 2 {
                store.erase_prefix(&Prefix::parse("a/3/").unwrap()).await.unwrap();
                expected.retain(|name, _| !name.starts_with("a/3/"));
            }
            if round % 2 == 0 {
                let snapshot = store.snapshot_below(&Prefix::parse("a/").unwrap()).await.unwrap();
                snapshots.push((snapshot, expected.clone()));
            }
        }
        for (snapshot, expected) in &snapshots {
            assert!(texts(&**snapshot).await == *expected, "{index}");
        }
        drop(snapshots);
        store.close().await.unwrap();
    }
}

/// The number of prefixes, each with a key that every commit of the writer sets.
const PARTS: usize = 40;

/// Freezing is held off as long as writers need not wait; the pass begins anew if they would. The keys of a commit are far
/// from each other, so that a pass comes to them at different times.
#[tokio::test(flavor = "multi_thread")]
async fn snapshots_under_pressure_are_of_one_commit_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let options = restless(IndexKind::Sled);
    // Long enough for a memtable to be frozen and applied.
    options.sync_fault.pause_passes(std::time::Duration::from_millis(30));
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    for part in 0..PARTS {
        commit(&store, (0..1500).map(|number| (format!("part/{part:02}/{number}"), "x".to_owned()))).await;
    }
    let stop = Arc::new(AtomicBool::new(false));
    // Fast enough to need the memory until a snapshot is refused, and then slow until one is taken.
    let is_fast = Arc::new(AtomicBool::new(true));
    let writer = {
        let (store, stop, is_fast) = (store.clone(), Arc::clone(&stop), Arc::clone(&is_fast));
        tokio::spawn(async move {
            let mut round = 0_u64;
            while !stop.load(Ordering::Relaxed) {
                let value = format!("{round:0>3000}");
                commit(&store, (0..PARTS).map(|part| (format!("part/{part:02}/same"), value.clone()))).await;
                round += 1;
                if !is_fast.load(Ordering::Relaxed) {
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                }
            }
        })
    };
    let (mut taken, mut refused) = (0, 0);
    while taken < 4 && taken + refused < 100 {
        match store.snapshot_below(&Prefix::root()).await {
            Ok(snapshot) => {
                let same: Vec<String> = same_values(&*snapshot).await;
                assert!(same.windows(2).all(|pair| pair[0] == pair[1]), "a snapshot has values of several commits");
                assert!(snapshot.len() == (PARTS * 1500 + same.len()) as u64, "{}", snapshot.len());
                taken += 1;
                is_fast.store(true, Ordering::Relaxed);
            }
            Err(StoreError::Busy { retry_after: Some(_) }) => {
                refused += 1;
                is_fast.store(false, Ordering::Relaxed);
            }
            Err(error) => panic!("{error:?}"),
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.await.unwrap();
    assert!(taken > 0, "{refused} were refused");
}

async fn same_values(snapshot: &dyn PrefixSnapshot) -> Vec<String> {
    let mut found = Vec::new();
    for part in 0..PARTS {
        if let Some(value) = snapshot.get(&key(&format!("part/{part:02}/same")), None).await.unwrap() {
            found.push(String::from_utf8(value.bytes().await.unwrap().to_vec()).unwrap());
        }
    }
    found
}

#[tokio::test]
async fn a_snapshot_ends_when_it_retains_too_much() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_snapshot_bytes: Some(100_000), ..Options::default() };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    let set = async |number: usize| {
        let value = vec![u8::try_from(number).unwrap(); 30_000];
        store.set(&key(&format!("{number}")), value.into(), Precondition::none()).await.unwrap();
    };
    for number in 0..6 {
        set(number).await;
    }
    let reader = store.snapshot(&[key("0")]).await.unwrap();
    let snapshot = store.snapshot_below(&Prefix::root()).await.unwrap();
    for number in 0..3 {
        set(number).await;
    }
    assert!(snapshot.get(&key("0"), None).await.unwrap().is_some());
    for number in 3..6 {
        set(number).await;
    }
    while snapshot.is_valid() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let read = snapshot.get(&key("5"), None).await.map(drop);
    assert!(matches!(read, Err(StoreError::SnapshotExpired)), "{read:?}");
    assert!(reader.get(&key("0"), None).await.unwrap().is_some(), "readers have a limit of their own");
    assert_eq!(list_all(&*snapshot, &Prefix::root()).try_collect::<Vec<_>>().await.unwrap().len(), 6);
}

#[tokio::test]
async fn snapshots_leave_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::open(dir.path(), Options::default()).await.unwrap();
    commit(&store, (0..500).map(|number| (format!("{number}"), "x".repeat(3000)))).await;
    let names = || std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    let before = names();
    let snapshot = store.snapshot_below(&Prefix::root()).await.unwrap();
    assert_eq!((snapshot.len(), names()), (500, before));
}
