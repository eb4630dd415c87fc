//! Writes during which another writer changes a chunk, or the array's document, right before each commit.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::json;
use zarrd_array::{ArrayError, Arrays, ElementSource, Options, WriteError, WriteReport};
use zarrd_meta::{
    NodePath,
    selection::{ReadRequest, Selection},
};
use zarrd_store::{
    Change, ChangeOutcome, Key, MemoryStore, Precondition, StoreError, StoreWrapper, TransactionalStore, WriteableStore,
};

/// A store that sets a key before each of the next commits.
struct InterferingStore {
    store: MemoryStore,
    key: Key,
    value: Bytes,
    times: AtomicU64,
}

#[async_trait]
impl StoreWrapper for InterferingStore {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        let remainder = self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |times| times.checked_sub(1));
        if remainder.is_ok() {
            self.store.set(&self.key, self.value.clone().into(), Precondition::none()).await?;
        }
        self.store.commit(changes).await
    }
}

fn document(attributes: &str) -> Bytes {
    let document = json!({"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {"told": attributes}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}});
    document.to_string().into()
}

/// An array of ones in a store that sets a key before each of the next `times` commits.
async fn interfering_store(key: &str, value: Bytes, times: u64) -> (Arc<InterferingStore>, Arrays) {
    let store = MemoryStore::new();
    for (key, value) in
        [("a/zarr.json", document("")), ("a/c/0", [1; 4][..].to_vec().into()), ("a/c/1", vec![1; 4].into())]
    {
        store.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }
    let store =
        Arc::new(InterferingStore { store, key: Key::parse(key).unwrap(), value, times: AtomicU64::new(times) });
    let arrays = Arrays::new(store.clone(), Options::default());
    (store, arrays)
}

async fn write(arrays: &Arrays, select: &str) -> Result<WriteReport, WriteError> {
    let path = NodePath::parse("/a").unwrap();
    let selection = Selection::parse(select).unwrap();
    let region = arrays.write(&path, None, &selection, Precondition::none()).await.unwrap();
    region.execute(ElementSource::Scalar(vec![9])).await
}

async fn read(arrays: &Arrays) -> Vec<u8> {
    use futures::TryStreamExt;
    let path = NodePath::parse("/a").unwrap();
    let reading = arrays.read(&path, None, &ReadRequest::Select(Selection::default()), 100).await.unwrap();
    let parts = reading.into_stream().map_ok(|part| match part {
        zarrd_codec::Elements::Fixed(bytes) => bytes.to_vec(),
        zarrd_codec::Elements::Variable(_) => panic!("elements of variable length"),
    });
    parts.try_concat().await.unwrap()
}

#[tokio::test]
async fn conflicting_chunks_are_retried() {
    // A few conflicts are handled optimistically; more of them under locks, which a direct writer to the store ignores.
    for times in [0, 1, 2, 3, 4, 10] {
        let (_, arrays) = interfering_store("a/c/1", Bytes::from_static(&[5; 4]), times).await;
        let report = write(&arrays, "2:6").await.unwrap();
        assert_eq!((report.chunks_written, report.conflicts_retried), (2, times));
        let other = if times == 0 { 1 } else { 5 };
        assert_eq!(read(&arrays).await, [1, 1, 9, 9, 9, 9, other, other]);
    }
}

#[tokio::test]
async fn conflicting_chunks_with_points_are_retried() {
    let path = NodePath::parse("/a").unwrap();
    let points = || [5, -2, 5, 0].iter().map(|&at| vec![at]).collect();
    for (key, value, conflicts) in
        [("a/c/1", Bytes::from_static(&[5; 4]), 3), ("a/zarr.json", document("something"), 0)]
    {
        let (_, arrays) = interfering_store(key, value, 3).await;
        let write = arrays.write_points(&path, None, points(), Precondition::none()).await.unwrap();
        let bytes = futures::stream::iter([Ok(Bytes::from_static(&[6, 7, 8, 9]))]);
        let report = write.execute(ElementSource::Fixed(Box::pin(bytes))).await.unwrap();
        assert_eq!((report.chunks_written, report.conflicts_retried), (2, conflicts));
        let other = if conflicts == 0 { 1 } else { 5 };
        assert_eq!(read(&arrays).await, [9, 1, 1, 1, other, 8, 7, other]);
    }
}

#[tokio::test]
async fn gives_up_when_chunk_keeps_changing() {
    let (store, arrays) = interfering_store("a/c/1", Bytes::from_static(&[5; 4]), u64::MAX).await;
    let error = write(&arrays, "2:6").await.unwrap_err();
    assert!(matches!(error, WriteError::Array(ArrayError::TooManyConflicts { .. })), "{error:?}");
    assert_eq!(read(&arrays).await, [1, 1, 1, 1, 5, 5, 5, 5]);
    // A complete chunk does not depend on the current content.
    assert_eq!(write(&arrays, "4:").await.unwrap().conflicts_retried, 0);
    store.times.store(0, Ordering::Relaxed);
    assert_eq!(read(&arrays).await, [1, 1, 1, 1, 9, 9, 9, 9]);
}

#[tokio::test]
async fn attribute_change_does_not_fail_the_write() {
    let (store, arrays) = interfering_store("a/zarr.json", document("something"), 5).await;
    let path = NodePath::parse("/a").unwrap();
    let report = write(&arrays, "2:6").await.unwrap();
    assert_eq!((report.chunks_written, report.conflicts_retried), (2, 0));
    assert_eq!(report.version, Some(arrays.model(&path, None).await.unwrap().1));
    assert_eq!(read(&arrays).await, [1, 1, 9, 9, 9, 9, 1, 1]);
    store.times.store(5, Ordering::Relaxed);
    let append = arrays.append(&path, None, "0", Precondition::none()).await.unwrap();
    let report = append.execute(Some(3), ElementSource::Scalar(vec![8])).await.unwrap();
    assert_eq!((report.shape, report.conflicts_retried), (vec![11], 5));
    assert_eq!(read(&arrays).await, [1, 1, 9, 9, 9, 9, 1, 1, 8, 8, 8]);
}

#[tokio::test]
async fn chunk_of_a_replaced_array_is_not_reported_as_corrupt() {
    let (store, arrays) = interfering_store("a/c/1", Bytes::new(), 0).await;
    let path = NodePath::parse("/a").unwrap();
    let selection = Selection::parse("2:6").unwrap();
    let region = arrays.write(&path, None, &selection, Precondition::none()).await.unwrap();
    let other = String::from_utf8(document("").to_vec()).unwrap().replace("uint8", "uint16");
    for (key, value) in [("a/zarr.json", Bytes::from(other)), ("a/c/1", vec![1; 8].into())] {
        store.store.set(&Key::parse(key).unwrap(), value.into(), Precondition::none()).await.unwrap();
    }
    let error = region.execute(ElementSource::Scalar(vec![9])).await.unwrap_err();
    assert!(matches!(error, WriteError::ShapeChanged { .. }), "{error:?}");
}
