//! Stores that are written key by key.

use std::{sync::Arc, time::Duration};

use http::{Method, StatusCode};
use serde_json::json;
use zarrd_server::{App, ArrayOptions, Settings, router};
use zarrd_store::{
    Conditions, Guarantees, Key, Keyed, MemoryStore, Operation, Precondition, ServedStore, StoreError, StoreWrapper,
    WriteableStore, Writes,
};
use zarrd_wire::problem::ProblemType;

use crate::common::TestServer;

const FOLDER: Guarantees = Guarantees {
    writes: Writes::Key,
    conditions: Conditions::ThisProcess,
    conditional_erase: true,
    ..Guarantees::READ_ONLY
};

/// A store that fails to set a key, and in which another program sets a document before another one.
struct Fragile(MemoryStore);

#[async_trait::async_trait]
impl StoreWrapper for Fragile {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        match operation {
            Operation::Set(key) if key.as_str() == "a/c/3" => Err(StoreError::OutOfSpace),
            Operation::Set(key) if key.as_str() == "a/c/2" => {
                let document = array(16).to_string();
                self.0.set(&Key::parse("a/zarr.json").unwrap(), document.into(), Precondition::none()).await.map(drop)
            }
            Operation::ErasePrefix(prefix) if prefix.as_str() == "a/" => Err(StoreError::OutOfSpace),
            _ => Ok(()),
        }
    }
}

fn array(len: u64) -> serde_json::Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": [len], "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "attributes": {}, "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}}})
}

/// The guarantees of a bucket.
const BUCKET: Guarantees = Guarantees { conditions: Conditions::Atomic, conditional_erase: false, ..FOLDER };

fn server(guarantees: Guarantees) -> TestServer {
    server_with(guarantees, Settings::default())
}

fn server_with(guarantees: Guarantees, settings: Settings) -> TestServer {
    let memory = MemoryStore::new();
    let served = ServedStore::key_by_key(Arc::new(Keyed::new(Fragile(memory.clone()), guarantees)));
    TestServer { router: router(App::new(served, settings)), store: Arc::new(memory) }
}

#[tokio::test]
async fn values_are_set_and_erased() {
    let server = server(FOLDER);
    assert_eq!(server.put("/store/k", &[("if-none-match", "*")], "one").await.status, StatusCode::CREATED);
    server.put("/store/k", &[("if-none-match", "*")], "two").await.problem(ProblemType::PreconditionFailed);
    let etag = server.head("/store/k", &[]).await.header("etag").to_owned();
    assert_eq!(server.put("/store/k", &[("if-match", &etag)], "two").await.status, StatusCode::NO_CONTENT);
    server.delete("/store/k", &[("if-match", &etag)]).await.problem(ProblemType::PreconditionFailed);
    assert_eq!(server.delete("/store/k", &[]).await.status, StatusCode::NO_CONTENT);
    server.put("/store/p/1", &[], "one").await;
    assert_eq!(server.delete("/store/p/", &[]).await.json()["erased"], 1);
}

#[tokio::test]
async fn undeclared_conditions_are_unsupported() {
    let server = server(Guarantees { conditions: Conditions::CreateOnly, conditional_erase: false, ..FOLDER });
    assert_eq!(server.put("/store/k", &[("if-none-match", "*")], "one").await.status, StatusCode::CREATED);
    let etag = server.head("/store/k", &[]).await.header("etag").to_owned();
    server.put("/store/k", &[("if-match", &etag)], "two").await.problem(ProblemType::Unsupported);
    server.delete("/store/k", &[("if-match", &etag)]).await.problem(ProblemType::Unsupported);
    assert_eq!(server.value("k").await.unwrap(), "one");
}

#[tokio::test]
async fn arrays_are_created_written_patched_and_erased() {
    let server = server(FOLDER);
    assert_eq!(server.json(Method::PUT, "/node/g/b", &array(8)).await.status, StatusCode::CREATED);
    assert_eq!(server.json(Method::PUT, "/array/g/b?select=2:6", &json!([1, 2, 3, 4])).await.status, StatusCode::OK);
    assert_eq!(server.json(Method::POST, "/array/g/b?append=0", &json!([5, 6])).await.status, StatusCode::OK);
    assert_eq!(
        server.get("/array/g/b", &[("accept", "application/json")]).await.json(),
        json!([0, 0, 1, 2, 3, 4, 0, 0, 5, 6])
    );
    let patched = server.json(Method::PATCH, "/node/g/b", &json!({"shape": [3], "attributes": {"n": 1}})).await;
    assert_eq!(patched.status, StatusCode::OK, "{}", patched.text());
    assert_eq!(server.keys().await, ["g/b/c/0", "g/b/zarr.json", "g/zarr.json"]);
    assert_eq!(server.delete("/node/g/b", &[]).await.status, StatusCode::OK);
    assert_eq!(server.keys().await, ["g/zarr.json"]);
}

#[tokio::test]
async fn what_fails_in_the_middle_is_a_problem_of_its_own() {
    let server = server(FOLDER);
    assert_eq!(server.json(Method::PUT, "/node/a", &array(16)).await.status, StatusCode::CREATED);
    let failed = server.json(Method::PUT, "/array/a?select=4:8", &json!([1, 1, 1, 1])).await;
    assert_eq!(failed.status, StatusCode::OK);
    let failed = server.json(Method::PUT, "/array/a?select=6:16", &json!([1, 1, 1, 1, 1, 1, 1, 1, 1, 1])).await;
    failed.problem(ProblemType::PartlyWritten);
    let failed = server.json(Method::PUT, "/array/a?select=6:12", &json!([1, 1, 1, 1, 1, 1])).await;
    let problem = failed.problem(ProblemType::ChangedWhileWritten);
    assert_eq!(problem.members.key.as_deref(), Some("a/zarr.json"));
    server.delete("/node/a", &[]).await.problem(ProblemType::PartlyErased);
}

#[tokio::test]
async fn what_needs_a_commit_is_unsupported() {
    let server = server(FOLDER);
    server.json(Method::PUT, "/node/g/b", &array(8)).await;
    let before = server.all().await;
    let copy = |method: &str| Method::from_bytes(method.as_bytes()).unwrap();
    for (method, path) in [
        (Method::POST, "/node/g/b?convert=v2"),
        (Method::POST, "/node/g?append=x"),
        (copy("COPY"), "/store/g/b/zarr.json"),
        (copy("MOVE"), "/store/g/b/zarr.json"),
    ] {
        let refused =
            server.request(method.clone(), path, &[("destination", "http://localhost:8000/store/x")], "").await;
        let problem = refused.problem(ProblemType::Unsupported);
        assert!(problem.message().contains("key by key"), "{method} {path}: {}", problem.message());
    }
    server.json(Method::PUT, "/node/g/b?overwrite", &array(9)).await.problem(ProblemType::Unsupported);
    assert_eq!(server.all().await, before);
    let allow = server.request(Method::OPTIONS, "/store/g/b/zarr.json", &[], "").await;
    let allow = allow.header("allow");
    assert!(allow.contains("PUT") && allow.contains("DELETE") && !allow.contains("MOVE"), "{allow}");
    let ready = server.get("/readyz", &[]).await.json();
    assert_eq!(ready["writable"], true);
    assert_eq!(
        (&ready["guarantees"][0]["writes"], &ready["guarantees"][0]["reachable"]),
        (&json!("key"), &json!(true))
    );
}

#[tokio::test]
async fn append_waits_for_another_server_and_then_is_to_be_repeated() {
    let arrays = ArrayOptions { memory_timeout: Duration::from_millis(50), ..ArrayOptions::default() };
    let server = server_with(BUCKET, Settings { arrays, ..Settings::default() });
    server.json(Method::PUT, "/node/g/b", &array(8)).await;
    assert_eq!(server.json(Method::POST, "/array/g/b?append=0", &json!([5, 6])).await.status, StatusCode::OK);
    // The claim of a server that this one does not understand.
    server.put("/store/g/b/.zarrd/append", &[], "held").await;
    for (method, path, body) in [
        (Method::POST, "/array/g/b?append=0", json!([7])),
        (Method::PATCH, "/node/g/b", json!({"shape": [20]})),
        (Method::PATCH, "/node/g/b", json!({"shape": [2]})),
    ] {
        let refused = server.json(method, path, &body).await;
        assert_eq!(refused.header("retry-after"), "1");
        refused.problem(ProblemType::TooManyConflicts);
    }
    assert_eq!(server.json(Method::PUT, "/array/g/b?select=0:10", &json!(1)).await.status, StatusCode::OK);
    assert_eq!(server.json(Method::PATCH, "/node/g/b", &json!({"attributes": {"n": 1}})).await.status, StatusCode::OK);
    let listed = server.get("/node/g?include=files", &[]).await;
    assert!(!listed.text().contains(".zarrd"), "{}", listed.text());
}

#[tokio::test]
async fn several_documents_are_patched_piecewise() {
    for guarantees in [FOLDER, BUCKET] {
        let server = server(guarantees);
        server.json(Method::PUT, "/node/g/b?dialect=v2", &array(8)).await;
        let patch = json!({"shape": [3], "attributes": {"n": 1}});
        let problem = server.json(Method::PATCH, "/node/g/b", &patch).await.problem(ProblemType::Unsupported);
        assert!(problem.message().contains("?piecewise"), "{}", problem.message());
        let patched = server.json(Method::PATCH, "/node/g/b?piecewise", &patch).await;
        assert_eq!(patched.status, StatusCode::OK, "{}", patched.text());
        let node = server.get("/node/g/b", &[]).await.json();
        assert_eq!((&node["shape"], &node["attributes"]["n"]), (&json!([3]), &json!(1)));
    }
}

#[tokio::test]
async fn hierarchies_are_copied() {
    let server = server(BUCKET);
    server.json(Method::PUT, "/node/g/b", &array(8)).await;
    server.json(Method::PUT, "/array/g/b?select=0:8", &json!([1, 2, 3, 4, 5, 6, 7, 8])).await;
    let copied = server.request(Method::POST, "/node/g?convert=v2&target=/h", &[], "").await;
    assert_eq!(copied.status, StatusCode::OK, "{}", copied.text());
    let read = server.get("/array/h/b", &[("accept", "application/json")]).await.json();
    assert_eq!(read, json!([1, 2, 3, 4, 5, 6, 7, 8]));
}
