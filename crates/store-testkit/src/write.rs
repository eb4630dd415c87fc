//! Setting and erasing values.

use std::collections::HashSet;

use super::{
    Storage,
    test_value::TestValue,
    tools::{assert_absent, assert_has, get, key, list_children, list_keys, prefix, put, put_names, put_with_result},
};
use zarrd_store::{KeyCount, Precondition};

pub(super) async fn a_set_replaces_the_whole_value(store: impl Storage) {
    let mut replaced = false;
    for (seed, size) in (0..).zip([10, 5_000, 4, 200_000, 0, 131_072, 1]) {
        let payload = TestValue::new(seed, size);
        let written = put_with_result(&store, "a/b", payload.payload()).await;
        assert_eq!(written.replaced, replaced, "of {payload:?}");
        assert_has(&store, "a/b", payload).await;
        assert_eq!(store.head(&key("a/b")).await.unwrap().unwrap().version, written.version);
        replaced = true;
    }
    assert_eq!(list_keys(&store, "").await, ["a/b"]);
}

pub(super) async fn every_set_gives_a_new_version(store: impl Storage) {
    let mut versions = HashSet::new();
    for at in ["a", "b", "a", "a", "b", "c/d"] {
        for bytes in ["equal", "equal", ""] {
            assert!(versions.insert(put(&store, at, bytes).await), "a version was assigned twice");
        }
    }
}

pub(super) async fn a_reset_key_gets_a_new_version(store: impl Storage) {
    let mut versions = HashSet::new();
    for _ in 0..4 {
        assert!(versions.insert(put(&store, "a", "equal").await), "a version was assigned again after an erase");
        assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
        assert!(versions.insert(put(&store, "a", "equal").await), "a version was assigned again after an erase");
        assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(1));
    }
}

pub(super) async fn erase_returns_whether_the_key_had_a_value(store: impl Storage) {
    put_names(&store, &["a", "b/c"]).await;
    assert!(!store.erase(&key("none"), Precondition::none()).await.unwrap());
    assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
    assert!(!store.erase(&key("a"), Precondition::none()).await.unwrap());
    assert_absent(&store, "a").await;
    assert_eq!(get(&store, "b/c").await.as_deref(), Some(&b"b/c"[..]));
    assert!(!store.erase(&key("b"), Precondition::none()).await.unwrap(), "a prefix has no value");
    assert!(!put_with_result(&store, "a", "again").await.replaced);
    assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
}

pub(super) async fn erase_prefix_erases_and_counts_the_keys_below(store: impl Storage) {
    let above = ["fo", "foo-bar/x", "foo.zarr", "foo0", "foo2/a", "foobar", "goo/foo/a", "FOO/a"];
    let below = ["foo/a", "foo/b/c", "foo/b/d/e", "foo/bb", "foo/foo/foo", "foo/ ", "foo/\u{10ffff}"];
    put_names(&store, &above).await;
    put_names(&store, &below).await;
    assert_eq!(store.erase_prefix(&prefix("foo/b/")).await.unwrap(), KeyCount::exact(2));
    assert_eq!(get(&store, "foo/bb").await.as_deref(), Some(&b"foo/bb"[..]));
    assert_eq!(store.erase_prefix(&prefix("foo/")).await.unwrap(), KeyCount::exact(below.len() as u64 - 2));
    assert_eq!(store.erase_prefix(&prefix("foo/")).await.unwrap(), KeyCount::exact(0));
    for erased in below {
        assert_absent(&store, erased).await;
    }
    let mut left = above;
    left.sort_unstable();
    assert_eq!(list_keys(&store, "").await, left);
    for name in above {
        assert_eq!(get(&store, name).await.as_deref(), Some(name.as_bytes()));
    }
}

pub(super) async fn erase_prefix_leaves_a_key_of_the_same_name(store: impl Storage) {
    put_names(&store, &["foo", "foo/a", "foo/b", "foo/b/c", "foo2", "foo2/a"]).await;
    assert_eq!(store.erase_prefix(&prefix("foo/b/")).await.unwrap(), KeyCount::exact(1));
    assert_eq!(get(&store, "foo/b").await.as_deref(), Some(&b"foo/b"[..]));
    assert_eq!(store.erase_prefix(&prefix("foo/")).await.unwrap(), KeyCount::exact(2));
    assert_eq!(list_keys(&store, "").await, ["foo", "foo2", "foo2/a"]);
    assert_eq!(get(&store, "foo").await.as_deref(), Some(&b"foo"[..]));
}

pub(super) async fn erase_prefix_of_nothing_erases_nothing(store: impl Storage) {
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(0));
    assert_eq!(store.erase_prefix(&prefix("none/")).await.unwrap(), KeyCount::exact(0));
    put_names(&store, &["a/b", "c"]).await;
    for empty in ["b/", "a/b/", "c/", "a/c/", "A/"] {
        assert_eq!(store.erase_prefix(&prefix(empty)).await.unwrap(), KeyCount::exact(0), "{empty}");
    }
    assert_eq!(list_keys(&store, "").await, ["a/b", "c"]);
}

pub(super) async fn erase_prefix_of_the_root_erases_all(store: impl Storage) {
    let names = ["a", "aa/b", "b/c/d", " ", "\u{10ffff}", "zarr.json"];
    put_names(&store, &names).await;
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(names.len() as u64));
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
    assert_eq!(list_children(&store, "").await, Vec::<String>::new());
    put_names(&store, &["a"]).await;
    assert_eq!(list_keys(&store, "").await, ["a"]);
}

pub(super) async fn a_new_store_is_writable(store: impl Storage) {
    store.check_writable().await.expect("a new store is writable");
    put_names(&store, &["a"]).await;
    store.check_writable().await.expect("and stays so");
}

pub(super) async fn stores_share_nothing(store: impl Storage, other: impl Storage) {
    put_names(&store, &["a"]).await;
    assert_absent(&other, "a").await;
    put(&other, "a", "other").await;
    assert_eq!(get(&store, "a").await.as_deref(), Some(&b"a"[..]));
    assert_eq!(store.erase_prefix(&prefix("")).await.unwrap(), KeyCount::exact(1));
    assert_eq!(get(&other, "a").await.as_deref(), Some(&b"other"[..]));
}
