//! `COPY` and `MOVE`.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use http::StatusCode;
use zarrd_access::{AccessDirectory, CredentialId};
use zarrd_server::{App, Settings, router};
use zarrd_store::{
    Guarantees, Key, Keyed, ListableStore, MemoryStore, MountName, Mounts, Operation, PageRequest, Precondition,
    Prefix, SnapshotStore, StoreError, StoreWrapper, WriteableStore,
};
use zarrd_wire::{dav, problem::ProblemType};

use super::{copy, filled, move_, set_many, values};
use crate::common::{
    TestServer, low_memory_settings,
    tokens::{ServerWithTokens, closed_server_over},
};

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn values_are_copied_and_moved() {
    let server = filled().await;
    for (destination, status) in
        [("/store/copy", 201), ("http://localhost:8000/store/copy", 204), ("/store/lab/n%20e/w", 201)]
    {
        let copied = copy(&server, "/store/a", destination).await;
        assert_eq!((copied.status.as_u16(), &copied.body[..]), (status, &b""[..]), "{destination}");
    }
    assert_eq!(move_(&server, "/store/z", "/store/y").await.status, StatusCode::CREATED);
    assert_eq!(move_(&server, "/store/y", "/store/copy").await.status, StatusCode::NO_CONTENT);
    let expected = [
        ("a", "a"),
        ("copy", "z"),
        ("lab-2/ü", "lab-2/ü"),
        ("lab/n e/w", "a"),
        ("lab/x/c/0", "lab/x/c/0"),
        ("lab/x/zarr.json", "lab/x/zarr.json"),
        ("lab/zarr.json", "lab/zarr.json"),
    ];
    assert_eq!(values(&server).await, pairs(&expected));
    for path in ["/store/none", "/store/none/"] {
        copy(&server, path, "/store/b").await.problem(ProblemType::NoSuchKey);
        move_(&server, path, "/store/b").await.problem(ProblemType::NoSuchKey);
    }
}

#[tokio::test]
async fn large_values_are_copied_completely() {
    let server = TestServer::new();
    let large: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    server.put("/store/d/large", &[], large.clone()).await;
    assert_eq!(copy(&server, "/store/d/large", "/store/e").await.status, StatusCode::CREATED);
    assert_eq!(move_(&server, "/store/d/", "/store/f/").await.status, StatusCode::CREATED);
    assert_eq!(server.keys().await, ["e", "f/large"]);
    for key in ["e", "f/large"] {
        assert!(server.value(key).await.unwrap() == large, "{key}");
    }
}

#[tokio::test]
async fn prefixes_are_copied_and_moved_in_one_commit() {
    for (path, destination) in
        [("/store/lab", "/store/new"), ("/store/lab/", "/store/new/"), ("/store/lab", "/store/new/")]
    {
        let server = filled().await;
        let before = server.store.watermark().await.unwrap().unwrap().as_u64();
        assert_eq!(copy(&server, path, destination).await.status, StatusCode::CREATED);
        assert_eq!(server.store.watermark().await.unwrap().unwrap().as_u64(), before + 1);
        assert_eq!(move_(&server, path, "/store/moved/to").await.status, StatusCode::CREATED);
        assert_eq!(server.store.watermark().await.unwrap().unwrap().as_u64(), before + 2);
        let expected = [
            ("a", "a"),
            ("lab-2/ü", "lab-2/ü"),
            ("moved/to/x/c/0", "lab/x/c/0"),
            ("moved/to/x/zarr.json", "lab/x/zarr.json"),
            ("moved/to/zarr.json", "lab/zarr.json"),
            ("new/x/c/0", "lab/x/c/0"),
            ("new/x/zarr.json", "lab/x/zarr.json"),
            ("new/zarr.json", "lab/zarr.json"),
            ("z", "z"),
        ];
        assert_eq!(values(&server).await, pairs(&expected), "{path} {destination}");
    }
}

#[tokio::test]
async fn destinations_are_replaced_unless_they_must_not_be() {
    for (path, destination, left) in [
        ("/store/a", "/store/z", &["a", "lab-2/ü", "lab/x/c/0", "lab/x/zarr.json", "lab/zarr.json", "z"][..]),
        // A value in the place of a collection.
        ("/store/a", "/store/lab", &["a", "lab", "lab-2/ü", "z"]),
        ("/store/a", "/store/lab/", &["a", "lab", "lab-2/ü", "z"]),
        // A collection in the place of a value, and of another collection.
        ("/store/lab-2/", "/store/a", &["a/ü", "lab-2/ü", "lab/x/c/0", "lab/x/zarr.json", "lab/zarr.json", "z"]),
        ("/store/lab-2/", "/store/lab/", &["a", "lab-2/ü", "lab/ü", "z"]),
        ("/store/lab-2", "/store/lab/x", &["a", "lab-2/ü", "lab/x/ü", "lab/zarr.json", "z"]),
    ] {
        for method in [dav::copy(), dav::move_()] {
            let server = filled().await;
            let before = values(&server).await;
            for overwrite in ["F", "f"] {
                let headers = [("destination", destination), ("overwrite", overwrite)];
                let refused = server.request(method.clone(), path, &headers, "").await;
                refused.problem(ProblemType::PreconditionFailed);
                assert_eq!(values(&server).await, before);
            }
            let headers = [("destination", destination), ("overwrite", "T")];
            let replaced = server.request(method.clone(), path, &headers, "").await;
            assert_eq!(replaced.status, StatusCode::NO_CONTENT, "{method} {path} {destination}");
            let source = path.strip_prefix("/store/").unwrap().trim_end_matches('/');
            let moved =
                |key: &&&str| method == dav::copy() || **key != source && !key.starts_with(&format!("{source}/"));
            let left: Vec<&str> = left.iter().filter(moved).copied().collect();
            let left: Vec<&str> = match (path, destination, method == dav::move_()) {
                ("/store/lab-2/", "/store/a", true) => {
                    vec!["a/ü", "lab/x/c/0", "lab/x/zarr.json", "lab/zarr.json", "z"]
                }
                _ => left,
            };
            assert_eq!(server.keys().await, left, "{method} {path} {destination}");
        }
    }
    let server = filled().await;
    let free = [("destination", "/store/free"), ("overwrite", "F")];
    assert_eq!(server.request(dav::copy(), "/store/a", &free, "").await.status, StatusCode::CREATED);
    assert_eq!(
        server.request(dav::move_(), "/store/lab", &[free[0], ("overwrite", "T")], "").await.status,
        StatusCode::NO_CONTENT
    );
}

#[tokio::test]
async fn a_prefix_is_copied_below_itself_as_it_was() {
    let server = filled().await;
    assert_eq!(copy(&server, "/store/lab/", "/store/lab/x/").await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.keys().await, ["a", "lab-2/ü", "lab/x/zarr.json", "lab/zarr.json", "z"]);
    assert_eq!(copy(&server, "/store/", "/store/all/").await.status, StatusCode::CREATED);
    assert_eq!(server.keys().await.len(), 10);
}

#[tokio::test]
async fn a_collection_without_its_members_is_nothing() {
    let server = filled().await;
    let shallow = [("depth", "0"), ("destination", "/store/new/")];
    assert_eq!(server.request(dav::copy(), "/store/lab/", &shallow, "").await.status, StatusCode::CREATED);
    assert_eq!(server.keys().await.len(), 6);
    let replaced = [("depth", "0"), ("destination", "/store/lab-2/")];
    assert_eq!(server.request(dav::copy(), "/store/lab/", &replaced, "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(server.keys().await, ["a", "lab/x/c/0", "lab/x/zarr.json", "lab/zarr.json", "z"]);
    for (method, path, depth) in [
        (dav::copy(), "/store/lab/", "1"),
        (dav::copy(), "/store/a", "2"),
        (dav::move_(), "/store/lab/", "0"),
        (dav::move_(), "/store/lab/", "1"),
    ] {
        let headers = [("depth", depth), ("destination", "/store/new/")];
        let problem = server.request(method, path, &headers, "").await.problem(ProblemType::InvalidHeader);
        assert_eq!(problem.members.header.as_deref(), Some("Depth"));
    }
    let headers = [("depth", "0"), ("destination", "/store/b")];
    assert_eq!(server.request(dav::move_(), "/store/a", &headers, "").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn sources_and_destinations_must_not_overlap() {
    let server = filled().await;
    let before = values(&server).await;
    for (path, destination) in [
        ("/store/a", "/store/a"),
        ("/store/lab", "/store/lab/"),
        ("/store/lab/", "/store/l%61b"),
        ("/store/lab/x/", "/store/lab/"),
        ("/store/lab/x", "/store/lab"),
        ("/store/lab/x/c/0", "/store/lab/x"),
        ("/store/lab/", "/store/"),
    ] {
        copy(&server, path, destination).await.problem(ProblemType::OverlappingDestination);
        move_(&server, path, destination).await.problem(ProblemType::OverlappingDestination);
    }
    for (path, destination) in
        [("/store/lab/", "/store/lab/x/y/"), ("/store/lab", "/store/lab/new"), ("/store/a", "/store/a/b")]
    {
        move_(&server, path, destination).await.problem(ProblemType::OverlappingDestination);
    }
    move_(&server, "/store/", "/store/new/").await.problem(ProblemType::MethodNotAllowed);
    assert_eq!(values(&server).await, before);
    // Names that only begin alike do not.
    assert_eq!(move_(&server, "/store/lab/", "/store/lab-3/").await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn invalid_destinations_are_rejected() {
    let server = filled().await;
    let before = values(&server).await;
    for destination in
        ["http://other.example/store/b", "https://localhost:8001/store/b", "ftp://localhost:8000/store/b"]
    {
        copy(&server, "/store/a", destination).await.problem(ProblemType::ForeignDestination);
        move_(&server, "/store/lab/", destination).await.problem(ProblemType::ForeignDestination);
    }
    let long = format!("/store/{}", "x".repeat(1025));
    for destination in [
        "",
        "b",
        "/b",
        "/node/b",
        "/store",
        "/store//b",
        "/store/../b",
        "/store/%00",
        "/store/%zz",
        "*",
        "/s/link/store/b",
        &long,
    ] {
        let problem = copy(&server, "/store/a", destination).await.problem(ProblemType::InvalidHeader);
        assert_eq!(problem.members.header.as_deref(), Some("Destination"), "{destination:?}");
    }
    // Keys that would become too long.
    let long = format!("/store/{}/", "x".repeat(1020));
    move_(&server, "/store/lab/", &long).await.problem(ProblemType::InvalidHeader);
    server.request(dav::copy(), "/store/a", &[], "").await.problem(ProblemType::InvalidHeader);
    server
        .request(dav::copy(), "/store/a?x", &[("destination", "/store/b")], "")
        .await
        .problem(ProblemType::UnknownParameter);
    let twice = [("destination", "/store/b"), ("destination", "/store/c")];
    server.request(dav::copy(), "/store/a", &twice, "").await.problem(ProblemType::InvalidHeader);
    let overwrite = [("destination", "/store/b"), ("overwrite", "maybe")];
    server.request(dav::copy(), "/store/a", &overwrite, "").await.problem(ProblemType::InvalidHeader);
    assert_eq!(values(&server).await, before);
}

#[tokio::test]
async fn the_key_of_a_destination_with_a_slash_needs_its_own_right() {
    let sites = ServerWithTokens::closed();
    sites.server.set("lab/a", b"1").await;
    sites.server.set("lab/d/a", b"1").await;
    sites.server.set("out/x", b"old").await;
    let (_, token) = sites.token(&["read:lab/", "write:out/x/"]);
    let headers = [("authorization", token.as_str()), ("destination", "/store/out/x/")];
    sites.server.request(dav::copy(), "/store/lab/a", &headers, "").await.problem(ProblemType::Forbidden);
    let copied = sites.server.request(dav::copy(), "/store/lab/d/", &headers, "").await;
    assert_eq!(copied.status, StatusCode::CREATED);
    assert_eq!(sites.server.keys().await, ["lab/a", "lab/d/a", "out/x", "out/x/a"]);
    // A caller that may not write the key does not learn whether it exists.
    let made = sites.server.request(dav::mkcol(), "/store/out/x/", &[("authorization", token.as_str())], "").await;
    made.problem(ProblemType::MethodNotAllowed);
    sites.server.delete("/store/out/x/", &[("authorization", token.as_str())]).await;
    for (condition, status) in [("(<urn:uuid:lock>)", 412), ("(Not <urn:uuid:lock>)", 201)] {
        let headers = [("authorization", token.as_str()), ("if", condition)];
        let made = sites.server.request(dav::mkcol(), "/store/out/x/", &headers, "").await;
        assert_eq!(made.status, status, "{condition}");
    }
}

#[tokio::test]
async fn more_keys_than_a_commit_has_are_not_moved() {
    let store = MemoryStore::new();
    set_many(&store, (0..159_999).map(|number| format!("d/{number:06}"))).await;
    let server = TestServer::over(Arc::new(store.clone()), Settings::default());
    let problem = move_(&server, "/store/d/", "/store/e/").await.problem(ProblemType::TooManyChanges);
    assert_eq!(problem.members.limit, Some(320_000));
    let small = TestServer::over(Arc::new(store.clone()), low_memory_settings(Duration::ZERO));
    copy(&small, "/store/d/", "/store/e/").await.problem(ProblemType::TooMuchMemory);
    let below = store.list_prefix(&Prefix::parse("e/").unwrap(), PageRequest::first(1)).await.unwrap();
    assert!(below.keys.is_empty(), "nothing was copied: {below:?}");
}

/// A store in which another writer changes a key before each of the first commits.
struct Contended {
    store: MemoryStore,
    key: Key,
    left: AtomicUsize,
}

#[async_trait]
impl StoreWrapper for Contended {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        let is_commit = matches!(operation, Operation::Commit);
        let take = |left: usize| left.checked_sub(1);
        if is_commit && let Ok(left) = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            self.store.set(&self.key, format!("new {left}").into(), Precondition::none()).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn changes_of_others_are_moved_and_never_lost() {
    for (path, destination, changed, moved) in
        [("/store/d/a", "/store/e", "d/a", "e"), ("/store/d/", "/store/e/", "d/a", "e/a")]
    {
        for attempts in [1, 2, 100] {
            let store = MemoryStore::new();
            set_many(&store, ["d/a".to_owned(), "d/b".to_owned()].into_iter()).await;
            let key = Key::parse(changed).unwrap();
            let contended = Arc::new(Contended { store, key, left: attempts.into() });
            let server = TestServer::over(contended, Settings::default());
            let answer = move_(&server, path, destination).await;
            if attempts == 100 {
                answer.problem(ProblemType::TooManyConflicts);
                assert_eq!(server.keys().await, ["d/a", "d/b"]);
            } else {
                assert_eq!(answer.status, StatusCode::CREATED);
                assert_eq!(server.value(moved).await.as_deref(), Some(&b"new 1"[..]), "{path} {attempts}");
                assert_eq!(server.value(changed).await, None);
            }
        }
    }
}

#[tokio::test]
async fn keys_that_appear_meanwhile_are_neither_moved_nor_erased() {
    let store = MemoryStore::new();
    set_many(&store, ["d/a".to_owned()].into_iter()).await;
    let contended = Arc::new(Contended { store, key: Key::parse("d/new").unwrap(), left: 1.into() });
    let server = TestServer::over(contended, Settings::default());
    assert_eq!(move_(&server, "/store/d/", "/store/e/").await.status, StatusCode::CREATED);
    assert_eq!(server.keys().await, ["d/new", "e/a"]);
}

#[tokio::test]
async fn a_destination_that_appears_meanwhile_is_not_replaced() {
    for (path, destination, appears) in
        [("/store/d/a", "/store/e", "e"), ("/store/d/", "/store/e/", "e/x"), ("/store/d/a", "/store/e", "e/x")]
    {
        let store = MemoryStore::new();
        set_many(&store, ["d/a".to_owned()].into_iter()).await;
        let contended = Arc::new(Contended { store, key: Key::parse(appears).unwrap(), left: 1.into() });
        let server = TestServer::over(contended, Settings::default());
        let headers = [("destination", destination), ("overwrite", "F")];
        server.request(dav::move_(), path, &headers, "").await.problem(ProblemType::PreconditionFailed);
        assert_eq!(server.keys().await, ["d/a", appears]);
    }
}

/// A server with a store at `lab/`.
fn with_mount(root: MemoryStore, lab: Arc<dyn SnapshotStore>) -> TestServer {
    let mounts = BTreeMap::from([("lab".parse::<MountName>().unwrap(), lab)]);
    let served = Mounts::new("test", Arc::new(root.clone()).into(), mounts).served();
    TestServer { router: router(App::new(served, Settings::default())), store: Arc::new(root) }
}

#[tokio::test]
async fn mounted_stores_are_sources_and_no_destinations() {
    let [root, lab] = [(); 2].map(|()| MemoryStore::new());
    set_many(&root, ["own/a".to_owned()].into_iter()).await;
    set_many(&lab, ["d/a".to_owned(), "d/b".to_owned()].into_iter()).await;
    let server = with_mount(root, Arc::new(Keyed::new(lab, Guarantees::READ_ONLY)));
    for destination in ["/store/lab/x", "/store/lab/", "/store/lab"] {
        // That is found before anything is read.
        for source in ["/store/own/a", "/store/own/", "/store/none"] {
            copy(&server, source, destination).await.problem(ProblemType::Unsupported);
        }
    }
    move_(&server, "/store/lab/d/", "/store/e/").await.problem(ProblemType::Unsupported);
    super::mkcol(&server, "/store/lab/new").await.problem(ProblemType::Unsupported);
    assert_eq!(copy(&server, "/store/lab/d/a", "/store/one").await.status, StatusCode::CREATED);
    assert_eq!(copy(&server, "/store/lab/d/", "/store/e/").await.status, StatusCode::CREATED);
    assert_eq!(server.keys().await, ["e/a", "e/b", "one", "own/a"]);
    let found = super::propfind(&server, "/store/lab/", "1").await;
    assert_eq!(super::hrefs(&found), ["/store/lab/", "/store/lab/d/"]);
    let options = server.request(super::options(), "/store/lab/d/a", &[], "").await;
    assert_eq!(options.header("allow"), "GET, HEAD, PROPFIND, COPY, OPTIONS");
}

/// A store in which a key changes before each read of a value.
struct Restless {
    store: MemoryStore,
    key: Key,
}

#[async_trait]
impl StoreWrapper for Restless {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        if matches!(operation, Operation::Get(_)) {
            self.store.set(&self.key, "new".into(), Precondition::none()).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn values_that_change_between_listing_and_reading_are_not_copied() {
    let lab = MemoryStore::new();
    set_many(&lab, ["d/a".to_owned(), "d/b".to_owned()].into_iter()).await;
    let restless = Restless { store: lab, key: Key::parse("d/a").unwrap() };
    let server = with_mount(MemoryStore::new(), Arc::new(Keyed::new(restless, Guarantees::READ_ONLY)));
    copy(&server, "/store/lab/d/", "/store/e/").await.problem(ProblemType::TooManyConflicts);
    assert!(server.keys().await.is_empty());
    // A single value is one of one moment.
    assert_eq!(copy(&server, "/store/lab/d/a", "/store/e").await.status, StatusCode::CREATED);
    assert_eq!(values(&server).await, pairs(&[("e", "new")]));
}

/// A store that is first read when a token has just been revoked.
struct Revoking {
    store: MemoryStore,
    directory: Arc<AccessDirectory>,
    token: CredentialId,
}

#[async_trait]
impl StoreWrapper for Revoking {
    type Inner = MemoryStore;

    fn inner(&self) -> &MemoryStore {
        &self.store
    }

    async fn before(&self, operation: Operation<'_>) -> Result<(), StoreError> {
        if matches!(operation, Operation::Get(_) | Operation::SnapshotBelow(_)) {
            // The second time there is none.
            let _ = self.directory.revoke(self.token);
        }
        Ok(())
    }
}

#[tokio::test]
async fn nothing_is_copied_or_moved_if_the_caller_loses_its_rights_meanwhile() {
    for (method, source) in [
        (dav::copy(), "/store/d/a"),
        (dav::copy(), "/store/d/"),
        (dav::move_(), "/store/d/a"),
        (dav::move_(), "/store/d"),
    ] {
        let sites = ServerWithTokens::closed();
        let store = MemoryStore::new();
        set_many(&store, ["d/a".to_owned(), "d/b".to_owned()].into_iter()).await;
        let [lost, lasting] = [(); 2].map(|()| sites.token(&["write:/"]));
        let revoking = Revoking { store: store.clone(), directory: sites.directory.clone(), token: lost.0 };
        let server = closed_server_over(&sites.directory, Arc::new(revoking));
        let request = |authorization: String| {
            let (server, method) = (&server, method.clone());
            async move {
                let headers = [("authorization", authorization.as_str()), ("destination", "/store/e")];
                server.request(method, source, &headers, "").await
            }
        };
        request(lost.1).await.problem(ProblemType::Unauthorized);
        assert_eq!(server.keys().await, ["d/a", "d/b"], "{method} {source}");
        assert_eq!(request(lasting.1).await.status, StatusCode::CREATED, "{method} {source}");
    }
}
