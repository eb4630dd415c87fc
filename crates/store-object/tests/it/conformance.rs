//! The conformance suite for the buckets of several services, which another program changes.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{ObjectStoreExt, path::Path};
use zarrd_store::{Conditions, Guarantees, Key, Keyed, ReadableStore, SnapshotStore};
use zarrd_store_object::{BucketStore, Failure, Options, RequestError, WriteMode};
use zarrd_store_testkit::{Factory, Foreign, ForeignData};

use crate::common::{Dialect, Server, variables};

/// A bucket of a server, in one of the services.
struct Remote<const SERVICE: usize> {
    server: Server,
    store: Arc<Keyed<BucketStore>>,
}

const S3: usize = 0;
const AZURE: usize = 1;

impl<const SERVICE: usize> ForeignData for Remote<SERVICE> {
    async fn create() -> Self {
        let dialect = if SERVICE == AZURE { Dialect::Azure } else { Dialect::S3 };
        let server = Server::start(dialect).await;
        // In a prefix, the longest keys could not exist.
        let url = ["s3://b", "az://b"].get(SERVICE).unwrap();
        // The servers of two stores have the same bucket.
        let options = Options::with_variables(variables(&server)).name(server.url());
        let store = BucketStore::open(&url.parse().unwrap(), options).await.unwrap();
        let guarantees = store.guarantees();
        Self { server, store: Arc::new(Keyed::new(store, guarantees)) }
    }

    fn store(&self) -> Arc<dyn SnapshotStore> {
        self.store.clone()
    }

    async fn put(&self, key: &Key, value: Bytes) {
        self.server.put(key.as_str(), value);
    }

    async fn remove(&self, key: &Key) {
        self.server.remove(key.as_str());
    }
}

/// Buckets of a service that the store writes as well.
struct Written(&'static str);

impl Factory for Written {
    type Store = BucketStore;
    type Fixture = Server;

    fn guarantees(&self, store: &BucketStore) -> Guarantees {
        store.guarantees()
    }

    async fn create(&self) -> (BucketStore, Server) {
        let dialect = if self.0.starts_with("az") { Dialect::Azure } else { Dialect::S3 };
        let server = Server::start(dialect).await;
        let mut options = Options::with_variables(variables(&server)).name(server.url());
        options.writes = WriteMode::Conditional;
        let store = BucketStore::open(&self.0.parse().unwrap(), options).await.unwrap();
        assert_eq!(store.guarantees().conditions, Conditions::Atomic, "{}", store.guarantees());
        (store, server)
    }
}

mod written_s3 {
    use super::Written;

    zarrd_store_testkit::conformance_tests!(Written("s3://b") => readable_writeable_listable);
}

mod written_google {
    use super::Written;

    zarrd_store_testkit::conformance_tests!(Written("gs://b") => readable_writeable_listable);
}

mod written_azure {
    use super::Written;

    zarrd_store_testkit::conformance_tests!(Written("az://b") => readable_writeable_listable);
}

mod written_in_memory {
    use crate::memory::WrittenInMemory;

    zarrd_store_testkit::conformance_tests!(WrittenInMemory => readable_writeable_listable);
}

mod in_memory {
    use crate::memory::InMemoryBucket;

    use super::Foreign;

    zarrd_store_testkit::conformance_tests!(Foreign::<InMemoryBucket>::new() => readable_writeable_listable, snapshots);
}

mod s3 {
    use super::{Foreign, Remote, S3};

    zarrd_store_testkit::conformance_tests!(Foreign::<Remote<S3>>::new() => readable_writeable_listable, snapshots);
}

mod azure {
    use super::{AZURE, Foreign, Remote};

    zarrd_store_testkit::conformance_tests!(Foreign::<Remote<AZURE>>::new() => readable_writeable_listable, snapshots);
}

#[tokio::test]
async fn a_body_that_ends_early_without_an_error_is_resumed_and_never_a_short_value() {
    let mut bucket = crate::memory::Paged::default();
    bucket.put(&Path::from("a"), "0123456789".into()).await.unwrap();
    bucket.cut = Some(3);
    let options = || {
        let mut options = Options::with_variables([]);
        options.retries = 3;
        options
    };
    let read = async |bucket| {
        let store =
            BucketStore::open_bucket(&"s3://memory".parse().unwrap(), Arc::new(bucket), options()).await.unwrap();
        store.get(&Key::parse("a").unwrap(), None).await.unwrap().unwrap().bytes().await
    };
    assert_eq!(read(bucket.clone()).await.unwrap(), "0123456789");
    bucket.cut = Some(1);
    let error = read(bucket).await.unwrap_err();
    assert!(matches!(error.backend_source::<RequestError>().unwrap().failure, Failure::Short { .. }), "{error:?}");
}
