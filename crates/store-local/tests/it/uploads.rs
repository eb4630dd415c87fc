//! Uploads in parts on the disk: their files, their format, full disks and recovery.

use std::{collections::BTreeMap, fs, path::Path, time::Duration};

use futures::TryStreamExt;
use zarrd_store::{
    AttributeFields, Attributes, BatchStore, Change, Completion, ContentField, Key, NewUpload, Payload, Precondition,
    Prefix, ReadableStore, StoreError, TransactionalStore, UploadId, UploadStore, UploadsError, Version,
    WriteableStore,
};
use zarrd_store_local::{Certainty, IndexKind, LocalStore, Options, Recovery};

const KINDS: [IndexKind; 2] = [IndexKind::Sled, IndexKind::Redb];

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn typed() -> Attributes {
    Attributes::new(AttributeFields { content: [(ContentField::Type, "text/csv".into())].into(), ..Default::default() })
        .unwrap()
}

async fn open(dir: &Path, kind: IndexKind) -> LocalStore {
    LocalStore::open(dir, Options::new(kind)).await.unwrap()
}

async fn begin(store: &LocalStore) -> UploadId {
    store.begin_upload(&key("a"), &NewUpload::default()).await.unwrap()
}

async fn add(store: &LocalStore, id: UploadId, number: u32, size: usize) -> Result<(u32, Version), UploadsError> {
    let staged = store.stage_part(&key("a"), id, number, vec![number as u8; size].into()).await?;
    Ok((number, store.put_part(staged, None).await?.version))
}

async fn complete(store: &LocalStore, id: UploadId, parts: &[(u32, Version)]) -> Result<Version, UploadsError> {
    let completion = Completion { parts, ..Completion::default() };
    Ok(store.complete_upload(&key("a"), id, &completion).await?.version)
}

async fn get(store: &LocalStore, name: &str) -> Option<Vec<u8>> {
    let value = store.get(&key(name), None).await.unwrap()?;
    Some(value.bytes().await.unwrap().to_vec())
}

fn value_files(dir: &Path) -> usize {
    let directories = fs::read_dir(dir.join("values")).unwrap();
    directories.map(|directory| fs::read_dir(directory.unwrap().path()).unwrap().count()).sum()
}

async fn wait_for_value_files(dir: &Path, count: usize) {
    for _ in 0..600 {
        if value_files(dir) == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{} value files after 30 s, not {count}", value_files(dir));
}

/// The formats in `zarrd.json` and its copy.
fn formats(dir: &Path) -> [u64; 2] {
    ["zarrd.json", "zarrd.json.copy"].map(|name| {
        let text = fs::read_to_string(dir.join(name)).unwrap();
        let (_, rest) = text.split_once("\"format\": ").unwrap();
        rest.split_once(',').unwrap().0.parse().unwrap()
    })
}

#[tokio::test]
async fn what_earlier_programs_cannot_read_raises_the_format() {
    for kind in KINDS {
        for upload in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let store = open(dir.path(), kind).await;
            store.set(&key("plain"), "x".into(), Precondition::none()).await.unwrap();
            // Neither a value that is only staged nor a failed set needs it.
            drop(store.stage(&key("a"), Payload::from_bytes("x").with_attributes(typed())).await.unwrap());
            store.close().await.unwrap();
            assert_eq!(formats(dir.path()), [2, 2]);
            let store = open(dir.path(), kind).await;
            if upload {
                begin(&store).await;
            } else {
                let payload = Payload::from_bytes("x").with_attributes(typed());
                store.set(&key("a"), payload, Precondition::none()).await.unwrap();
            }
            // Before the commit, and so before the store is closed.
            assert_eq!(formats(dir.path()), [3, 3]);
            store.close().await.unwrap();
            let store = open(dir.path(), kind).await;
            assert_eq!(get(&store, "plain").await.as_deref(), Some(&b"x"[..]));
            store.close().await.unwrap();
            assert_eq!(formats(dir.path()), [3, 3]);
        }
    }
}

#[tokio::test]
async fn no_file_is_left_of_a_part() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await;
        let id = begin(&store).await;
        for _ in 0..2 {
            add(&store, id, 1, 20_000).await.unwrap();
        }
        let parts = [add(&store, id, 1, 30_000).await.unwrap(), add(&store, id, 2, 40_000).await.unwrap()];
        wait_for_value_files(dir.path(), 2).await;
        complete(&store, id, &parts).await.unwrap();
        wait_for_value_files(dir.path(), 1).await;
        let aborted = begin(&store).await;
        add(&store, aborted, 1, 20_000).await.unwrap();
        store.abort_upload(&key("a"), aborted).await.unwrap();
        wait_for_value_files(dir.path(), 1).await;
        // Also of one whose end was not applied to the index.
        let swept = begin(&store).await;
        add(&store, swept, 1, 20_000).await.unwrap();
        store.close().await.unwrap();
        let store = open(dir.path(), kind).await;
        assert_eq!(store.sweep_uploads(Duration::ZERO).await.unwrap(), 1);
        wait_for_value_files(dir.path(), 1).await;
        store.close().await.unwrap();
        assert_eq!(value_files(dir.path()), 1);
    }
}

#[tokio::test]
async fn a_full_disk_leaves_the_upload_as_it_was() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await;
        let id = begin(&store).await;
        let parts = [add(&store, id, 1, 300_000).await.unwrap(), add(&store, id, 2, 100).await.unwrap()];
        store.close().await.unwrap();
        // All space is reserved.
        let full = Options { reserve_bytes: Some(u64::MAX), ..Options::new(kind) };
        let store = LocalStore::open(dir.path(), full.clone()).await.unwrap();
        let is_full = |error: &UploadsError| matches!(error, UploadsError::Store(StoreError::OutOfSpace));
        assert!(complete(&store, id, &parts).await.is_err_and(|error| is_full(&error)));
        assert!(add(&store, id, 3, 300_000).await.is_err_and(|error| is_full(&error)));
        assert!(store.begin_upload(&key("a"), &NewUpload::default()).await.is_err_and(|error| is_full(&error)));
        assert_eq!(store.upload_parts(&key("a"), id, 0, 10).await.unwrap().parts.len(), 2);
        assert_eq!(get(&store, "a").await, None);
        store.close().await.unwrap();
        assert_eq!(value_files(dir.path()), 1);
        let store = open(dir.path(), kind).await;
        let other = begin(&store).await;
        add(&store, other, 1, 300_000).await.unwrap();
        complete(&store, id, &parts).await.unwrap();
        assert_eq!(get(&store, "a").await.unwrap(), [vec![1; 300_000], vec![2; 100]].concat());
        store.close().await.unwrap();
        // Ending an upload frees space, so that it works on a full disk.
        let store = LocalStore::open(dir.path(), full).await.unwrap();
        store.abort_upload(&key("a"), other).await.unwrap();
        wait_for_value_files(dir.path(), 1).await;
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn erasing_everything_spares_uploads() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let mut store = open(dir.path(), kind).await;
        let id = begin(&store).await;
        let mut parts = vec![add(&store, id, 1, 20_000).await.unwrap()];
        for round in 2..4 {
            let put = |number| Change::Put {
                key: key(&format!("k/{number}")),
                value: "x".into(),
                precondition: Precondition::none(),
            };
            // More keys than are removed at once, so that a sweep begins.
            store.commit((0..3000).map(put).collect()).await.unwrap();
            store.erase_prefix(&Prefix::root()).await.unwrap();
            parts.push(add(&store, id, round, 20_000).await.unwrap());
            store.close().await.unwrap();
            store = open(dir.path(), kind).await;
            let found = store.upload_parts(&key("a"), id, 0, 10).await.unwrap().parts;
            assert_eq!(found.iter().map(|part| (part.number, part.version)).collect::<Vec<_>>(), parts);
        }
        complete(&store, id, &parts).await.unwrap();
        assert_eq!(get(&store, "a").await.unwrap().len(), 60_000);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn uploads_are_checked() {
    for kind in KINDS {
        let dir = tempfile::tempdir().unwrap();
        let store = open(dir.path(), kind).await;
        let id = begin(&store).await;
        add(&store, id, 1, 20_000).await.unwrap();
        store.close().await.unwrap();
        let directory = fs::read_dir(dir.path().join("values")).unwrap().map(|entry| entry.unwrap().path());
        let file = directory.flat_map(|path| fs::read_dir(path).unwrap()).next().unwrap().unwrap().path();
        let mut bytes = fs::read(&file).unwrap();
        bytes[100] ^= 1;
        fs::write(&file, bytes).unwrap();
        let store = open(dir.path(), kind).await;
        let found = store.check(|_| {}).await.unwrap().corrupt;
        assert!(found.len() == 1 && found[0].key.is_hidden(), "{found:?}");
        // What is damaged is not made a value.
        let parts = store.upload_parts(&key("a"), id, 0, 10).await.unwrap().parts;
        let failed = complete(&store, id, &[(1, parts[0].version)]).await;
        assert!(matches!(failed, Err(UploadsError::Store(StoreError::Corrupt { .. }))), "{failed:?}");
        assert_eq!(get(&store, "a").await, None);
        store.close().await.unwrap();
    }
}

#[tokio::test]
async fn recovery_keeps_attributes_and_leaves_out_uploads() {
    for kind in KINDS {
        for close in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let store = open(dir.path(), kind).await;
            let mut expected = BTreeMap::new();
            for (name, size) in [("small", 10), ("large", 20_000)] {
                let payload = Payload::from_bytes(vec![1; size]).with_attributes(typed());
                store.set(&key(name), payload, Precondition::none()).await.unwrap();
                expected.insert(name.to_owned(), (size, typed()));
            }
            let mut changes = Vec::new();
            for number in 0..600 {
                let payload = Payload::from_bytes("many").with_attributes(typed());
                let staged = store.stage(&key(&format!("m/{number}")), payload).await.unwrap();
                changes.push(Change::Set { staged, precondition: Precondition::none() });
                expected.insert(format!("m/{number}"), (4, typed()));
            }
            store.commit(changes).await.unwrap();
            let id = begin(&store).await;
            add(&store, id, 1, 20_000).await.unwrap();
            match close {
                true => store.close().await.unwrap(),
                false => drop(store),
            }
            let recovery = loop {
                match Recovery::open(dir.path()).await {
                    Ok(recovery) => break recovery,
                    // The threads of the dropped store are stopping.
                    Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            assert_eq!(recovery.losses(), []);
            let mut found = BTreeMap::new();
            for value in recovery.values() {
                assert_eq!(value.certainty, Certainty::Certain);
                let payload = recovery.read(value).await.unwrap();
                let bytes: Vec<_> = payload.stream.try_collect().await.unwrap();
                found.insert(value.key.to_string(), (bytes.concat().len(), payload.attributes));
            }
            assert_eq!(found, expected);
        }
    }
}
