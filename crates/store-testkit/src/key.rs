//! Valid keys of all kinds.

use super::{
    Storage,
    tools::{assert_absent, get, key, list_children, list_keys, put, put_names},
};
use zarrd_store::{MAX_KEY_LEN, Precondition};

pub(super) async fn keys_are_case_sensitive(store: impl Storage) {
    put(&store, "foo", "a").await;
    put(&store, "FOO", "b").await;
    assert_eq!(get(&store, "foo").await.as_deref(), Some(&b"a"[..]));
    assert_eq!(get(&store, "FOO").await.as_deref(), Some(&b"b"[..]));
    assert_absent(&store, "Foo").await;
    assert_eq!(list_keys(&store, "").await, ["FOO", "foo"]);
    assert!(store.erase(&key("foo"), Precondition::none()).await.unwrap());
    assert_eq!(get(&store, "FOO").await.as_deref(), Some(&b"b"[..]));
}

pub(super) async fn a_key_and_a_prefix_may_share_a_name(store: impl Storage) {
    put_names(&store, &["a/b", "a", "a/b/c"]).await;
    for name in ["a", "a/b", "a/b/c"] {
        assert_eq!(get(&store, name).await.as_deref(), Some(name.as_bytes()));
    }
    assert_eq!(list_keys(&store, "").await, ["a", "a/b", "a/b/c"]);
    assert_eq!(list_children(&store, "").await, ["a", "a/"]);
    assert_eq!(list_children(&store, "a/").await, ["a/b", "a/b/"]);
    assert!(store.erase(&key("a/b"), Precondition::none()).await.unwrap());
    assert_eq!(list_keys(&store, "").await, ["a", "a/b/c"]);
    assert_eq!(list_children(&store, "a/").await, ["a/b/"]);
    assert!(store.erase(&key("a"), Precondition::none()).await.unwrap());
    assert_eq!(list_keys(&store, "").await, ["a/b/c"]);
}

/// Valid keys that a layer in between could misinterpret.
fn unusual_keys() -> Vec<String> {
    let mut keys: Vec<String> = [
        "...",
        "a..",
        "..a",
        ".zarray",
        "a/.../b",
        "c/0/1",
        " ",
        " a ",
        "a b/c d",
        "+",
        "a+b",
        "%",
        "%2F",
        "a%2fb",
        "%00",
        "%zz",
        "%2e%2e/x",
        "?",
        "a?b=c",
        "#",
        "a#b",
        "&",
        "=",
        ";",
        "a;b",
        ":",
        "C:",
        "a:b",
        "\\",
        "a\\..\\b",
        "'",
        "\"",
        "<script>",
        "*",
        "|",
        "~",
        "~root",
        "$HOME",
        "{a,b}",
        "[0]",
        "`id`",
        "^",
        "@",
        "!",
        ",",
        "-",
        "--",
        "_",
        "0",
        "nul",
        "CON",
        "A",
        "a",
        "Ä",
        "A\u{308}",
        "ä",
        "ß",
        "ſ",
        "中/文",
        "😀",
        "👩\u{200d}🔬",
        "\u{feff}bom",
        "\u{a0}",
        "\u{ad}",
        "\u{2028}",
        "\u{202e}rtl",
        "\u{fffd}",
        "\u{ffff}",
        "\u{10ffff}",
        "\u{e000}",
    ]
    .map(str::to_owned)
    .into();
    keys.push("k".repeat(MAX_KEY_LEN));
    keys.push("😀".repeat(MAX_KEY_LEN / 4));
    keys.push("%".repeat(MAX_KEY_LEN));
    keys.push(format!("{}x", "d/".repeat((MAX_KEY_LEN - 1) / 2)));
    keys.push(format!("long/{}", "y".repeat(MAX_KEY_LEN - 5)));
    keys.push(format!("long/{}z", "y".repeat(MAX_KEY_LEN - 6)));
    keys
}

pub(super) async fn keys_at_the_limits_of_the_grammar(store: impl Storage) {
    let mut keys = unusual_keys();
    for name in &keys {
        put(&store, name, name.clone()).await;
    }
    keys.sort_unstable();
    assert_eq!(list_keys(&store, "").await, keys);
    for name in &keys {
        assert_eq!(get(&store, name).await.as_deref(), Some(name.as_bytes()), "{name:?}");
        let parent = key(name).parent();
        assert!(list_children(&store, parent.as_str()).await.contains(name), "{name:?} is not listed in {parent:?}");
        if !parent.is_root() {
            assert!(list_keys(&store, parent.as_str()).await.contains(name), "{name:?} is not below {parent:?}");
        }
    }
    for name in &keys {
        assert!(store.erase(&key(name), Precondition::none()).await.unwrap(), "{name:?}");
    }
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
}

/// Unusual names one at a time, in prefixes of their own, and as names of files can be: of at most 255 bytes.
pub(super) async fn unusual_names_are_names(store: impl Storage) {
    let unusual = unusual_keys();
    let fits = |name: &&String| name.len() < 1_000 && name.split('/').all(|segment| segment.len() <= 255);
    let names: Vec<_> =
        (100..).zip(unusual.iter().filter(fits)).map(|(number, name)| format!("{number}/{name}")).collect();
    assert!(names.len() > 50, "most names are tried");
    for name in &names {
        put(&store, name, name.clone()).await;
    }
    assert_eq!(list_keys(&store, "").await, names);
    for name in &names {
        assert_eq!(get(&store, name).await.as_deref(), Some(name.as_bytes()), "{name:?}");
        let parent = key(name).parent();
        assert_eq!(list_children(&store, parent.as_str()).await, [name.as_str()], "{parent:?}");
    }
    for name in &names {
        assert!(store.erase(&key(name), Precondition::none()).await.unwrap(), "{name:?}");
    }
    assert_eq!(list_keys(&store, "").await, Vec::<String>::new());
}

/// Keys that are equal after case folding, Unicode normalisation, trimming or decoding.
pub(super) async fn similar_keys_are_different_keys(store: impl Storage) {
    let groups: [&[&str]; 6] = [
        &["é", "e\u{301}", "É", "e"],
        &["a", "a ", " a", "a\u{a0}", "A"],
        &["a/b", "a%2Fb", "a%2fb", "a\\b", "a/ b"],
        &["x+y", "x y", "x%20y"],
        &["f", "f.", "f..", "f~", "f\u{200b}"],
        &["ﬁ", "fi", "ＦＩ"],
    ];
    for (group, similar) in groups.iter().enumerate() {
        let similar: Vec<_> = similar.iter().map(|name| format!("{group}/{name}")).collect();
        for (number, name) in similar.iter().enumerate() {
            assert_absent(&store, name).await;
            put_names(&store, &[name]).await;
            for earlier in &similar[..number] {
                assert_eq!(get(&store, earlier).await.as_deref(), Some(earlier.as_bytes()), "{earlier:?} and {name:?}");
            }
        }
    }
}
