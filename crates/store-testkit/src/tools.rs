//! Helpers of many checks.

use std::any::Any;

use bytes::Bytes;

use super::{Storage, test_value::TestValue};
use zarrd_store::{
    DirPage, Entry, Key, KeyPage, ListableStore, PageRequest, Payload, Precondition, Prefix, PutResult, ReadableStore,
    Version,
};

/// Asserts that the result is an error of this form.
macro_rules! assert_fails {
    ($result:expr, $form:pat $(if $guard:expr)?) => {
        match $result {
            Err($form) $(if $guard)? => {}
            other => panic!("expected {}, got {other:?}", stringify!($form $(if $guard)?)),
        }
    };
}

/// The sizes around which stores change their representation: empty, inline, blocks and their edges.
pub(super) const SIZES: [u64; 9] = [0, 1, 4_095, 4_096, 4_097, 131_071, 131_072, 131_073, 1_048_576];

pub(super) fn key(text: &str) -> Key {
    Key::parse(text).unwrap_or_else(|error| panic!("{text:?} is not a key: {error}"))
}

pub(super) fn prefix(text: &str) -> Prefix {
    Prefix::parse(text).unwrap_or_else(|error| panic!("{text:?} is not a prefix: {error}"))
}

/// Sets the key unconditionally.
pub(super) async fn put(store: &impl Storage, at: &str, payload: impl Into<Payload>) -> Version {
    put_with_result(store, at, payload).await.version
}

pub(super) async fn put_with_result(store: &impl Storage, at: &str, payload: impl Into<Payload>) -> PutResult {
    let written = store.set(&key(at), payload.into(), Precondition::none()).await;
    written.unwrap_or_else(|error| panic!("could not set {at:?}: {error:?}"))
}

/// Sets each key to its own name.
pub(super) async fn put_names(store: &impl Storage, keys: &[&str]) {
    for name in keys {
        put(store, name, (*name).to_owned()).await;
    }
}

/// The complete value of the key.
pub(super) async fn get(store: &(impl ReadableStore + ?Sized), at: &str) -> Option<Bytes> {
    let value = store.get(&key(at), None).await.unwrap_or_else(|error| panic!("could not get {at:?}: {error:?}"))?;
    Some(value.bytes().await.unwrap_or_else(|error| panic!("could not read {at:?}: {error:?}")))
}

/// Asserts that the key has this value.
pub(super) async fn assert_has(store: &impl ReadableStore, at: &str, payload: TestValue) {
    let value = store.get(&key(at), None).await.unwrap_or_else(|error| panic!("could not get {at:?}: {error:?}"));
    payload.assert_is(value.unwrap_or_else(|| panic!("{at:?} has no value"))).await;
}

/// Asserts by all operations that the key has no value.
pub(super) async fn assert_absent(store: &impl Storage, at: &str) {
    assert_eq!(get(store, at).await, None, "{at:?} has a value");
    assert_eq!(store.head(&key(at)).await.unwrap(), None, "{at:?} has a head");
    let listed = list_keys(store, key(at).parent().as_str()).await;
    assert!(!listed.contains(&at.to_owned()), "{at:?} is listed");
}

/// All keys below the prefix.
pub(super) async fn list_keys(store: &(impl ListableStore + ?Sized), below: &str) -> Vec<String> {
    key_pages(store, below, 1_000).await.concat().iter().map(|entry| entry.key.to_string()).collect()
}

/// All children of the prefix, keys and prefixes in one order.
pub(super) async fn list_children(store: &(impl ListableStore + ?Sized), below: &str) -> Vec<String> {
    dir_pages(store, below, 1_000).await.iter().flat_map(children).collect()
}

/// The pages of a listing of keys.
pub(super) async fn key_pages(store: &(impl ListableStore + ?Sized), below: &str, limit: usize) -> Vec<Vec<Entry>> {
    let (below, mut page, mut pages, mut last) = (prefix(below), PageRequest::first(limit), Vec::new(), String::new());
    loop {
        let KeyPage { keys, cursor, .. } = store.list_prefix(&below, page).await.expect("a page of keys");
        let names: Vec<_> = keys.iter().map(|entry| entry.key.to_string()).collect();
        assert_follows(&mut last, &names, limit);
        pages.push(keys);
        let Some(cursor) = cursor else { return pages };
        page = PageRequest::after(limit, cursor);
    }
}

/// The pages of a listing of children.
pub(super) async fn dir_pages(store: &(impl ListableStore + ?Sized), below: &str, limit: usize) -> Vec<DirPage> {
    let (below, mut page, mut pages, mut last) = (prefix(below), PageRequest::first(limit), Vec::new(), String::new());
    loop {
        let mut found = store.list_dir(&below, page).await.expect("a page of children");
        assert_follows(&mut last, &children(&found), limit);
        let cursor = found.cursor.take();
        pages.push(found);
        let Some(cursor) = cursor else { return pages };
        page = PageRequest::after(limit, cursor);
    }
}

/// Asserts that the page is within its limit, sorted, and after the last name of the previous page, so that the listing
/// ends.
fn assert_follows(last: &mut String, names: &[String], limit: usize) {
    let most = PageRequest::first(limit).limit();
    assert!(names.len() <= most, "a page has {} names, but the limit is {limit}", names.len());
    assert_ascending(names);
    if let (Some(first), false) = (names.first(), last.is_empty()) {
        assert!(first > last, "a page begins with {first:?}, the one before it ended with {last:?}");
    }
    if let Some(name) = names.last() {
        last.clone_from(name);
    }
}

/// The keys and prefixes of a page in one order. Asserts that each list is sorted.
pub(super) fn children(page: &DirPage) -> Vec<String> {
    let keys: Vec<_> = page.keys.iter().map(|entry| entry.key.to_string()).collect();
    let prefixes: Vec<_> = page.prefixes.iter().map(ToString::to_string).collect();
    assert_ascending(&keys);
    assert_ascending(&prefixes);
    let mut all = [keys, prefixes].concat();
    all.sort_unstable();
    all
}

/// Asserts that the names are sorted by their bytes, without duplicates.
pub(super) fn assert_ascending(names: &[String]) {
    for pair in names.windows(2) {
        assert!(pair[0].as_bytes() < pair[1].as_bytes(), "{:?} is listed before {:?}", pair[0], pair[1]);
    }
}

/// The message of a panic.
pub(super) fn panic_message(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message")
}
