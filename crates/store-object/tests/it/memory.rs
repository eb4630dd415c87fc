//! A bucket in memory, as the library has it, with listings in pages.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use object_store::{
    CopyOptions, Extensions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore},
    memory::InMemory,
    path::Path,
};
use zarrd_store::{Guarantees, Key, Keyed, SnapshotStore};
use zarrd_store_object::{BucketStore, Options, WriteMode};
use zarrd_store_testkit::{Factory, ForeignData};

/// A bucket in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paged {
    objects: Arc<InMemory>,
    /// Bodies have no more bytes than this.
    pub(crate) cut: Option<usize>,
}

impl fmt::Display for Paged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Paged")
    }
}

#[async_trait]
impl ObjectStore for Paged {
    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.objects.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.objects.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let mut result = self.objects.get_opts(location, options).await?;
        if let Some(cut) = self.cut {
            let (meta, range) = (result.meta.clone(), result.range.clone());
            let attributes = std::mem::take(&mut result.attributes);
            let bytes = result.bytes().await?;
            let cut = bytes.slice(..bytes.len().min(cut));
            let payload = GetResultPayload::Stream(futures::stream::once(async { Ok(cut) }).boxed());
            return Ok(GetResult { payload, meta, range, attributes, extensions: Extensions::default() });
        }
        Ok(result)
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.objects.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

#[async_trait]
impl PaginatedListStore for Paged {
    async fn list_paginated(&self, prefix: Option<&str>, options: PaginatedListOptions) -> Result<PaginatedListResult> {
        let prefix = prefix.unwrap_or_default();
        let after = options.page_token.or(options.offset).unwrap_or_default();
        let mut all: Vec<ObjectMeta> = self.objects.list(None).try_collect().await?;
        all.sort_by(|one, other| one.location.cmp(&other.location));
        let mut result =
            ListResult { common_prefixes: Vec::new(), objects: Vec::new(), extensions: Default::default() };
        let mut last = String::new();
        for object in all {
            let name = object.location.as_ref().to_owned();
            let Some(rest) = name.strip_prefix(prefix).filter(|_| name > after) else { continue };
            let rolled = options.delimiter.as_ref().and_then(|_| rest.find('/'));
            let rolled = rolled.map(|at| Path::parse(format!("{prefix}{}", rest.get(..at).unwrap())).unwrap());
            if rolled.is_some() && result.common_prefixes.last() == rolled.as_ref() {
                last = name;
                continue;
            }
            if result.objects.len() + result.common_prefixes.len() == options.max_keys.unwrap_or(1_000) {
                return Ok(PaginatedListResult { result, page_token: Some(last) });
            }
            match rolled {
                Some(rolled) => result.common_prefixes.push(rolled),
                None => result.objects.push(object),
            }
            last = name;
        }
        Ok(PaginatedListResult { result, page_token: None })
    }
}

/// A bucket in memory, and the store that reads it.
pub(crate) struct InMemoryBucket {
    bucket: Paged,
    store: Arc<Keyed<BucketStore>>,
}

/// Options of a store with a name that no other has.
fn named() -> Options {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let name = format!("bucket {}", NUMBER.fetch_add(1, Ordering::Relaxed));
    Options::with_variables([]).name(name)
}

/// Buckets in memory that the store writes as well.
pub(crate) struct WrittenInMemory;

impl Factory for WrittenInMemory {
    type Store = BucketStore;
    type Fixture = ();

    fn guarantees(&self, store: &BucketStore) -> Guarantees {
        store.guarantees()
    }

    async fn create(&self) -> (BucketStore, ()) {
        let mut options = named();
        options.writes = WriteMode::Conditional;
        let bucket = Arc::new(Paged::default());
        let store = BucketStore::open_bucket(&"s3://memory".parse().unwrap(), bucket, options).await.unwrap();
        (store, ())
    }
}

impl ForeignData for InMemoryBucket {
    async fn create() -> Self {
        let bucket = Paged::default();
        let options = named();
        let store =
            BucketStore::open_bucket(&"s3://memory".parse().unwrap(), Arc::new(bucket.clone()), options).await.unwrap();
        let guarantees = store.guarantees();
        Self { bucket, store: Arc::new(Keyed::new(store, guarantees)) }
    }

    fn store(&self) -> Arc<dyn SnapshotStore> {
        self.store.clone()
    }

    async fn put(&self, key: &Key, value: Bytes) {
        self.bucket.put(&Path::parse(key.as_str()).unwrap(), value.into()).await.unwrap();
    }

    async fn remove(&self, key: &Key) {
        let path = Path::parse(key.as_str()).unwrap();
        let removed = self.bucket.delete_stream(futures::stream::once(async move { Ok(path) }).boxed());
        removed.try_collect::<Vec<_>>().await.unwrap();
    }
}
