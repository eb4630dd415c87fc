//! Documents that cannot be read where they are told by more than themselves: roots, entry points, copies, and other documents beside them.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "clippy exempts test functions only, and these have helpers"
)]

mod common;

use common::{
    Site,
    arrays::put,
    nodes::{v2_array, v3_array},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use wire::{node::Source, problem::ProblemType};

const OCTETS: (&str, &str) = ("content-type", "application/octet-stream");
const V2_GROUP: &str = r#"{"zarr_format": 2}"#;

/// The texts that are no document.
const NO_DOCUMENTS: [&[u8]; 4] = [b"", b"{", b"[1]", b"{\"a\": \"\xff\"}"];

#[tokio::test]
async fn broken_documents_of_the_root() {
    for (key, text) in [("zarr.json", 0), (".zgroup", 0), ("zarr.json", 1), (".zgroup", 1), ("zarr.json", 2)] {
        let site = Site::new();
        put(&site, key, NO_DOCUMENTS[text].to_vec()).await;
        put(&site, "a/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        put(&site, "a/c/0", vec![5, 6]).await;
        let problem = site.get("/node/", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some(key));
        assert_eq!(site.get("/array/a", &[]).await.json(), json!([5, 6]));
        assert_eq!(site.get("/node/a", &[]).await.status, StatusCode::OK);
        let appended = site.ask(Method::POST, "/array/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let created = site.json(Method::PUT, "/node/b/c", &v3_array("uint8", &[2], &[2])).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(site.value(key).await.unwrap(), NO_DOCUMENTS[text]);
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        site.json(Method::PUT, "/node/?dialect=v3", &zom).await.problem(ProblemType::NodeConflict);
        let replaced = site.json(Method::PUT, "/node/?overwrite&dialect=v3", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(site.keys().await, ["zarr.json"]);
    }
}

#[tokio::test]
async fn a_broken_group_can_be_replaced_by_what_it_had() {
    let v3 = json!({"zarr_format": 3, "node_type": "group", "members": {"x": v3_array("uint8", &[2], &[2])}});
    let v2 = json!({"zarr_format": 2, "members": {"x": v2_array("|u1", &[2], &[2])}});
    for (document, zom) in [("zarr.json", v3), (".zgroup", v2)] {
        let site = Site::new();
        assert_eq!(site.json(Method::PUT, "/node/g", &zom).await.status, StatusCode::CREATED);
        let elements = site.put("/array/g/x", &[("content-type", "application/json")], "[5, 6]").await;
        assert_eq!(elements.status, StatusCode::OK);
        put(&site, &format!("g/{document}"), b"{".to_vec()).await;
        let replaced = site.json(Method::PUT, "/node/g?overwrite", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(site.get("/array/g/x", &[]).await.json(), json!([0, 0]));
    }
}

#[tokio::test]
async fn documents_of_the_draft_without_an_entry_point_are_stray_keys() {
    let site = Site::new();
    let zom = json!({"zarr_format": 3, "node_type": "group", "members": {"x": v3_array("uint8", &[2], &[2])}});
    assert_eq!(site.json(Method::PUT, "/node/d?dialect=draft", &zom).await.status, StatusCode::CREATED);
    assert_eq!(site.delete("/store/d/zarr.json", &[]).await.status, StatusCode::NO_CONTENT);
    let refused = site.json(Method::PUT, "/node/d?dialect=draft", &zom).await.problem(ProblemType::StrayKeys);
    assert!(refused.members.key.is_some_and(|key| key.starts_with("d/meta/root")));
    for query in ["overwrite", "adopt"] {
        let created = site.json(Method::PUT, &format!("/node/d?dialect=draft&{query}"), &zom).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(site.get("/node/d/x", &[]).await.status, StatusCode::OK);
        assert_eq!(site.delete("/store/d/zarr.json", &[]).await.status, StatusCode::NO_CONTENT);
    }
}

#[tokio::test]
async fn a_hierarchy_of_the_draft_without_a_readable_entry_point() {
    let without_suffix = r#"{"zarr_format": "https://purl.org/zarr/spec/protocol/core/3.0", "extensions": []}"#;
    for text in NO_DOCUMENTS.into_iter().chain([without_suffix.as_bytes()]) {
        let site = Site::new();
        put(&site, "d/zarr.json", text.to_vec()).await;
        put(&site, "d/meta/root/x.array.json", draft_array().to_string().into_bytes()).await;
        put(&site, "v/zarr.json", v3_array("uint8", &[2], &[2]).to_string().into_bytes()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2", "?dialect=v2"] {
            let answer = site.get(&format!("/node/{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
        }
        let problem = site.get("/node/d", &[]).await.problem(ProblemType::InvalidMetadata);
        assert_eq!(problem.members.key.as_deref(), Some("d/zarr.json"));
        let zom = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": {}});
        for dialect in ["v3", "draft"] {
            let path = format!("/node/d?dialect={dialect}");
            site.json(Method::PUT, &path, &zom).await.problem(ProblemType::NodeConflict);
        }
        let replaced = site.json(Method::PUT, "/node/d?overwrite&dialect=draft", &zom).await;
        assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
        assert_eq!(site.get("/node/d", &[]).await.header("zarr-dialect"), "draft");
        put(&site, "d/zarr.json", text.to_vec()).await;
        assert_eq!(site.delete("/node/d", &[]).await.status, StatusCode::OK);
        assert_eq!(site.keys().await, ["v/zarr.json"]);
    }
}

#[tokio::test]
async fn broken_copies_block_nothing() {
    let copies = |value: Value| {
        let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "consolidated_metadata": value});
        ("zarr.json", group.to_string().into_bytes())
    };
    let broken_v3 = [json!(5), json!([]), json!({"kind": "inline", "metadata": 7}), json!({"metadata": {"a": 5}})];
    let broken_v2 = NO_DOCUMENTS.into_iter().chain([br#"{"metadata": 5}"#.as_slice(), b"{}"]);
    let v2 = broken_v2.map(|text| (".zmetadata", text.to_vec()));
    let headers = [("content-type", "application/merge-patch+json")];
    for (name, text) in broken_v3.into_iter().map(copies).chain(v2) {
        let site = Site::new();
        let (group, array, document, chunk) = match name {
            "zarr.json" => (None, "zarr.json", v3_array("uint8", &[2], &[2]), "g/a/c/0"),
            _ => (Some(V2_GROUP), ".zarray", v2_array("|u1", &[2], &[2]), "g/a/0"),
        };
        if let Some(group) = group {
            put(&site, "g/.zgroup", group.into()).await;
        }
        put(&site, &format!("g/{name}"), text.clone()).await;
        put(&site, &format!("g/a/{array}"), document.to_string().into_bytes()).await;
        put(&site, chunk, vec![5, 6]).await;
        let answer = site.get("/node/?depth=all", &[]).await;
        assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, ""), "{name} {answer:?}");
        assert!(answer.json()["members"]["g"]["members"]["a"].is_object(), "{answer:?}");
        let appended = site.ask(Method::POST, "/array/g/a?append=0", &[OCTETS], "\x08").await;
        assert_eq!(appended.status, StatusCode::OK, "{appended:?}");
        let patched = site.ask(Method::PATCH, "/node/g/a", &headers, r#"{"attributes": {"n": 1}}"#).await;
        assert_eq!(patched.status, StatusCode::OK, "{patched:?}");
        let zom = site.get("/node/g/a", &[]).await.json();
        let created = site.json(Method::PUT, "/node/g/b", &zom).await;
        assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
        assert_eq!(site.delete("/node/g/b", &[]).await.status, StatusCode::OK);
        assert_eq!(site.get("/array/g/a", &[]).await.json(), json!([5, 6, 8]));
        let now = site.value(&format!("g/{name}")).await.unwrap();
        if !String::from_utf8_lossy(&text).contains(r#""a":5"#) {
            assert_eq!(now, text, "{name} was changed");
        }
    }
}

#[tokio::test]
async fn members_of_other_dialects_are_counted() {
    let site = common::arrays::site().await;
    put(&site, "g/new/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    put(&site, "g/empty/zarr.json", Vec::new()).await;
    for query in ["", "?depth=all", "?limit=10", "?flat"] {
        let answer = site.get(&format!("/node/g{query}"), &[]).await;
        assert_eq!((answer.header("zarr-other-dialects"), answer.header("zarr-broken")), ("1", "1"), "{query}");
    }
    for query in ["?as=v2", "?as=v3", "?depth=0"] {
        assert_eq!(site.get(&format!("/node/g{query}"), &[]).await.header("zarr-other-dialects"), "", "{query}");
    }
    assert!(site.get("/node/g?as=v3", &[]).await.json()["members"]["new"].is_object());
    let source: Source = serde_json::from_slice(&site.get("/node/g?include=source", &[]).await.body).unwrap();
    assert_eq!((source.other_dialects[0].path.as_str(), source.broken[0].path.as_str()), ("/g/new", "/g/empty"));
}

/// Where one of two documents at a path is broken, the other one's node is there for whoever asks for it.
#[tokio::test]
async fn the_other_document_at_a_path() {
    let site = common::arrays::site().await;
    put(&site, "g/old/zarr.json", Vec::new()).await;
    assert_eq!(site.get("/node/g", &[]).await.json()["members"]["old"]["dtype"], ">i2");
    assert_eq!(site.get("/node/g?as=v3", &[]).await.json()["members"]["old"]["data_type"], "int16");
    assert_eq!(site.get("/array/g/old?dialect=v2", &[]).await.json(), json!([5, 6, 7]));
    site.get("/node/g/old", &[]).await.problem(ProblemType::InvalidMetadata);
    let report = site.ask(Method::POST, "/node/g?convert=v3", &[], "").await;
    let lost = report.json()["losses"].clone();
    assert!(lost.as_array().unwrap().iter().any(|loss| loss["path"] == "/g/old"), "{lost}");
}

/// What is not supported is not broken, but nothing can be made of it in another model.
#[tokio::test]
async fn what_is_not_supported_is_told_as_it_is() {
    let site = common::arrays::site().await;
    let mut unheard = v3_array("uint8", &[1], &[1]);
    unheard["extensions"] = json!(["example.unheard-of"]);
    put(&site, "h/x/zarr.json", unheard.to_string().into_bytes()).await;
    let answer = site.get("/node/h", &[]).await;
    assert_eq!((answer.header("zarr-broken"), &answer.json()["members"]["x"]), ("", &unheard));
    let answer = site.get("/node/h?as=v2", &[]).await;
    assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"));
    let problem = site.get("/node/h/x", &[]).await.problem(ProblemType::UnsupportedNode);
    assert_eq!(problem.members.key.as_deref(), Some("h/x/zarr.json"));
    site.json(Method::PUT, "/node/h/x", &v3_array("uint8", &[1], &[1])).await.problem(ProblemType::NodeConflict);
    let replaced = site.json(Method::PUT, "/node/h/x?overwrite", &v3_array("uint8", &[1], &[1])).await;
    assert_eq!(replaced.status, StatusCode::OK, "{replaced:?}");
}

/// A group of which nothing is known but that there is a broken node below it.
#[tokio::test]
async fn groups_that_have_broken_nodes_only() {
    for (key, dialect) in [("lab/in/bad/.zarray", "v2"), ("lab/in/bad/.zgroup", "v2"), ("lab/in/bad/zarr.json", "v3")] {
        let site = Site::new();
        put(&site, key, Vec::new()).await;
        for query in ["", "?depth=all", "?limit=10", "?as=v2"] {
            let answer = site.get(&format!("/node/lab/in{query}"), &[]).await;
            assert_eq!((answer.status, answer.header("zarr-broken")), (StatusCode::OK, "1"), "{query} {answer:?}");
            assert_eq!((answer.header("zarr-dialect"), &answer.json()["members"]), (dialect, &json!({})), "{query}");
            let above = site.get(&format!("/node/lab{query}"), &[]).await;
            assert!(above.json()["members"]["in"].is_object(), "{query} {above:?}");
        }
        assert_eq!(site.get("/node/?depth=all", &[]).await.header("zarr-broken"), "1");
        let read = site.get("/node/lab/in?dialect=draft", &[]).await;
        read.problem(ProblemType::NoSuchNode);
        // A node that can be read says more of the group, however deep it is.
        put(&site, "lab/in/deep/er/.zgroup", V2_GROUP.into()).await;
        assert_eq!(site.get("/node/lab/in", &[]).await.header("zarr-dialect"), "v2", "{key}");
        assert_eq!(site.delete("/node/lab", &[]).await.status, StatusCode::OK);
        assert_eq!(site.keys().await, [""; 0]);
    }
}

fn draft_array() -> Value {
    json!({
        "shape": [2], "data_type": "|u1", "fill_value": 0, "chunk_memory_layout": "C", "extensions": [], "attributes": {},
        "chunk_grid": {"type": "regular", "separator": "/", "chunk_shape": [2]},
    })
}
