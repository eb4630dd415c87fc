//! Reading complete values.

use std::time::{Duration, SystemTime};

use futures::TryStreamExt;

use super::{
    Storage,
    test_value::TestValue,
    tools::{SIZES, assert_absent, assert_has, get, key, prefix, put, put_names},
};
use zarrd_store::{ByteRange, KeyCount, PageRequest, Precondition};

pub(super) async fn an_absent_key_has_no_value(store: impl Storage) {
    put_names(&store, &["other", "a/b/c"]).await;
    for absent in ["none", "a/none", "a/b/c/none", "othe", "others"] {
        assert_absent(&store, absent).await;
        for range in [ByteRange::From(0), ByteRange::From(u64::MAX), ByteRange::last(1).unwrap()] {
            assert!(store.get(&key(absent), Some(range)).await.unwrap().is_none(), "{absent} {range:?}");
        }
    }
}

pub(super) async fn a_prefix_has_no_value(store: impl Storage) {
    put_names(&store, &["a/b/c"]).await;
    for pure in ["a", "a/b"] {
        assert_absent(&store, pure).await;
        assert!(store.get(&key(pure), Some(ByteRange::From(0))).await.unwrap().is_none(), "{pure}");
        assert!(!store.erase(&key(pure), Precondition::none()).await.unwrap(), "{pure}");
    }
    assert_eq!(get(&store, "a/b/c").await.as_deref(), Some(&b"a/b/c"[..]));
}

pub(super) async fn get_returns_the_metadata(store: impl Storage) {
    let payload = TestValue::new(1, 10_000);
    let version = put(&store, "a/b", payload.payload()).await;
    let value = store.get(&key("a/b"), None).await.unwrap().unwrap();
    assert_eq!((value.meta.size, value.meta.version, value.range.clone()), (10_000, version, 0..10_000));
    payload.assert_is(value).await;

    let range = ByteRange::bounded(5_000, 6_000).unwrap();
    let value = store.get(&key("a/b"), Some(range)).await.unwrap().unwrap();
    assert_eq!((value.meta.size, value.meta.version, value.range.clone()), (10_000, version, 5_000..6_000));
    payload.assert_is(value).await;
}

pub(super) async fn get_head_and_listings_agree(store: impl Storage) {
    for (seed, size) in (0..).zip(SIZES) {
        let at = format!("a/{size}");
        let version = put(&store, &at, TestValue::new(seed, size).payload()).await;
        let got = store.get(&key(&at), None).await.unwrap().unwrap().meta;
        assert_eq!((got.size, got.version), (size, version), "get {at}");
        let part = store.get(&key(&at), Some(ByteRange::last(1).unwrap())).await.unwrap().unwrap().meta;
        assert_eq!(part, got, "a range of {at}");
        assert_eq!(store.head(&key(&at)).await.unwrap(), Some(got.clone()), "head {at}");
        let keys = store.list_prefix(&prefix("a/"), PageRequest::first(100)).await.unwrap().keys;
        assert_eq!(
            keys.iter().find(|entry| entry.key == key(&at)).map(|entry| entry.meta.clone()),
            Some(got.clone()),
            "list_prefix"
        );
        let keys = store.list_dir(&prefix("a/"), PageRequest::first(100)).await.unwrap().keys;
        assert_eq!(
            keys.iter().find(|entry| entry.key == key(&at)).map(|entry| entry.meta.clone()),
            Some(got),
            "list_dir"
        );
    }
}

pub(super) async fn the_time_is_that_of_the_set(store: impl Storage) {
    // Allow for clocks of other machines and file systems.
    let tolerance = Duration::from_secs(2);
    let mut last = SystemTime::now() - tolerance;
    for round in 0..3 {
        put(&store, "a", format!("{round}")).await;
        let modified = store.head(&key("a")).await.unwrap().unwrap().modified;
        assert!(modified >= last, "the time goes back from {last:?} to {modified:?}");
        assert!(modified <= SystemTime::now() + tolerance, "{modified:?} is in the future");
        let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(since.subsec_nanos() % 1_000_000, 0, "{modified:?} is finer than a millisecond");
        last = modified;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(super) async fn values_of_every_size_are_read_as_written(store: impl Storage) {
    for (seed, size) in (10..).zip(SIZES) {
        let (known, unknown) = (TestValue::new(seed, size), TestValue::new(seed + 100, size));
        put(&store, &format!("known/{size}"), known.payload()).await;
        put(&store, &format!("unknown/{size}"), unknown.payload_of_unknown_size()).await;
        put(&store, &format!("whole/{size}"), known.bytes()).await;
    }
    for (seed, size) in (10..).zip(SIZES) {
        let (known, unknown) = (TestValue::new(seed, size), TestValue::new(seed + 100, size));
        assert_has(&store, &format!("known/{size}"), known).await;
        assert_has(&store, &format!("unknown/{size}"), unknown).await;
        assert_has(&store, &format!("whole/{size}"), known).await;
    }
}

pub(super) async fn a_value_of_64_mib_streams_in_and_out(store: impl Storage) {
    let payload = TestValue::new(64, 64 << 20);
    put(&store, "large", payload.payload()).await;
    assert_eq!(store.head(&key("large")).await.unwrap().unwrap().size, 64 << 20);
    assert_has(&store, "large", payload).await;
    for range in [
        ByteRange::last(100_000).unwrap(),
        ByteRange::bounded(33_333_333, 33_333_334).unwrap(),
        ByteRange::bounded(131_071, 2 * 131_072 + 1).unwrap(),
    ] {
        payload.assert_is(store.get(&key("large"), Some(range)).await.unwrap().unwrap()).await;
    }
}

pub(super) async fn an_open_value_outlives_its_replacement(store: impl Storage) {
    for (seed, size) in (20..).zip([100, 4_097, 1 << 20, 16 << 20]) {
        let (old, new) = (TestValue::new(seed, size), TestValue::new(seed + 100, size));
        let version = put(&store, "a", old.payload()).await;
        let unread = store.get(&key("a"), None).await.unwrap().unwrap();
        let part = store.get(&key("a"), Some(ByteRange::From(size / 2))).await.unwrap().unwrap();
        let mut started = store.get(&key("a"), None).await.unwrap().unwrap();
        let mut reader = old.reader(&started);
        reader.take(&started.stream.try_next().await.unwrap().expect("a first chunk"));

        put(&store, "a", new.payload()).await;
        put(&store, "a", new.payload()).await;

        assert_eq!(unread.meta.version, version);
        old.assert_is(unread).await;
        old.assert_is(part).await;
        while let Some(chunk) = started.stream.try_next().await.unwrap() {
            reader.take(&chunk);
        }
        reader.finish();
        assert_has(&store, "a", new).await;
    }
}

pub(super) async fn an_open_value_outlives_its_erasure(store: impl Storage) {
    for (seed, size) in (30..).zip([100, 4_097, 1 << 20, 16 << 20]) {
        let payload = TestValue::new(seed, size);
        put(&store, "a/b", payload.payload()).await;
        let first = store.get(&key("a/b"), None).await.unwrap().unwrap();
        let second = store.get(&key("a/b"), None).await.unwrap().unwrap();
        assert!(store.erase(&key("a/b"), Precondition::none()).await.unwrap());
        payload.assert_is(first).await;
        put(&store, "a/b", payload.payload()).await;
        assert_eq!(store.erase_prefix(&prefix("a/")).await.unwrap(), KeyCount::exact(1));
        payload.assert_is(second).await;
        assert_absent(&store, "a/b").await;
    }
}
