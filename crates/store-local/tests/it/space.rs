//! Retention of values for readers, and reclaiming of space after erases.

use std::{fs, os::unix::fs::MetadataExt, path::Path, time::Duration};

use zarrd_store::{
    BatchStore, Change, Key, ListableStore, PageRequest, Payload, Precondition, Prefix, ReadableStore, SnapshotStore,
    StoreError, TransactionalStore, WriteableStore, list_all,
};
use zarrd_store_local::{CompactError, IndexKind, LocalStore, Options};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn set(store: &LocalStore, name: &str, value: Vec<u8>) {
    store.set(&key(name), Payload::from_bytes(value), Precondition::none()).await.unwrap();
}

async fn get(store: &LocalStore, name: &str) -> Option<Vec<u8>> {
    let value = store.get(&key(name), None).await.unwrap()?;
    Some(value.bytes().await.unwrap().to_vec())
}

/// Commits of 5,000 small values each, below a prefix.
async fn fill(store: &LocalStore, prefix: &str, commits: usize) {
    for commit in 0..commits {
        let mut changes = Vec::new();
        for number in 0..5000 {
            let key = key(&format!("{prefix}{commit}/{number}"));
            let staged = store.stage(&key, vec![1; 200].into()).await.unwrap();
            changes.push(Change::Set { staged, precondition: Precondition::none() });
        }
        store.commit(changes).await.unwrap();
    }
}

/// The number and size of the files below a directory.
fn size(dir: &Path) -> (usize, u64) {
    let (mut files, mut bytes) = (0, 0);
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            match entry.metadata() {
                Ok(metadata) if metadata.is_dir() => waiting.push(entry.path()),
                Ok(metadata) => {
                    files += 1;
                    bytes += metadata.blocks() * 512;
                }
                Err(_) => {}
            }
        }
    }
    (files, bytes)
}

async fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("after 30 s: {what}");
}

#[tokio::test]
async fn a_snapshot_retains_only_its_values() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path(), Options::new(kind)).await.unwrap();
        set(&store, "mine", vec![1; 10_000]).await;
        let snapshot = store.snapshot(&[key("mine")]).await.unwrap();
        for round in 0..50 {
            set(&store, "other", vec![round; 10_000]).await;
            set(&store, "mine", vec![round; 10_000]).await;
        }
        let values = dir.path().join("values");
        wait_for("what replaced values leave", || size(&values).0 == 3).await;
        let retained = snapshot.get(&key("mine"), None).await.unwrap().unwrap();
        assert_eq!(retained.bytes().await.unwrap(), vec![1; 10_000]);
        drop(snapshot);
        wait_for("what the snapshot retained", || size(&values).0 == 2).await;
    }
}

#[tokio::test]
async fn aborted_uploads_do_not_extend_unused_snapshots() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { pin_timeout: Duration::from_secs(1), ..Options::default() };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    set(&store, "a", vec![1; 10_000]).await;
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    set(&store, "a", vec![2; 10_000]).await;
    for _ in 0..100 {
        // Dropping a staged value gives the collector work.
        drop(store.stage(&key("b"), vec![0; 10_000].into()).await.unwrap());
        tokio::time::sleep(Duration::from_millis(50)).await;
        if size(&dir.path().join("values")).0 == 1 {
            break;
        }
    }
    assert_eq!(size(&dir.path().join("values")).0, 1);
    assert!(matches!(snapshot.get(&key("a"), None).await, Err(StoreError::SnapshotExpired)));
}

#[tokio::test]
async fn the_oldest_snapshot_expires_when_too_much_is_retained() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { max_pinned_bytes: Some(50_000), ..Options::default() };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    let mut snapshots = Vec::new();
    for round in 0..10 {
        set(&store, "a", vec![round; 10_000]).await;
        snapshots.push(store.snapshot(&[key("a")]).await.unwrap());
    }
    // Five of the nine replaced values fit into the limit.
    let values = dir.path().join("values");
    wait_for("what does not fit", || size(&values).0 == 6).await;
    for (round, snapshot) in snapshots.iter().enumerate() {
        match snapshot.get(&key("a"), None).await {
            Ok(value) => assert!(round >= 4 && value.is_some(), "{round}"),
            Err(error) => assert!(round < 4 && matches!(error, StoreError::SnapshotExpired), "{round}: {error}"),
        }
    }
}

#[tokio::test]
async fn replaced_small_values_beyond_the_memory_limit_of_snapshots_expire() {
    let dir = tempfile::tempdir().unwrap();
    let store = LocalStore::open(dir.path(), Options::default()).await.unwrap();
    let names: Vec<Key> = (0..3000).map(|number| key(&format!("a/{number}"))).collect();
    let mut changes = Vec::new();
    for key in &names {
        let staged = store.stage(key, vec![1; 4096].into()).await.unwrap();
        changes.push(Change::Set { staged, precondition: Precondition::none() });
    }
    store.commit(changes).await.unwrap();
    // Six of 12 MiB each: five fit into 64 MiB.
    let mut snapshots = Vec::new();
    for _ in 0..6 {
        snapshots.push(store.snapshot(&names).await.unwrap());
    }
    for snapshot in &snapshots {
        assert!(snapshot.get(&names[2999], None).await.unwrap().is_some());
    }
    store.erase_prefix(&Prefix::parse("a/").unwrap()).await.unwrap();
    let mut expired = 0;
    for snapshot in &snapshots {
        match snapshot.get(&names[2999], None).await {
            Ok(value) => assert_eq!(value.unwrap().bytes().await.unwrap(), vec![1; 4096]),
            Err(error) => {
                assert!(matches!(error, StoreError::SnapshotExpired), "{error}");
                expired += 1;
            }
        }
    }
    assert_eq!(expired, 1);
}

#[tokio::test]
async fn compaction_frees_the_space_of_erased_keys() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = LocalStore::open(dir.path(), Options::new(kind)).await.unwrap();
        fill(&store, "a/", 10).await;
        set(&store, "b/small", vec![7; 100]).await;
        set(&store, "b/large", vec![8; 100_000]).await;
        let erased = store.erase_prefix(&Prefix::parse("a/").unwrap()).await.unwrap();
        assert_eq!((erased.count, erased.exact), (50_000, true));
        assert!(store.list(PageRequest::first(10)).await.unwrap().keys.len() == 2);
        // A key that is set below the prefix during the sweep persists.
        set(&store, "a/3/7", vec![9; 50]).await;
        // Until the sweep ends, dead entries are copied too.
        for tried in 0.. {
            let after = match store.compact(|_| ()).await {
                Ok(report) => report.after_bytes,
                Err(CompactError::AlreadyRunning) => u64::MAX,
                Err(error) => panic!("{error}"),
            };
            if after < 20 << 20 {
                break;
            }
            assert!(tried < 100, "{after} bytes are left");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        for reopened in [false, true] {
            let store = if reopened {
                store.close().await.unwrap();
                LocalStore::open(dir.path(), Options::new(kind)).await.unwrap()
            } else {
                store.clone()
            };
            assert_eq!(get(&store, "a/3/7").await, Some(vec![9; 50]));
            assert_eq!(get(&store, "b/small").await, Some(vec![7; 100]));
            assert_eq!(get(&store, "b/large").await, Some(vec![8; 100_000]));
            assert_eq!(store.list(PageRequest::first(10)).await.unwrap().keys.len(), 3);
        }
        let generations = fs::read_dir(dir.path()).unwrap().flatten();
        let generations = generations.filter(|entry| entry.file_name().to_string_lossy().starts_with("index"));
        assert_eq!(generations.count(), 1);
    }
}

#[tokio::test]
async fn a_compaction_includes_concurrent_changes() {
    use futures::TryStreamExt;
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { commit_buffer_bytes: Some(64 << 10), ..Options::new(kind) };
        let store = LocalStore::open(dir.path(), options.clone()).await.unwrap();
        fill(&store, "a/", 4).await;
        let writer = {
            let store = store.clone();
            async move {
                for number in 0..2000_usize {
                    let name = format!("a/{}/{}", number % 4, number * 7 % 5000);
                    match number % 5 {
                        0 => drop(store.erase(&key(&name), Precondition::none()).await.unwrap()),
                        _ => set(&store, &name, vec![2; 300]).await,
                    }
                    if number == 1000 {
                        store.erase_prefix(&Prefix::parse("a/2/").unwrap()).await.unwrap();
                    }
                }
            }
        };
        let compactions = async {
            let mut done = 0;
            while done < 3 {
                match store.compact(|_| ()).await {
                    Ok(_) => done += 1,
                    Err(CompactError::AlreadyRunning) => tokio::time::sleep(Duration::from_millis(10)).await,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        tokio::join!(writer, compactions);
        let all = |store: LocalStore| async move {
            let entries: Vec<_> = list_all(&store, &Prefix::root()).try_collect().await.unwrap();
            entries.into_iter().map(|entry| (entry.key, entry.meta.version)).collect::<Vec<_>>()
        };
        let before = all(store.clone()).await;
        assert!(before.len() > 14_000, "{}", before.len());
        store.close().await.unwrap();
        let store = LocalStore::open(dir.path(), options).await.unwrap();
        assert_eq!(all(store.clone()).await, before);
        assert_eq!(store.check(|_| ()).await.unwrap().report.corrupt, 0);
    }
}
