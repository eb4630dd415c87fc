//! Payloads that arrive in chunks, or fail to arrive.

use bytes::Bytes;
use futures::{StreamExt, stream};

use super::{
    Storage,
    test_value::{TestValue, broken_payload},
    tools::{assert_absent, assert_has, get, key, put},
};
use zarrd_store::{BackendErrorKind, Payload, Precondition, StoreError, UploadError};

pub(super) async fn payloads_may_have_chunks_of_any_size(store: impl Storage) {
    let payload = TestValue::new(3, 50_000);
    let bytes = payload.bytes();
    for size in [1, 100, 4_096, 49_999, 50_000] {
        let chunks: Vec<_> = bytes.chunks(size).map(|chunk| Ok(Bytes::copy_from_slice(chunk))).collect();
        put(&store, "a", Payload::from_stream(stream::iter(chunks))).await;
        assert_has(&store, "a", payload).await;
    }
    // Empty chunks do not end a payload.
    let chunks = [b"".as_slice(), b"one", b"", b"", b"two", b""].map(|chunk| Ok(Bytes::from_static(chunk)));
    put(&store, "b", Payload { size: Some(6), ..Payload::from_stream(stream::iter(chunks)) }).await;
    assert_eq!(get(&store, "b").await.as_deref(), Some(&b"onetwo"[..]));
    put(&store, "c", Payload::from_stream(stream::iter([Ok(Bytes::new())]))).await;
    assert_has(&store, "c", TestValue::new(0, 0)).await;
    // Nor do pauses.
    let slow = stream::iter(payload.chunks()).then(|chunk| async {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        Ok(chunk)
    });
    put(&store, "d", Payload::sized(payload.len, slow)).await;
    assert_has(&store, "d", payload).await;
}

/// Asserts that setting this payload, for an absent key and for one with a value, fails like an upload and changes
/// neither.
async fn assert_changes_nothing(store: &impl Storage, payload: impl Fn() -> Payload) {
    let old = TestValue::new(77, 6_000);
    let version = put(store, "kept/a", old.payload()).await;
    for at in ["kept/a", "kept/absent"] {
        let error = store.set(&key(at), payload(), Precondition::none()).await.expect_err("a broken upload");
        // On the way to a remote store, the connection may fail instead.
        let reported = matches!(
            error,
            StoreError::Upload(UploadError::Aborted(_) | UploadError::LengthMismatch { .. })
                | StoreError::Backend { kind: BackendErrorKind::Connection | BackendErrorKind::InvalidResponse, .. }
        );
        assert!(reported, "{error:?}");
    }
    assert_has(store, "kept/a", old).await;
    assert_eq!(store.head(&key("kept/a")).await.unwrap().unwrap().version, version);
    assert_absent(store, "kept/absent").await;
    // The key can be set again.
    let new = TestValue::new(78, 5_000);
    put(store, "kept/a", new.payload()).await;
    assert_has(store, "kept/a", new).await;
}

pub(super) async fn an_aborted_payload_changes_nothing(store: impl Storage) {
    for (size, chunks) in [(10, 0), (10_000, 1), (10_000, 2), (1 << 20, 0), (1 << 20, 20)] {
        let broken = || {
            let error = UploadError::Aborted("the sender went away".into());
            broken_payload(TestValue::new(5, size), chunks, error.into())
        };
        assert_changes_nothing(&store, broken).await;
        assert_changes_nothing(&store, || Payload { size: None, ..broken() }).await;
    }
}

pub(super) async fn a_short_payload_changes_nothing(store: impl Storage) {
    for (size, announced) in [(0, 1), (9, 10), (4_096, 4_097), (4_097, 1 << 20), (1 << 20, 2 << 20)] {
        let payload = TestValue::new(6, size);
        assert_changes_nothing(&store, || Payload { size: Some(announced), ..payload.payload() }).await;
    }
}

pub(super) async fn a_long_payload_changes_nothing(store: impl Storage) {
    for (size, announced) in [(1, 0), (11, 10), (4_097, 4_096), (1 << 20, 4_097), (1 << 20, (1 << 20) - 1)] {
        let payload = TestValue::new(7, size);
        assert_changes_nothing(&store, || Payload { size: Some(announced), ..payload.payload() }).await;
    }
}
