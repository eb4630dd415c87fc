//! The suite says which check a store fails.

use async_trait::async_trait;
use store::{
    ByteRange, GetResult, Key, MemoryStore, StoreError, StoreWrapper,
    conformance::{Factory, readable_writeable_listable},
};

/// A store that knows what it has, but cannot find it.
#[derive(Clone)]
struct ForgetfulStore(MemoryStore);

struct Forgetfuls;

impl Factory for Forgetfuls {
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
fn a_check_that_passes_is_silent() {
    readable_writeable_listable(&Forgetfuls).test("an_absent_key_has_no_value");
}

#[test]
#[should_panic(expected = "the conformance check values_of_every_size_are_read_as_written failed")]
fn a_check_that_fails_is_named() {
    readable_writeable_listable(&Forgetfuls).test("values_of_every_size_are_read_as_written");
}

#[tokio::test]
#[should_panic(expected = "the conformance check a_pure_prefix_has_no_value failed")]
async fn a_run_ends_with_the_first_check_that_fails() {
    readable_writeable_listable(&Forgetfuls).run().await;
}
