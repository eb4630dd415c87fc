//! Hierarchies, arrays and shards with `zarrs`.

use std::{ops::Range, sync::Arc};

use zarrd_client::zarrs::ZarrsStore;
use zarrd_store::{ByteRange, ListableStore, ReadableStore, WriteableStore};
use zarrs::{
    array::{
        Array, ArrayBuilder, ArraySubset,
        codec::{GzipCodec, ZstdCodec},
        data_type,
    },
    group::{Group, GroupBuilder},
    storage::{AsyncReadableWritableListableStorage, StorePrefix},
};

use crate::{test_server::TestServer, zarrs::recording_store::RecordingStore};

fn storage<S>(store: S) -> AsyncReadableWritableListableStorage
where
    S: ReadableStore + WriteableStore + ListableStore + 'static,
{
    Arc::new(ZarrsStore::new(store))
}

/// Creates a group and an array, writes chunks and regions, opens both again and reads them.
async fn write_and_read(storage: AsyncReadableWritableListableStorage) {
    let mut group = GroupBuilder::new().build(storage.clone(), "/lab").unwrap();
    group.attributes_mut().insert("mice".into(), 42.into());
    group.async_store_metadata().await.unwrap();
    let array = ArrayBuilder::new(vec![8, 8], vec![4, 4], data_type::float32(), f32::NAN)
        .bytes_to_bytes_codecs(vec![Arc::new(GzipCodec::new(5).unwrap())])
        .dimension_names(["y", "x"].into())
        .build(storage.clone(), "/lab/array")
        .unwrap();
    array.async_store_metadata().await.unwrap();
    array.async_store_chunk(&[0, 0], vec![1.0_f32; 16]).await.unwrap();
    let corner: Vec<f32> = (0..9_u8).map(f32::from).collect();
    array.async_store_array_subset(&ArraySubset::new_with_ranges(&[3..6, 3..6]), corner.clone()).await.unwrap();

    let group = Group::async_open(storage.clone(), "/lab").await.unwrap();
    assert_eq!(group.attributes()["mice"], 42);
    let children = group.async_children(false).await.unwrap();
    assert_eq!(children.iter().map(|node| node.path().as_str()).collect::<Vec<_>>(), ["/lab/array"]);
    let array = Array::async_open(storage.clone(), "/lab/array").await.unwrap();
    let read = async |ranges: &[Range<u64>; 2]| {
        array.async_retrieve_array_subset::<Vec<f32>>(&ArraySubset::new_with_ranges(ranges)).await.unwrap()
    };
    assert_eq!(read(&[3..6, 3..6]).await, corner);
    let row = read(&[3..4, 0..8]).await;
    assert_eq!(row[..6], [1.0, 1.0, 1.0, 0.0, 1.0, 2.0]);
    assert!(row[6].is_nan(), "missing chunks have the fill value");
    array.async_erase_chunk(&[0, 0]).await.unwrap();
    assert!(read(&[0..1, 0..1]).await[0].is_nan());
    let keys: Vec<String> = storage.list().await.unwrap().iter().map(ToString::to_string).collect();
    let chunks = ["c/0/1", "c/1/0", "c/1/1", "zarr.json"].map(|name| format!("lab/array/{name}"));
    assert_eq!(keys, [&chunks[..], &["lab/zarr.json".to_owned()]].concat());
}

/// Creates and writes an array of two shards of 4 × 2 chunks; returns its elements.
async fn sharded(storage: AsyncReadableWritableListableStorage) -> Vec<u16> {
    let array = ArrayBuilder::new(vec![1024, 512], vec![512, 512], data_type::uint16(), 0_u16)
        .subchunk_shape(vec![128, 256])
        .bytes_to_bytes_codecs(vec![Arc::new(ZstdCodec::new(3, false))])
        .build(storage, "/sharded")
        .unwrap();
    array.async_store_metadata().await.unwrap();
    let elements: Vec<u16> = (0..1024 * 512_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 7) as u16).collect();
    array.async_store_array_subset(&array.subset_all(), elements.clone()).await.unwrap();
    elements
}

/// Reads parts of the shards, and changes one.
async fn read_sharded(storage: AsyncReadableWritableListableStorage, elements: &[u16]) {
    let array = Array::async_open(storage, "/sharded").await.unwrap();
    let part = ArraySubset::new_with_ranges(&[510..514, 254..258]);
    let wanted: Vec<u16> = (510..514).flat_map(|y| elements[y * 512 + 254..y * 512 + 258].iter().copied()).collect();
    assert_eq!(array.async_retrieve_array_subset::<Vec<u16>>(&part).await.unwrap(), wanted);
    assert_eq!(array.async_retrieve_array_subset::<Vec<u16>>(&array.subset_all()).await.unwrap(), elements);
    array.async_store_array_subset(&part, vec![7_u16; 16]).await.unwrap();
    assert_eq!(array.async_retrieve_array_subset::<Vec<u16>>(&part).await.unwrap(), [7; 16]);
    let after = ArraySubset::new_with_ranges(&[514..515, 254..258]);
    let wanted = &elements[514 * 512 + 254..514 * 512 + 258];
    assert_eq!(array.async_retrieve_array_subset::<Vec<u16>>(&after).await.unwrap(), wanted);
}

#[tokio::test]
async fn arrays_in_memory_are_written_and_read() {
    write_and_read(storage(zarrd_store::MemoryStore::new())).await;
}

#[tokio::test]
async fn arrays_over_http_are_written_and_read() {
    let server = TestServer::start().await;
    write_and_read(storage(server.store.clone())).await;
    let elements = sharded(storage(server.store.clone())).await;
    read_sharded(storage(server.store.clone()), &elements).await;
    storage(server.store.clone()).erase_prefix(&StorePrefix::new("lab/").unwrap()).await.unwrap();
    assert!(Group::async_open(storage(server.store.clone()), "/lab").await.is_err(), "it was erased");
}

#[tokio::test]
async fn shards_are_read_partially() {
    let recording = RecordingStore::new();
    let elements = sharded(storage(recording.clone())).await;
    let array = Array::async_open(storage(recording.clone()), "/sharded").await.unwrap();
    recording.take_gets();
    let part = ArraySubset::new_with_ranges(&[130..132, 300..303]);
    let result = array.async_retrieve_array_subset::<Vec<u16>>(&part).await.unwrap();
    assert_eq!(result[..3], elements[130 * 512 + 300..130 * 512 + 303]);
    let gets = recording.take_gets();
    assert_eq!(gets.len(), 2, "the index and one chunk: {gets:?}");
    assert!(gets.iter().all(|(key, _)| key.as_str() == "sharded/c/0/0"), "{gets:?}");
    // Eight chunks, each with offset and length, and a checksum.
    assert_eq!(gets[0].1, Some(ByteRange::Last(8 * 16 + 4)));
    assert!(matches!(gets[1].1, Some(ByteRange::Bounded { .. })), "{gets:?}");
    read_sharded(storage(recording), &elements).await;
}
