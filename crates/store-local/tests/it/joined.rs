//! Values joined from the files of their parts.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use zarrd_store::{
    BatchStore, ByteRange, ByteStream, Change, Completion, Key, NewUpload, Precondition, ReadableStore, SnapshotStore,
    StoreError, TransactionalStore, UploadStore, Version, WriteableStore,
};
use zarrd_store_local::{Certainty, IndexKind, LocalStore, Options, Recovery};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];
/// Damages a joined value.
type Damage = fn(&Path);
/// The sizes of the parts: of several buffers, no multiple of a block, and small enough for the index.
const SIZES: [usize; 3] = [9 << 20, (8 << 20) + 13, 100];

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn open(dir: &Path, kind: IndexKind) -> LocalStore {
    LocalStore::open(dir, Options::new(kind)).await.unwrap()
}

fn part(number: usize, size: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 7 + at / 251 + number) as u8).collect()
}

fn value() -> Vec<u8> {
    SIZES.iter().enumerate().flat_map(|(number, size)| part(number, *size)).collect()
}

/// Uploads the value of a key in parts.
async fn upload(store: &LocalStore, name: &str) -> Version {
    let id = store.begin_upload(&key(name), &NewUpload::default()).await.unwrap();
    let mut parts = Vec::new();
    for (number, size) in SIZES.into_iter().enumerate() {
        let staged = store.stage_part(&key(name), id, number as u32 + 1, part(number, size).into()).await.unwrap();
        parts.push((number as u32 + 1, store.put_part(staged, None).await.unwrap().version));
    }
    let completion = Completion { parts: &parts, ..Completion::default() };
    store.complete_upload(&key(name), id, &completion).await.unwrap().version
}

async fn get(store: &LocalStore, name: &str) -> Result<Vec<u8>, StoreError> {
    Ok(store.get(&key(name), None).await?.unwrap().bytes().await?.to_vec())
}

async fn rest(first: &[u8], stream: ByteStream) -> Result<Vec<u8>, StoreError> {
    let rest: Vec<_> = stream.try_collect().await?;
    Ok([first, &rest.concat()].concat())
}

/// The entries of the directories of value files, once there are as many.
async fn wait_for_values(dir: &Path, count: usize) -> Vec<PathBuf> {
    let list = |path: PathBuf| fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    for _ in 0..600 {
        let found: Vec<PathBuf> = list(dir.join("values")).flat_map(list).collect();
        if found.len() == count {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let found: Vec<PathBuf> = list(dir.join("values")).flat_map(list).flat_map(list).collect();
    panic!("not {count} values after 30 s: {found:?}");
}

/// The directory of the only value, once no upload has its parts any more.
async fn wait_for_joined(dir: &Path) -> PathBuf {
    let [joined] = wait_for_values(dir, 1).await.try_into().unwrap();
    let files = fs::read_dir(&joined).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> =
        files.map(|file| (file.file_name().into_string().unwrap(), file.metadata().unwrap().nlink())).collect();
    files.sort();
    assert_eq!(files, ["00000", "00001", "00002", "list"].map(|name| (name.to_owned(), 1)));
    joined
}

#[tokio::test]
async fn parts_become_a_value_without_a_copy() {
    let expected = value();
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path(), kind).await;
        let version = upload(&store, "a").await;
        wait_for_joined(dir.path()).await;
        let size = expected.len() as u64;
        for round in 0..2 {
            let meta = store.head(&key("a")).await.unwrap().unwrap();
            assert_eq!((meta.size, meta.version), (size, version));
            assert!(get(&store, "a").await.unwrap() == expected);
            let second = (SIZES[0] + SIZES[1]) as u64;
            let (start, end) = (SIZES[0] as u64, SIZES[0] as u64 + 1);
            for (from, to) in [(0, 1), (start - 1, end), (start, end), (second - 5, size), (size - 1, size), (7, size)]
            {
                let found = store.get(&key("a"), ByteRange::bounded(from, to).ok()).await.unwrap().unwrap();
                assert!(found.bytes().await.unwrap()[..] == expected[from as usize..to as usize], "{from} to {to}");
            }
            let beyond = store.get(&key("a"), Some(ByteRange::From(size))).await;
            assert!(matches!(beyond, Err(StoreError::RangeNotSatisfiable { .. })));
            let checked = store.check(|_| {}).await.unwrap();
            assert!(checked.corrupt.is_empty(), "{:?}", checked.corrupt);
            store.close().await.unwrap();
            if round == 0 {
                // What is in the log is the same as what is in the index.
                store = open(dir.path(), kind).await;
            }
        }
        let text = fs::read_to_string(dir.path().join("zarrd.json")).unwrap();
        assert!(text.contains("\"format\": 4,"), "{text}");
        let store = open(dir.path(), kind).await;
        store.erase(&key("a"), Precondition::none()).await.unwrap();
        wait_for_values(dir.path(), 0).await;
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn a_replaced_value_is_read_to_its_end() {
    let expected = value();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled).await;
    upload(&store, "a").await;
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    let mut streams = vec![snapshot.get(&key("a"), None).await.unwrap().unwrap().stream];
    streams.push(store.get(&key("a"), None).await.unwrap().unwrap().stream);
    drop(snapshot);
    store.set(&key("a"), "new".into(), Precondition::none()).await.unwrap();
    // The collector ran.
    store.set(&key("b"), vec![1; 20_000].into(), Precondition::none()).await.unwrap();
    store.erase(&key("b"), Precondition::none()).await.unwrap();
    wait_for_values(dir.path(), 1).await;
    for stream in streams {
        assert!(rest(&[], stream).await.unwrap() == expected);
    }
    wait_for_values(dir.path(), 0).await;
    assert_eq!(get(&store, "a").await.unwrap(), b"new");
    store.close().await.unwrap();
}

#[tokio::test]
async fn readers_of_a_value_that_is_replaced_all_the_time_get_one_whole_version() {
    let expected = value();
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Redb).await;
    upload(&store, "a").await;
    let reading = {
        let (store, expected) = (store.clone(), expected.clone());
        tokio::spawn(async move {
            for _ in 0..12 {
                let mut found = store.get(&key("a"), None).await.unwrap().unwrap().stream;
                let first = found.next().await.unwrap().unwrap();
                tokio::time::sleep(Duration::from_millis(20)).await;
                assert!(rest(&first, found).await.unwrap() == expected);
            }
        })
    };
    while !reading.is_finished() {
        upload(&store, "a").await;
    }
    reading.await.unwrap();
    wait_for_joined(dir.path()).await;
    store.close().await.unwrap();
}

#[tokio::test]
async fn every_damage_is_found() {
    let damages: [(&str, Damage); 5] = [
        ("a byte of a part", |joined| {
            let path = joined.join("00001");
            let mut bytes = fs::read(&path).unwrap();
            bytes[5_000_000] ^= 1;
            fs::write(path, bytes).unwrap();
        }),
        ("a part is missing", |joined| fs::remove_file(joined.join("00002")).unwrap()),
        ("parts are swapped", |joined| {
            for (from, to) in [("00000", "x"), ("00001", "00000"), ("x", "00001")] {
                fs::rename(joined.join(from), joined.join(to)).unwrap();
            }
        }),
        ("the list is cut short", |joined| {
            let path = joined.join("list");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 1]).unwrap();
        }),
        ("the list is missing", |joined| fs::remove_file(joined.join("list")).unwrap()),
    ];
    for (name, damage) in damages {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), IndexKind::Sled).await;
        upload(&store, "a").await;
        damage(&wait_for_joined(dir.path()).await);
        assert!(matches!(get(&store, "a").await, Err(StoreError::Corrupt { .. })), "{name}");
        let found = store.check(|_| {}).await.unwrap().corrupt;
        assert!(found.len() == 1 && found[0].key == key("a"), "{name}: {found:?}");
        // What is whole is read, if the list is.
        let is_read = store.get(&key("a"), ByteRange::bounded(0, 1000).ok()).await.is_ok();
        assert_eq!(is_read, matches!(name, "a byte of a part" | "a part is missing"), "{name}");
        // The value can be replaced, and nothing is left of it.
        store.set(&key("a"), "new".into(), Precondition::none()).await.unwrap();
        wait_for_values(dir.path(), 0).await;
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn what_was_joined_and_not_committed_is_an_orphan() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled).await;
    upload(&store, "a").await;
    let joined = wait_for_joined(dir.path()).await;
    store.close().await.unwrap();
    // As a crash between joining and its commit leaves it.
    let name = format!("{:016x}", (1_u64 << 40) | 0xff);
    let orphan = joined.with_file_name(&name);
    fs::create_dir(&orphan).unwrap();
    for file in fs::read_dir(&joined).unwrap().map(|file| file.unwrap()) {
        fs::hard_link(file.path(), orphan.join(file.file_name())).unwrap();
    }
    fs::remove_file(dir.path().join("clean-shutdown")).unwrap();
    let store = open(dir.path(), IndexKind::Sled).await;
    wait_for_values(dir.path(), 1).await;
    assert!(!orphan.exists() && dir.path().join("orphans").join(&name).join("list").exists());
    for _ in 0..500 {
        if store.disk_space().unwrap().orphan_bytes > value().len() as u64 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(store.disk_space().unwrap().orphan_bytes > value().len() as u64);
    assert!(get(&store, "a").await.unwrap() == value());
    store.close().await.unwrap();
}

#[tokio::test]
async fn values_of_lost_records_are_recovered() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await;
        upload(&store, "a").await;
        wait_for_joined(dir.path()).await;
        store.close().await.unwrap();
        for lost in [false, true] {
            if lost {
                for name in ["index", "log", "clean-shutdown"] {
                    let path = dir.path().join(name);
                    let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
                    removed.unwrap();
                }
            }
            let recovery = Recovery::open(dir.path()).await.unwrap();
            let value_of_a = recovery.values().iter().find(|value| value.key == key("a")).unwrap();
            assert_eq!(value_of_a.certainty, if lost { Certainty::Doubtful } else { Certainty::Certain });
            assert_eq!(value_of_a.size(), value().len() as u64);
            let found: Vec<_> = recovery.read(value_of_a).await.unwrap().stream.try_collect().await.unwrap();
            assert!(found.concat() == value());
        }
    }
}

#[tokio::test]
async fn what_cannot_be_linked_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled).await;
    let version = upload(&store, "a").await;
    // No file system links directories.
    let staged = store.stage_joined(&key("b"), &[(key("a"), version)]).await.unwrap();
    store.commit(vec![Change::Set { staged, precondition: Precondition::none() }]).await.unwrap();
    let values = wait_for_values(dir.path(), 2).await;
    assert_eq!(values.iter().filter(|path| path.is_file()).count(), 1);
    assert!(get(&store, "b").await.unwrap() == value());
    let failed = store.stage_joined(&key("c"), &[(key("b"), version)]).await;
    assert!(matches!(failed, Err(StoreError::PreconditionFailed { .. })));
    store.close().await.unwrap();
}
