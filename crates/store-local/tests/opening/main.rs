//! Damaged and inconsistent stores do not open, and are left unchanged.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod copies;
mod unreadable;

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use zarrd_store::{
    BatchStore, ByteRange, Change, Corruption, Key, Payload, Precondition, ReadableStore, StoreError,
    TransactionalStore, WriteableStore,
};
use zarrd_store_local::{Checked, FileCorruption, IndexKind, LocalStore, OpenError, Options, ValueCorruption};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn open(dir: &Path, kind: IndexKind) -> Result<LocalStore, OpenError> {
    LocalStore::open(dir, Options::new(kind)).await
}

async fn set(store: &LocalStore, name: &str, value: Vec<u8>) {
    store.set(&key(name), Payload::from_bytes(value), Precondition::none()).await.unwrap();
}

/// A closed store with a hundred small values and one file value.
async fn closed_store(kind: IndexKind) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), kind).await.unwrap();
    for number in 0..100_u8 {
        set(&store, &format!("small/{number}"), vec![number; 100]).await;
    }
    set(&store, "large", vec![7; 1_000_000]).await;
    store.close().await.unwrap();
    dir
}

/// All files below a directory, with their contents.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut waiting = vec![dir.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if path.file_name().unwrap() != "lock" {
                found.push((path.clone(), fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

fn flip(path: &Path, offset: u64) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    file.write_all_at(&[byte[0] ^ 1], offset).unwrap();
}

fn index_file(dir: &Path, kind: IndexKind) -> PathBuf {
    dir.join("index").join(match kind {
        IndexKind::Sled => "db",
        IndexKind::Redb => "index.redb",
    })
}

fn value_files(dir: &Path) -> Vec<PathBuf> {
    contents(&dir.join("values")).into_iter().map(|(path, _)| path).collect()
}

/// Asserts that the store has all values of [`closed_store`].
async fn expect_all(store: &LocalStore) {
    for number in 0..100_u8 {
        let value = store.get(&key(&format!("small/{number}")), None).await.unwrap().unwrap();
        assert_eq!(value.bytes().await.unwrap(), vec![number; 100]);
    }
    let value = store.get(&key("large"), None).await.unwrap().unwrap();
    assert_eq!(value.bytes().await.unwrap(), vec![7; 1_000_000]);
}

/// A closed store whose log does not begin with the first commit.
async fn store_with_a_short_log(kind: IndexKind) -> tempfile::TempDir {
    let dir = closed_store(kind).await;
    for round in 0..4 {
        let store = open(dir.path(), kind).await.unwrap();
        let sets = (0..400).map(|number| {
            let (store, name) = (store.clone(), format!("more/{round}/{number}"));
            async move { set(&store, &name, vec![1; 4000]).await }
        });
        futures::future::join_all(sets).await;
        store.close().await.unwrap();
    }
    dir
}

#[tokio::test]
async fn a_flipped_bit_in_the_index_is_harmless_or_rejected_without_changes() {
    for kind in KINDS {
        let dir = store_with_a_short_log(kind).await;
        let file = index_file(dir.path(), kind);
        let len = fs::metadata(&file).unwrap().len();
        for part in 0..12 {
            let copy = tempfile::tempdir().unwrap();
            copy_index(dir.path(), copy.path());
            flip(&index_file(copy.path(), kind), len * part / 12 + 100);
            let before = contents(copy.path());
            match open(copy.path(), kind).await {
                Ok(store) => expect_all(&store).await,
                Err(OpenError::Corrupt { file, .. } | OpenError::StaleIndex { file, .. }) => {
                    assert!(file.starts_with(copy.path().join("index")), "{file:?}");
                    assert_eq!(before, contents(copy.path()));
                }
                other => panic!("{kind}: {other:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_truncated_or_missing_index_is_rejected_unless_the_log_is_complete() {
    for kind in KINDS {
        let dir = store_with_a_short_log(kind).await;
        let file = index_file(dir.path(), kind);
        File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
        let before = contents(dir.path());
        assert!(matches!(
            open(dir.path(), kind).await,
            Err(OpenError::Corrupt { file, .. } | OpenError::StaleIndex { file, .. }) if file.starts_with(dir.path().join("index"))
        ));
        assert_eq!(before, contents(dir.path()));
        fs::remove_file(&file).unwrap();
        assert!(matches!(
            open(dir.path(), kind).await,
            Err(OpenError::Corrupt { file: named, cause: FileCorruption::Missing }) if named == file
        ));
        assert_eq!(value_files(dir.path()).len(), 1);
    }
}

/// Copies the index's directory.
fn copy_index(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        } else {
            copy_index(&entry.path(), &to.join(entry.file_name()));
        }
    }
}

#[tokio::test]
async fn an_older_index_is_updated_from_the_log_or_rejected() {
    for kind in KINDS {
        for rounds in [1, 3] {
            let dir = closed_store(kind).await;
            let index = dir.path().join("index");
            let older = tempfile::tempdir().unwrap();
            copy_index(&index, &older.path().join("index"));
            for round in 0..rounds {
                let store = open(dir.path(), kind).await.unwrap();
                set(&store, &format!("later/{round}"), vec![1; 10_000]).await;
                store.close().await.unwrap();
            }
            copy_index(&older.path().join("index"), &index);
            match open(dir.path(), kind).await {
                // The log has the commits that the copy lacks.
                Ok(store) => {
                    expect_all(&store).await;
                    for round in 0..rounds {
                        assert!(store.head(&key(&format!("later/{round}"))).await.unwrap().is_some());
                    }
                }
                Err(OpenError::StaleIndex { file, found, expected }) => assert!(file == index && found < expected),
                other => panic!("{kind}: {other:?}"),
            }
            assert_eq!(value_files(dir.path()).len(), 1 + rounds, "nothing is collected");
        }
    }
}

#[tokio::test]
async fn an_older_log_is_rejected() {
    for kind in KINDS {
        let dir = closed_store(kind).await;
        let older = tempfile::tempdir().unwrap();
        copy_index(&dir.path().join("log"), &older.path().join("log"));
        let store = open(dir.path(), kind).await.unwrap();
        set(&store, "later", vec![1; 10_000]).await;
        store.close().await.unwrap();
        copy_index(&older.path().join("log"), &dir.path().join("log"));
        let before = contents(dir.path());
        match open(dir.path(), kind).await {
            Err(OpenError::StaleIndex { file, .. }) => assert_eq!(file, dir.path().join("log")),
            other => panic!("{kind}: {other:?}"),
        }
        assert_eq!(before, contents(dir.path()));
    }
}

#[tokio::test]
async fn the_index_of_another_store_is_rejected() {
    for kind in KINDS {
        let (dir, other) = (closed_store(kind).await, closed_store(kind).await);
        copy_index(&other.path().join("index"), &dir.path().join("index"));
        let before = contents(dir.path());
        assert!(matches!(open(dir.path(), kind).await, Err(OpenError::Corrupt { .. })));
        assert_eq!(before, contents(dir.path()));
    }
}

/// The log's last segment.
fn last_segment(dir: &Path) -> PathBuf {
    let segments = contents(&dir.join("log")).into_iter().map(|(path, _)| path);
    segments.filter(|path| path.extension().is_some_and(|ending| ending == "log")).max().unwrap()
}

/// A store as a crash leaves it, with its last commits only in the log.
async fn crashed_store(kind: IndexKind) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), kind).await.unwrap();
    let mut changes = Vec::new();
    for number in 0..100_u8 {
        let staged = store.stage(&key(&format!("small/{number}")), vec![number; 100].into()).await.unwrap();
        changes.push(Change::Set { staged, precondition: Precondition::none() });
    }
    // Two commits, so that even a slow machine copies the index before it has them.
    store.commit(changes).await.unwrap();
    set(&store, "large", vec![7; 1_000_000]).await;
    let copy = tempfile::tempdir().unwrap();
    // Copy the index while the store is open, before everything is applied.
    copy_index(dir.path(), copy.path());
    copy
}

#[tokio::test]
async fn a_torn_frame_at_the_end_of_the_log_is_ignored_and_a_damaged_one_in_the_middle_is_rejected() {
    for kind in KINDS {
        let dir = crashed_store(kind).await;
        let segment = last_segment(dir.path());
        let bytes = fs::read(&segment).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        // The last frame has the large value's record.
        flip(&segment, end as u64 - 4);
        let store = open(dir.path(), kind).await.unwrap();
        assert!(store.head(&key("large")).await.unwrap().is_none());
        assert!(store.head(&key("small/99")).await.unwrap().is_some());
        drop(store);

        let dir = crashed_store(kind).await;
        let segment = last_segment(dir.path());
        flip(&segment, 4096 + 40);
        match open(dir.path(), kind).await {
            Err(OpenError::Corrupt { file, cause: FileCorruption::CorruptFrame { offset } }) => {
                assert_eq!((file, offset), (segment.clone(), 4096));
            }
            other => panic!("{kind}: {other:?}"),
        }
        flip(&segment, 4096 + 40);
        expect_all(&open(dir.path(), kind).await.unwrap()).await;
    }
}

#[tokio::test]
async fn damaged_metadata_files_are_named() {
    let dir = closed_store(IndexKind::Sled).await;
    for name in ["zarrd.json", "log/0000000000000002.log"] {
        let path = dir.path().join(name);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, vec![b'x'; sound.len()]).unwrap();
        match open(dir.path(), IndexKind::Sled).await {
            Err(OpenError::Corrupt { file, .. }) => assert_eq!(file, path),
            other => panic!("{name}: {other:?}"),
        }
        fs::write(&path, sound).unwrap();
    }
    let path = dir.path().join("zarrd.json");
    let sound = fs::read_to_string(&path).unwrap();
    for digit in ["\"id\": \"", "\"secret\": \""] {
        // Flip the lowest bit of a digit, which makes another digit.
        flip(&path, (sound.find(digit).unwrap() + digit.len()) as u64);
        match open(dir.path(), IndexKind::Sled).await {
            Err(OpenError::Corrupt { file, .. }) => assert_eq!(file, path),
            other => panic!("{digit}: {other:?}"),
        }
        fs::write(&path, &sound).unwrap();
    }
    open(dir.path(), IndexKind::Sled).await.unwrap();
}

#[tokio::test]
async fn a_store_has_one_process_and_one_kind_of_index() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled).await.unwrap();
    match open(dir.path(), IndexKind::Sled).await {
        Err(OpenError::Locked { pid, .. }) => assert_eq!(pid, Some(std::process::id())),
        other => panic!("{other:?}"),
    }
    store.close().await.unwrap();
    drop(store);
    assert!(matches!(open(dir.path(), IndexKind::Redb).await, Err(OpenError::IndexMismatch { .. })));
    open(dir.path(), IndexKind::Sled).await.unwrap();
}

/// The number of this process's open files below a directory.
fn open_files(dir: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").unwrap();
    files.filter(|file| fs::read_link(file.as_ref().unwrap().path()).is_ok_and(|path| path.starts_with(dir))).count()
}

#[tokio::test]
async fn dropping_an_open_store_releases_its_files_and_lock() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await.unwrap();
        set(&store, "a", vec![1; 10_000]).await;
        assert!(open_files(dir.path()) > 0);
        drop(store);
        for _ in 0..1000 {
            if open_files(dir.path()) == 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert_eq!(open_files(dir.path()), 0, "{kind}");
        let store = open(dir.path(), kind).await.unwrap();
        assert!(store.head(&key("a")).await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_directory_with_foreign_files_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("thesis.tex"), "x").unwrap();
    assert!(matches!(open(dir.path(), IndexKind::Sled).await, Err(OpenError::NotAStore { .. })));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn reads_and_checks_report_the_key_of_a_damaged_value() {
    for kind in KINDS {
        let dir = closed_store(kind).await;
        let file = value_files(dir.path()).remove(0);
        let len = fs::metadata(&file).unwrap().len();
        // In the data, in the sums, in the footer.
        for offset in [0, 500_000, 999_999, 1_000_010, len - 60, len - 1] {
            flip(&file, offset);
            let store = open(dir.path(), kind).await.unwrap();
            expect_corrupt(&store, None).await;
            if offset < 1_000_000 {
                expect_corrupt(&store, ByteRange::bounded(offset, offset + 1).ok()).await;
                // A range outside of the damaged block can be read.
                let elsewhere = if offset < 500_000 { 900_000 } else { 0 };
                let range = ByteRange::bounded(elsewhere, elsewhere + 10).ok();
                let value = store.get(&key("large"), range).await.unwrap().unwrap();
                assert_eq!(value.bytes().await.unwrap(), [7; 10].as_slice());
            }
            let Checked { report, corrupt, .. } = store.check(|_| ()).await.unwrap();
            assert_eq!((report.keys, report.corrupt), (101, 1));
            assert_eq!(corrupt[0].key, key("large"));
            store.close().await.unwrap();
            flip(&file, offset);
        }
    }
}

async fn expect_corrupt(store: &LocalStore, range: Option<ByteRange>) {
    match store.get(&key("large"), range).await {
        Err(StoreError::Corrupt { key: named, .. }) => assert_eq!(named, key("large")),
        other => panic!("{range:?}: {other:?}"),
    }
}

#[tokio::test]
async fn a_missing_or_truncated_value_file_is_reported_as_corruption() {
    let dir = closed_store(IndexKind::Sled).await;
    let file = value_files(dir.path()).remove(0);
    let store = open(dir.path(), IndexKind::Sled).await.unwrap();
    File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
    expect_corrupt(&store, None).await;
    fs::remove_file(&file).unwrap();
    match store.get(&key("large"), None).await {
        Err(StoreError::Corrupt { cause, .. }) if is_missing_file(&cause) => {}
        other => panic!("{other:?}"),
    }
    let checked = store.check(|_| ()).await.unwrap();
    assert!(is_missing_file(&checked.corrupt[0].cause));
    // A damaged value can be replaced.
    set(&store, "large", vec![8; 20_000]).await;
    assert_eq!(store.get(&key("large"), None).await.unwrap().unwrap().bytes().await.unwrap().len(), 20_000);
}

#[tokio::test]
async fn only_orphaned_value_files_are_collected() {
    let dir = closed_store(IndexKind::Sled).await;
    let file = value_files(dir.path()).remove(0);
    let orphan = file.with_file_name(format!("{:016x}", (1_u64 << 40) | 0xff));
    fs::copy(&file, &orphan).unwrap();
    // After a clean shutdown no orphans are searched.
    let store = open(dir.path(), IndexKind::Sled).await.unwrap();
    store.close().await.unwrap();
    assert!(orphan.exists());
    fs::remove_file(dir.path().join("clean-shutdown")).unwrap();
    let _store = open(dir.path(), IndexKind::Sled).await.unwrap();
    let found = dir.path().join("orphans").join(orphan.file_name().unwrap());
    for _ in 0..500 {
        if found.exists() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(found.exists() && !orphan.exists() && file.exists());
}

#[tokio::test]
async fn overwriting_does_not_grow_the_store() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await.unwrap();
        for round in 0..20 {
            for number in 0..20 {
                set(&store, &format!("a/{number}"), vec![round; 1 << 20]).await;
            }
        }
        store.close().await.unwrap();
        assert_eq!(value_files(dir.path()).len(), 20);
    }
}

#[tokio::test]
async fn long_keys_with_a_common_prefix_need_no_blob_files() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path(), IndexKind::Sled).await.unwrap();
    let sets = (0..3000).map(|number| {
        let (store, name) = (store.clone(), format!("{}/{number:023}", "p".repeat(1000)));
        async move { set(&store, &name, vec![1; 4096]).await }
    });
    futures::future::join_all(sets).await;
    store.close().await.unwrap();
    let blobs = dir.path().join("index/blobs");
    assert!(!blobs.exists() || fs::read_dir(blobs).unwrap().next().is_none());
}

#[tokio::test]
async fn an_unused_snapshot_expires() {
    use zarrd_store::SnapshotStore;
    let dir = tempfile::tempdir().unwrap();
    let options = Options { pin_timeout: std::time::Duration::from_secs(1), ..Options::default() };
    let store = LocalStore::open(dir.path(), options).await.unwrap();
    set(&store, "a", vec![1; 10_000]).await;
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    set(&store, "a", vec![2; 10_000]).await;
    assert_eq!(snapshot.get(&key("a"), None).await.unwrap().unwrap().bytes().await.unwrap()[0], 1);
    for _ in 0..100 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        if value_files(dir.path()).len() == 1 {
            break;
        }
    }
    assert_eq!(value_files(dir.path()).len(), 1);
    assert!(matches!(snapshot.get(&key("a"), None).await, Err(StoreError::SnapshotExpired)));
}

fn is_missing_file(cause: &Corruption) -> bool {
    matches!(cause.downcast_ref(), Some(ValueCorruption::MissingFile { .. }))
}
