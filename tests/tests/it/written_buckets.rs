//! Buckets of several services that a store writes key by key.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use http::{Method, StatusCode};
use serde_json::json;
use zarrd_store::{Conditions, Guarantees, Writes};
use zarrd_store_object::{BucketStore, Options, WriteMode};
use zarrd_store_testkit::{Factory, readable_writeable_listable};
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer, S3},
    python::python_with_clients,
    server::{Launch, Server},
};

/// The checks of a store that writes, which stores below a prefix can pass.
const CHECKS: [&str; 18] = [
    "a_value_of_64_mib_streams_in_and_out",
    "values_of_every_size_are_read_as_written",
    "a_set_replaces_the_whole_value",
    "erase_returns_whether_the_key_had_a_value",
    "erase_prefix_erases_and_counts_the_keys_below",
    "erase_prefix_of_nothing_erases_nothing",
    "erase_prefix_of_the_root_erases_all",
    "a_new_store_is_writable",
    "an_aborted_payload_changes_nothing",
    "a_short_payload_changes_nothing",
    "every_precondition_applies_to_sets",
    "a_set_cancelled_midway_changes_nothing",
    "a_set_cancelled_anywhere_is_atomic",
    "one_creator_wins",
    "compare_and_swap_loses_no_increment",
    "sets_of_one_key_are_serialized",
    "writers_read_their_writes",
    "list_all_yields_every_key_once",
];

/// Checks of stores whose equal values have different versions.
const UNIQUE_VERSIONS: [&str; 2] = ["every_set_gives_a_new_version", "a_reset_key_gets_a_new_version"];

/// Stores below prefixes of a bucket.
struct Prefixes {
    bucket: String,
    environment: Vec<(&'static str, String)>,
    made: Arc<AtomicU32>,
}

impl Prefixes {
    fn new(bucket: &str, environment: Vec<(&'static str, String)>) -> Self {
        Self { bucket: bucket.to_owned(), environment, made: Arc::default() }
    }

    async fn open(&self, writes: WriteMode) -> BucketStore {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let variables = self.environment.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        let mut options = Options::with_variables(variables);
        options.writes = writes;
        BucketStore::open(&format!("{}/n{number}", self.bucket).parse().unwrap(), options).await.unwrap()
    }

    async fn guarantees(&self, writes: WriteMode) -> Guarantees {
        self.open(writes).await.guarantees()
    }

    /// Runs checks on new stores, each in a runtime of its own.
    #[allow(clippy::disallowed_methods, reason = "the checks block, and nothing else of the test runs meanwhile")]
    async fn pass(self, checks: impl IntoIterator<Item = &'static str> + Send + 'static) {
        tokio::task::spawn_blocking(move || {
            let suite = readable_writeable_listable(&self);
            checks.into_iter().for_each(|name| suite.test(name));
        })
        .await
        .unwrap();
    }
}

impl Factory for Prefixes {
    type Store = BucketStore;
    type Fixture = ();

    fn guarantees(&self, store: &BucketStore) -> Guarantees {
        store.guarantees()
    }

    async fn create(&self) -> (BucketStore, ()) {
        (self.open(WriteMode::Conditional).await, ())
    }
}

fn assert_exact(guarantees: &Guarantees) {
    assert_eq!((guarantees.writes, guarantees.conditions), (Writes::Key, Conditions::Atomic), "{guarantees}");
}

#[tokio::test(flavor = "multi_thread")]
async fn moto_is_written_with_conditions() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(moto) = BucketServer::moto(&python, dir.path()) else { return };
    let stores = Prefixes::new(moto.url, moto.environment(ACCESS_KEY));
    assert_exact(&stores.guarantees(WriteMode::Conditional).await);
    stores.pass(CHECKS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn azurite_is_written_with_conditions() {
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let Some(azurite) = BucketServer::azurite(&python, dir.path()) else { return };
    let stores = Prefixes::new(azurite.url, azurite.environment(ACCESS_KEY));
    assert_exact(&stores.guarantees(WriteMode::Conditional).await);
    stores.pass(CHECKS.into_iter().chain(UNIQUE_VERSIONS)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_s3_of_another_server_is_written_with_conditions() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Launch::sled(&dir.path().join("store")).arg("--s3-listen").arg("127.0.0.1:0").start();
    let endpoint = format!("http://{}", server.next_address());
    server.request(http::Method::PUT, "/store/lab/made").body("the bucket").send().await.unwrap();
    let environment = S3 { endpoint, access_key: "zarrd".to_owned(), secret: "zarrd".to_owned() }.environment();
    let stores = Prefixes::new("s3://lab", environment);
    assert_exact(&stores.guarantees(WriteMode::Conditional).await);
    stores.pass(CHECKS.into_iter().chain(UNIQUE_VERSIONS)).await;
}

/// Two servers over a bucket of S3, each of which appends for several clients, and a third client that writes the first
/// elements of the array.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_one_bucket_append_to_one_array() {
    const APPENDS: u32 = 12;
    const LEN: u32 = 5;
    let Some(python) = python_with_clients() else { return };
    let dir = tempfile::tempdir().unwrap();
    let mut bucket = Launch::sled(&dir.path().join("store")).arg("--s3-listen").arg("127.0.0.1:0").start();
    let endpoint = format!("http://{}", bucket.next_address());
    bucket.put("/store/lab/made", "the bucket").await;
    let s3 = S3 { endpoint, access_key: "zarrd".to_owned(), secret: "zarrd".to_owned() };
    // They open it at different prefixes.
    let one = s3.launch("s3://lab?writes=yes").start();
    let two = s3.launch("s3://lab/run?writes=yes").start();
    let array = json!({"zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "uint32", "fill_value": 0,
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
        "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [7]}}});
    let made = one.request(Method::PUT, "/node/run/a").json(&array).send().await.unwrap();
    assert_eq!(made.status(), StatusCode::CREATED, "{}", made.text().await.unwrap());
    let append = async |server: &Server, path: &str, value: u32| {
        let url = format!("/array/{path}?append=0");
        for _ in 0..100 {
            let elements = vec![value; LEN as usize];
            let answer = server.request(Method::POST, &url).json(&elements).send().await.unwrap();
            match answer.status() {
                StatusCode::OK => return,
                // Another server appends for longer than a client waits.
                StatusCode::SERVICE_UNAVAILABLE => tokio::time::sleep(Duration::from_millis(200)).await,
                status => panic!("{status} {}", answer.text().await.unwrap()),
            }
        }
        panic!("an append was never made");
    };
    let appends = (0..APPENDS).map(|number| {
        let (server, path) = if number % 2 == 0 { (&one, "run/a") } else { (&two, "a") };
        append(server, path, 100 + number)
    });
    let writes = async {
        for value in 1..=20_u32 {
            let written = two.request(Method::PUT, "/array/a?select=0:3").json(&vec![value; 3]).send().await.unwrap();
            // The document changes with each append, at any moment of the write.
            let expected = [StatusCode::OK, StatusCode::CONFLICT, StatusCode::SERVICE_UNAVAILABLE];
            let is_expected = expected.contains(&written.status());
            assert!(is_expected, "{}", written.text().await.unwrap());
        }
    };
    tokio::join!(futures::future::join_all(appends), writes);
    let url = bucket.url("/store/lab/run/a");
    let printed = python.run("appended.py", &[&url]);
    let found: Vec<u32> = serde_json::from_str(&printed).unwrap();
    assert!(found[0] == found[1] && found[1] == found[2], "{found:?}");
    let mut blocks: Vec<&[u32]> = found[3..].chunks(LEN as usize).collect();
    blocks.sort_unstable();
    let expected: Vec<Vec<u32>> = (0..APPENDS).map(|number| vec![100 + number; LEN as usize]).collect();
    assert_eq!(blocks, expected, "{found:?}");
}
