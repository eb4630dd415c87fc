//! Snapshots.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures::TryStreamExt;
use tokio::task::JoinSet;

use super::{
    Storage,
    test_value::TestValue,
    tools::{SIZES, assert_has, get, key, prefix, put, put_names},
    transaction::{check, erase, erase_prefix, set, set_if},
};
use zarrd_store::{
    CachedMeta, Change, Key, KeyCount, Precondition, Snapshot, StoreError, TransactionalStore, ValueMeta,
};

async fn snapshot(store: &impl TransactionalStore, keys: &[&str]) -> Box<dyn Snapshot> {
    let keys: Vec<Key> = keys.iter().map(|name| key(name)).collect();
    store.snapshot(&keys).await.expect("a snapshot")
}

/// The metadata of the keys in the snapshot, which are known.
async fn heads(snapshot: &dyn Snapshot, keys: &[Key]) -> Vec<Option<ValueMeta>> {
    let mut heads = Vec::with_capacity(keys.len());
    for key in keys {
        let meta = snapshot.meta(key).await.expect("a head");
        assert_eq!(snapshot.cached(key).expect("cached metadata"), CachedMeta::Known(meta.clone()), "{key}");
        heads.push(meta);
    }
    heads
}

/// The value of the key in the snapshot, as text.
async fn text(snapshot: &dyn Snapshot, at: &str) -> Option<String> {
    let value = snapshot.get(&key(at), None).await.expect("a value of the snapshot")?;
    let bytes = value.bytes().await.expect("the value can be read");
    Some(String::from_utf8(bytes.to_vec()).expect("text"))
}

/// Starts readers that check the values of the keys in one snapshot after another, until the flag is set.
fn spawn_readers<S: Storage + TransactionalStore>(
    store: &S,
    keys: &[Key],
    check: fn(&[Option<String>]),
) -> (JoinSet<()>, Arc<AtomicBool>) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..3 {
        let (store, keys, stop) = (store.clone(), keys.to_vec(), stop.clone());
        readers.spawn(async move {
            let mut snapshots = 0;
            while snapshots == 0 || !stop.load(Ordering::Relaxed) {
                let snapshot = store.snapshot(&keys).await.expect("a snapshot");
                let mut texts = Vec::new();
                for key in &keys {
                    texts.push(text(&*snapshot, key.as_str()).await);
                }
                check(&texts);
                snapshots += 1;
                tokio::task::yield_now().await;
            }
        });
    }
    (readers, stop)
}

pub(super) async fn a_snapshot_stays_while_its_keys_change(store: impl Storage + TransactionalStore) {
    put_names(&store, &["replaced", "erased", "swept/a", "kept"]).await;
    let names = ["replaced", "erased", "swept/a", "kept", "new"];
    let snapshot = snapshot(&store, &names).await;
    let before = heads(&*snapshot, &names.map(key)).await;
    for round in 0..3 {
        put(&store, "replaced", format!("{round}")).await;
        put(&store, "new", "new").await;
        store.erase(&key("erased"), Precondition::none()).await.unwrap();
        store.erase_prefix(&prefix("swept/")).await.unwrap();
        for name in &names[..4] {
            assert_eq!(text(&*snapshot, name).await.as_deref(), Some(*name));
        }
        assert_eq!(text(&*snapshot, "new").await, None);
    }
    assert_eq!(heads(&*snapshot, &names.map(key)).await, before);
    assert_eq!(get(&store, "replaced").await.as_deref(), Some(&b"2"[..]));
}

pub(super) async fn a_value_of_a_snapshot_outlives_it(store: impl Storage + TransactionalStore) {
    let payload = TestValue::new(1, 2 << 20);
    put(&store, "a", payload.payload()).await;
    let snapshot = snapshot(&store, &["a"]).await;
    let unread = snapshot.get(&key("a"), None).await.unwrap().unwrap();
    let mut started = snapshot.get(&key("a"), None).await.unwrap().unwrap();
    let mut reader = payload.reader(&started);
    reader.take(&started.stream.try_next().await.unwrap().unwrap());
    put(&store, "a", "new").await;
    drop(snapshot);
    put(&store, "a", "newer").await;
    payload.assert_is(unread).await;
    while let Some(chunk) = started.stream.try_next().await.unwrap() {
        reader.take(&chunk);
    }
    reader.finish();
}

const GENERATION_KEYS: usize = 20;

/// Every commit sets or erases all keys; no snapshot sees more than one generation.
pub(super) async fn commits_are_atomic_to_readers(store: impl Storage + TransactionalStore) {
    let names: Vec<String> = (0..GENERATION_KEYS).map(|number| format!("g/{number}")).collect();
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    let (readers, stop) = spawn_readers(&store, &keys, |texts| {
        assert!(texts.windows(2).all(|pair| pair[0] == pair[1]), "a commit was seen in part: {texts:?}");
    });
    for generation in 0..25 {
        // Some generations are large enough for files.
        let len = if generation % 3 == 0 { 5_000 } else { 3 };
        let mut changes = Vec::new();
        for name in &names {
            changes.push(if generation % 5 == 4 {
                erase(name)
            } else {
                set(&store, name, format!("{generation:0>len$}")).await
            });
        }
        store.commit(changes).await.expect("a commit");
    }
    stop.store(true, Ordering::Relaxed);
    readers.join_all().await;
}

const ACCOUNTS: u64 = 5;
const BALANCE: u64 = 100;

/// Moves an amount between two accounts. Returns true if no other writer interfered.
async fn transfer(store: &impl TransactionalStore, from: u64, to: u64) -> bool {
    let names = [format!("account/{from}"), format!("account/{to}")];
    let snapshot = snapshot(store, &[&names[0], &names[1]]).await;
    let mut changes: Vec<Change> = Vec::new();
    let balances: Vec<u64> = [text(&*snapshot, &names[0]).await, text(&*snapshot, &names[1]).await]
        .map(|text| text.expect("a balance").parse().expect("a number"))
        .into();
    for (name, balance) in names.iter().zip([balances[0].saturating_sub(1), balances[1] + balances[0].min(1)]) {
        let unchanged = Precondition::unchanged(snapshot.meta(&key(name)).await.unwrap().map(|meta| meta.version));
        changes.push(set_if(store, name, balance.to_string(), unchanged).await);
    }
    changes.push(check("closed", Precondition::absent()));
    match store.commit(changes).await {
        Ok(_) => true,
        Err(StoreError::PreconditionFailed { .. }) => false,
        Err(error) => panic!("{error:?}"),
    }
}

pub(super) async fn transfers_keep_the_sum(store: impl Storage + TransactionalStore) {
    let names: Vec<String> = (0..ACCOUNTS).map(|account| format!("account/{account}")).collect();
    for name in &names {
        put(&store, name, BALANCE.to_string()).await;
    }
    let mut tasks = JoinSet::new();
    for task in 0..4 {
        let store = store.clone();
        tasks.spawn(async move {
            for step in 0..10 {
                let from = (task + step) % ACCOUNTS;
                let to = (from + 1 + task % (ACCOUNTS - 1)) % ACCOUNTS;
                while !transfer(&store, from, to).await {}
            }
        });
    }
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    loop {
        let ended = tasks.is_empty();
        let snapshot = store.snapshot(&keys).await.expect("a snapshot");
        let mut sum = 0;
        for name in &names {
            sum += text(&*snapshot, name).await.expect("a balance").parse::<u64>().expect("a number");
        }
        assert_eq!(sum, ACCOUNTS * BALANCE, "a snapshot saw half a transfer, or one was lost");
        if ended {
            return;
        }
        while let Some(result) = tasks.try_join_next() {
            result.expect("a task");
        }
        tokio::task::yield_now().await;
    }
}

/// Snapshots of values of 1 MiB are read slowly while their keys are replaced and erased several times.
pub(super) async fn large_values_stay_while_writers_replace_and_erase(store: impl Storage + TransactionalStore) {
    let names: Vec<String> = (0..4).map(|number| format!("l/{number}")).collect();
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    let payload = |generation: u64, number: u64| TestValue::new(generation * 10 + number, (1 << 20) + generation);
    let mut readers = JoinSet::new();
    for generation in 0..6 {
        let mut changes = Vec::new();
        for (number, name) in (0..).zip(&names) {
            changes.push(set(&store, name, payload(generation, number).payload()).await);
        }
        store.commit(changes).await.expect("a commit");
        let snapshot = store.snapshot(&keys).await.expect("a snapshot");
        let read = keys.clone();
        readers.spawn(async move {
            for (number, key) in (0..).zip(&read) {
                let mut value = snapshot.get(key, None).await.expect("get").expect("a value");
                let mut reader = payload(generation, number).reader(&value);
                while let Some(chunk) = value.stream.try_next().await.expect("a chunk") {
                    reader.take(&chunk);
                    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
                }
                reader.finish();
            }
        });
        if generation % 2 == 1 {
            store.erase_prefix(&prefix("l/")).await.expect("erase_prefix");
        } else {
            store.erase(&keys[0], Precondition::none()).await.expect("erase");
        }
    }
    readers.join_all().await;
    put(&store, "l/0", payload(9, 9).payload()).await;
    assert_has(&store, "l/0", payload(9, 9)).await;
}

/// Erasing a prefix is one commit.
pub(super) async fn erase_prefix_is_atomic_to_readers(store: impl Storage + TransactionalStore) {
    const KEYS: usize = 500;
    let names: Vec<String> = (0..KEYS).map(|number| format!("e/{number:03}")).collect();
    // The first, last and a middle key reveal a partial erase; few keys make for fast reads.
    let ends = [&names[0], &names[KEYS / 2], &names[KEYS - 1]].map(|name| key(name));
    for _ in 0..8 {
        let mut changes = Vec::new();
        for name in &names {
            changes.push(set(&store, name, "value").await);
        }
        store.commit(changes).await.expect("a commit");
        let eraser = store.clone();
        let erasing = tokio::spawn(async move { eraser.erase_prefix(&prefix("e/")).await.expect("erase_prefix") });
        for attempt in 1.. {
            let ended = erasing.is_finished();
            let snapshot = store.snapshot(&ends).await.expect("a snapshot");
            let left = heads(&*snapshot, &ends).await.iter().flatten().count();
            assert!(left == 0 || left == ends.len() && !ended, "{left} of {} keys are left", ends.len());
            if ended {
                break;
            }
            // Yield now and then, in case there is only one thread.
            if attempt % 64 == 0 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(erasing.await.expect("the eraser"), KeyCount::exact(KEYS as u64));
    }
}

/// A prefix is erased and set again in one commit, repeatedly; no snapshot sees more than one generation.
pub(super) async fn replacing_a_prefix_is_atomic_to_readers(store: impl Storage + TransactionalStore) {
    // The generations share one key.
    let names = |generation: u64| ["x", "y/z"].map(|name| format!("g/{generation}/{name}"));
    let keys: Vec<Key> = (0..20).flat_map(names).chain(["g/same".to_owned()]).map(|name| key(&name)).collect();
    let (readers, stop) = spawn_readers(&store, &keys, |texts| {
        let present: Vec<&String> = texts.iter().flatten().collect();
        assert!(present.is_empty() || present.len() == 3, "a commit was seen in part: {present:?}");
        assert!(present.windows(2).all(|pair| pair[0] == pair[1]), "two commits were seen: {present:?}");
    });
    for generation in 0..20 {
        // Some generations are large enough for files.
        let len = if generation % 3 == 0 { 5_000 } else { 3 };
        let mut changes = vec![set(&store, "g/same", format!("{generation:0>len$}")).await];
        for name in names(generation) {
            changes.push(set(&store, &name, format!("{generation:0>len$}")).await);
        }
        changes.push(erase_prefix("g/"));
        store.commit(changes).await.expect("a commit");
    }
    stop.store(true, Ordering::Relaxed);
    readers.join_all().await;
}

pub(super) async fn a_snapshot_outlives_the_erase_of_its_prefix(store: impl Storage + TransactionalStore) {
    let names: Vec<String> = SIZES.iter().map(|size| format!("e/{}/{size}", size % 3)).collect();
    let keys: Vec<Key> = names.iter().map(|name| key(name)).collect();
    for ((seed, size), name) in (0..).zip(SIZES).zip(&names) {
        put(&store, name, TestValue::new(seed, size).payload()).await;
    }
    let snapshot = store.snapshot(&keys).await.unwrap();
    let started = snapshot.get(&keys[8], None).await.unwrap().unwrap();
    let before = heads(&*snapshot, &keys).await;
    for round in 0..3 {
        if round == 1 {
            let changes = vec![erase_prefix("e/"), set(&store, &names[8], "new").await];
            store.commit(changes).await.unwrap();
        } else {
            assert!(store.erase_prefix(&prefix("e/")).await.unwrap().count > 0);
        }
        let later = store.snapshot(&keys).await.unwrap();
        for ((seed, size), key) in (0..).zip(SIZES).zip(&keys) {
            let value = snapshot.get(key, None).await.unwrap().expect("a value of the snapshot");
            TestValue::new(seed, size).assert_is(value).await;
            assert_eq!(later.meta(key).await.unwrap().is_some(), round == 1 && *key == keys[8], "{key}");
        }
        for name in &names {
            put(&store, name, "newer").await;
        }
    }
    assert_eq!(heads(&*snapshot, &keys).await, before);
    drop(snapshot);
    TestValue::new(8, SIZES[8]).assert_is(started).await;
}
