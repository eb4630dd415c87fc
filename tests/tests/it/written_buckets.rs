//! Buckets of several services that a store writes key by key.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use zarrd_store::{Conditions, Guarantees, Writes};
use zarrd_store_object::{BucketStore, Options, WriteMode};
use zarrd_store_testkit::{Factory, readable_writeable_listable};
use zarrd_tests::{
    bucket::{ACCESS_KEY, BucketServer, S3},
    python::python_with_clients,
    server::Launch,
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
