//! The time after which changes of other programs are seen, by entity tags as well.

use std::{sync::Arc, time::Duration};

use crate::common::{
    TestServer,
    arrays::{put, v3},
};
use http::StatusCode;
use serde_json::json;
use zarrd_server::{App, Settings, router};
use zarrd_store::{CachedStore, Consolidated, Guarantees, Keyed, MemoryStore, Recheck, ServedStore};

const ARRAY: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [400], "data_type": "uint8", "fill_value": 9,
        "codecs": ["bytes"], "chunk_key_encoding": "default",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}, "attributes": {"n": 2}}"#;

/// A server that remembers what it read, and one that writes the same data in place of another program.
async fn servers(recheck: Recheck, guarantees: Guarantees) -> (TestServer, TestServer) {
    let memory = MemoryStore::new();
    let writer = TestServer::over(Arc::new(memory.clone()), Settings::default());
    put(&writer, "g/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
    v3(&writer, "g/a", json!("uint8"), &[400], &[2], json!(9)).await;
    for chunk in 0..150_u8 {
        put(&writer, &format!("g/a/c/{chunk}"), vec![chunk; 2]).await;
    }
    let rechecked = CachedStore::new(memory, recheck);
    let guarantees = rechecked.guarantees(guarantees);
    let served = ServedStore::read_only(Arc::new(Keyed::new(rechecked, guarantees)));
    let server = TestServer { router: router(App::new(served, Settings::default())), store: writer.store.clone() };
    (server, writer)
}

/// The status of a request that has an entity tag, and the tag of its answer.
async fn revalidate(server: &TestServer, target: &str, tag: &str, current: bool) -> (StatusCode, String) {
    let mut headers = vec![("if-none-match", tag)];
    if current {
        headers.push(("cache-control", "no-cache"));
    }
    let answer = server.get(target, &headers).await;
    (answer.status, answer.header("etag").to_owned())
}

/// The answers about a value, a node, a slice of a few chunks, and one of many.
const TARGETS: [(&str, &str); 5] = [
    ("/store/g/a/c/7", "g/a/c/7"),
    ("/node/g/a", "g/a/zarr.json"),
    ("/array/g/a?select=10:30&format=raw", "g/a/c/7"),
    ("/array/g/a?format=raw", "g/a/c/7"),
    ("/array/g/a?reduce=sum", "g/a/c/7"),
];

#[tokio::test(start_paused = true)]
async fn no_answer_is_revalidated_beyond_the_time_of_recheck() {
    for listed_versions in [false, true] {
        for recheck in [Recheck::Always, Recheck::After(Duration::from_secs(5)), Recheck::Never] {
            let guarantees = Guarantees { listed_versions, ..Guarantees::READ_ONLY };
            let (server, writer) = servers(recheck, guarantees).await;
            for (target, key) in TARGETS {
                let (status, first) = revalidate(&server, target, "\"none\"", false).await;
                assert_eq!((status, first.is_empty()), (StatusCode::OK, false), "{target}");
                assert_eq!(revalidate(&server, target, &first, false).await.0, StatusCode::NOT_MODIFIED, "{target}");
                tokio::time::advance(Duration::from_millis(1)).await;
                let changed = if key.ends_with(".json") { ARRAY.as_bytes().to_vec() } else { vec![77; 2] };
                put(&writer, key, changed).await;
                // Values that are no documents are read each time.
                let is_remembered = !target.starts_with("/store");
                let expect = |found: StatusCode, is_fresh: bool| match is_fresh {
                    true => assert_eq!(found, StatusCode::OK, "{target} {recheck}"),
                    false if is_remembered => assert_eq!(found, StatusCode::NOT_MODIFIED, "{target} {recheck}"),
                    false => {}
                };
                let at_once = revalidate(&server, target, &first, false).await.0;
                expect(at_once, recheck == Recheck::Always);
                tokio::time::advance(Duration::from_secs(5)).await;
                let later = revalidate(&server, target, &first, false).await.0;
                expect(later, recheck != Recheck::Never);
                tokio::time::advance(Duration::from_secs(1)).await;
                let (status, second) = revalidate(&server, target, &first, true).await;
                assert_eq!((status, second != first), (StatusCode::OK, true), "{target} {recheck}");
                // The change is undone for the next target.
                put(&writer, key, vec![7; 2]).await;
                if key.ends_with(".json") {
                    v3(&writer, "g/a", json!("uint8"), &[400], &[2], json!(9)).await;
                }
                revalidate(&server, target, &second, true).await;
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_for_what_is_current_looks_again_within_the_time_of_recheck() {
    let (server, writer) = servers(Recheck::After(Duration::from_secs(5)), Guarantees::READ_ONLY).await;
    for (target, key) in TARGETS.into_iter().filter(|(_, key)| !key.ends_with(".json")) {
        put(&writer, key, vec![1; 2]).await;
        tokio::time::advance(Duration::from_secs(5)).await;
        let before = server.get(target, &[]).await.body;
        put(&writer, key, vec![2; 2]).await;
        tokio::time::advance(Duration::from_secs(1)).await;
        let after = server.get(target, &[("cache-control", "no-cache")]).await.body;
        assert_ne!(after, before, "{target}");
        assert_eq!(server.get(target, &[]).await.body, after, "{target}: it is remembered for all");
    }
}

/// A request for what is current is for what it reads: nobody else pays for it.
#[tokio::test(start_paused = true)]
async fn a_request_for_what_is_current_changes_nothing_for_others() {
    let (server, writer) = servers(Recheck::Never, Guarantees::READ_ONLY).await;
    let before = server.get("/node/g/a", &[]).await.json();
    put(&writer, "g/a/zarr.json", ARRAY.as_bytes().to_vec()).await;
    tokio::time::advance(Duration::from_secs(1)).await;
    let current = [("cache-control", "no-cache")];
    for other in ["/healthz", "/readyz", "/node/g?depth=0", "/store/g/a/c/3", "/array/nothing"] {
        server.get(other, &current).await;
        assert_eq!(server.get("/node/g/a", &[]).await.json(), before, "{other}");
    }
    assert_ne!(server.get("/node/g/a", &current).await.json(), before);
}

/// A slice of many chunks has a tag if all versions are known, or the request compares one.
#[tokio::test(start_paused = true)]
async fn a_slice_of_many_chunks_has_a_tag_if_its_versions_are_known() {
    let (server, _) = servers(Recheck::After(Duration::from_secs(5)), Guarantees::READ_ONLY).await;
    let target = "/array/g/a?format=raw";
    let tag = async |headers: &[(&str, &str)]| server.get(target, headers).await.header("etag").to_owned();
    assert_eq!(tag(&[]).await, "");
    let known = tag(&[]).await;
    assert_ne!(known, "", "it was read before");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(tag(&[]).await, "");
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(server.get(target, &[("if-none-match", &known)]).await.status, StatusCode::NOT_MODIFIED);
    tokio::time::advance(Duration::from_secs(5)).await;
    assert_eq!(server.get(target, &[("if-match", &known)]).await.status, StatusCode::OK);
    tokio::time::advance(Duration::from_secs(5)).await;
    let ranged = server.get(target, &[("if-range", &known), ("range", "bytes=0-9")]).await;
    assert_eq!((ranged.status, ranged.body.len()), (StatusCode::PARTIAL_CONTENT, 10));
}

#[tokio::test]
async fn trust_in_consolidated_metadata_is_reported() {
    let guarantees = Guarantees { consolidated: Consolidated::Trusted, ..Guarantees::READ_ONLY };
    let (server, _) = servers(Recheck::Always, guarantees).await;
    assert_eq!(server.get("/readyz", &[]).await.json()["guarantees"][0]["consolidated"], "trusted");
    let tree = server.get("/node/g", &[]).await;
    assert_eq!((tree.status, tree.json()["members"]["a"].is_object()), (StatusCode::OK, true));
}
