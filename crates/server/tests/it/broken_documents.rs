//! Broken documents with effects on other nodes: roots, entry points, consolidated copies and counterparts.

use crate::common::{
    TestServer,
    arrays::put,
    nodes::{v2_array, v3_array},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::{node::Source, problem::ProblemType};

const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");
const V2_GROUP: &str = r#"{"zarr_format": 2}"#;

/// Texts that are not valid documents.
const INVALID_DOCUMENTS: [&[u8]; 4] = [b"", b"{", b"[1]", b"{\"a\": \"\xff\"}"];

#[tokio::test]
async fn broken_root_is_reported() {
    for (key, text) in [("zarr.json", 0), (".zgroup", 0), ("zarr.json", 1), (".zgroup", 1), ("zarr.json", 2)] {
        let server = TestServer::new();
        put(&server, key, INVALID_DOCUMENTS[text].to_vec()).await;
        put(&server, "a/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        put(&server, "a/c/0", vec![5, 6]).await;
        let problem = server.get("/node/", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some(key));
        assert_eq!(server.get("/array/a", &[]).await.json(), json!([5, 6]));
        assert_eq!(server.get("/node/a", &[]).await.status, StatusCode::OK);
        let appended = server.request(Method::POST, "/array/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let created = server.json(Method::PUT, "/node/b/c", &v3_array("uint8", &[2], &[2])).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(server.value(key).await.unwrap(), INVALID_DOCUMENTS[text]);
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        server.json(Method::PUT, "/node/?dialect=v3", &zom).await.problem(ProblemType::NodeConflict);
        let replaced = server.json(Method::PUT, "/node/?overwrite&dialect=v3", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(server.keys().await, ["zarr.json"]);
    }
}

#[tokio::test]
async fn broken_group_is_replaced_with_its_members() {
    let v3 = json!({"zarr_format": 3, "node_type": "group", "members": {"x": v3_array("uint8", &[2], &[2])}});
    let v2 = json!({"zarr_format": 2, "members": {"x": v2_array("|u1", &[2], &[2])}});
    for (document, zom) in [("zarr.json", v3), (".zgroup", v2)] {
        let server = TestServer::new();
        assert_eq!(server.json(Method::PUT, "/node/g", &zom).await.status, StatusCode::CREATED);
        let elements = server.put("/array/g/x", &[("content-type", "application/json")], "[5, 6]").await;
        assert_eq!(elements.status, StatusCode::OK);
        put(&server, &format!("g/{document}"), b"{".to_vec()).await;
        let replaced = server.json(Method::PUT, "/node/g?overwrite", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(server.get("/array/g/x", &[]).await.json(), json!([0, 0]));
    }
}

#[tokio::test]
async fn draft_documents_without_entry_point_are_stray_keys() {
    let server = TestServer::new();
    let zom = json!({"zarr_format": 3, "node_type": "group", "members": {"x": v3_array("uint8", &[2], &[2])}});
    assert_eq!(server.json(Method::PUT, "/node/d?dialect=draft", &zom).await.status, StatusCode::CREATED);
    assert_eq!(server.delete("/store/d/zarr.json", &[]).await.status, StatusCode::NO_CONTENT);
    let refused = server.json(Method::PUT, "/node/d?dialect=draft", &zom).await.problem(ProblemType::StrayKeys);
    assert!(refused.members.key.is_some_and(|key| key.starts_with("d/meta/root")));
    for query in ["overwrite", "adopt"] {
        let created = server.json(Method::PUT, &format!("/node/d?dialect=draft&{query}"), &zom).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(server.get("/node/d/x", &[]).await.status, StatusCode::OK);
        assert_eq!(server.delete("/store/d/zarr.json", &[]).await.status, StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn unreadable_draft_entry_point_is_reported() {
    let without_suffix = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}"#;
    for text in INVALID_DOCUMENTS.into_iter().chain([without_suffix.as_bytes()]) {
        let server = TestServer::new();
        put(&server, "d/zarr.json", text.to_vec()).await;
        put(&server, "d/meta/root/x.array.json", draft_array().to_string().into_bytes()).await;
        put(&server, "v/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2", "?dialect=v2"] {
            let answer = server.get(&format!("/node/{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
        }
        let problem = server.get("/node/d", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some("d/zarr.json"));
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        for dialect in ["v3", "draft"] {
            let path = format!("/node/d?dialect={dialect}");
            server.json(Method::PUT, &path, &zom).await.problem(ProblemType::NodeConflict);
        }
        let replaced = server.json(Method::PUT, "/node/d?overwrite&dialect=draft", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(server.get("/node/d", &[]).await.header("zarr-dialect"), "draft");
        put(&server, "d/zarr.json", text.to_vec()).await;
        assert_eq!(server.delete("/node/d", &[]).await.status, StatusCode::OK);
        assert_eq!(server.keys().await, ["v/zarr.json"]);
    }
}

#[tokio::test]
async fn broken_consolidated_metadata_blocks_nothing() {
    let copies = |value: Value| {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": value});
        ("zarr.json", group.to_string().into_bytes())
    };
    let broken_v3 = [json!(5), json!([]), json!({"kind": "inline", "metadata": 7}), json!({"metadata": {"a": 5}})];
    let broken_v2 = INVALID_DOCUMENTS.into_iter().chain([br#"{"metadata": 5}"#.as_slice(), b"{}"]);
    let v2 = broken_v2.map(|text| (".zmetadata", text.to_vec()));
    let headers = [("content-type", "application/merge-patch+json")];
    for (name, text) in broken_v3.into_iter().map(copies).chain(v2) {
        let server = TestServer::new();
        let (group, array, document, chunk) = match name {
            "zarr.json" => (None, "zarr.json", v3_array("uint8", &[2], &[2]), "g/a/c/0"),
            _ => (Some(V2_GROUP), ".zarray", v2_array("|u1", &[2], &[2]), "g/a/0"),
        };
        if let Some(group) = group {
            put(&server, "g/.zgroup", group.into()).await;
        }
        put(&server, &format!("g/{name}"), text.clone()).await;
        put(&server, &format!("g/a/{array}"), document.to_string().into_bytes()).await;
        put(&server, chunk, vec![5, 6]).await;
        let answer = server.get("/node/?depth=all", &[]).await;
        assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, ""), "{name} {answer:?}");
        assert!(answer.json()["members"]["g"]["members"]["a"].is_object(), "{answer:?}");
        let appended = server.request(Method::POST, "/array/g/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let patched = server.request(Method::PATCH, "/node/g/a", &headers, r#"{"attributes": {"n": 1}}"#).await;
        assert_eq!(patched.status, StatusCode::OK, "{patched:?}");
        let zom = server.get("/node/g/a", &[]).await.json();
        let created = server.json(Method::PUT, "/node/g/b", &zom).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(server.delete("/node/g/b", &[]).await.status, StatusCode::OK);
        assert_eq!(server.get("/array/g/a", &[]).await.json(), json!([5, 6, 8]));
        let now = server.value(&format!("g/{name}")).await.unwrap();
        if !String::from_utf8_lossy(&text).contains(r#""a":5"#) {
            assert_eq!(now, text, "{name} was changed");
        }
    }
}

#[tokio::test]
async fn members_of_other_dialects_are_counted() {
    let server = crate::common::arrays::matrix_server().await;
    put(&server, "g/new/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    put(&server, "g/empty/zarr.json", Vec::new()).await;
    for query in ["", "?depth=all", "?limit=10", "?flat"] {
        let answer = server.get(&format!("/node/g{query}"), &[]).await;
        assert_eq!((answer.header("zarr-other-dialects"), answer.header("zarr-broken")), ("1", "1"), "{query}");
    }
    for query in ["?as=v2", "?as=v3", "?depth=0"] {
        assert_eq!(server.get(&format!("/node/g{query}"), &[]).await.header("zarr-other-dialects"), "", "{query}");
    }
    assert!(server.get("/node/g?as=v3", &[]).await.json()["members"]["new"].is_object());
    let source: Source = serde_json::from_slice(&server.get("/node/g?include=source", &[]).await.body).unwrap();
    assert_eq!((source.other_dialects[0].path.as_str(), source.broken[0].path.as_str()), ("/g/new", "/g/empty"));
}

/// If one of two documents at a path is broken, the node of the other one can be read.
#[tokio::test]
async fn broken_counterpart_document_is_reported() {
    let server = crate::common::arrays::matrix_server().await;
    put(&server, "g/old/zarr.json", Vec::new()).await;
    assert_eq!(server.get("/node/g", &[]).await.json()["members"]["old"]["dtype"], ">i2");
    assert_eq!(server.get("/node/g?as=v3", &[]).await.json()["members"]["old"]["data_type"], "int16");
    assert_eq!(server.get("/array/g/old?dialect=v2", &[]).await.json(), json!([5, 6, 7]));
    server.get("/node/g/old", &[]).await.problem(ProblemType::InvalidMetadata);
    let report = server.request(Method::POST, "/node/g?convert=v3", &[], "").await;
    let lost = report.json()["losses"].clone();
    assert!(lost.as_array().unwrap().iter().any(|loss| loss["path"] == "/g/old"), "{lost}");
}

/// An unsupported document is not broken, but cannot be mapped to another model.
#[tokio::test]
async fn unsupported_documents_are_returned_unchanged() {
    let server = crate::common::arrays::matrix_server().await;
    let mut unheard = v3_array("uint8", &[1], &[1]);
    unheard["extensions"] = json!(["example.unheard-of"]);
    put(&server, "h/x/zarr.json", unheard.to_string().into_bytes()).await;
    let answer = server.get("/node/h", &[]).await;
    assert_eq!((answer.header("zarr-broken"), &answer.json()["members"]["x"]), ("", &unheard));
    let answer = server.get("/node/h?as=v2", &[]).await;
    assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"));
    let problem = server.get("/node/h/x", &[]).await.problem(ProblemType::UnsupportedNode);
    assert_eq!(problem.members.key.as_deref(), Some("h/x/zarr.json"));
    server.json(Method::PUT, "/node/h/x", &v3_array("uint8", &[1], &[1])).await.problem(ProblemType::NodeConflict);
    let replaced = server.json(Method::PUT, "/node/h/x?overwrite", &v3_array("uint8", &[1], &[1])).await;
    assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
}

/// Groups of which only a broken member is known.
#[tokio::test]
async fn groups_with_only_broken_members_are_listed() {
    for (key, dialect) in [("lab/in/bad/.zarray", "v2"), ("lab/in/bad/.zgroup", "v2"), ("lab/in/bad/zarr.json", "v3")] {
        let server = TestServer::new();
        put(&server, key, Vec::new()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2"] {
            let answer = server.get(&format!("/node/lab/in{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
            assert_eq!((answer.header("zarr-dialect"), &answer.json()["members"]), (dialect, &json!({})), "{query}");
            let above = server.get(&format!("/node/lab{query}"), &[]).await;
            assert!(above.json()["members"]["in"].is_object(), "{query} {above:?}");
        }
        assert_eq!(server.get("/node/?depth=all", &[]).await.header("zarr-broken"), "1");
        let read = server.get("/node/lab/in?dialect=draft", &[]).await;
        read.problem(ProblemType::NoSuchNode);
        // A readable descendant reveals the group, at any depth.
        put(&server, "lab/in/deep/er/.zgroup", V2_GROUP.into()).await;
        assert_eq!(server.get("/node/lab/in", &[]).await.header("zarr-dialect"), "v2", "{key}");
        assert_eq!(server.delete("/node/lab", &[]).await.status, StatusCode::OK);
        assert_eq!(server.keys().await, [""; 0]);
    }
}

fn draft_array() -> Value {
    json!({
        "shape": [2], "data_type": "|u1", "fill_value": 0, "chunk_memory_layout": "C", "extensions": [], "attributes": {},
        "chunk_grid": {"type": "regular", "separator": "/", "chunk_shape": [2]},
    })
}
