//! Listings of another zarrd, and servers that are none or do not answer.

use zarrd_store::{
    Cursor, Entry, Keyed, ListableStore, Listing, PageRequest, Prefix, ReadableStore, SnapshotStore, StoreError,
};
use zarrd_store_http::{Failure, OpenError, WebStore};

use crate::common::{Dialect, Fault, Request, Server, failure, key, open, options, within};

/// The validator of the first value of the test server, which counts them.
const FIRST: &str = "00000000000000000000000000000001";

/// An answer with this JSON.
fn json(text: &str) -> Option<Fault> {
    Some(Fault::Answer(200, vec![("Content-Type", "application/json".to_owned())], text.to_owned()))
}

/// The listing of a zarrd that has `lab/a b` and something below `lab/c/`, for the prefix `lab/`.
fn listing(request: &Request) -> Option<Fault> {
    let value = format!(r#"{{"size":3,"etag":"\"{FIRST}\"","modified":"2026-11-21T06:28:08.123Z"}}"#);
    let prefixes = if request.query.get("limit")? == "1" { "" } else { r#""lab/c/""# };
    match request.query.get("list").map_or("dir", String::as_str) {
        "dir" => json(&format!(
            r#"{{"prefix":"lab/","keys":["lab/a b"],"values":[{value}],"prefixes":[{prefixes}],"cursor":null}}"#
        )),
        "keys" => json(&format!(r#"{{"prefix":"lab/","keys":["lab/a b"],"values":[{value}],"cursor":"next"}}"#)),
        _ => None,
    }
}

fn root() -> Prefix {
    Prefix::root()
}

async fn zarrd() -> (Server, WebStore) {
    let server = Server::start(Dialect::Complete).await;
    server.put("store/lab/a b", "abc");
    server.on_request(|request| listing(request).filter(|_| request.query["limit"] == "1"));
    let store = open(&format!("{}/store/lab", server.url())).await.unwrap();
    (server, store)
}

#[tokio::test]
async fn another_zarrd_is_recognized_and_listed() {
    let (server, store) = zarrd().await;
    assert_eq!(store.guarantees().listing, Listing::Sorted);
    server.on_request(listing);
    let found = store.list_dir(&root(), PageRequest::first(10)).await.unwrap();
    assert_eq!(found.prefixes, [Prefix::parse("c/").unwrap()]);
    let [Entry { key: listed, meta, is_damaged: false }] = &found.keys[..] else { panic!("{found:?}") };
    assert_eq!((listed, meta.size), (&key("a b"), 3));
    let read = store.head(&key("a b")).await.unwrap().unwrap();
    assert_eq!(meta.version, read.version, "a listing has the version that a read has");
    let keys = store.list_prefix(&root(), PageRequest::first(10)).await.unwrap();
    assert_eq!((keys.keys[0].meta.version, keys.cursor.clone()), (read.version, Some(Cursor::from_text("next"))));
    assert_eq!(server.requests().last().unwrap().query["list"], "keys");
    // A cursor that does not advance would never end.
    let again = store.list_prefix(&root(), PageRequest::after(10, keys.cursor.unwrap())).await.unwrap_err();
    assert_eq!(failure(&again), Failure::Listing);
}

#[tokio::test]
async fn listings_that_break_the_contract_are_errors() {
    let (server, store) = zarrd().await;
    for text in [
        r#"{"prefix":"lab/","keys":[],"values":[],"prefixes":["other/c/"],"cursor":null}"#,
        r#"{"prefix":"lab/","keys":[],"values":[],"prefixes":["lab/d/","lab/c/"],"cursor":null}"#,
        r#"{"prefix":"lab/","keys":["lab/a"],"values":[],"prefixes":[],"cursor":null}"#,
        r#"{"prefix":"lab/","keys":[],"values":[],"prefixes":["lab/a/","lab/b/","lab/c/"],"cursor":null}"#,
        "[]",
        "",
    ] {
        server.on_request(move |_| json(text));
        let error = within(store.list_dir(&root(), PageRequest::first(2))).await.unwrap_err();
        assert_eq!(failure(&error), Failure::Listing, "{text}");
    }
    server.on_request(|_| json(&" ".repeat(200_000)));
    let error = within(store.list_dir(&root(), PageRequest::first(2))).await.unwrap_err();
    assert_eq!(failure(&error), Failure::Long);
}

#[tokio::test]
async fn other_servers_have_no_listings() {
    let answers: [fn(&Request) -> Option<Fault>; 5] = [
        |_| None,
        |_| json("{}"),
        // A listing of another prefix than that of the URL.
        |_| json(r#"{"prefix":"other/","keys":[],"values":[],"prefixes":[],"cursor":null}"#),
        // Validators that no zarrd gives.
        |_| {
            json(
                r#"{"prefix":"lab/","keys":["lab/a"],"values":[{"size":1,"etag":"\"x\"","modified":"2026-11-21T06:28:08Z"}],"prefixes":[],"cursor":null}"#,
            )
        },
        |_| Some(Fault::Answer(400, Vec::new(), String::new())),
    ];
    for (number, answer) in answers.into_iter().enumerate() {
        let server = Server::start(Dialect::Complete).await;
        server.on_request(answer);
        let store = open(&format!("{}/store/lab", server.url())).await.unwrap();
        assert_eq!(store.guarantees().listing, Listing::None, "{number}");
        let listed = store.list_dir(&root(), PageRequest::first(1)).await;
        assert!(matches!(listed, Err(StoreError::Unsupported { .. })), "{number}: {listed:?}");
    }
}

#[tokio::test]
async fn stores_open_while_their_server_is_down_and_are_read_when_it_is_up() {
    let server = Server::start(Dialect::Complete).await;
    server.put("store/lab/a b", "abc");
    let url = format!("{}/store/lab", server.url()).parse().unwrap();
    server.on_request(|_| Some(Fault::Lost));
    assert!(matches!(within(WebStore::open(&url, options())).await, Err(OpenError::Request(_))));
    let store = within(WebStore::open_even_if_unreachable(&url, options())).await.unwrap();
    assert_eq!(store.guarantees().listing, Listing::None);
    assert!(matches!(within(store.get(&key("a b"), None)).await, Err(StoreError::Backend { .. })));
    assert!(matches!(within(store.list_dir(&root(), PageRequest::first(1))).await, Err(StoreError::Backend { .. })));
    server.on_request(listing);
    assert_eq!(within(store.get(&key("a b"), None)).await.unwrap().unwrap().bytes().await.unwrap(), "abc");
    let keyed = Keyed::new(store.clone(), store.guarantees());
    assert_eq!(keyed.list_dir(&root(), PageRequest::first(1)).await.unwrap().keys.len(), 1);
    assert_eq!(keyed.guarantees(), store.guarantees());
    // A server that wants credentials is an error at once.
    server.on_request(|_| Some(Fault::Answer(401, Vec::new(), String::new())));
    assert!(within(WebStore::open_even_if_unreachable(&url, options())).await.is_err());
}
