//! Reading nodes.

use crate::common::{
    TestServer,
    arrays::{matrix_server, put},
    nodes::{v2_array, v3_array},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::{node::Source, problem::ProblemType};

#[tokio::test]
async fn array_is_described() {
    let server = matrix_server().await;
    let stored: Value = serde_json::from_slice(&server.value("m/zarr.json").await.unwrap()).unwrap();
    for path in ["/node/m", "/node/m/", "/node//m", "/node/%6d", "/node/m?depth=0", "/node/m?depth=all&dialect=v3"] {
        let answer = server.get(path, &[]).await;
        assert_eq!((answer.status, answer.json()), (StatusCode::OK, stored.clone()), "{path}");
        assert_eq!(answer.header("content-type"), "application/json");
        assert_eq!(answer.header("zarr-dialect"), "v3");
        assert_eq!(answer.header("vary"), "accept-encoding");
        assert!(answer.header("etag").starts_with('"'));
        assert_eq!(answer.header("zarr-losses"), "");
        let head = server.head(path, &[]).await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
        for name in ["content-type", "zarr-dialect", "etag", "vary", "cache-control"] {
            assert_eq!(head.header(name), answer.header(name), "{name}");
        }
        assert_eq!(head.header("content-length"), answer.body.len().to_string());
    }
}

#[tokio::test]
async fn depth_limits_the_tree() {
    let server = matrix_server().await;
    for path in ["/node", "/node/", "/node?depth=1", "/node//"] {
        let answer = server.get(path, &[]).await;
        let json = answer.json();
        assert_eq!((answer.status, json["node_type"].as_str()), (StatusCode::OK, Some("group")), "{path}");
        let members = json["members"].as_object().unwrap();
        assert!(members.contains_key("m"), "{path}: {json}");
        assert_eq!(answer.header("etag"), "", "an implicit group has no version");
        assert_eq!(server.get(path, &[("if-none-match", "*")]).await.status, StatusCode::OK);
    }
    assert!(server.get("/node?depth=0", &[]).await.json().get("members").is_none());
    let group = server.get("/node/g", &[]).await;
    assert_eq!(group.header("zarr-dialect"), "v2");
    let old = v2_array(">i2", &[3], &[3]);
    assert_eq!(group.json()["members"]["old"]["dtype"], old["dtype"]);
    assert_eq!(group.json()["zarr_format"], 2);
    assert!(server.get("/node/g?depth=0", &[]).await.json().get("members").is_none());
    // Members of groups at the depth limit are omitted.
    put(&server, "g/deep/.zgroup", br#"{"zarr_format": 2}"#.to_vec()).await;
    let one = server.get("/node/g?depth=1", &[]).await.json();
    assert!(one["members"]["deep"].get("members").is_none());
    for depth in ["2", "all"] {
        let deeper = server.get(&format!("/node/g?depth={depth}"), &[]).await.json();
        assert_eq!(deeper["members"]["deep"]["members"], json!({}));
    }
}

#[tokio::test]
async fn flat_form_and_other_model() {
    let server = matrix_server().await;
    let flat = server.get("/node/g?flat", &[]).await.json();
    let paths: Vec<_> = flat.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(paths, ["", "/old"]);
    let mapped = server.get("/node/g?as=v3&depth=all", &[]).await;
    assert_eq!(mapped.header("zarr-dialect"), "v2");
    let old = &mapped.json()["members"]["old"];
    assert_eq!((&old["data_type"], &old["zarr_format"]), (&json!("int16"), &json!(3)));
}

#[tokio::test]
async fn losses_of_mapping_are_reported() {
    let server = matrix_server().await;
    let mapped = server.get("/node/m?as=v2", &[]).await;
    assert_eq!(mapped.json()["zarr_format"], 2);
    let lost: usize = mapped.header("zarr-losses").parse().unwrap();
    let source = server.get("/node/m?as=v2&include=source", &[]).await;
    let source: Source = serde_json::from_slice(&source.body).unwrap();
    assert_eq!(source.losses.len(), lost);
    assert!(source.losses.iter().any(|loss| loss.path == "/m" && loss.pointer.starts_with("/dimension_names")));
    assert_eq!(source.dialect.name(), "v3");
}

#[tokio::test]
async fn include_source_adds_origin() {
    let server = matrix_server().await;
    put(&server, "g/new/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    let answer = server.get("/node/g?include=source", &[]).await;
    let source: Source = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((source.dialect.name(), source.path.as_str(), source.implicit), ("v2", "/g", false));
    let mut alone = server.get("/node/g", &[]).await.json();
    let listed = alone.as_object_mut().unwrap().remove("other_dialects").unwrap();
    assert_eq!(listed, json!({"must_understand": false, "nodes": [{"path": "/g/new", "dialect": "v3"}]}));
    assert_eq!(answer.json()["node"], alone);
    let other: Vec<_> = source.other_dialects.iter().map(|other| (other.path.as_str(), other.dialect.name())).collect();
    assert_eq!(other, [("/g/new", "v3")]);
    assert!(source.losses.is_empty() && source.links.is_empty());
    let root: Source = serde_json::from_slice(&server.get("/node?include=source", &[]).await.body).unwrap();
    assert!(root.implicit);
    let flat = server.get("/node/g?include=source&flat", &[]).await.json();
    let mut alone = server.get("/node/g?flat", &[]).await.json();
    assert_eq!(alone[""].as_object_mut().unwrap().remove("other_dialects").unwrap(), listed);
    assert_eq!(flat["node"], alone);
}

/// What a group is answered as can be declared again: the listing of children of another dialect is no part of it.
#[tokio::test]
async fn an_answer_that_lists_other_dialects_can_be_declared() {
    let server = matrix_server().await;
    put(&server, "g/new/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    let answer = server.get("/node/g?depth=all", &[]).await.json();
    assert_eq!(answer["other_dialects"]["nodes"][0]["path"], "/g/new");
    let created = server.json(Method::PUT, "/node/copy", &answer).await;
    assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    let copied = server.get("/node/copy?depth=all", &[]).await;
    let mut declared = answer;
    declared.as_object_mut().unwrap().remove("other_dialects");
    declared["members"]["old"]["dimension_separator"] = json!(".");
    assert_eq!((copied.json(), copied.header("zarr-other-dialects")), (declared, ""));
    assert!(!String::from_utf8_lossy(&server.value("copy/.zgroup").await.unwrap()).contains("other_dialects"));
    // A member of this name that says something else is the group's own.
    let own = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "other_dialects": {"must_understand": false, "mine": 1}});
    assert_eq!(server.json(Method::PUT, "/node/own", &own).await.status, StatusCode::CREATED);
    assert_eq!(server.get("/node/own", &[]).await.json()["other_dialects"], own["other_dialects"]);
}

#[tokio::test]
async fn etag_match_returns_304() {
    let server = matrix_server().await;
    let tag = server.get("/node/m", &[]).await.header("etag").to_owned();
    for path in ["/node/m", "/node/m?depth=all", "/node/m?depth=0"] {
        let known = server.get(path, &[("if-none-match", &tag)]).await;
        assert_eq!((known.status, known.header("etag")), (StatusCode::NOT_MODIFIED, tag.as_str()), "{path}");
        assert!(known.body.is_empty());
        assert_eq!(server.head(path, &[("if-none-match", &tag)]).await.status, StatusCode::NOT_MODIFIED);
        assert_eq!(server.get(path, &[("if-match", &tag)]).await.status, StatusCode::OK);
        let failed = server.get(path, &[("if-match", "\"00000000000000000000000000000001\"")]).await;
        let members = failed.problem(ProblemType::PreconditionFailed).members;
        assert_eq!((members.current.as_deref(), members.path.as_deref()), (Some(tag.as_str()), Some("/m")));
    }
    // A group's tag covers its own documents only, so 304 requires a response without members.
    let tag = server.get("/node/g", &[]).await.header("etag").to_owned();
    for (path, status) in [
        ("/node/g", StatusCode::OK),
        ("/node/g?depth=all", StatusCode::OK),
        ("/node/g?depth=0&include=source", StatusCode::OK),
        ("/node/g?depth=0", StatusCode::NOT_MODIFIED),
    ] {
        assert_eq!(server.get(path, &[("if-none-match", &tag)]).await.status, status, "{path}");
    }
    put(&server, "g/.zattrs", br#"{"a": 1}"#.to_vec()).await;
    assert_ne!(server.get("/node/g", &[]).await.header("etag"), tag);
}

#[tokio::test]
async fn large_trees_are_compressed() {
    let server = matrix_server().await;
    let long = json!({"zarr_format": 3, "node_type": "group", "attributes": {"long": "x".repeat(5000)}});
    put(&server, "long/zarr.json", long.to_string().into_bytes()).await;
    let plain = server.get("/node/long?depth=0", &[]).await;
    assert_eq!(plain.header("content-encoding"), "");
    let coded = server.get("/node/long?depth=0", &[("accept-encoding", "zstd")]).await;
    assert_eq!(coded.header("content-encoding"), "zstd");
    assert_eq!(zstd::stream::decode_all(&coded.body[..]).unwrap(), plain.body);
    let short = server.get("/node/m", &[("accept-encoding", "zstd")]).await;
    assert_eq!(short.header("content-encoding"), "", "not worth it");
}

#[tokio::test]
async fn unreadable_nodes_are_errors() {
    let server = matrix_server().await;
    for path in ["/node/none", "/node/m/c", "/node/g/old/0", "/node/m?dialect=v2", "/node/g?dialect=draft"] {
        let problem = server.get(path, &[]).await.problem(ProblemType::NoSuchNode);
        assert!(problem.members.path.is_some_and(|path| path.starts_with('/')), "{path}");
        assert_eq!(server.head(path, &[]).await.status, StatusCode::NOT_FOUND);
    }
    for path in ["/node/a/../b", "/node/%2e", "/node/a%00", "/node/a%ff", "/node/%zz", "/node/%2Fm"] {
        server.get(path, &[]).await.problem(ProblemType::InvalidPath);
    }
    let problem = server.get("/node/m?deph=1", &[]).await.problem(ProblemType::UnknownParameter);
    assert_eq!(problem.members.known.unwrap(), ["depth", "limit", "cursor", "as", "flat", "include", "dialect"]);
    server.get("/node/m?flat&flat", &[]).await.problem(ProblemType::DuplicateParameter);
    for query in ["depth=x", "depth=-1", "as=draft", "flat=1", "include=all", "dialect=v4"] {
        server.get(&format!("/node/m?{query}"), &[]).await.problem(ProblemType::InvalidParameter);
    }
    server.get("/node/m", &[("if-match", "x")]).await.problem(ProblemType::InvalidHeader);
    put(&server, "bad/zarr.json", br#"{"zarr_format": 3, "node_type": "array"}"#.to_vec()).await;
    let problem = server.get("/node/bad", &[]).await.problem(ProblemType::InvalidMetadata);
    assert_eq!(problem.members.key.as_deref(), Some("bad/zarr.json"));
}

#[tokio::test]
async fn schemas_are_served() {
    let server = TestServer::new();
    for version in ["v2", "v3"] {
        let answer = server.get(&format!("/schema/zom/{version}"), &[]).await;
        assert_eq!(answer.status, StatusCode::OK);
        assert_eq!(answer.header("content-type"), "application/schema+json");
        assert!(answer.json()["$schema"].is_string());
        let head = server.head(&format!("/schema/zom/{version}"), &[]).await;
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    }
    server.get("/schema/zom/v4", &[]).await.problem(ProblemType::NotFound);
    server.request(Method::PUT, "/schema/zom/v3", &[], "").await.problem(ProblemType::MethodNotAllowed);
}

#[tokio::test]
async fn members_are_paged() {
    let server = matrix_server().await;
    for number in 0..25 {
        put(&server, &format!("many/n{number:02}/.zgroup"), br#"{"zarr_format": 2}"#.to_vec()).await;
    }
    put(&server, "many/n00/deep/.zgroup", br#"{"zarr_format": 2}"#.to_vec()).await;
    for query in ["", "&flat", "&as=v3", "&include=source", "&depth=1&dialect=v2"] {
        let mut target = format!("/node/many?limit=10{query}");
        let mut counts = Vec::new();
        loop {
            let answer = server.get(&target, &[]).await;
            assert_eq!(answer.status, StatusCode::OK, "{target}");
            let json = answer.json();
            let node = if query == "&include=source" { &json["node"] } else { &json };
            counts.push(match query {
                "&flat" => node.as_object().unwrap().len() - 1,
                _ => node["members"].as_object().unwrap().len(),
            });
            assert!(query == "&flat" || node["members"]["n00"].get("members").is_none(), "members are told alone");
            let head = server.head(&target, &[]).await;
            for name in ["link", "zarr-cursor", "content-length"] {
                assert_eq!(head.header(name), answer.header(name), "{name}");
            }
            let link = answer.header("link");
            if link.is_empty() {
                assert_eq!(answer.header("zarr-cursor"), "");
                break;
            }
            let next = link.strip_prefix("<?").unwrap().strip_suffix(">; rel=\"next\"").unwrap();
            let cursor = format!("limit=10&cursor={}", answer.header("zarr-cursor"));
            assert!(next.contains(&cursor), "{next}");
            target = format!("/node/many?{next}");
        }
        assert_eq!(counts, [10, 10, 5], "{query}");
    }
    // An array has one page.
    let array = server.get("/node/m?limit=1", &[]).await;
    assert_eq!((array.status, array.header("link")), (StatusCode::OK, ""));
}

#[tokio::test]
async fn invalid_member_pages_are_rejected() {
    let server = matrix_server().await;
    for (query, problem) in [
        ("limit=0", ProblemType::InvalidParameter),
        ("limit=10001", ProblemType::InvalidParameter),
        ("limit=10&depth=2", ProblemType::InvalidParameter),
        ("limit=10&depth=all", ProblemType::InvalidParameter),
        ("limit=10&depth=0", ProblemType::InvalidParameter),
        ("cursor=x", ProblemType::InvalidCursor),
        ("limit=10&cursor=", ProblemType::InvalidCursor),
    ] {
        server.get(&format!("/node/g?{query}"), &[]).await.problem(problem);
    }
    // A cursor belongs to one group.
    let cursor = server.get("/node/?limit=1", &[]).await;
    let cursor = cursor.header("zarr-cursor");
    assert!(!cursor.is_empty());
    assert_eq!(server.get(&format!("/node/?limit=1&cursor={cursor}"), &[]).await.status, StatusCode::OK);
    server.get(&format!("/node/g?limit=1&cursor={cursor}"), &[]).await.problem(ProblemType::InvalidCursor);
}

#[tokio::test]
async fn include_files_lists_what_is_no_zarr_in_pages() {
    let server = TestServer::new();
    put(&server, "g/zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#.to_vec()).await;
    put(&server, "g/a/zarr.json", v3_array("uint8", &[1], &[1]).to_string().into_bytes()).await;
    put(&server, "g/a/c/0", vec![1]).await;
    put(&server, "g/README.md", b"# data".to_vec()).await;
    put(&server, "g/figures/1.png", vec![1, 2]).await;
    let whole = server.get("/node/g?include=files", &[]).await;
    let listed: Source = serde_json::from_slice(&whole.body).unwrap();
    let files = listed.files.as_deref().unwrap();
    let sizes = files.iter().map(|file| (file.key.as_str(), file.value.as_ref().map(|value| value.size)));
    assert_eq!(sizes.collect::<Vec<_>>(), [("g/README.md", Some(6)), ("g/figures/", None)]);
    let served = server.get("/store/g/README.md", &[]).await;
    assert_eq!(served.header("etag"), files[0].value.as_ref().unwrap().etag);
    let mut without = whole.json();
    without.as_object_mut().unwrap().remove("files");
    assert_eq!(server.get("/node/g?include=source", &[]).await.json(), without);
    assert!(!server.get("/node/g", &[]).await.text().contains("README"));
    let (mut found, mut members, mut query) = (Vec::new(), Vec::new(), "include=files&limit=1".to_owned());
    for _ in 0..10 {
        let page = server.get(&format!("/node/g?{query}"), &[]).await;
        let json = page.json();
        members.extend(json["node"]["members"].as_object().unwrap().keys().cloned());
        found.extend(json["files"].as_array().unwrap().iter().map(|file| file["key"].clone()));
        let Some(next) = page.header("link").strip_prefix("<?").and_then(|link| link.split_once('>')) else { break };
        next.0.clone_into(&mut query);
    }
    assert_eq!((members, found), (vec!["a".to_owned()], vec![json!("g/README.md"), json!("g/figures/")]));
    server.get("/node/g?include=files&depth=all", &[]).await.problem(ProblemType::InvalidParameter);
    assert_eq!(server.get("/node/g/a?include=files", &[]).await.json()["files"], json!([]));
}
