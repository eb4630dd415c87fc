//! Metadata that are cached for a while, as in buckets, while another process changes them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::json;
use zarrd_array::{Arrays, CreateAction, Options};
use zarrd_store::{CachedStore, Keyed, Operation, Recheck, ServedStore, StoreError, StoreWrapper};

use super::fake_store::{BUCKET, Engine, FakeStore, array};

/// An engine that takes what it read for current, over the same store.
fn caching(other: &Engine) -> Engine {
    let cached = CachedStore::new(other.store.clone(), Recheck::After(Duration::from_secs(3600)));
    let served = ServedStore::key_by_key(Arc::new(Keyed::new(cached, BUCKET)));
    let arrays = Arrays::new(served, Options::default());
    Engine { store: other.store.clone(), nodes: arrays.hierarchies(), arrays }
}

/// An engine over an array, and another one that has read and cached it.
async fn two_engines(len: u64) -> (Engine, Engine) {
    let other = Engine::with_array(BUCKET, len).await;
    let engine = caching(&other);
    assert_eq!(engine.read().await, vec![1; len as usize]);
    (engine, other)
}

#[tokio::test]
async fn write_outside_of_the_cached_shape_is_not_lost() {
    let (engine, other) = two_engines(4).await;
    other.patch("/a", &json!({"shape": [12]})).await.unwrap();
    let report = engine.write("4:8", vec![2; 4]).await.unwrap();
    assert_eq!(report.chunks_written, 1);
    assert_eq!(other.read().await, [1, 1, 1, 1, 2, 2, 2, 2, 0, 0, 0, 0]);
}

#[tokio::test]
async fn fill_value_is_written_to_a_chunk_that_is_cached_as_absent() {
    let other = Engine::new(BUCKET);
    other.create("/a", &array(8)).await.unwrap();
    let engine = caching(&other);
    assert_eq!(engine.read().await, [0; 8]);
    other.write("0:8", vec![3; 8]).await.unwrap();
    let report = engine.write("2:6", vec![0; 4]).await.unwrap();
    assert_eq!((report.chunks_written, report.conflicts_retried), (2, 2));
    assert_eq!(other.read().await, [3, 3, 0, 0, 0, 0, 3, 3]);
    // Where it is absent, nothing is changed.
    engine.store.take_changed();
    other.erase("/a").await.unwrap();
    other.create("/a", &array(8)).await.unwrap();
    engine.store.take_changed();
    other.write("2:6", vec![0; 4]).await.unwrap();
    assert!(other.store.take_changed().is_empty());
}

#[tokio::test]
async fn shape_and_attributes_that_are_as_cached_are_compared_with_what_is_stored() {
    let (engine, other) = two_engines(8).await;
    other.patch("/a", &json!({"shape": [4], "attributes": {"n": 1}})).await.unwrap();
    engine.patch("/a", &json!({"shape": [8]})).await.unwrap();
    assert_eq!(other.read().await, [1, 1, 1, 1, 0, 0, 0, 0]);
    engine.patch("/a", &json!({"attributes": {"n": null}})).await.unwrap();
    let model = other.arrays.model(&super::fake_store::path("/a"), None).await.unwrap().0;
    assert_eq!(model.attributes.as_str(), "{}");
}

#[tokio::test]
async fn declaration_that_is_as_cached_is_compared_with_what_is_stored() {
    let (engine, other) = two_engines(8).await;
    other.erase("/a").await.unwrap();
    let declared = engine.create("/a", &array(8)).await.unwrap();
    assert_eq!(declared.action, CreateAction::Created);
    assert_eq!(other.read().await, [0; 8]);
}

#[tokio::test]
async fn node_that_is_cached_as_absent_is_erased() {
    let other = Engine::new(BUCKET);
    let engine = caching(&other);
    assert!(engine.erase("/a").await.is_err());
    other.create("/a", &array(8)).await.unwrap();
    engine.erase("/a").await.unwrap();
    assert!(other.store.keys().await.is_empty());
}

/// A store whose array another process makes larger, and writes, once it was listed.
struct GrowsMeanwhile {
    store: FakeStore,
    is_listed: AtomicBool,
}

#[async_trait]
impl StoreWrapper for GrowsMeanwhile {
    type Inner = FakeStore;

    fn inner(&self) -> &FakeStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::ListPrefix(_) => self.is_listed.store(true, Ordering::SeqCst),
            Operation::Head(key) if key.name() == "zarr.json" && self.is_listed.swap(false, Ordering::SeqCst) => {
                self.store.put("a/zarr.json", array(16).to_string()).await;
                self.store.put("a/c/3", vec![9; 4]).await;
            }
            _ => {}
        }
        Ok(())
    }
}

#[tokio::test]
async fn chunks_of_an_array_that_grew_since_it_was_made_smaller_are_not_erased() {
    let other = Engine::with_array(BUCKET, 16).await;
    let store = GrowsMeanwhile { store: other.store.clone(), is_listed: AtomicBool::new(false) };
    let served = ServedStore::key_by_key(Arc::new(Keyed::new(store, BUCKET)));
    let arrays = Arrays::new(served, Options::default());
    let engine = Engine { store: other.store.clone(), nodes: arrays.hierarchies(), arrays };
    engine.patch("/a", &json!({"shape": [9]})).await.unwrap();
    assert_eq!(other.read().await, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 9, 9, 9]);
}
