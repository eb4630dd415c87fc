//! Invalid changes of nodes: each has a problem type and writes nothing.

use crate::common::{
    TestResponse, TestServer,
    arrays::matrix_server,
    nodes::{v2_array, v3_array, v3_group, with},
};
use axum::body::Body;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::{AccessPolicy, Right, Settings};
use zarrd_wire::problem::{Problem, ProblemType};

/// The problem of a rejected request, after which nothing has changed.
async fn assert_problem(server: &TestServer, method: Method, path: &str, body: &Value, kind: ProblemType) -> Problem {
    let before = server.all().await;
    let answer = server.json(method, path, body).await;
    assert_eq!(server.all().await, before, "{path}");
    answer.problem(kind)
}

fn array() -> Value {
    v3_array("uint8", &[4], &[2])
}

#[tokio::test]
async fn invalid_zom_is_rejected() {
    let server = matrix_server().await;
    for (zom, pointer) in [
        (json!([]), ""),
        (json!({}), "/zarr_format"),
        (json!({"zarr_format": 4}), "/zarr_format"),
        (with(array(), "/shape", json!(["x"])), "/shape/0"),
        (v3_group(json!({"a": with(array(), "/chunk_grid", json!({}))})), "/members/a/chunk_grid"),
        (v3_group(json!({"a": 5})), "/members/a"),
    ] {
        let problem = assert_problem(&server, Method::PUT, "/node/new", &zom, ProblemType::InvalidZom).await;
        let members = problem.members;
        let first = members.violations.first().unwrap();
        assert_eq!(members.pointer.as_deref(), Some(first.pointer.as_str()));
        assert!(first.pointer.starts_with(pointer) && !first.reason.is_empty(), "{zom}: {first:?}");
    }
    let text = server.put("/node/new", &[("content-type", "application/json")], "{").await;
    let problem = text.problem(ProblemType::InvalidZom);
    assert_eq!(problem.members.pointer.as_deref(), Some(""));
}

#[tokio::test]
async fn invalid_names_and_parents_are_rejected() {
    let server = matrix_server().await;
    for name in ["__x", "..."] {
        let problem =
            assert_problem(&server, Method::PUT, &format!("/node/{name}"), &array(), ProblemType::InvalidNodeName)
                .await;
        let path = format!("/{name}");
        assert_eq!((problem.members.path, problem.members.dialect.as_deref()), (Some(path), Some("v3")));
    }
    let problem = assert_problem(&server, Method::PUT, "/node/m/below", &array(), ProblemType::ParentIsArray).await;
    assert_eq!((problem.members.path.as_deref(), problem.members.array.as_deref()), (Some("/m/below"), Some("/m")));
    for len in [1015, 1016, 1023, 1024] {
        let path = format!("/node/{}", "n".repeat(len));
        for body in [array(), json!({"zarr_format": 3, "node_type": "group"})] {
            let problem = assert_problem(&server, Method::PUT, &path, &body, ProblemType::InvalidNodeName).await;
            assert!(problem.detail.contains("1024"), "{len}");
        }
        assert_problem(
            &server,
            Method::PUT,
            &format!("{path}?dialect=v2&allow_lossy"),
            &array(),
            ProblemType::InvalidNodeName,
        )
        .await;
        server.get(&path, &[]).await.problem(ProblemType::NoSuchNode);
        server.delete(&path, &[]).await.problem(ProblemType::NoSuchNode);
    }
    assert_problem(&server, Method::PUT, &format!("/node/{}", "n".repeat(1025)), &array(), ProblemType::InvalidPath)
        .await;
    let longest = format!("/node/{}", "n".repeat(1014));
    let group = json!({"zarr_format": 3, "node_type": "group"});
    assert_eq!(server.json(Method::PUT, &longest, &group).await.status, StatusCode::CREATED);
    for path in ["/node/a/../b", "/node//a", "/node/a//b", "/node/%2Fa", "/node/a%00"] {
        assert_problem(&server, Method::PUT, path, &array(), ProblemType::InvalidPath).await;
    }
}

#[tokio::test]
async fn lossy_create_is_rejected() {
    let server = matrix_server().await;
    let named = with(v3_array("uint8", &[4, 4], &[2, 2]), "/dimension_names", json!(["y", null]));
    let problem =
        assert_problem(&server, Method::PUT, "/node/new?dialect=v2", &named, ProblemType::LossyConversion).await;
    assert_eq!(problem.members.dialect.as_deref(), Some("v2"));
    assert!(problem.members.losses.iter().any(|loss| loss.pointer.starts_with("/dimension_names")));
    let created = server.json(Method::PUT, "/node/new?dialect=v2&allow_lossy", &named).await;
    assert_eq!((created.status, created.header("zarr-dialect")), (StatusCode::CREATED, "v2"));
    let lost = problem.members.losses.len().to_string();
    assert_eq!(created.header("zarr-losses"), lost, "what was lost is told");
    let sharded = with(
        array(),
        "/codecs",
        json!([{"name": "sharding_indexed", "configuration": {
            "chunk_shape": [1], "codecs": [{"name": "bytes"}], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        }}]),
    );
    let problem =
        assert_problem(&server, Method::PUT, "/node/more?dialect=v2", &sharded, ProblemType::Unconvertible).await;
    assert!(problem.members.pointer.unwrap().starts_with("/codecs"));
}

#[tokio::test]
async fn invalid_conversions_are_rejected() {
    let server = matrix_server().await;
    let assert_problem = async |query: &str, kind| {
        assert_problem(&server, Method::POST, &format!("/node/{query}"), &json!({}), kind).await
    };
    let problem = assert_problem("m?convert=v2", ProblemType::Unconvertible).await;
    assert_eq!(problem.members.pointer.as_deref(), Some("/chunk_key_encoding"), "the chunks have other keys");
    assert_problem("m?convert=v2&target=/copy&overwrite", ProblemType::InvalidParameter).await;
    assert_problem("m?convert=v2&target=/copy&allow_lossy=maybe", ProblemType::InvalidParameter).await;
    assert_problem("none?convert=v3", ProblemType::NoSuchNode).await;
    assert_problem("g?convert=v3&dialect=v3", ProblemType::NoSuchNode).await;
    let problem = assert_problem("g?convert=draft", ProblemType::MissingParameter).await;
    assert_eq!(problem.members.parameter.as_deref(), Some("target"));
    let problem = assert_problem("g?convert=v3&target=/m/g", ProblemType::ParentIsArray).await;
    assert_eq!(problem.members.array.as_deref(), Some("/m"));
    assert_problem("g?convert=v3&target=/__g", ProblemType::InvalidNodeName).await;
    assert_problem("g?convert=v3&depth=1", ProblemType::UnknownParameter).await;
    let told = server.json(Method::POST, "/node/m?convert=v2&target=/copy", &json!({})).await.json();
    let losses = told["losses"].as_array().unwrap();
    assert!(!losses.is_empty() && losses.iter().all(|loss| loss["path"] == "/m"), "what was there stays: {told}");
}

#[tokio::test]
async fn oversized_trees_are_rejected() {
    let server = TestServer::new();
    let group = json!({"zarr_format": 3, "node_type": "group"});
    let members: serde_json::Map<_, _> = (0..100_000).map(|name| (name.to_string(), group.clone())).collect();
    let zom = with(group, "/members", Value::Object(members));
    let problem = assert_problem(&server, Method::PUT, "/node/new", &zom, ProblemType::TooManyNodes).await;
    assert_eq!(problem.members.limit, Some(100_000));
}

#[tokio::test]
async fn invalid_patches_are_rejected() {
    let server = matrix_server().await;
    for (path, patch, pointer) in [
        ("/node/m", json!({"shape": [4]}), "/shape"),
        ("/node/m", json!({"shape": [4, -1]}), "/shape/1"),
        ("/node/m", json!({"attributes": 5}), "/attributes"),
        ("/node/m", json!({"attributes": [1]}), "/attributes"),
        ("/node/m", json!({"dimension_names": ["x"]}), "/dimension_names"),
        ("/node/m", json!({"fill_value": 1}), "/fill_value"),
        ("/node/m", json!([]), ""),
        ("/node/g", json!({"shape": [4]}), "/shape"),
    ] {
        let problem = assert_problem(&server, Method::PATCH, path, &patch, ProblemType::InvalidPatch).await;
        assert!(problem.members.pointer.unwrap().starts_with(pointer), "{patch}");
    }
    assert_problem(&server, Method::PATCH, "/node/none", &json!({"attributes": {}}), ProblemType::NoSuchNode).await;
    assert_problem(&server, Method::PATCH, "/node/m?depth=0", &json!({}), ProblemType::UnknownParameter).await;
}

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let server = matrix_server().await;
    let send =
        async |headers: &[(&str, &str)], body: Body| server.request(Method::PUT, "/node/new", headers, body).await;
    let text = array().to_string();
    let problem =
        send(&[("content-type", "text/yaml")], text.clone().into()).await.problem(ProblemType::UnsupportedMediaType);
    assert_eq!(problem.members.known.unwrap(), ["application/json"]);
    let merge = [("content-type", "application/merge-patch+json")];
    send(&merge, text.clone().into()).await.problem(ProblemType::UnsupportedMediaType);
    send(&[("content-encoding", "gzip")], text.clone().into()).await.problem(ProblemType::UnsupportedContentEncoding);
    let wrong = [("content-digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")];
    send(&wrong, text.clone().into()).await.problem(ProblemType::DigestMismatch);
    let pieces = (0..65).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20]));
    let large = Body::from_stream(futures::stream::iter(pieces));
    let problem = send(&[], large).await.problem(ProblemType::BodyTooLarge);
    assert_eq!(problem.members.limit, Some(64 << 20));
    // curl's default media type.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(server.request(Method::PUT, "/node/form", &form, text.clone()).await.status, StatusCode::CREATED);
    // In pieces, and without a media type.
    let (head, tail) = text.split_at(10);
    let pieces = [head.to_owned(), tail.to_owned()].map(Ok::<_, std::io::Error>);
    assert_eq!(send(&[], Body::from_stream(futures::stream::iter(pieces))).await.status, StatusCode::CREATED);
}

#[tokio::test]
async fn read_only_client_cannot_change_nodes() {
    let settings = Settings { origins: vec!["https://viewer.example".parse().unwrap()], ..Settings::default() };
    let server = TestServer::with(settings);
    server.json(Method::PUT, "/node/a", &v2_array("|u1", &[4], &[2])).await;
    let before = server.all().await;
    let ask = async |method: Method, path: &str, origin: &str| -> TestResponse {
        let headers = [("origin", origin), ("content-type", "application/json")];
        server.request(method, path, &headers, v2_array("|u1", &[4], &[2]).to_string()).await
    };
    let changes = [
        (Method::PUT, "/node/b"),
        (Method::PATCH, "/node/a"),
        (Method::DELETE, "/node/a"),
        (Method::POST, "/node/a?convert=v3"),
        (Method::POST, "/node/a?validate&convert=v3"),
        (Method::POST, "/node/a?%63onvert=v3"),
        (Method::PUT, "/array/a"),
        (Method::POST, "/array/a?append=0"),
        (Method::POST, "/array/a?read&%61ppend=0"),
    ];
    for (method, path) in changes.clone() {
        for origin in ["https://other.example", "null", ""] {
            ask(method.clone(), path, origin).await.problem(ProblemType::ForbiddenOrigin);
        }
    }
    assert_eq!(server.all().await, before);
    // Safe operations are open to every page, even with POST.
    assert_eq!(ask(Method::POST, "/node/a?validate", "https://other.example").await.status, StatusCode::OK);
    assert_eq!(ask(Method::GET, "/node/a", "https://other.example").await.status, StatusCode::OK);
    assert_eq!(ask(Method::POST, "/node/a?convert=v3", "https://viewer.example").await.status, StatusCode::OK);

    let only = TestServer::over(
        server.store.clone(),
        Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() },
    );
    let before = only.all().await;
    for (method, path) in changes {
        only.request(method, path, &[], "").await.problem(ProblemType::Unauthorized);
    }
    assert_eq!(only.get("/node/a", &[]).await.status, StatusCode::OK);
    let same = only.json(Method::POST, "/node/a?validate", &v2_array("|u1", &[4], &[2])).await;
    assert_eq!(same.status, StatusCode::OK);
    assert_eq!(only.all().await, before);
}

#[tokio::test]
async fn preflight_depends_on_query() {
    let settings = Settings { origins: vec!["https://viewer.example".parse().unwrap()], ..Settings::default() };
    let server = TestServer::with(settings);
    for (path, origin, methods) in [
        ("/node/a", "https://viewer.example", "GET, HEAD, PUT, PATCH, DELETE, POST, OPTIONS"),
        ("/node/a", "https://other.example", "GET, HEAD, POST, OPTIONS"),
        ("/node/a?validate", "https://other.example", "GET, HEAD, POST, OPTIONS"),
        ("/node/a?convert=v3", "https://other.example", "GET, HEAD, OPTIONS"),
        ("/array/a", "https://viewer.example", "GET, HEAD, PUT, POST, OPTIONS"),
        ("/array/a?read", "https://other.example", "GET, HEAD, POST, OPTIONS"),
        ("/array/a?append=0", "https://other.example", "GET, HEAD, OPTIONS"),
    ] {
        let asked = [("origin", origin), ("access-control-request-method", "PATCH")];
        let answer = server.request(Method::OPTIONS, path, &asked, "").await;
        assert_eq!(answer.header("access-control-allow-methods"), methods, "{path} {origin}");
    }
}
