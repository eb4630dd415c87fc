//! Changes of nodes and elements: what is asked, and what is asked again.

use bytes::Bytes;
use client::{
    ArrayError, ConvertOptions, CreateOptions, CreateStatus, Depth, Dialect, IfExists, LossPolicy, NodeClient,
    NodeError, NodePath, Patch, Zom, select,
};
use serde_json::json;
use store::{KeyCount, Precondition, Version};

use crate::server::{ETAG, Server, Step, answer, problem};

const GROUP: &str = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;

fn path() -> NodePath {
    NodePath::parse("/a b/c").unwrap()
}

fn nodes(server: &Server) -> NodeClient {
    server.store().connection().into()
}

fn group() -> Zom {
    Zom::parse(GROUP).unwrap()
}

fn written() -> Step {
    Step::Say(answer(
        200,
        &[&format!("ETag: {ETAG}")],
        r#"{"shape":[4],"chunks_written":1,"chunks_erased":2,"conflicts_retried":3}"#,
    ))
}

fn told(status: u16) -> Step {
    Step::Say(answer(status, &["Zarr-Dialect: v3", &format!("ETag: {ETAG}")], GROUP))
}

fn at() -> Precondition {
    Precondition::at(Version::from_u128(42))
}

#[tokio::test]
async fn what_is_asked() {
    let counts = r#"{"nodes":1,"chunks":2,"losses":[{"path":"/a","pointer":"/order","property":"it"}]}"#;
    let report = r#"{"unchanged":false,"differences":[{"pointer":"/shape","expected":null}],"truncated":true}"#;
    let steps = [written(), written(), told(201), told(200)].into_iter().chain([
        Step::Say(answer(200, &[], report)),
        Step::Say(answer(200, &[], r#"{"erased":7}"#)),
        Step::Say(answer(200, &[], counts)),
        Step::Say(answer(200, &["Zarr-Dialect: v2"], r#"{"":{"zarr_format":2},"/x":{"shape":[]}}"#)),
    ]);
    let server = Server::play(steps).await;
    let (arrays, nodes) = (server.arrays().of_dialect(Dialect::V2), nodes(&server));
    let wrote = arrays.write(&path(), select![0..2, -1], Bytes::from_static(b"ab"), at()).await.unwrap();
    assert_eq!((wrote.version, wrote.shape, wrote.chunks_written), (Some(Version::from_u128(42)), vec![4], 1));
    assert_eq!((wrote.chunks_erased, wrote.conflicts_retried), (2, 3));
    arrays.append(&path(), -1, json!([1]), Precondition::none()).await.unwrap();
    let replace =
        CreateOptions { if_exists: IfExists::Replace, losses: LossPolicy::Allow, precondition: Precondition::absent() };
    let declared = nodes.create(&path(), &group(), &replace).await.unwrap();
    assert_eq!((declared.status, declared.node.zom), (CreateStatus::Created, group()));
    let patch = Patch { shape: Some(vec![2]), dimension_names: Some(None), ..Patch::default() };
    assert_eq!(nodes.patch(&path(), &patch, at()).await.unwrap().version, Some(Version::from_u128(42)));
    let compared = nodes.of_dialect(Dialect::V3).validate(&path(), &group()).await.unwrap();
    assert_eq!((compared.unchanged, compared.truncated), (false, true));
    assert_eq!(nodes.erase(&NodePath::root(), Precondition::none()).await.unwrap(), KeyCount::exact(7));
    let into = ConvertOptions { dialect: Dialect::V3, target: Some(path()) };
    let converted = nodes.convert(&NodePath::root(), &into).await.unwrap();
    assert_eq!((converted.nodes, converted.chunks, converted.losses.len()), (1, 2, 1));
    let flat = nodes.flat(&path(), Depth::All).await.unwrap();
    assert_eq!((flat.dialect, flat.version, flat.documents.len()), (Dialect::V2, None, 2));

    let requests = server.requests();
    let lines: Vec<_> = requests.iter().map(|request| request.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "PUT /mount/array/a%20b/c?select=0%3A2%2C-1&dialect=v2",
            "POST /mount/array/a%20b/c?append=-1&dialect=v2",
            "PUT /mount/node/a%20b/c?overwrite&allow_lossy",
            "PATCH /mount/node/a%20b/c",
            "POST /mount/node/a%20b/c?validate&dialect=v3",
            "DELETE /mount/node/?confirm=all",
            "POST /mount/node/?convert=v3&target=/a%20b/c",
            "GET /mount/node/a%20b/c?depth=all&flat",
        ]
    );
    let header = |number: usize, name| requests[number].header(name);
    assert_eq!((header(0, "if-match"), header(0, "content-type")), (Some(ETAG), Some("application/octet-stream")));
    assert_eq!((requests[0].body.as_slice(), requests[1].body.as_slice()), (&b"ab"[..], &b"[1]"[..]));
    assert_eq!((header(1, "if-match"), header(1, "content-type")), (None, Some("application/json")));
    assert_eq!(header(2, "if-none-match"), Some("*"));
    assert_eq!((header(3, "if-match"), header(3, "content-type")), (Some(ETAG), Some("application/merge-patch+json")));
    assert_eq!(requests[3].body, br#"{"shape":[2],"dimension_names":null}"#);
}

#[tokio::test]
async fn regions_are_written_again_and_nothing_is_appended_twice() {
    let bytes = || Bytes::from_static(b"ab");
    let busy = || Step::Say(problem(503, "busy", &["Retry-After: 0"], ""));

    let server = Server::play([Step::Close, busy(), written()]).await;
    server.arrays().write(&path(), select![], bytes(), Precondition::none()).await.unwrap();
    assert_eq!(server.requests().len(), 3);

    for condition in [at(), Precondition::none()] {
        let server = Server::play([busy(), Step::Close, written()]).await;
        let (arrays, is_append) = (server.arrays(), condition == Precondition::none());
        let wrote = match is_append {
            true => arrays.append(&path(), 0, bytes(), condition).await,
            false => arrays.write(&path(), select![], bytes(), condition).await,
        };
        assert!(matches!(wrote, Err(ArrayError::Transport(_))), "{wrote:?}");
        assert_eq!(server.requests().len(), 2, "only what was not done is asked again");
    }
}

#[tokio::test]
async fn declarations_that_keep_what_is_there_are_made_again() {
    let server = Server::play([Step::Close, told(200)]).await;
    let declared = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap();
    assert_eq!(declared.status, CreateStatus::Existed);

    let replace = CreateOptions { if_exists: IfExists::Replace, ..CreateOptions::default() };
    let absent = CreateOptions { precondition: Precondition::absent(), ..CreateOptions::default() };
    for declaration in [replace, absent] {
        let server = Server::play([Step::Close, told(200)]).await;
        let error = nodes(&server).create(&path(), &group(), &declaration).await.unwrap_err();
        assert!(matches!(error, NodeError::Transport(_)), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
    for shape in [None, Some(vec![1])] {
        let server = Server::play([Step::Close, told(200)]).await;
        let patch = Patch { attributes: Some(serde_json::Map::new()), shape: shape.clone(), ..Patch::default() };
        let patched = nodes(&server).patch(&path(), &patch, Precondition::none()).await;
        assert_eq!(patched.is_ok(), shape.is_none(), "{patched:?}");
    }
}

#[tokio::test]
async fn answers_that_are_no_nodes() {
    for wrong in ["[]", "{}", r#"{"zarr_format":3,"members":1}"#, "<html>"] {
        let server = Server::play([Step::Say(answer(200, &["Zarr-Dialect: v3"], wrong))]).await;
        let error = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap_err();
        assert!(matches!(error, NodeError::Protocol { .. }), "{wrong}: {error:?}");
    }
    let server = Server::play([Step::Say(answer(200, &[], GROUP))]).await;
    let error = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap_err();
    assert!(matches!(error, NodeError::Protocol { .. }), "without its dialect: {error:?}");
}
