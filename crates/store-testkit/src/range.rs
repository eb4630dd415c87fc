//! Reading byte ranges.

use std::ops::Range;

use super::{
    Storage,
    test_value::TestValue,
    tools::{key, put},
};
use zarrd_store::{ByteRange, StoreError};

fn bounded(start: u64, end: u64) -> ByteRange {
    ByteRange::bounded(start, end).unwrap()
}

fn last(count: u64) -> ByteRange {
    ByteRange::last(count).unwrap()
}

/// Asserts that the range yields these bytes of the payload, or is not satisfiable.
async fn assert_range(store: &impl Storage, payload: TestValue, range: ByteRange, expected: Option<Range<u64>>) {
    let result = store.get(&key("a"), Some(range)).await;
    let Some(expected) = expected else {
        let meta = store.head(&key("a")).await.unwrap().unwrap();
        assert_fails!(result, StoreError::RangeNotSatisfiable { meta: reported } if reported == meta);
        return;
    };
    let value = result.unwrap_or_else(|error| panic!("{range:?} of {payload:?}: {error:?}")).unwrap();
    assert_eq!(value.range, expected, "{range:?} of {payload:?}");
    payload.assert_is(value).await;
}

/// The specification's `get_partial_values`: pairs of keys and ranges, with repeated and missing keys, and the range
/// `[0, none]`, which is the complete value.
pub(super) async fn partial_values_follow_the_specification(store: impl Storage) {
    put(&store, "a/b", "0123456789").await;
    put(&store, "a/c", "abcdefghij").await;
    for (at, range, expected) in [
        ("a/b", bounded(2, 5), Some("234")),
        ("a/c", bounded(2, 5), Some("cde")),
        ("a/none", bounded(2, 5), None),
        ("a/b", bounded(4, 6), Some("45")),
        ("a/b", ByteRange::From(0), Some("0123456789")),
        ("a/c", ByteRange::From(8), Some("ij")),
        ("a", ByteRange::From(0), None),
    ] {
        let found = match store.get(&key(at), Some(range)).await.unwrap() {
            Some(value) => Some(value.bytes().await.unwrap()),
            None => None,
        };
        assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{range:?} of {at}");
    }
}

pub(super) async fn ranges_are_clipped_to_the_value(store: impl Storage) {
    const MAX: u64 = u64::MAX;
    for len in [1_u64, 10, 4_096, 4_097, 131_072, 131_073] {
        let payload = TestValue::new(len, len);
        put(&store, "a", payload.payload()).await;
        for (range, expected) in [
            (bounded(0, 1), Some(0..1)),
            (bounded(0, len), Some(0..len)),
            (bounded(0, len + 1), Some(0..len)),
            (bounded(0, MAX), Some(0..len)),
            (bounded(len / 2, len / 2 + 1), Some(len / 2..len / 2 + 1)),
            (bounded(len - 1, len), Some(len - 1..len)),
            (bounded(len - 1, MAX), Some(len - 1..len)),
            (bounded(len, len + 1), None),
            (bounded(len, MAX), None),
            (bounded(len + 1, MAX), None),
            (bounded(MAX - 1, MAX), None),
            (ByteRange::From(0), Some(0..len)),
            (ByteRange::From(len - 1), Some(len - 1..len)),
            (ByteRange::From(len), None),
            (ByteRange::From(len + 1), None),
            (ByteRange::From(MAX), None),
            (last(1), Some(len - 1..len)),
            (last(len), Some(0..len)),
            (last(len + 1), Some(0..len)),
            (last(MAX), Some(0..len)),
        ] {
            assert_range(&store, payload, range, expected).await;
        }
    }
}

pub(super) async fn ranges_of_an_empty_value(store: impl Storage) {
    put(&store, "a", "").await;
    let empty = TestValue::new(0, 0);
    for (range, expected) in [
        (last(1), Some(0..0)),
        (last(u64::MAX), Some(0..0)),
        (ByteRange::From(0), None),
        (ByteRange::From(1), None),
        (bounded(0, 1), None),
        (bounded(0, u64::MAX), None),
    ] {
        assert_range(&store, empty, range, expected).await;
    }
}

pub(super) async fn ranges_across_blocks(store: impl Storage) {
    const BLOCK: u64 = 131_072;
    let len = 3 * BLOCK + 5;
    let payload = TestValue::new(7, len);
    put(&store, "a", payload.payload()).await;
    for start in [0, 1, 4_095, 4_096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK] {
        for end in [start + 1, start + 2, 4_097, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 3 * BLOCK, 3 * BLOCK + 1, len] {
            if end > start {
                assert_range(&store, payload, bounded(start, end), Some(start..end)).await;
            }
        }
        assert_range(&store, payload, last(len - start), Some(start..len)).await;
        assert_range(&store, payload, ByteRange::From(start), Some(start..len)).await;
    }
}
