//! Conversions by copy, killed at several moments: after the next start the copy is complete or absent.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use zarrd_store::{BatchStore, Change, IntentId, Key, Precondition, TransactionalStore};
use zarrd_store_local::{Access, IndexKind, LocalStore, Options};
use zarrd_tests::{
    server::{Launch, Server, zarrd_with},
    skip::note,
    store_files::{copy_store, value_files, wait_until_unlocked},
};

const CHUNKS: usize = 4_000;
/// One of this many values is stored in a file.
const FILES: usize = 20;
/// The moments of the kills, as parts of the time of a conversion.
const MOMENTS: [f64; 6] = [0.0, 0.02, 0.2, 0.5, 0.8, 0.95];
const CONVERT: &str = "/node/from?convert=v2&target=/to";
/// A group and an array.
const DOCUMENTS: usize = 2;

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_conversion_is_undone_with_sled() {
    is_interrupted(IndexKind::Sled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_conversion_is_undone_with_redb() {
    is_interrupted(IndexKind::Redb).await;
}

async fn is_interrupted(kind: IndexKind) {
    let dir = tempfile::tempdir().unwrap();
    let (original, copy, without) = (dir.path().join("original"), dir.path().join("copy"), dir.path().join("without"));
    create_store(&original, kind).await;
    let launch = |dir: &Path| Launch::of(format_args!("{kind}:{}", dir.display()));

    copy_store(&original, &copy);
    let server = launch(&copy).start();
    let started = Instant::now();
    assert_eq!(convert(&server).await.unwrap(), StatusCode::OK);
    let duration = started.elapsed();
    server.kill();
    // Acknowledged data remains, also after repeated starts.
    for _ in 0..2 {
        let server = launch(&copy).start();
        assert_eq!(server.count_keys("to/").await, CHUNKS + DOCUMENTS);
        server.stop();
    }

    let (mut tried, mut undone, mut left_without) = (0, 0, 0);
    // Each moment once; again if none was in the middle of a copy, which takes another time beside other tests.
    for part in MOMENTS.into_iter().cycle().take(5 * MOMENTS.len()) {
        if tried >= MOMENTS.len() && undone > 0 && left_without > 0 {
            break;
        }
        tried += 1;
        copy_store(&original, &copy);
        let server = launch(&copy).start();
        let converting = tokio::spawn(server.request(Method::POST, CONVERT).send());
        tokio::time::sleep(duration.mul_f64(part)).await;
        server.kill();
        let answered = converting.await.unwrap().is_ok();

        // A control: the same store without the intent record; otherwise the kills would prove nothing.
        copy_store(&copy, &without);
        forget(&without, kind).await;
        let server = launch(&without).start();
        let other_keys = server.count_keys("to/").await;
        left_without += usize::from((1..=CHUNKS).contains(&other_keys));
        server.kill();

        let server = launch(&copy).start();
        let remaining = server.count_keys("to/").await;
        assert!(
            remaining == 0 && !answered || remaining == CHUNKS + DOCUMENTS,
            "{remaining} keys are left, answered: {answered}"
        );
        assert_eq!(server.count_keys("from/").await, CHUNKS + DOCUMENTS);
        if remaining == 0 {
            undone += usize::from(server.log().contains("undid a conversion that was interrupted"));
            let listed = server.get("/store/").await.text().await.unwrap();
            assert!(!listed.contains("to/"), "{listed}");
            assert_eq!(server.get("/node/to").await.status(), StatusCode::NOT_FOUND);
            let started = Instant::now();
            // Without any request.
            while value_files(&copy) > CHUNKS / FILES {
                assert!(started.elapsed() < Duration::from_secs(60), "{} value files are left", value_files(&copy));
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            assert_eq!(convert(&server).await.unwrap(), StatusCode::OK);
            assert_eq!(server.count_keys("to/").await, CHUNKS + DOCUMENTS);
        }
        server.stop();
        let store = LocalStore::open(&copy, read_only(kind)).await.unwrap();
        assert_eq!(store.intents().await.unwrap(), []);
        store.close().await.unwrap();
        let checked = zarrd_with(["check", "--store", &format!("{kind}:{}", copy.display())]);
        assert_eq!(checked.code, Some(0), "{checked:?}");
    }
    note(format_args!(
        "{kind}: a conversion takes {duration:?}; of {tried} interrupted ones {undone} were undone at the next start, \
         and {left_without} left chunks without the intent"
    ));
    assert!(undone > 0 && left_without > 0, "no kill interrupted a copy");
}

/// Killed before its first chunk, killed again before the rollback, and rolled back by another command than `serve`.
#[tokio::test]
async fn intent_without_chunks_is_settled_by_any_writing_command() {
    for kind in [IndexKind::Sled, IndexKind::Redb] {
        let dir = tempfile::tempdir().unwrap();
        let (store, source) = (dir.path().join("store"), dir.path().join("source"));
        fs::create_dir(&source).unwrap();
        fs::write(source.join("a"), "1").unwrap();
        let record = r#"{"version":1,"operation":{"kind":"copy","target":"/to","dialect":"v2","extent":["to/"]}}"#;
        let local = LocalStore::open(&store, Options::new(kind)).await.unwrap();
        let intend = |record: &'static str| Change::AddIntent { id: IntentId::random(), record: record.into() };
        local.commit(vec![intend(record), intend("not to be understood")]).await.unwrap();
        // Dropped without closing, which is equivalent to a kill.
        drop(local);
        tokio::time::sleep(Duration::from_millis(300)).await;
        wait_until_unlocked(&store).await;
        let location = format!("{kind}:{}", store.display());
        // Read-only commands settle nothing.
        assert_eq!(zarrd_with(["ls", "--store", &location]).code, Some(0));
        assert_eq!(intents(&store, kind).await, 2);
        let imported = zarrd_with(["import", source.to_str().unwrap(), "--store", &location]);
        assert_eq!(imported.code, Some(0), "{imported:?}");
        assert_eq!(intents(&store, kind).await, 1);
        let server = Launch::of(&location).start();
        assert!(server.log().contains("cannot be understood"), "{}", server.log());
        server.stop();
        assert_eq!(intents(&store, kind).await, 1);
    }
}

fn read_only(kind: IndexKind) -> Options {
    Options { access: Access::ReadOnly, ..Options::new(kind) }
}

async fn intents(dir: &Path, kind: IndexKind) -> usize {
    let store = LocalStore::open(dir, read_only(kind)).await.unwrap();
    let count = store.intents().await.unwrap().len();
    store.close().await.unwrap();
    wait_until_unlocked(dir).await;
    count
}

/// Settles all intents, and does nothing else.
async fn forget(dir: &Path, kind: IndexKind) {
    let store = LocalStore::open(dir, Options::new(kind)).await.unwrap();
    let intents = store.intents().await.unwrap();
    store.commit(intents.into_iter().map(|intent| Change::RemoveIntent { id: intent.id }).collect()).await.unwrap();
    store.close().await.unwrap();
    wait_until_unlocked(dir).await;
}

async fn convert(server: &Server) -> Result<StatusCode, reqwest::Error> {
    Ok(server.request(Method::POST, CONVERT).send().await?.status())
}

/// Creates a group with an array of many small chunks, some of them stored in files.
async fn create_store(dir: &Path, kind: IndexKind) {
    let store = LocalStore::open(dir, Options::new(kind)).await.unwrap();
    let chunk = 5_000;
    let array = format!(
        r#"{{"zarr_format":3,"node_type":"array","shape":[{}],"data_type":"uint8","fill_value":0,"codecs":[{{"name":"bytes"}}],
        "chunk_grid":{{"name":"regular","configuration":{{"chunk_shape":[{chunk}]}}}},
        "chunk_key_encoding":{{"name":"default","configuration":{{"separator":"/"}}}},"attributes":{{}}}}"#,
        CHUNKS * chunk
    );
    let group = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#.to_owned();
    let documents = [("from/zarr.json", group), ("from/a/zarr.json", array)];
    let mut values: Vec<(String, Vec<u8>)> =
        documents.into_iter().map(|(key, document)| (key.to_owned(), document.into_bytes())).collect();
    // A chunk need not be decodable to be copied.
    let size = |number: usize| if number.is_multiple_of(FILES) { chunk } else { 20 };
    values.extend((0..CHUNKS).map(|number| (format!("from/a/c/{number}"), vec![1; size(number)])));
    for part in values.chunks(10_000) {
        let mut changes = Vec::new();
        for (key, value) in part {
            let staged = store.stage(&Key::parse(key).unwrap(), value.clone().into()).await.unwrap();
            changes.push(Change::Set { staged, precondition: Precondition::none() });
        }
        store.commit(changes).await.unwrap();
    }
    store.close().await.unwrap();
}
