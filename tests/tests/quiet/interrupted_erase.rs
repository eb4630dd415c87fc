//! Erases of a prefix with many keys, killed right before or after the response: all keys exist or none, and their
//! values are removed in the background.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use http::{Method, StatusCode};
use zarrd_store::{BatchStore, Change, Key, ListableStore, PageRequest, Precondition, Prefix, TransactionalStore};
use zarrd_store_local::{IndexKind, LocalStore, Options};
use zarrd_tests::{
    server::{Launch, Server, zarrd_with},
    skip::note,
    store_files::{copy_store, value_files},
};

const KEYS: usize = 150_000;
/// The number of keys whose values are files.
const FILES: usize = 300;
/// The maximum latency of a listing of the parent during the sweep.
const LISTING: Duration = Duration::from_millis(50);

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_erase_is_atomic_with_sled() {
    is_interrupted(IndexKind::Sled).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupted_erase_is_atomic_with_redb() {
    is_interrupted(IndexKind::Redb).await;
}

async fn is_interrupted(kind: IndexKind) {
    let dir = tempfile::tempdir().unwrap();
    let (original, copy) = (dir.path().join("original"), dir.path().join("copy"));
    create_store(&original, kind).await;
    let launch =
        Launch::of(format_args!("{kind}:{}", copy.display())).env("ZARRD_LOG_LEVEL", "info,zarrd_store_local=debug");

    copy_store(&original, &copy);
    killed_after_the_answer(&launch, &copy, kind).await;
    let duration = time_of_an_erase(&launch, &original, &copy).await;
    let mut happened = 0;
    // Counting the keys takes most of the time, so most kills come near the end.
    for part in [0.5, 0.9, 0.95, 1.0] {
        copy_store(&original, &copy);
        let server = launch.start();
        let erasing = tokio::spawn(server.request(Method::DELETE, "/store/many/").send());
        tokio::time::sleep(duration.mul_f64(part)).await;
        server.kill();
        let answered = erasing.await.unwrap().is_ok();
        let server = launch.start();
        let remaining = server.count_keys("many/").await;
        assert!(remaining == 0 || remaining == KEYS && !answered, "{remaining} keys are left, answered: {answered}");
        happened += u32::from(remaining == 0);
        server.kill();
    }
    note(format_args!("{kind}: an erase takes {duration:?}; of 4 interrupted ones {happened} were applied"));
}

async fn killed_after_the_answer(launch: &Launch, dir: &Path, kind: IndexKind) {
    let server = launch.start();
    let erased = server.delete("/store/many/").await;
    assert_eq!(erased.status(), StatusCode::OK);
    server.kill();

    let server = launch.start();
    let mut listings = Vec::new();
    let started = Instant::now();
    let mut set = 0;
    // Listings, and sets below the prefix, during the sweep and after it.
    while started.elapsed() < Duration::from_secs(4) {
        let requests = Instant::now();
        let listed = children(&server).await;
        listings.push(requests.elapsed());
        assert_eq!(listed, if set == 0 { vec!["kept/"] } else { vec!["kept/", "many/"] });
        if set < 50 {
            let put = server.put(&format!("/store/many/{set:06}"), "new").await;
            assert_eq!(put.status(), StatusCode::CREATED);
            set += 1;
        }
        assert_eq!(server.get("/store/many/100000").await.status(), StatusCode::NOT_FOUND);
    }
    listings.sort_unstable();
    // Other tests may use the processor for a while.
    let (percentile_90, slowest) = (listings[listings.len() * 9 / 10], listings[listings.len() - 1]);
    assert!(percentile_90 <= LISTING, "a tenth of the listings took more than {percentile_90:?}, one {slowest:?}");
    let started = Instant::now();
    while value_files(dir) > 0 || !server.log().contains("removed what was below an erased prefix") {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{} value files are left:\n{}",
            value_files(dir),
            server.log()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    note(format_args!(
        "{kind}: 90% of {} listings took at most {percentile_90:?}, the slowest {slowest:?}; \
         sweep finished after {:?} more",
        listings.len(),
        started.elapsed()
    ));
    assert_eq!(server.count_keys("many/").await, set);
    assert_eq!(server.count_keys("kept/").await, 10);
    server.stop();
    let server = launch.start();
    assert_eq!(server.count_keys("many/").await, set);
    server.stop();
    let checked = zarrd_with(["check", "--store", &format!("{kind}:{}", dir.display())]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}

async fn time_of_an_erase(launch: &Launch, original: &Path, copy: &Path) -> Duration {
    copy_store(original, copy);
    let server = launch.start();
    let started = Instant::now();
    assert_eq!(server.delete("/store/many/").await.status(), StatusCode::OK);
    let duration = started.elapsed();
    server.kill();
    duration
}

/// A store with many keys below `many/` and ten below `kept/`.
async fn create_store(dir: &Path, kind: IndexKind) {
    let store = LocalStore::open(dir, Options::new(kind)).await.unwrap();
    let numbers: Vec<usize> = (0..KEYS).collect();
    let names = numbers.chunks(10_000).map(|part| {
        let name = |number: &usize| (format!("many/{number:06}"), if *number < FILES { 5000 } else { 20 });
        part.iter().map(name).collect::<Vec<_>>()
    });
    let kept = (0..10).map(|number| (format!("kept/{number}"), 20)).collect();
    for part in names.chain([kept]) {
        let mut changes = Vec::new();
        for (name, size) in part {
            let staged = store.stage(&Key::parse(&name).unwrap(), vec![1; size].into()).await.unwrap();
            changes.push(Change::Set { staged, precondition: Precondition::none() });
        }
        store.commit(changes).await.unwrap();
    }
    store.close().await.unwrap();
}

async fn children(server: &Server) -> Vec<String> {
    let page = server.store().list_dir(&Prefix::root(), PageRequest::first(1000)).await.unwrap();
    page.prefixes.iter().map(ToString::to_string).collect()
}
