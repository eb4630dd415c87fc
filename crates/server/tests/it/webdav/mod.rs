//! WebDAV on `/store`, and at a root of its own.

mod conditions;
mod properties;
mod property_changes;
mod surfaces;
mod transfers;

use http::{Method, StatusCode};
use zarrd_server::{App, Settings};
use zarrd_store::{Change, Key, MemoryStore, Precondition, TransactionalStore};
use zarrd_wire::dav;

use crate::common::{TestResponse, TestServer};

/// The URLs in a response of status 207, in their order.
#[track_caller]
fn hrefs(answer: &TestResponse) -> Vec<String> {
    assert_eq!(answer.status, StatusCode::MULTI_STATUS, "{answer:?}");
    assert_eq!(answer.header("content-type"), "application/xml; charset=utf-8");
    let text = answer.text();
    assert!(text.ends_with("</D:multistatus>\n"), "{text}");
    text.split("<D:href>").skip(1).map(|rest| rest.split("</D:href>").next().unwrap().to_owned()).collect()
}

/// The same, sorted.
#[track_caller]
fn sorted_hrefs(answer: &TestResponse) -> Vec<String> {
    let mut found = hrefs(answer);
    found.sort();
    found
}

/// The text of a property in a response about one resource.
fn property<'t>(answer: &'t TestResponse, name: &str) -> &'t str {
    let (_, rest) = answer.text().split_once(&format!("<D:{name}>")).unwrap();
    rest.split_once("</D:").unwrap().0
}

async fn propfind(server: &TestServer, path: &str, depth: &str) -> TestResponse {
    server.request(dav::propfind(), path, &[("depth", depth)], "").await
}

async fn copy(server: &TestServer, path: &str, destination: &str) -> TestResponse {
    server.request(dav::copy(), path, &[("destination", destination)], "").await
}

async fn move_(server: &TestServer, path: &str, destination: &str) -> TestResponse {
    server.request(dav::move_(), path, &[("destination", destination)], "").await
}

async fn mkcol(server: &TestServer, path: &str) -> TestResponse {
    server.request(dav::mkcol(), path, &[], "").await
}

/// A server with some keys, whose values are their names.
async fn filled() -> TestServer {
    let server = TestServer::new();
    for key in ["a", "lab/x/c/0", "lab/x/zarr.json", "lab/zarr.json", "lab-2/ü", "z"] {
        assert_eq!(server.put(&format!("/store/{key}"), &[], key).await.status, StatusCode::CREATED);
    }
    server
}

/// Sets many small values in one commit.
async fn set_many(store: &MemoryStore, keys: impl Iterator<Item = String>) {
    let put = |key: String| {
        let precondition = Precondition::none();
        Change::Put { key: Key::parse(&key).unwrap(), value: "1".into(), precondition }
    };
    store.commit(keys.map(put).collect()).await.unwrap();
}

/// The keys of a server and their values.
async fn values(server: &TestServer) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for key in server.keys().await {
        let value = server.value(&key).await.unwrap();
        found.push((key, String::from_utf8(value.to_vec()).unwrap()));
    }
    found
}

fn options() -> Method {
    Method::OPTIONS
}

fn app(store: MemoryStore) -> App {
    App::new(std::sync::Arc::new(store), Settings::default())
}
