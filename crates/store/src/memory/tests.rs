use bytes::Bytes;
use futures::stream;

use super::*;
use crate::UploadError;

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// A payload of `len` bytes in chunks of 10, without an announced size.
fn streamed(len: usize) -> Payload {
    let chunks: Vec<_> = vec![7_u8; len].chunks(10).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
    Payload::from_stream(stream::iter(chunks))
}

async fn set(store: &MemoryStore, at: &str, payload: Payload) -> Result<PutResult, StoreError> {
    store.set(&key(at), payload, Precondition::none()).await
}

#[tokio::test]
async fn a_value_has_a_limit() {
    let store = MemoryStore::with_limits(MemoryLimits { value_bytes: 100, total_bytes: 10_000 });
    set(&store, "a", streamed(100)).await.unwrap();
    for payload in [streamed(101), vec![0; 101].into(), Payload { size: Some(101), ..streamed(0) }] {
        let error = set(&store, "a", payload).await.unwrap_err();
        assert!(matches!(error, StoreError::Upload(UploadError::TooLarge { limit: 100 })), "{error:?}");
    }
    assert_eq!(store.head(&key("a")).await.unwrap().unwrap().size, 100);
}

#[tokio::test]
async fn the_total_has_a_limit_and_what_is_erased_is_free_again() {
    let store = MemoryStore::with_limits(MemoryLimits { value_bytes: 1_000, total_bytes: 202 });
    set(&store, "a", streamed(100)).await.unwrap();
    set(&store, "b", streamed(100)).await.unwrap();
    assert!(matches!(store.check_writable().await, Err(StoreError::OutOfSpace)));
    for (at, payload) in [("a", streamed(100)), ("c", vec![0; 1].into()), ("c", Payload::from_bytes(""))] {
        assert!(matches!(set(&store, at, payload).await, Err(StoreError::OutOfSpace)));
    }
    assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
    store.check_writable().await.unwrap();
    set(&store, "c", streamed(100)).await.unwrap();
    assert_eq!(store.erase_prefix(&Prefix::root()).await.unwrap(), KeyCount::exact(2));
    assert_eq!(store.0.space.used(), 0);
}

#[tokio::test]
async fn space_is_taken_as_long_as_anybody_holds_the_bytes() {
    let store = MemoryStore::new();
    let used = || store.0.space.used();
    let staged = store.stage(&key("a"), streamed(99)).await.unwrap();
    assert_eq!(used(), 100);
    drop(staged);
    assert_eq!(used(), 0);
    assert!(set(&store, "a", Payload { size: Some(50), ..streamed(99) }).await.is_err());
    assert_eq!(used(), 0);

    set(&store, "a", streamed(99)).await.unwrap();
    let value = store.get(&key("a"), ByteRange::last(1).ok()).await.unwrap().unwrap();
    let snapshot = store.snapshot(&[key("a")]).await.unwrap();
    set(&store, "a", streamed(9)).await.unwrap();
    assert_eq!(used(), 110);
    let bytes = value.bytes().await.unwrap();
    drop(snapshot);
    assert_eq!(used(), 110);
    drop(bytes);
    assert_eq!(used(), 10);
}

#[tokio::test]
async fn content_that_is_too_long_is_refused_while_it_streams() {
    let store = MemoryStore::new();
    let endless = stream::repeat_with(|| Ok(Bytes::from_static(&[0; 10])));
    let payload = Payload { size: Some(25), ..Payload::from_stream(endless) };
    let error = set(&store, "a", payload).await.unwrap_err();
    let expected = matches!(error, StoreError::Upload(UploadError::LengthMismatch { announced: 25, received: 30 }));
    assert!(expected, "{error:?}");
}
