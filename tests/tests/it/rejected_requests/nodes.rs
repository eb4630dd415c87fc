//! Rejected declarations and changes of nodes.

use http::{Method, header};
use serde_json::{Value, json};
use zarrd_client::Json;
use zarrd_wire::problem::{Problem, ProblemType};

use crate::rejected_requests::rejection::{JSON, RejectionTest, group, v2, v3};

#[tokio::test]
async fn models_violating_the_schema_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    let changed = |pointer: &str, value: Value| {
        let mut zom = group(&json!({"a": group(&json!({"b": v3(&[4, 6], &[2, 4], &json!("uint8"), &json!(0))}))}));
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        zom.pointer_mut(parent).unwrap().as_object_mut().unwrap().insert(name.to_owned(), value);
        zom
    };
    let array = "/members/a/members/b";
    for (pointer, value, place) in [
        (format!("{array}/shape"), json!([4, -6]), format!("{array}/shape/1")),
        (format!("{array}/shape"), json!([4, 1.5]), format!("{array}/shape/1")),
        (format!("{array}/shape"), json!("4"), format!("{array}/shape")),
        (format!("{array}/shape"), json!([4]), array.to_owned()),
        (format!("{array}/data_type"), json!(8), format!("{array}/data_type")),
        (format!("{array}/fill_value"), json!("x"), format!("{array}/fill_value")),
        (format!("{array}/fill_value"), json!(256), format!("{array}/fill_value")),
        (format!("{array}/chunk_grid/configuration/chunk_shape"), json!([0, 4]), format!("{array}/chunk_grid")),
        (
            format!("{array}/chunk_key_encoding"),
            json!({"name": "default", "configuration": 3}),
            format!("{array}/chunk_key_encoding"),
        ),
        (format!("{array}/codecs"), json!({}), format!("{array}/codecs")),
        (format!("{array}/dimension_names"), json!(["y"]), format!("{array}/dimension_names")),
        (format!("{array}/attributes"), json!([1]), format!("{array}/attributes")),
        (format!("{array}/zarr_format"), json!(2), array.to_owned()),
        (format!("{array}/node_type"), json!("table"), format!("{array}/node_type")),
        ("/attributes".into(), json!([]), "/attributes".into()),
        ("/members/a/members".into(), json!([]), "/members/a/members".into()),
        ("/members/a/members".into(), json!({"b": 5}), "/members/a/members/b".into()),
        ("/members/a/members".into(), json!({"b": {"zarr_format": 3}}), "/members/a/members/b".into()),
        ("/zarr_format".into(), json!(4), "/zarr_format".into()),
    ] {
        let found = rejections.declare("new", &changed(&pointer, value.clone()), ProblemType::InvalidZom).await;
        let reported = found.members.pointer.clone().unwrap_or_default();
        rejections.check(reported.starts_with(&place), || {
            format!("{pointer} = {value}: {reported} instead of {place}: {}", found.detail)
        });
        rejections.check(found.members.violations.first().is_some_and(|first| first.pointer == reported), || {
            format!("{found:?}")
        });
    }
    for text in ["", "{", "null", "[]", "7", "\"zarr\"", "{}", "\u{feff}{}"] {
        let request = rejections.request(Method::PUT, "/node/new", JSON, text);
        rejections.send(request, ProblemType::InvalidZom).await;
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{},\"members\":{\"a\":".repeat(5000);
    for text in [deep, nested] {
        let request = rejections.request(Method::PUT, "/node/new", JSON, text);
        rejections.send(request, ProblemType::InvalidZom).await;
    }
    // An unknown codec.
    let unknown = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "magic"}]);
    let zom = changed(&format!("{array}/codecs"), unknown);
    let request = rejections.request(Method::PUT, "/node/new", JSON, zom.to_string());
    let found = rejections.send(request, ProblemType::UnsupportedNode).await;
    rejections.check(found.members.unsupported.is_some_and(|what| what.contains("magic")), || found.detail);
    rejections.end("models that break their schema");
}

#[tokio::test]
async fn nodes_at_impossible_paths_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    // Names, in the path and in the model.
    let array = v3(&[4], &[2], &json!("uint8"), &json!(0));
    for (path, zom) in [
        ("new/__reserved", group(&json!({}))),
        ("new/zarr.json", group(&json!({}))),
        ("sketch/gr%C3%B6sse?dialect=draft", group(&json!({}))),
        ("sketch/a%20b?dialect=draft", group(&json!({}))),
    ] {
        let found = rejections.declare(path, &zom, ProblemType::InvalidNodeName).await;
        assert!(found.members.path.is_some() && found.members.dialect.is_some(), "{found:?}");
    }
    for name in ["", ".", "..", "...", "__x", "a/b", "zarr.json"] {
        let request = rejections.request(Method::PUT, "/node/new", JSON, group(&json!({name: array})).to_string());
        let answer = rejections.server.put("/node/unused", "x").await;
        assert_eq!(answer.status(), 400);
        let before = rejections.keys().await;
        let found = Problem::from_json(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
        assert!([ProblemType::InvalidNodeName, ProblemType::InvalidZom].contains(&found.kind), "{name:?}: {found:?}");
        assert_eq!(rejections.keys().await, before, "{name:?}");
    }

    // An existing node that differs.
    let other = v3(&[4, 7], &[2, 4], &json!("uint8"), &json!(0));
    let found = rejections.declare("lab/bytes", &other, ProblemType::NodeConflict).await;
    let [difference] = &found.members.differences[..] else { panic!("{found:?}") };
    assert_eq!(
        (difference.pointer.as_str(), &difference.expected, &difference.actual),
        ("/shape/1", &Some(Json::compact(&json!(7))), &Some(Json::compact(&json!(6))))
    );
    let found =
        rejections.declare("lab", &group(&json!({"bytes": group(&json!({}))})), ProblemType::NodeConflict).await;
    assert!(found.members.differences.len() > 1, "{found:?}");
    rejections.declare("lab/bytes", &group(&json!({})), ProblemType::NodeConflict).await;
    let same = v3(&[4, 6], &[2, 4], &json!("uint8"), &json!(0));
    for (path, zom) in [("lab/bytes", &same), ("lab/bytes", &other), ("lab", &group(&json!({})))] {
        let request = rejections.request(Method::PUT, &format!("/node/{path}"), JSON, zom.to_string());
        let found = rejections.send(request.header(header::IF_NONE_MATCH, "*"), ProblemType::PreconditionFailed).await;
        assert!(found.members.current.is_some(), "{found:?}");
    }
    for (method, path, body) in [
        (Method::PUT, "/node/lab/bytes?overwrite", other.to_string()),
        (Method::PATCH, "/node/lab/bytes", "{\"attributes\": {\"a\": 1}}".to_owned()),
        (Method::DELETE, "/node/lab/bytes", String::new()),
        (Method::PUT, "/node/not/there?overwrite", other.to_string()),
    ] {
        let request = rejections.request(method, path, JSON, body).header(header::IF_MATCH, "\"other\"");
        rejections.send(request, ProblemType::PreconditionFailed).await;
    }

    // Below an array, and at the path of a hierarchy of another dialect.
    for (path, array) in [
        ("lab/bytes/below", "/lab/bytes"),
        ("old/bytes/far/below", "/old/bytes"),
        ("sketch/bytes/x?dialect=draft", "/sketch/bytes"),
    ] {
        let found = rejections.declare(path, &other, ProblemType::ParentIsArray).await;
        assert_eq!(found.members.array.as_deref(), Some(array), "{found:?}");
    }
    rejections.declare("sketch?dialect=v3", &group(&json!({})), ProblemType::DialectConflict).await;

    // A node that the draft could represent, but not in this model.
    let mut mixed = v2(&[4, 6]);
    mixed["dtype"] = json!([["a", "<i4"], ["b", ">i4"]]);
    mixed["fill_value"] = json!("AAAAAAAAAAA=");
    rejections.declare("sketch/mixed?dialect=draft", &mixed, ProblemType::Unconvertible).await;
    let tree = json!({"zarr_format": 2, "attributes": {}, "members": {"fine": v2(&[4, 6]), "mixed": mixed}});
    rejections.declare("sketch/tree?dialect=draft&allow_lossy", &tree, ProblemType::Unconvertible).await;

    // Erasing, and missing nodes.
    let root = rejections.request(Method::DELETE, "/node/", JSON, "");
    rejections.send(root, ProblemType::ConfirmationRequired).await;
    for (method, path, body) in [
        (Method::DELETE, "/node/nothing", ""),
        (Method::PATCH, "/node/nothing", "{\"attributes\": {}}"),
        (Method::POST, "/node/nothing?convert=v3", ""),
    ] {
        let request = rejections.request(method, path, JSON, body);
        rejections.send(request, ProblemType::NoSuchNode).await;
    }
    for (method, path) in [(Method::POST, "/node/lab"), (Method::POST, "/array/lab/bytes")] {
        let request = rejections.request(method, path, JSON, "{}");
        rejections.send(request, ProblemType::MissingParameter).await;
    }
    for target in
        ["/node/lab?replaced", "/node/lab?depth=1", "/array/lab/bytes?selection=1", "/array/lab/bytes?format=raw"]
    {
        let request = rejections.request(Method::PUT, target, JSON, "{}");
        rejections.send(request, ProblemType::UnknownParameter).await;
    }
    rejections.end("nodes that cannot be there");
}

#[tokio::test]
async fn invalid_patches_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    for path in ["lab/bytes", "old/bytes", "sketch/bytes"] {
        for (patch, place) in [
            (json!({"shape": [4, 6, 1]}), "/shape"),
            (json!({"shape": [4]}), "/shape"),
            (json!({"shape": []}), "/shape"),
            (json!({"shape": 4}), "/shape"),
            (json!({"shape": [4, -1]}), "/shape/1"),
            (json!({"shape": [4, 1.5]}), "/shape/1"),
            (json!({"shape": null}), "/shape"),
            (json!({"attributes": [1]}), "/attributes"),
            (json!({"attributes": "a"}), "/attributes"),
            (json!({"attributes": 7}), "/attributes"),
            (json!({"dimension_names": "y"}), "/dimension_names"),
            (json!({"dimension_names": ["y"]}), "/dimension_names"),
            (json!({"dimension_names": ["y", 5]}), "/dimension_names/1"),
            (json!({"fill_value": 5}), "/fill_value"),
            (json!({"attributes": {"fine": 1}, "shape": [4]}), "/shape"),
        ] {
            let found = rejections.patch(path, &patch.to_string(), ProblemType::InvalidPatch).await;
            let reported = found.members.pointer.as_deref().unwrap_or_default();
            rejections.check(reported.starts_with(place), || format!("{path} {patch}: {reported} instead of {place}"));
        }
        for text in ["", "{", "[]", "null", "7"] {
            rejections.patch(path, text, ProblemType::InvalidPatch).await;
        }
    }
    for path in ["lab", "old", "sketch"] {
        for patch in [
            json!({"shape": [4]}),
            json!({"dimension_names": ["x"]}),
            json!({"attributes": []}),
            json!({"members": {}}),
        ] {
            rejections.patch(path, &patch.to_string(), ProblemType::InvalidPatch).await;
        }
    }
    let request = rejections.request(Method::PATCH, "/node/lab", "text/plain", "{}");
    rejections.send(request, ProblemType::UnsupportedMediaType).await;
    rejections.end("patches that do not fit");
}
