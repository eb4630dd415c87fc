//! Reads of data of a distant store that are remembered.

use tokio::time::{Duration, advance};
use zarrd_array::{Options, Purpose};
use zarrd_store::Recheck;

use crate::latency::{
    checked,
    distant_store::{DistantStore, Request},
    document, plan, read, with_checksum,
};

const SELECT: &str = "0:4";

async fn store() -> DistantStore {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(8, 2, &checked())).await;
    for chunk in 0..4_u8 {
        store.set(&format!("a/c/{chunk}"), with_checksum(&[chunk; 2])).await;
    }
    store
}

#[tokio::test(start_paused = true)]
async fn changes_are_seen_after_the_time_and_not_before() {
    let store = store().await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    assert_eq!(read(&arrays, SELECT).await.unwrap(), [0, 0, 1, 1]);
    store.set("a/c/1", with_checksum(&[7, 7])).await;
    store.set("a/zarr.json", document(3, 2, &checked())).await;
    advance(Duration::from_millis(4_800)).await;
    let (elements, trips, _) = store.measure(read(&arrays, SELECT)).await;
    assert_eq!((elements.unwrap(), trips), (vec![0, 0, 1, 1], 0));
    advance(Duration::from_millis(400)).await;
    let (elements, trips, requests) = store.measure(read(&arrays, "")).await;
    assert_eq!(elements.unwrap(), [0, 0, 7]);
    // The document is looked at, with the four chunks that it described, and read; then both chunks of the new one,
    // whose versions are known by now.
    assert_eq!((trips, requests.len()), (3, 8));
}

#[tokio::test(start_paused = true)]
async fn what_did_not_change_is_looked_at_and_not_read() {
    let store = store().await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    let first = plan(&arrays, SELECT).await.unwrap().fingerprint();
    read(&arrays, SELECT).await.unwrap();
    advance(Duration::from_secs(5)).await;
    let (elements, trips, requests) = store.measure(read(&arrays, SELECT)).await;
    assert_eq!((elements.unwrap(), trips), (vec![0, 0, 1, 1], 1));
    let looks = ["a/zarr.json", "a/c/0", "a/c/1"].map(|key| Request::Head(key.to_owned()));
    assert_eq!(requests, looks);
    assert_eq!(plan(&arrays, SELECT).await.unwrap().fingerprint(), first);
}

#[tokio::test(start_paused = true)]
async fn data_that_never_change_are_read_once() {
    let store = store().await;
    let arrays = store.arrays(Recheck::Never, Options::default());
    assert_eq!(read(&arrays, SELECT).await.unwrap(), [0, 0, 1, 1]);
    store.set("a/zarr.json", document(3, 2, &checked())).await;
    advance(Duration::from_secs(1_000_000)).await;
    let (elements, trips, _) = store.measure(read(&arrays, SELECT)).await;
    assert_eq!((elements.unwrap(), trips), (vec![0, 0, 1, 1], 0));
}

#[tokio::test(start_paused = true)]
async fn without_memory_every_read_asks() {
    let store = store().await;
    let arrays = store.arrays(Recheck::Always, Options::default());
    read(&arrays, SELECT).await.unwrap();
    store.set("a/c/1", with_checksum(&[7, 7])).await;
    let (elements, trips, _) = store.measure(read(&arrays, SELECT)).await;
    assert_eq!((elements.unwrap(), trips), (vec![0, 0, 7, 7], 2));
}

/// A version that is remembered and no longer there is found out when the chunk is read, and the read begins anew.
#[tokio::test(start_paused = true)]
async fn a_remembered_version_that_is_gone_begins_the_read_anew() {
    let store = store().await;
    let arrays = store.arrays(Recheck::DISTANT, Options { cache_capacity: 0, ..Options::default() });
    let planned = plan(&arrays.clone().with_purpose(Purpose::Description), SELECT).await.unwrap();
    store.set("a/c/1", with_checksum(&[7, 7])).await;
    let error = crate::latency::collect(planned).await.unwrap_err();
    assert!(
        matches!(&error, zarrd_array::ArrayError::Store(zarrd_store::StoreError::Changed { key }) if key.as_str() == "a/c/1"),
        "{error:?}"
    );
    // The old version was forgotten, long before its time was over.
    assert_eq!(read(&arrays, SELECT).await.unwrap(), [0, 0, 7, 7]);
}

/// A rewritten array is found out by one failed attempt, however many chunks are remembered.
#[tokio::test(start_paused = true)]
async fn a_rewritten_array_is_read_at_the_second_attempt() {
    let store = DistantStore::new();
    store.set("a/zarr.json", document(400, 2, &checked())).await;
    let fill = async |value: u8| {
        for chunk in 0..200 {
            store.set(&format!("a/c/{chunk}"), with_checksum(&[value; 2])).await;
        }
    };
    fill(1).await;
    let arrays = store.arrays(Recheck::Never, Options { cache_capacity: 0, ..Options::default() });
    assert_eq!(read(&arrays, "").await.unwrap(), [1; 400]);
    fill(2).await;
    let error = read(&arrays, "").await.unwrap_err();
    assert!(matches!(&error, zarrd_array::ArrayError::Store(zarrd_store::StoreError::Changed { .. })), "{error:?}");
    assert_eq!(read(&arrays, "").await.unwrap(), [2; 400]);
}

/// That a chunk is missing is remembered as well.
#[tokio::test(start_paused = true)]
async fn missing_chunks_are_remembered() {
    let store = store().await;
    store.erase("a/c/1").await;
    let arrays = store.arrays(Recheck::DISTANT, Options::default());
    assert_eq!(read(&arrays, SELECT).await.unwrap(), [0, 0, 9, 9]);
    let (elements, trips, _) = store.measure(read(&arrays, SELECT)).await;
    assert_eq!((elements.unwrap(), trips), (vec![0, 0, 9, 9], 0));
}
