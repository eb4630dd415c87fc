//! The storage traits, without arrays.

use futures::TryStreamExt;
use zarrd_client::zarrs::ZarrsStore;
use zarrd_store::{ByteRange as StoreRange, ListableStore, MemoryStore, ReadableStore, WriteableStore};
use zarrs_storage::{
    AsyncListableStorageTraits, AsyncReadableStorageTraits, AsyncWritableStorageTraits, Bytes, StorageError, StoreKey,
    StorePrefix,
    byte_range::ByteRange,
    store_test::{async_store_list, async_store_list_size, async_store_read, async_store_write},
};

use crate::{test_server::TestServer, zarrs::recording_store::RecordingStore};

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

async fn parts<S: AsyncReadableStorageTraits>(store: &S, ranges: Vec<ByteRange>) -> Result<Vec<Bytes>, StorageError> {
    let parts = store.get_partial_many(&key("k"), Box::new(ranges.into_iter())).await?;
    parts.expect("a value").try_collect().await
}

#[tokio::test]
async fn test_suite_of_zarrs_passes() {
    run_test_suite(MemoryStore::new()).await;
    let server = TestServer::start().await;
    run_test_suite(server.store.clone()).await;
}

async fn run_test_suite<S: ReadableStore + WriteableStore + ListableStore>(store: S) {
    let store = ZarrsStore::new(store);
    async_store_write(&store).await.unwrap();
    async_store_read(&store).await.unwrap();
    async_store_list(&store).await.unwrap();
    async_store_list_size(&store).await.unwrap();
}

#[tokio::test]
async fn adjacent_ranges_are_read_in_one_request() {
    let recording = RecordingStore::new();
    let store = ZarrsStore::new(recording.clone());
    let value: Vec<u8> = (0..100_000_u32).map(|byte| byte as u8).collect();
    store.set(&key("k"), value.clone().into()).await.unwrap();
    let rows = (0..100).map(|row| ByteRange::FromStart(row * 1000, Some(10)));
    let ranges = rows.rev().chain([ByteRange::Suffix(5), ByteRange::FromStart(7, Some(0))]).collect();
    let result = parts(&store, ranges).await.unwrap();
    assert_eq!(result.len(), 102);
    for (row, part) in (0..100).rev().zip(&result) {
        assert_eq!(part, &value[row * 1000..row * 1000 + 10]);
    }
    assert_eq!((&result[100][..], &result[101][..]), (&value[99_995..], &[][..]));
    let requested: Vec<_> = recording.take_gets().into_iter().map(|(_, range)| range.unwrap()).collect();
    assert_eq!(requested, [StoreRange::Last(5), StoreRange::bounded(0, 99_010).unwrap()]);
}

#[tokio::test]
async fn ranges_beyond_the_value_are_errors() {
    let store = ZarrsStore::new(MemoryStore::new());
    store.set(&key("k"), Bytes::from_static(b"0123")).await.unwrap();
    assert_eq!(parts(&store, vec![ByteRange::FromStart(4, None)]).await.unwrap(), [""]);
    for bad in [
        ByteRange::FromStart(5, None),
        ByteRange::FromStart(3, Some(2)),
        ByteRange::FromStart(9, Some(2)),
        ByteRange::FromStart(u64::MAX, Some(u64::MAX)),
        ByteRange::Suffix(5),
    ] {
        let error = parts(&store, vec![ByteRange::FromStart(0, Some(1)), bad]).await.unwrap_err();
        assert!(matches!(error, StorageError::InvalidByteRangeError(_)), "{bad}: {error}");
    }
    let missing = store.get_partial_many(&key("m"), Box::new([ByteRange::Suffix(1)].into_iter())).await.unwrap();
    assert!(missing.is_none());
    let nothing = store.get_partial_many(&key("m"), Box::new([].into_iter())).await.unwrap();
    assert!(nothing.is_none());
}

#[tokio::test]
async fn all_ranges_are_of_one_version() {
    let recording = RecordingStore::new();
    let store = ZarrsStore::new(recording.clone());
    store.set(&key("k"), Bytes::from_static(b"aaaa")).await.unwrap();
    recording.write_after_reads(&["bbbb", "cccc"]);
    let result = parts(&store, vec![ByteRange::FromStart(0, Some(2)), ByteRange::Suffix(2)]).await.unwrap();
    assert_eq!(result, ["cc", "cc"]);
    assert_eq!(recording.pending_writes(), 0);
    recording.write_after_reads(&["x123"; 1000]);
    let ranges = vec![ByteRange::FromStart(0, Some(2)), ByteRange::Suffix(2)];
    parts(&store, ranges).await.expect_err("writes never stop");
}

#[tokio::test]
async fn partial_writes_apply_to_the_latest_value() {
    let recording = RecordingStore::new();
    let store = ZarrsStore::new(recording.clone());
    recording.write_after_reads(&["bbbb", "cccc"]);
    store.set_partial(&key("k"), 6, Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(recording.pending_writes(), 0);
    assert_eq!(store.get(&key("k")).await.unwrap().unwrap(), Bytes::from_static(b"cccc\0\0x"));
    recording.write_after_reads(&["y"; 1000]);
    store.set_partial(&key("k"), 0, Bytes::from_static(b"z")).await.expect_err("writes never stop");
}

#[tokio::test]
async fn invalid_keys_are_unsupported() {
    let store = ZarrsStore::new(MemoryStore::new());
    for bad in [StoreKey::root(), key("a/../b"), key("a\n"), key(&"k".repeat(1025))] {
        assert!(matches!(store.get(&bad).await.unwrap_err(), StorageError::Unsupported(_)), "{bad}");
        assert!(matches!(store.erase_many(&[bad]).await.unwrap_err(), StorageError::Unsupported(_)));
    }
    let bad = StorePrefix::new("a/./").unwrap();
    assert!(matches!(store.list_dir(&bad).await.unwrap_err(), StorageError::Unsupported(_)));
}
