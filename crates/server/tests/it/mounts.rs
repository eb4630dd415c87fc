//! Several stores that are served as one.

use std::{collections::BTreeMap, sync::Arc};

use crate::common::{
    TestServer,
    arrays::{put, v3},
};
use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::json;
use zarrd_server::{AccessPolicy, AnonymousAccess, App, Grant, Grants, Settings, router};
use zarrd_store::{
    BackendErrorKind, Guarantees, Keyed, Listing, MemoryStore, MountName, Mounts, Operation, ServedStore,
    SnapshotStore, StoreError, StoreWrapper,
};
use zarrd_store_testkit::Unlisted;
use zarrd_wire::{health::Readiness, node::Source, problem::ProblemType};

const GROUP: &[u8] = br#"{"zarr_format": 3, "node_type": "group"}"#;

/// A server with an array below `/lab`, which others own, and one below `/own`.
async fn serve(settings: Settings) -> TestServer {
    let [root, lab] = [(); 2].map(|()| MemoryStore::new());
    let filled = TestServer::over(Arc::new(lab.clone()), Settings::default());
    put(&filled, "zarr.json", GROUP.to_vec()).await;
    v3(&filled, "a", json!("uint8"), &[4], &[2], json!(9)).await;
    put(&filled, "a/c/0", vec![1, 2]).await;
    let filled = TestServer::over(Arc::new(root.clone()), Settings::default());
    put(&filled, "own/zarr.json", GROUP.to_vec()).await;
    v3(&filled, "own/a", json!("uint8"), &[4], &[2], json!(9)).await;
    put(&filled, "lab/hidden", b"hidden".to_vec()).await;
    let lab: Arc<dyn SnapshotStore> = Arc::new(Keyed::new(lab, Guarantees::READ_ONLY));
    let mounts = BTreeMap::from([("lab".parse::<MountName>().unwrap(), lab)]);
    let served = Mounts::new("test", Arc::new(root.clone()).into(), mounts).served();
    TestServer { router: router(App::new(served, settings)), store: Arc::new(root) }
}

#[tokio::test]
async fn mounts_are_read_beside_the_store_at_the_root() {
    let server = serve(Settings::default()).await;
    assert_eq!(server.get("/array/lab/a?format=json", &[]).await.json(), json!([1, 2, 9, 9]));
    assert_eq!(server.get("/array/own/a?format=json", &[]).await.json(), json!([9, 9, 9, 9]));
    server.get("/store/lab/hidden", &[]).await.problem(ProblemType::NoSuchKey);
    assert_eq!(server.get("/store/lab", &[]).await.status, StatusCode::MOVED_PERMANENTLY);
    let listed = server.get("/store/", &[("accept", "application/json")]).await.json();
    assert_eq!(listed["prefixes"], json!(["lab/", "own/"]), "{listed}");
    let keys = server.get("/store/?list=keys&limit=2", &[]).await.json();
    assert_eq!(keys["keys"], json!(["lab/a/c/0", "lab/a/zarr.json"]), "{keys}");
    let tree = server.get("/node/?depth=all", &[]).await;
    assert_eq!(tree.header("zarr-consistency"), "key");
    let members = tree.json()["members"].clone();
    assert!(members["lab"]["members"]["a"].is_object() && members["own"]["members"]["a"].is_object(), "{members}");
    for (target, expected) in [
        ("/array/lab/a", "key"),
        ("/array/own/a", "commit"),
        ("/node/lab?depth=all", "key"),
        ("/node/own?depth=all", "commit"),
        ("/node/own", "commit"),
    ] {
        assert_eq!(server.get(target, &[]).await.header("zarr-consistency"), expected, "{target}");
    }
}

#[tokio::test]
async fn the_store_at_the_root_is_written_as_before() {
    let server = serve(Settings::default()).await;
    assert_eq!(server.request(Method::PUT, "/store/new/k", &[], "1").await.status, StatusCode::CREATED);
    assert_eq!(server.request(Method::PUT, "/store/k", &[], "1").await.status, StatusCode::CREATED);
    let json = [("content-type", "application/json")];
    let written = server.request(Method::PUT, "/array/own/a?select=0", &json, "7").await;
    assert_eq!(written.status, StatusCode::OK, "{written:?}");
    assert_eq!(server.get("/array/own/a?format=json", &[]).await.json(), json!([7, 9, 9, 9]));
    let copied = server.request(Method::POST, "/node/own?convert=v2&target=/copy", &[], "").await;
    assert_eq!(copied.status, StatusCode::OK, "{copied:?}");
    assert_eq!(server.get("/array/copy/a?format=json", &[]).await.json(), json!([7, 9, 9, 9]));
    assert_eq!(server.delete("/node/copy", &[]).await.status, StatusCode::OK);
    assert_eq!(server.delete("/store/new/", &[]).await.status, StatusCode::OK);
    let root = server.request(Method::PUT, "/node/", &json, GROUP).await;
    assert_eq!(root.status, StatusCode::CREATED, "{root:?}");
}

#[tokio::test]
async fn changes_of_a_mount_and_across_mounts_are_unsupported_and_change_nothing() {
    let server = serve(Settings::default()).await;
    let keys = async || server.get("/store/?list=keys", &[]).await.json();
    let before = keys().await;
    let json = [("content-type", "application/json")];
    for (method, target, body) in [
        (Method::PUT, "/store/lab/new", "1"),
        (Method::PUT, "/store/lab", "1"),
        (Method::PUT, "/store/%6Cab/new", "1"),
        (Method::DELETE, "/store/lab/a/c/0", ""),
        (Method::DELETE, "/store/lab/", ""),
        (Method::DELETE, "/store/?confirm=all", ""),
        (Method::PUT, "/array/lab/a?select=0", "7"),
        (Method::POST, "/array/lab/a?append=0", "[7]"),
        (Method::PUT, "/node/lab/new", r#"{"zarr_format": 3, "node_type": "group"}"#),
        (Method::PATCH, "/node/lab", r#"{"attributes": {"x": 1}}"#),
        (Method::DELETE, "/node/lab", ""),
        (Method::DELETE, "/node/?confirm=all", ""),
        (Method::POST, "/node/lab?convert=v2", ""),
        (Method::POST, "/node/lab?convert=v2&target=/copy", ""),
        (Method::POST, "/node/own?convert=v2&target=/lab/copy", ""),
        (Method::POST, "/node/?convert=v2&target=/copy", ""),
    ] {
        let answer = server.request(method.clone(), target, &json, body).await;
        let unsupported = answer.problem(ProblemType::Unsupported).members.unsupported.unwrap();
        assert!(unsupported.starts_with("changes"), "{method} {target}: {unsupported}");
        assert_eq!(keys().await, before, "{method} {target}");
    }
    let options = server.request(Method::OPTIONS, "/store/lab/k", &[], "").await;
    assert_eq!(options.header("allow"), "GET, HEAD, PROPFIND, COPY, OPTIONS");
    let options = server.request(Method::OPTIONS, "/store/own/k", &[], "").await;
    assert_eq!(options.header("allow"), "GET, HEAD, PUT, DELETE, PROPFIND, PROPPATCH, COPY, MOVE, MKCOL, OPTIONS");
}

/// A store that cannot be reached.
struct Unreachable(MemoryStore);

#[async_trait]
impl StoreWrapper for Unreachable {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, _operation: Operation<'_>) -> Result<(), StoreError> {
        Err(StoreError::backend(BackendErrorKind::Connection, "secret"))
    }
}

#[tokio::test]
async fn a_failure_of_a_mount_names_it_and_leaves_the_others() {
    let root = Arc::new(MemoryStore::new());
    let broken = Arc::new(Keyed::new(Unreachable(MemoryStore::new()), Guarantees::READ_ONLY));
    let mounts = BTreeMap::from([("lab".parse::<MountName>().unwrap(), broken as Arc<dyn SnapshotStore>)]);
    let served = Mounts::new("test", root.clone().into(), mounts).served();
    let server = TestServer { router: router(App::new(served, Settings::default())), store: root };
    for target in ["/store/lab/k", "/store/lab/?list=keys", "/array/lab/a", "/node/lab"] {
        let answer = server.get(target, &[]).await;
        let problem = answer.problem(ProblemType::StoreUnavailable);
        assert_eq!(problem.members.prefix.as_deref(), Some("lab/"), "{target}");
        assert!(!answer.text().contains("secret"), "{target}");
    }
    server.get("/store/k", &[]).await.problem(ProblemType::NoSuchKey);
    assert_eq!(server.request(Method::PUT, "/store/k", &[], "1").await.status, StatusCode::CREATED);
}

#[tokio::test(start_paused = true)]
async fn readiness_says_which_stores_answer() {
    let server = serve_beside_failing_mounts().await;
    let readiness: Readiness = serde_json::from_slice(&server.get("/readyz", &[]).await.body).unwrap();
    let reachable = readiness.guarantees.iter().map(|store| (store.name.as_deref(), store.reachable));
    let mounts = [("down", false), ("lab", true), ("silent", false), ("slow", false)];
    let mounts = mounts.map(|(name, answers)| (Some(name), Some(answers)));
    assert_eq!(reachable.collect::<Vec<_>>(), [&[(None, None)], &mounts[..]].concat());
    let broken = Keyed::new(Unreachable(MemoryStore::new()), Guarantees::READ_ONLY);
    let served = ServedStore::read_only(Arc::new(broken));
    let server =
        TestServer { router: router(App::new(served, Settings::default())), store: Arc::new(MemoryStore::new()) };
    server.get("/readyz", &[]).await.problem(ProblemType::StoreUnavailable);
}

/// A store that never answers.
struct Silent(MemoryStore);

#[async_trait]
impl StoreWrapper for Silent {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.0
    }

    async fn before(&self, _operation: Operation<'_>) -> Result<(), StoreError> {
        std::future::pending().await
    }
}

/// A server with mounts that fail beside one that works, and an array of its own.
async fn serve_beside_failing_mounts() -> TestServer {
    let [root, lab] = [(); 2].map(|()| MemoryStore::new());
    let filled = TestServer::over(Arc::new(root.clone()), Settings::default());
    v3(&filled, "own", json!("uint8"), &[4], &[2], json!(9)).await;
    let filled = TestServer::over(Arc::new(lab.clone()), Settings::default());
    v3(&filled, "a", json!("uint8"), &[4], &[2], json!(9)).await;
    let mounts: [(&str, Arc<dyn SnapshotStore>); 4] = [
        ("down", Arc::new(Keyed::new(Unreachable(MemoryStore::new()), Guarantees::READ_ONLY))),
        ("lab", Arc::new(Keyed::new(lab, Guarantees::READ_ONLY))),
        ("silent", Arc::new(Keyed::new(Silent(MemoryStore::new()), Guarantees::READ_ONLY))),
        ("slow", Arc::new(Keyed::new(Silent(MemoryStore::new()), Guarantees::READ_ONLY))),
    ];
    let mounts = mounts.into_iter().map(|(name, store)| (name.parse::<MountName>().unwrap(), store)).collect();
    let served = Mounts::new("test", Arc::new(root.clone()).into(), mounts).served();
    TestServer { router: router(App::new(served, Settings::default())), store: Arc::new(root) }
}

#[tokio::test(start_paused = true)]
async fn trees_of_the_root_mark_mounts_that_fail_or_do_not_answer() {
    let server = serve_beside_failing_mounts().await;
    for target in ["/node/?depth=all", "/node/", "/node/?limit=10", "/node/?limit=1", "/node/?as=v3"] {
        let begun = tokio::time::Instant::now();
        let answer = server.get(target, &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{target}: {answer:?}");
        assert!(begun.elapsed() < std::time::Duration::from_secs(21), "{target}: {:?}", begun.elapsed());
        if target.ends_with("limit=1") {
            continue;
        }
        let members = answer.json()["members"].clone();
        let names: Vec<&String> = members.as_object().unwrap().keys().collect();
        assert_eq!(names, ["lab", "own"], "{target}");
        assert_eq!(answer.header("zarr-broken"), "3", "{target}");
    }
    let begun = tokio::time::Instant::now();
    let source: Source = serde_json::from_slice(&server.get("/node/?include=source", &[]).await.body).unwrap();
    let broken: Vec<_> = source.broken.iter().map(|node| (node.path.as_str(), node.problem.reason.as_str())).collect();
    let silent = "unavailable: the store did not answer in time";
    let down = "unavailable: the connection to the store failed";
    assert_eq!(broken, [("/down", down), ("/silent", silent), ("/slow", silent)]);
    // A mount that failed is not waited for again at once.
    assert_eq!(begun.elapsed(), std::time::Duration::ZERO);
    // What changes the root, or compares with it, does not pass over a mount.
    let declared = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let answer = server.json(Method::POST, "/node/?validate", &declared).await;
    assert!(answer.status.is_server_error(), "{answer:?}");
}

#[tokio::test]
async fn trees_of_the_root_mark_mounts_without_listings() {
    let [root, web, bare, named] = [(); 4].map(|()| MemoryStore::new());
    put(&TestServer::over(Arc::new(root.clone()), Settings::default()), "own/zarr.json", GROUP.to_vec()).await;
    for store in [&web, &bare, &named] {
        let filled = TestServer::over(Arc::new(store.clone()), Settings::default());
        v3(&filled, "a", json!("uint8"), &[4], &[2], json!(9)).await;
    }
    put(&TestServer::over(Arc::new(web.clone()), Settings::default()), "zarr.json", GROUP.to_vec()).await;
    let array: serde_json::Value = {
        let filled = TestServer::over(Arc::new(named.clone()), Settings::default());
        serde_json::from_slice(&filled.value("a/zarr.json").await.unwrap()).unwrap()
    };
    let consolidated = json!({"zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": {"a": array}}});
    let filled = TestServer::over(Arc::new(named.clone()), Settings::default());
    put(&filled, "zarr.json", consolidated.to_string().into_bytes()).await;
    let unlisted = |store: MemoryStore| -> Arc<dyn SnapshotStore> {
        let guarantees = Guarantees { listing: Listing::None, ..Guarantees::READ_ONLY };
        Arc::new(Keyed::new(Unlisted(store), guarantees))
    };
    let mounts = [("bare", bare), ("named", named), ("web", web)];
    let mounts = mounts.map(|(name, store)| (name.parse::<MountName>().unwrap(), unlisted(store)));
    let served = Mounts::new("test", Arc::new(root.clone()).into(), BTreeMap::from(mounts)).served();
    let server = TestServer { router: router(App::new(served, Settings::default())), store: Arc::new(root) };
    for query in ["depth=all", "depth=1", "limit=10", "depth=all&as=v3", "depth=2&flat"] {
        let answer = server.get(&format!("/node/?include=source&{query}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK, "{query}: {answer:?}");
        assert_eq!(answer.json()["unlisted"], json!(["/bare", "/web"]), "{query}");
    }
    let tree = server.get("/node/?depth=all", &[]).await.json();
    let names: Vec<&String> = tree["members"].as_object().unwrap().keys().collect();
    assert_eq!(names, ["named", "own", "web"], "{tree}");
    assert!(tree["members"]["web"].get("members").is_none(), "nothing is said of its members: {tree}");
    assert!(tree["members"]["named"]["members"]["a"].is_object(), "{tree}");
    assert_eq!(server.get("/array/web/a?format=json", &[]).await.json(), json!([9, 9, 9, 9]));
    server.get("/node/web", &[]).await.problem(ProblemType::Unsupported);
    // What compares with the root does not pass over a mount.
    let declared = json!({"zarr_format": 3, "node_type": "group", "attributes": {}});
    let compared = server.json(Method::POST, "/node/?validate", &declared).await;
    assert!(!compared.status.is_success(), "{compared:?}");
}

#[tokio::test(start_paused = true)]
async fn a_listing_of_a_mount_that_does_not_answer_ends_in_time() {
    let server = serve_beside_failing_mounts().await;
    for target in ["/store/silent/?list=dir", "/store/silent/a/?list=keys", "/store/?list=keys"] {
        let begun = tokio::time::Instant::now();
        let answer = server.get(target, &[("accept", "application/json")]).await;
        if target == "/store/?list=keys" {
            answer.problem(ProblemType::StoreUnavailable);
            continue;
        }
        let problem = answer.problem(ProblemType::StoreTimeout);
        assert_eq!(problem.members.prefix.as_deref(), Some("silent/"), "{target}");
        assert_eq!(begun.elapsed().as_secs(), 10, "{target}");
    }
    let listed = server.get("/store/", &[("accept", "application/json")]).await.json();
    assert_eq!(listed["prefixes"], json!(["down/", "lab/", "own/", "silent/", "slow/"]), "{listed}");
}

#[tokio::test]
async fn readiness_tells_the_guarantees_of_each_store_that_the_caller_may_read() {
    let server = serve(Settings::default()).await;
    let ready = server.get("/readyz", &[]).await.json();
    assert_eq!(ready["writable"], true);
    let found: Vec<_> = ready["guarantees"].as_array().unwrap().iter().map(|of| (&of["name"], &of["reads"])).collect();
    assert_eq!(found, [(&json!(null), &json!("commit")), (&json!("lab"), &json!("key"))]);
    let readable = Grants::new(["read:own/".parse::<Grant>().unwrap()]).unwrap();
    let access = AccessPolicy { anonymous: AnonymousAccess::Granted(readable), ..AccessPolicy::default() };
    let server = serve(Settings { access, ..Settings::default() }).await;
    let found = server.get("/readyz", &[]).await.json()["guarantees"].as_array().unwrap().len();
    assert_eq!(found, 1);
    server.get("/store/lab/a/c/0", &[]).await.problem(ProblemType::Unauthorized);
    assert_eq!(server.get("/array/own/a", &[]).await.status, StatusCode::OK);
}
