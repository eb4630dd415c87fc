//! Creating, changing, erasing and converting nodes.

use crate::common::{
    RunningServer, TestResponse, TestServer,
    arrays::matrix_server,
    nodes::{v2_array, v2_group, v3_array, v3_group, with},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_meta::json::Json;
use zarrd_server::Settings;
use zarrd_wire::{
    node::{ConvertReport, ValidateReport},
    problem::ProblemType,
};

async fn create(server: &TestServer, path: &str, zom: &Value) -> TestResponse {
    server.json(Method::PUT, path, zom).await
}

fn example_tree() -> Value {
    v3_group(json!({
        "foo": v3_array("float32", &[4, 6], &[2, 3]),
        "sub": v3_group(json!({"bar": v3_array("uint8", &[3], &[3])})),
    }))
}

#[tokio::test]
async fn tree_is_created_in_one_request() {
    let server = TestServer::new();
    let created = create(&server, "/node/lab/exp1", &example_tree()).await;
    assert_eq!((created.status, created.json()), (StatusCode::CREATED, example_tree()));
    assert_eq!((created.header("zarr-dialect"), created.header("content-type")), ("v3", "application/json"));
    let keys = [
        "lab/exp1/foo/zarr.json",
        "lab/exp1/sub/bar/zarr.json",
        "lab/exp1/sub/zarr.json",
        "lab/exp1/zarr.json",
        "lab/zarr.json",
    ];
    assert_eq!(server.keys().await, keys);
    let got = server.get("/node/lab/exp1?depth=all", &[]).await;
    assert_eq!((got.json(), got.header("etag")), (example_tree(), created.header("etag")));

    let before = server.all().await;
    let again = create(&server, "/node/lab/exp1/", &example_tree()).await;
    assert_eq!((again.status, again.json()), (StatusCode::OK, example_tree()));
    assert_eq!(server.all().await, before, "nothing is written where all is equal");
}

/// The example of ZEP 6, unchanged.
#[tokio::test]
async fn specification_example_is_created() {
    let server = TestServer::new();
    for (version, array) in [("v3", "v3"), ("v2", "v2")] {
        let path = format!("{}/../meta/src/zom/tests/zep6/{version}.json", env!("CARGO_MANIFEST_DIR"));
        let example = std::fs::read(path).unwrap();
        let headers = [("content-type", "application/json")];
        let created = server.put(&format!("/node/{version}"), &headers, example.clone()).await;
        assert_eq!((created.status, created.header("zarr-dialect")), (StatusCode::CREATED, array), "{created:?}");
        assert_eq!(server.put(&format!("/node/{version}"), &headers, example.clone()).await.status, StatusCode::OK);
        let report = server.request(Method::POST, &format!("/node/{version}?validate"), &headers, example).await;
        assert_eq!(report.json()["unchanged"], true);
    }
}

#[tokio::test]
async fn create_over_a_connection() {
    let running = RunningServer::start(Settings::default()).await;
    let (head, zom) = ("host: localhost\r\n", v3_array("uint8", &[2], &[2]).to_string());
    let mut raw = running.connect().await;
    raw.send(&format!("PUT /node/a HTTP/1.1\r\n{head}expect: 100-continue\r\ntransfer-encoding: chunked\r\n\r\n"))
        .await;
    assert_eq!(raw.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    let (first, second) = zom.split_at(7);
    raw.send(&format!("7\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n", second.len())).await;
    assert!(raw.until("\r\n\r\n").await.starts_with("HTTP/1.1 201 Created"));
    for path in ["/node//a", "/node/a?x", "/node/a?overwrite=1"] {
        let mut raw = running.connect().await;
        let length = zom.len();
        raw.send(&format!("PUT {path} HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: {length}\r\n\r\n"))
            .await;
        let answer = raw.rest().await;
        assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("connection: close"), "{path}: {answer}");
    }
}

#[tokio::test]
async fn each_dialect_is_created() {
    let server = TestServer::new();
    let zom = v2_group(json!({"a": v2_array("<f4", &[4], &[2])}));
    let created = create(&server, "/node/two", &zom).await;
    assert_eq!((created.status, created.header("zarr-dialect")), (StatusCode::CREATED, "v2"));
    assert_eq!(server.keys().await, ["two/.zgroup", "two/a/.zarray"]);
    let zom = v3_group(json!({"a": v3_array("float32", &[4], &[2])}));
    let created = create(&server, "/node/draft?dialect=draft", &zom).await;
    assert_eq!((created.status, created.header("zarr-dialect")), (StatusCode::CREATED, "draft"));
    let keys = server.keys().await;
    assert!(keys.contains(&"draft/meta/root/a.array.json".to_owned()), "{keys:?}");
    let below = create(&server, "/node/draft/b", &v3_array("float32", &[4], &[2])).await;
    assert_eq!((below.status, below.header("zarr-dialect")), (StatusCode::CREATED, "draft"));
}

#[tokio::test]
async fn different_node_is_a_conflict() {
    let server = TestServer::new();
    create(&server, "/node/a", &example_tree()).await;
    let before = server.all().await;
    let other = with(example_tree(), "/members/foo/shape", json!([4, 7]));
    let problem = create(&server, "/node/a", &other).await.problem(ProblemType::NodeConflict);
    assert_eq!(problem.members.path.as_deref(), Some("/a"));
    let [difference] = &problem.members.differences[..] else { panic!("{problem:?}") };
    assert_eq!(difference.pointer, "/members/foo/shape/1");
    assert_eq!(
        (&difference.expected, &difference.actual),
        (&Some(Json::compact(&json!(7))), &Some(Json::compact(&json!(6))))
    );
    let fewer = v3_group(json!({}));
    let problem = create(&server, "/node/a", &fewer).await.problem(ProblemType::NodeConflict);
    assert_eq!(problem.members.differences.len(), 2);
    assert_eq!(server.all().await, before);

    let replaced = create(&server, "/node/a?overwrite", &other).await;
    assert_eq!((replaced.status, replaced.json()), (StatusCode::OK, other));
    assert_eq!(create(&server, "/node/a?overwrite", &fewer).await.status, StatusCode::OK);
    assert_eq!(server.keys().await, ["a/zarr.json"]);
}

#[tokio::test]
async fn preconditions_are_checked() {
    let server = TestServer::new();
    let ask = async |method: Method, path: &str, header: (&str, &str), body: &Value| {
        server.request(method, path, &[("content-type", "application/json"), header], body.to_string()).await
    };
    let (array, none) = (v3_array("uint8", &[2], &[2]), ("if-none-match", "*"));
    let created = ask(Method::PUT, "/node/a", none, &array).await;
    assert_eq!(created.status, StatusCode::CREATED);
    let tag = created.header("etag").to_owned();
    let problem = ask(Method::PUT, "/node/a", none, &array).await.problem(ProblemType::PreconditionFailed);
    assert_eq!(problem.members.current.as_deref(), Some(tag.as_str()));
    let patch = json!({"attributes": {"a": 1}});
    let patched = ask(Method::PATCH, "/node/a", ("if-match", &tag), &patch).await;
    assert_eq!(patched.status, StatusCode::OK);
    let newer = patched.header("etag").to_owned();
    assert_ne!(newer, tag);
    let before = server.all().await;
    for (method, path, body) in [
        (Method::PATCH, "/node/a", &patch),
        (Method::PUT, "/node/a?overwrite", &v3_array("uint8", &[3], &[3])),
        (Method::DELETE, "/node/a", &json!({})),
    ] {
        let problem = ask(method, path, ("if-match", &tag), body).await.problem(ProblemType::PreconditionFailed);
        assert_eq!(problem.members.current.as_deref(), Some(newer.as_str()), "{path}");
    }
    ask(Method::PUT, "/node/none", ("if-match", "*"), &array).await.problem(ProblemType::PreconditionFailed);
    assert_eq!(server.all().await, before);
    let erased = ask(Method::DELETE, "/node/a", ("if-match", &newer), &json!({})).await;
    assert_eq!((erased.status, erased.json()), (StatusCode::OK, json!({"erased": 1})));
}

#[tokio::test]
async fn patch_updates_metadata() {
    let server = matrix_server().await;
    let merge = [("content-type", "application/merge-patch+json; charset=utf-8")];
    let patch = async |path: &str, body: Value| server.request(Method::PATCH, path, &merge, body.to_string()).await;
    let first = patch("/node/m", json!({"attributes": {"unit": "K", "more": {"a": 1}}})).await;
    assert_eq!((first.status, &first.json()["attributes"]), (StatusCode::OK, &json!({"unit": "K", "more": {"a": 1}})));
    let second = patch("/node/m", json!({"attributes": {"unit": null}, "dimension_names": ["y", "x"]})).await;
    assert_eq!(second.json()["attributes"], json!({"more": {"a": 1}}));
    assert_eq!(second.json()["dimension_names"], json!(["y", "x"]));
    assert_eq!(second.json(), server.get("/node/m", &[]).await.json());
    assert_eq!(second.header("etag"), server.get("/node/m", &[]).await.header("etag"));
    let resized = patch("/node/m", json!({"shape": [2, 6]})).await;
    assert_eq!(resized.json()["shape"], json!([2, 6]));
    assert_eq!(server.value("m/c/1/0").await, None, "what lies outside is gone");
    let rows = server.get("/array/m?select=1", &[]).await.json();
    assert_eq!(rows, json!([6.0, 7.0, 8.0, 9.0, 10.0, 11.0]));
    let group = patch("/node/g", json!({"attributes": {"title": "old"}})).await;
    assert_eq!(group.json(), json!({"zarr_format": 2, "attributes": {"title": "old"}}), "without members");
    assert_eq!(
        server.value("g/.zattrs").await.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap()),
        Some(json!({"title": "old"}))
    );
}

#[tokio::test]
async fn delete_erases_the_tree() {
    let server = matrix_server().await;
    let erased = server.delete("/node/m/", &[]).await;
    assert_eq!((erased.status, erased.json()), (StatusCode::OK, json!({"erased": 5})));
    let problem = server.delete("/node/m", &[]).await.problem(ProblemType::NoSuchNode);
    assert_eq!(problem.members.path.as_deref(), Some("/m"));
    for path in ["/node", "/node/"] {
        let problem = server.delete(path, &[]).await.problem(ProblemType::ConfirmationRequired);
        assert_eq!(problem.members.parameter.as_deref(), Some("confirm"));
    }
    server.delete("/node//g", &[]).await.problem(ProblemType::InvalidPath);
    server.delete("/node/?confirm=yes", &[]).await.problem(ProblemType::InvalidParameter);
    server.delete("/node/g?recursive", &[]).await.problem(ProblemType::UnknownParameter);
    assert_eq!(server.keys().await.len(), 3);
    assert_eq!(server.delete("/node?confirm=all", &[]).await.json(), json!({"erased": 3}));
    assert!(server.keys().await.is_empty());
}

#[tokio::test]
async fn validate_reports_differences() {
    let server = TestServer::new();
    create(&server, "/node/a", &example_tree()).await;
    let before = server.all().await;
    let compare = async |zom: &Value| -> ValidateReport {
        let answer = server.json(Method::POST, "/node/a?validate", zom).await;
        assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
        serde_json::from_slice(&answer.body).unwrap()
    };
    assert_eq!(
        compare(&example_tree()).await,
        ValidateReport { unchanged: true, differences: Vec::new(), truncated: false }
    );
    let report = compare(&with(example_tree(), "/members/foo/data_type", json!("float64"))).await;
    assert!(!report.unchanged && !report.truncated);
    assert_eq!(report.differences[0].pointer, "/members/foo/data_type");
    let many: serde_json::Map<_, _> =
        (0..150).map(|name| (format!("n{name}"), v3_array("uint8", &[1], &[1]))).collect();
    let report = compare(&v3_group(Value::Object(many))).await;
    assert_eq!((report.differences.len(), report.truncated), (100, true));
    server.json(Method::POST, "/node/none?validate", &example_tree()).await.problem(ProblemType::NoSuchNode);
    server.json(Method::POST, "/node/a?validate", &json!({})).await.problem(ProblemType::InvalidZom);
    assert_eq!(server.all().await, before);
}

#[tokio::test]
async fn convert_changes_the_dialect() {
    let server = TestServer::new();
    let zom = v2_group(json!({"a": v2_array("<f4", &[4], &[2])}));
    create(&server, "/node/g", &zom).await;
    let convert = async |query: &str| server.request(Method::POST, &format!("/node/g?{query}"), &[], "").await;
    let report: ConvertReport = serde_json::from_slice(&convert("convert=v3").await.body).unwrap();
    assert_eq!(report, ConvertReport { nodes: 2, chunks: 0, losses: Vec::new() });
    assert_eq!(server.keys().await, ["g/.zgroup", "g/a/.zarray", "g/a/zarr.json", "g/zarr.json"]);
    let shown = server.get("/node/g/a", &[]).await;
    assert_eq!(shown.header("zarr-dialect"), "v3");
    let problem = convert("convert=draft").await.problem(ProblemType::MissingParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("target"));
    let copied = convert("convert=draft&target=/copy").await;
    assert_eq!(copied.status, StatusCode::OK, "{copied:?}");
    assert_eq!(server.get("/node/copy/a", &[]).await.header("zarr-dialect"), "draft");

    let problem = convert("").await.problem(ProblemType::MissingParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("validate"));
    assert_eq!(
        problem.members.known.unwrap(),
        ["validate", "convert", "target", "overwrite", "allow_lossy", "dialect"]
    );
    for query in ["convert=v4", "convert", "convert=v3&target=a//b", "convert=v3&validate", "validate&target=/a"] {
        convert(query).await.problem(ProblemType::InvalidParameter);
    }
}
