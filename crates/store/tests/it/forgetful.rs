//! The conformance suite names the check that a store fails.

use async_trait::async_trait;
use zarrd_store::{ByteRange, GetResult, Key, MemoryStore, StoreError, StoreWrapper};
use zarrd_store_testkit::{Factory, readable_writeable_listable};

/// A store that returns no value of any key.
#[derive(Clone)]
struct ForgetfulStore(MemoryStore);

struct ForgetfulStoreFactory;

impl Factory for ForgetfulStoreFactory {
    type Store = ForgetfulStore;
    type Fixture = ();

    async fn create(&self) -> (ForgetfulStore, ()) {
        (ForgetfulStore(MemoryStore::new()), ())
    }
}

#[async_trait]
impl StoreWrapper for ForgetfulStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn get(&self, _: &Key, _: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        Ok(None)
    }
}

#[test]
fn a_passing_check_does_not_panic() {
    readable_writeable_listable(&ForgetfulStoreFactory).test("an_absent_key_has_no_value");
}

#[test]
#[should_panic(expected = "the conformance check values_of_every_size_are_read_as_written failed")]
fn a_failing_check_is_named() {
    readable_writeable_listable(&ForgetfulStoreFactory).test("values_of_every_size_are_read_as_written");
}

#[tokio::test]
#[should_panic(expected = "the conformance check a_prefix_has_no_value failed")]
async fn a_run_stops_at_the_first_failing_check() {
    readable_writeable_listable(&ForgetfulStoreFactory).run().await;
}
