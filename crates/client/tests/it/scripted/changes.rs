//! Changes of nodes and elements: requests and retries.

use bytes::Bytes;
use serde_json::json;
use zarrd_client::{
    ArrayError, ConvertOptions, CreateOptions, CreateStatus, Depth, Dialect, ExistingDocuments, IfExists, LossPolicy,
    NodeClient, NodeError, NodePath, Patch, RemoteError, Zom, select,
};
use zarrd_store::{KeyCount, Precondition, Version};

use crate::scripted::scripted_server::{ETAG, ScriptedServer, Step, problem, response};

const GROUP: &str = r#"{"zarr_format":3,"node_type":"group","attributes":{}}"#;

fn path() -> NodePath {
    NodePath::parse("/a b/c").unwrap()
}

fn nodes(server: &ScriptedServer) -> NodeClient {
    server.store().connection().into()
}

fn group() -> Zom {
    Zom::parse(GROUP).unwrap()
}

fn written() -> Step {
    Step::Respond(response(
        200,
        &[&format!("ETag: {ETAG}")],
        r#"{"shape":[4],"chunks_written":1,"chunks_erased":2,"conflicts_retried":3}"#,
    ))
}

fn node_response(status: u16) -> Step {
    Step::Respond(response(status, &["Zarr-Dialect: v3", &format!("ETag: {ETAG}")], GROUP))
}

fn precondition() -> Precondition {
    Precondition::at(Version::from_u128(42))
}

#[tokio::test]
async fn changes_are_sent_as_requests() {
    let counts = r#"{"nodes":1,"chunks":2,"losses":[{"path":"/a","pointer":"/order","property":"it"}]}"#;
    let report = r#"{"unchanged":false,"differences":[{"pointer":"/shape","expected":null}],"truncated":true}"#;
    let steps = [written(), written(), node_response(201), node_response(200)].into_iter().chain([
        Step::Respond(response(200, &[], report)),
        Step::Respond(response(200, &[], r#"{"erased":7}"#)),
        Step::Respond(response(200, &[], counts)),
        Step::Respond(response(200, &["Zarr-Dialect: v2"], r#"{"":{"zarr_format":2},"/x":{"shape":[]}}"#)),
    ]);
    let server = ScriptedServer::start(steps).await;
    let (arrays, nodes) = (server.arrays().with_dialect(Dialect::V2), nodes(&server));
    let report = arrays.write(&path(), select![0..2, -1], Bytes::from_static(b"ab"), precondition()).await.unwrap();
    assert_eq!((report.version, report.shape, report.chunks_written), (Some(Version::from_u128(42)), vec![4], 1));
    assert_eq!((report.chunks_erased, report.conflicts_retried), (2, 3));
    arrays.append(&path(), -1, json!([1]), Precondition::none()).await.unwrap();
    let replace =
        CreateOptions { if_exists: IfExists::Replace, losses: LossPolicy::Allow, precondition: Precondition::absent() };
    let created = nodes.create(&path(), &group(), &replace).await.unwrap();
    assert_eq!((created.status, created.node.zom), (CreateStatus::Created, group()));
    let patch = Patch { shape: Some(vec![2]), dimension_names: Some(None), ..Patch::default() };
    assert_eq!(nodes.patch(&path(), &patch, precondition()).await.unwrap().version, Some(Version::from_u128(42)));
    let compared = nodes.with_dialect(Dialect::V3).validate(&path(), &group()).await.unwrap();
    assert_eq!((compared.unchanged, compared.truncated), (false, true));
    assert_eq!(nodes.erase(&NodePath::root(), Precondition::none()).await.unwrap(), KeyCount::exact(7));
    let into = ConvertOptions {
        dialect: Dialect::V3,
        target: Some(path()),
        losses: LossPolicy::Allow,
        existing: ExistingDocuments::Keep,
    };
    let converted = nodes.convert(&NodePath::root(), &into).await.unwrap();
    assert_eq!((converted.nodes, converted.chunks, converted.losses.len()), (1, 2, 1));
    let documents = nodes.documents(&path(), Depth::All).await.unwrap();
    assert_eq!((documents.dialect, documents.version, documents.documents.len()), (Dialect::V2, None, 2));

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
async fn region_writes_are_retried_and_appends_are_not() {
    let bytes = || Bytes::from_static(b"ab");
    let busy = || Step::Respond(problem(503, "busy", &["Retry-After: 0"], ""));

    let server = ScriptedServer::start([Step::Close, busy(), written()]).await;
    server.arrays().write(&path(), select![], bytes(), Precondition::none()).await.unwrap();
    assert_eq!(server.requests().len(), 3);

    for condition in [precondition(), Precondition::none()] {
        let server = ScriptedServer::start([busy(), Step::Close, written()]).await;
        let (arrays, is_append) = (server.arrays(), condition == Precondition::none());
        let report = match is_append {
            true => arrays.append(&path(), 0, bytes(), condition).await,
            false => arrays.write(&path(), select![], bytes(), condition).await,
        };
        assert!(matches!(report, Err(ArrayError::Remote(RemoteError::Transport(_)))), "{report:?}");
        assert_eq!(server.requests().len(), 2, "only the request that was not executed is retried");
    }
}

#[tokio::test]
async fn declarations_that_do_not_replace_are_retried() {
    let server = ScriptedServer::start([Step::Close, node_response(200)]).await;
    let created = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap();
    assert_eq!(created.status, CreateStatus::Existed);

    let replace = CreateOptions { if_exists: IfExists::Replace, ..CreateOptions::default() };
    let absent = CreateOptions { precondition: Precondition::absent(), ..CreateOptions::default() };
    for declaration in [replace, absent] {
        let server = ScriptedServer::start([Step::Close, node_response(200)]).await;
        let error = nodes(&server).create(&path(), &group(), &declaration).await.unwrap_err();
        assert!(matches!(error, NodeError::Remote(RemoteError::Transport(_))), "{error:?}");
        assert_eq!(server.requests().len(), 1);
    }
    for shape in [None, Some(vec![1])] {
        let server = ScriptedServer::start([Step::Close, node_response(200)]).await;
        let patch = Patch { attributes: Some(serde_json::Map::new()), shape: shape.clone(), ..Patch::default() };
        let patched = nodes(&server).patch(&path(), &patch, Precondition::none()).await;
        assert_eq!(patched.is_ok(), shape.is_none(), "{patched:?}");
    }
}

#[tokio::test]
async fn responses_without_a_node_are_protocol_errors() {
    for wrong in ["[]", "{}", r#"{"zarr_format":3,"members":1}"#, "<html>"] {
        let server = ScriptedServer::start([Step::Respond(response(200, &["Zarr-Dialect: v3"], wrong))]).await;
        let error = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap_err();
        assert!(matches!(error, NodeError::Remote(RemoteError::InvalidResponse { .. })), "{wrong}: {error:?}");
    }
    let server = ScriptedServer::start([Step::Respond(response(200, &[], GROUP))]).await;
    let error = nodes(&server).create(&path(), &group(), &CreateOptions::default()).await.unwrap_err();
    assert!(matches!(error, NodeError::Remote(RemoteError::InvalidResponse { .. })), "without a dialect: {error:?}");
}
