//! The suite says which check a store fails.

use async_trait::async_trait;
use store::{
    ByteRange, DirPage, GetResult, Key, KeyCount, KeyPage, ListableStore, MemoryStore, PageRequest, Payload,
    Precondition, Prefix, PutResult, ReadableStore, StoreError, ValueMeta, WriteableStore,
    conformance::{Factory, readable_writeable_listable},
};

/// A store that knows what it has, but cannot find it.
#[derive(Clone)]
struct Forgetful(MemoryStore);

struct Forgetfuls;

impl Factory for Forgetfuls {
    type Store = Forgetful;
    type Fixture = ();

    async fn create(&self) -> (Forgetful, ()) {
        (Forgetful(MemoryStore::new()), ())
    }
}

#[async_trait]
impl ReadableStore for Forgetful {
    async fn get(&self, _: &Key, _: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        Ok(None)
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.0.head(key).await
    }
}

#[async_trait]
impl WriteableStore for Forgetful {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        self.0.set(key, content, precondition).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        self.0.erase(key, precondition).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        self.0.erase_prefix(prefix).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.0.check_writable().await
    }
}

#[async_trait]
impl ListableStore for Forgetful {
    async fn list_prefix(&self, prefix: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        self.0.list_prefix(prefix, page).await
    }

    async fn list_dir(&self, prefix: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        self.0.list_dir(prefix, page).await
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
