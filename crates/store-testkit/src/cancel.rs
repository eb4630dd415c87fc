//! Futures and streams that are dropped before their end.

use std::{future::Future, pin::pin, time::Duration};

use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use super::{
    Storage,
    test_value::TestValue,
    tools::{assert_absent, assert_has, get, key, put},
};
use zarrd_store::{Payload, Precondition};

/// A payload that yields some chunks and then never continues.
fn stalling_payload(payload: TestValue, chunks: usize) -> Payload {
    let begin: Vec<_> = payload.chunks().take(chunks).map(Ok).collect();
    Payload::sized(payload.len, stream::iter(begin).chain(stream::pending()))
}

pub(super) async fn a_set_cancelled_midway_changes_nothing(store: impl Storage) {
    let old = TestValue::new(1, 7_000);
    put(&store, "a/old", old.payload()).await;
    for (size, chunks) in [(10, 0), (10_000, 2), (1 << 20, 3), (4 << 20, 60)] {
        let payload = TestValue::new(2, size);
        for at in ["a/old", "a/absent"] {
            let at = key(at);
            let set = store.set(&at, stalling_payload(payload, chunks), Precondition::none());
            let ended = tokio::time::timeout(Duration::from_millis(100), set).await;
            assert!(ended.is_err(), "a set ended without its content: {ended:?}");
        }
        assert_has(&store, "a/old", old).await;
        assert_absent(&store, "a/absent").await;
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_has(&store, "a/old", old).await;
    assert_absent(&store, "a/absent").await;
    let new = TestValue::new(3, 8_000);
    put(&store, "a/old", new.payload()).await;
    assert_has(&store, "a/old", new).await;
}

/// Polls the future up to `polls` times with pauses, and drops it. Returns true if it completed.
pub(super) async fn drop_after<T>(polls: usize, future: impl Future<Output = T>) -> Option<T> {
    let mut future = pin!(future);
    for _ in 0..polls {
        if let Some(output) = (&mut future).now_or_never() {
            return Some(output);
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    None
}

pub(super) async fn a_set_cancelled_anywhere_is_atomic(store: impl Storage) {
    let (old, new) = (TestValue::new(1, 9_000), TestValue::new(2, 300_000));
    for polls in 0..20 {
        let at = format!("a/{polls}");
        let version = put(&store, &at, old.payload()).await;
        let ended = drop_after(polls, store.set(&key(&at), new.payload(), Precondition::none())).await;
        // A remote store may make the change later, so check more than once.
        for _ in 0..3 {
            let value = store.get(&key(&at), None).await.unwrap().expect("the old value or the new one");
            if value.meta.version == version {
                assert!(ended.is_none(), "a set that was acknowledged is not to be seen");
                old.assert_is(value).await;
            } else {
                new.assert_is(value).await;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub(super) async fn an_erase_cancelled_anywhere_is_atomic(store: impl Storage) {
    let payload = TestValue::new(1, 9_000);
    for polls in 0..10 {
        let at = format!("a/{polls}");
        put(&store, &at, payload.payload()).await;
        let ended = drop_after(polls, store.erase(&key(&at), Precondition::none())).await;
        match store.get(&key(&at), None).await.unwrap() {
            Some(value) => {
                assert!(ended.is_none(), "an erase that was acknowledged is not to be seen");
                payload.assert_is(value).await;
            }
            None => assert_eq!(store.head(&key(&at)).await.unwrap(), None),
        }
    }
}

pub(super) async fn dropping_a_value_midway_has_no_effect(store: impl Storage) {
    let payload = TestValue::new(1, 4 << 20);
    put(&store, "a", payload.payload()).await;
    for _ in 0..20 {
        let unread = store.get(&key("a"), None).await.unwrap().unwrap();
        let mut started = store.get(&key("a"), None).await.unwrap().unwrap();
        assert!(started.stream.try_next().await.unwrap().is_some());
        drop((unread, started));
    }
    assert_has(&store, "a", payload).await;
    put(&store, "a", "new").await;
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"new"[..]));
}
