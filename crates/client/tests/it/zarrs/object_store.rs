//! The suite of zarrs, through its own adapter of `object_store` and the S3 listener.

use std::{future::pending, sync::Arc};

use object_store::aws::AmazonS3Builder;
use tokio::net::TcpListener;
use zarrd_server::{App, OPEN_ACCESS_KEY, OPEN_SECRET_KEY, Settings, Surface, serve_surfaces};
use zarrd_store::MemoryStore;
use zarrs_object_store::AsyncObjectStore;
use zarrs_storage::{
    AsyncWritableStorageTraits, Bytes, StoreKey,
    store_test::{async_store_list, async_store_list_size, async_store_read, async_store_write},
};

#[tokio::test]
async fn test_suite_of_zarrs_passes_over_s3() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let app = App::new(Arc::new(MemoryStore::new()), Settings::default());
    let serving = tokio::spawn(serve_surfaces(vec![(listener, Surface::S3)], app, None, pending()));
    let bucket = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_region("us-east-1")
        .with_bucket_name("lab")
        .with_access_key_id(OPEN_ACCESS_KEY)
        .with_secret_access_key(OPEN_SECRET_KEY)
        .build();
    let store = AsyncObjectStore::new(bucket.unwrap());
    // The bucket exists from its first object on. The suite erases what is in it.
    store.set(&StoreKey::new("first").unwrap(), Bytes::new()).await.unwrap();
    async_store_write(&store).await.unwrap();
    async_store_read(&store).await.unwrap();
    async_store_list(&store).await.unwrap();
    async_store_list_size(&store).await.unwrap();
    serving.abort();
}
