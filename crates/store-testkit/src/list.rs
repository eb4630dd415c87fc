//! Listings in one page.

use futures::TryStreamExt;

use super::{
    Storage,
    test_value::TestValue,
    tools::{assert_ascending, children, key, list_children, list_keys, prefix, put, put_names},
};
use zarrd_store::{DirPage, KeyCount, KeyPage, MAX_PAGE_ENTRIES, PageRequest, Precondition, list_all};

const NONE: [&str; 0] = [];

pub(super) async fn an_empty_store_lists_as_empty(store: impl Storage) {
    let no_keys = |page: KeyPage| assert!(page.keys.is_empty() && page.cursor.is_none(), "{page:?}");
    let no_children = DirPage { keys: vec![], prefixes: vec![], cursor: None };
    no_keys(store.list(PageRequest::first(10)).await.unwrap());
    for below in ["", "a/", "a/b/c/", "\u{10ffff}/"] {
        no_keys(store.list_prefix(&prefix(below), PageRequest::first(10)).await.unwrap());
        assert_eq!(store.list_dir(&prefix(below), PageRequest::first(10)).await.unwrap(), no_children, "{below}");
    }
}

/// "If a store contains the keys "a/b", "a/c/d" and "e/f/g", then `list_prefix("a/")` would return "a/b" and "a/c/d"."
pub(super) async fn list_prefix_follows_the_specification(store: impl Storage) {
    put_names(&store, &["a/b", "a/c/d", "e/f/g"]).await;
    assert_eq!(list_keys(&store, "a/").await, ["a/b", "a/c/d"]);
    assert_eq!(list_keys(&store, "a/c/").await, ["a/c/d"]);
    assert_eq!(list_keys(&store, "e/").await, ["e/f/g"]);
    assert_eq!(list_keys(&store, "f/").await, NONE);
    assert_eq!(list_keys(&store, "").await, ["a/b", "a/c/d", "e/f/g"]);
}

/// "If a store contains the keys "a/b", "a/c", "a/d/e", "a/f/g", then `list_dir("a/")` would return keys "a/b" and
/// "a/c" and prefixes "a/d/" and "a/f/". `list_dir("b/")` would return the empty set."
pub(super) async fn list_dir_follows_the_specification(store: impl Storage) {
    put_names(&store, &["a/b", "a/c", "a/d/e", "a/f/g"]).await;
    let page = store.list_dir(&prefix("a/"), PageRequest::first(100)).await.unwrap();
    assert_eq!(page.keys.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a/b", "a/c"]);
    assert_eq!(page.prefixes, [prefix("a/d/"), prefix("a/f/")]);
    assert_eq!(page.cursor, None);
    assert_eq!(list_children(&store, "b/").await, NONE);
    assert_eq!(list_children(&store, "").await, ["a/"]);
    assert_eq!(list_children(&store, "a/d/").await, ["a/d/e"]);
    assert_eq!(list_children(&store, "a/b/").await, NONE);
}

/// The example of "Discover children of a group".
pub(super) async fn children_of_a_group_follow_the_specification(store: impl Storage) {
    put_names(&store, &["foo/bar/zarr.json", "foo/baz/qux/zarr.json"]).await;
    assert_eq!(list_children(&store, "foo/").await, ["foo/bar/", "foo/baz/"]);
    assert_eq!(list_children(&store, "foo/baz/").await, ["foo/baz/qux/"]);
}

pub(super) async fn list_is_list_prefix_of_the_root(store: impl Storage) {
    put_names(&store, &["a", "b/c", "b/d", "zarr.json"]).await;
    for limit in [1, 3, 10] {
        let (mut all, mut root, mut ended) = (PageRequest::first(limit), PageRequest::first(limit), false);
        for _ in 0..4_usize.div_ceil(limit) {
            assert!(!ended, "pages of {limit} ended early");
            let pages =
                (store.list(all.clone()).await.unwrap(), store.list_prefix(&prefix(""), root.clone()).await.unwrap());
            assert_eq!(pages.0.keys, pages.1.keys);
            // `list` and `list_prefix` of the root share their cursors.
            match (pages.0.cursor, pages.1.cursor) {
                (Some(first), Some(second)) => {
                    (all, root) = (PageRequest::after(limit, second), PageRequest::after(limit, first))
                }
                cursors => {
                    assert_eq!(cursors, (None, None));
                    ended = true;
                }
            }
        }
        assert!(ended, "pages of {limit} do not end");
    }
}

pub(super) async fn listings_follow_sets_and_erases(store: impl Storage) {
    put_names(&store, &["a/b", "a/c/d"]).await;
    assert_eq!(list_children(&store, "a/").await, ["a/b", "a/c/"]);
    let version = put(&store, "a/c/e", TestValue::new(1, 5_000).payload()).await;
    assert!(store.erase(&key("a/b"), Precondition::none()).await.unwrap());
    assert_eq!(list_keys(&store, "a/").await, ["a/c/d", "a/c/e"]);
    let listed = store.list_dir(&prefix("a/c/"), PageRequest::first(10)).await.unwrap().keys;
    assert_eq!((listed[1].meta.version, listed[1].meta.size), (version, 5_000));
    let version = put(&store, "a/c/e", "").await;
    let listed = store.list_prefix(&prefix("a/"), PageRequest::first(10)).await.unwrap().keys;
    assert_eq!((listed[1].meta.version, listed[1].meta.size), (version, 0));
    assert_eq!(store.erase_prefix(&prefix("a/c/")).await.unwrap(), KeyCount::exact(2));
    assert_eq!(list_children(&store, "").await, NONE);
}

pub(super) async fn siblings_of_a_prefix_are_not_below_it(store: impl Storage) {
    put_names(&store, &["foo", "foo-1", "foo.2", "foo/a", "foo/b/c", "foo0", "foo2/a", "fop/x", "FOO/a", "f/oo/a"])
        .await;
    assert_eq!(list_keys(&store, "foo/").await, ["foo/a", "foo/b/c"]);
    assert_eq!(list_children(&store, "foo/").await, ["foo/a", "foo/b/"]);
    assert_eq!(list_keys(&store, "fo/").await, NONE);
    assert_eq!(list_children(&store, "o/").await, NONE);
    assert_eq!(list_children(&store, "f/").await, ["f/oo/"]);
}

/// Keys are ordered by the bytes of UTF-8: neither by UTF-16, where U+10000 precedes U+E000, nor by any language.
pub(super) async fn listings_are_sorted_by_bytes(store: impl Storage) {
    let sorted = [
        " ",
        "!",
        "-",
        ".zarray",
        "0",
        "1",
        "10",
        "2",
        "A",
        "B",
        "Z",
        "_",
        "a",
        "a!",
        "a-b",
        "a.b",
        "a0",
        "aa",
        "b",
        "z",
        "~",
        "é",
        "ÿ",
        "Ā",
        "中",
        "\u{e000}",
        "\u{ffff}",
        "\u{10000}",
        "😀",
    ];
    let mut shuffled = sorted;
    shuffled.reverse();
    shuffled.swap(3, 20);
    put_names(&store, &shuffled).await;
    assert_eq!(list_keys(&store, "").await, sorted);
    assert_eq!(list_children(&store, "").await, sorted);
    let below: Vec<_> = shuffled.iter().map(|name| format!("{name}/{name}")).collect();
    put_names(&store, &below.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let keys = list_keys(&store, "").await;
    assert_eq!(keys.len(), 2 * sorted.len());
    assert_ascending(&keys);
}

/// `-` and `.` precede `/`, and `0` follows it, so a prefix does not directly follow the key of its name.
pub(super) async fn keys_and_prefixes_are_listed_in_one_order(store: impl Storage) {
    let keys = ["d/a", "d/a!", "d/a-b", "d/a.b", "d/a/x", "d/a/y/z", "d/a0", "d/ab", "d/b/c", "d/c"];
    put_names(&store, &keys).await;
    let joint = ["d/a", "d/a!", "d/a-b", "d/a.b", "d/a/", "d/a0", "d/ab", "d/b/", "d/c"];
    assert_eq!(list_children(&store, "d/").await, joint);
    let mut page = PageRequest::first(1);
    for (number, expected) in joint.into_iter().enumerate() {
        let found = store.list_dir(&prefix("d/"), page).await.unwrap();
        assert_eq!(children(&found), [expected]);
        assert_eq!(found.cursor.is_none(), number == joint.len() - 1, "the cursor after {expected}");
        let Some(cursor) = found.cursor else { break };
        page = PageRequest::after(1, cursor);
    }
}

pub(super) async fn a_deep_prefix_is_one_child(store: impl Storage) {
    for number in 0..150 {
        put(&store, &format!("d/deep/{}{number}", "x/".repeat(number % 7)), "").await;
    }
    put_names(&store, &["d/after", "d/zero"]).await;
    assert_eq!(list_children(&store, "d/").await, ["d/after", "d/deep/", "d/zero"]);
    assert_eq!(list_children(&store, "").await, ["d/"]);
    assert_eq!(list_keys(&store, "d/deep/").await.len(), 150);
}

pub(super) async fn list_all_yields_every_key_once(store: impl Storage) {
    put_names(&store, &["a", "b/c", "b/d/e", "b-", "c"]).await;
    for (below, expected) in [("", vec!["a", "b-", "b/c", "b/d/e", "c"]), ("b/", vec!["b/c", "b/d/e"]), ("x/", vec![])]
    {
        let found: Vec<_> = list_all(&store, &prefix(below)).try_collect().await.unwrap();
        assert_eq!(found.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), expected, "{below}");
        let page = store.list_prefix(&prefix(below), PageRequest::first(MAX_PAGE_ENTRIES)).await.unwrap();
        assert_eq!(found, page.keys);
    }
}
