//! Rejected changes: each one is answered with the problem that locates the error, and nothing is written.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test fails by panicking")]

use client::Json;
use http::{Method, header};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use wire::problem::{Problem, ProblemType};
use zarrd_tests::{
    server::{Launch, Server},
    skip::note,
};

const JSON: &str = "application/json";
const NPY: &str = "application/x-npy";
const RAW: &str = "application/octet-stream";

/// A server with some nodes, and the number of rejected requests.
struct RejectionTest {
    server: Server,
    rejected: usize,
    /// Requests that were not rejected as expected.
    failures: Vec<String>,
}

impl RejectionTest {
    /// `/lab` is a group of v3 with the arrays `bytes` (4 × 6, `uint8`), `floats` (5, `float32`) and `words` (3, two
    /// characters each), `/old` one of v2 with the array `bytes`, and `/sketch` one of the draft.
    async fn start() -> Self {
        let server = Launch::of("memory:").start();
        let words = json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}});
        let members = json!({
            "bytes": v3(&[4, 6], &[2, 4], &json!("uint8"), &json!(0)),
            "floats": v3(&[5], &[2], &json!("float32"), &json!(0.0)),
            "words": v3(&[3], &[3], &words, &json!("")),
            "deep": {"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}, "members": {}},
        });
        let lab = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members});
        let old = json!({"zarr_format": 2, "attributes": {}, "members": {"bytes": v2(&[4, 6])}});
        for (path, zom) in [("lab", &lab), ("old", &old), ("sketch?dialect=draft", &lab)] {
            let created = server.put(&format!("/node/{path}"), zom.to_string()).await;
            assert_eq!(created.status(), 201, "{path}: {}", created.text().await.unwrap());
        }
        let written = server.put("/array/lab/bytes", (1..=24).collect::<Vec<u8>>()).await;
        assert_eq!(written.status(), 200, "{}", written.text().await.unwrap());
        Self { server, rejected: 0, failures: Vec::new() }
    }

    /// The keys of the store with their entity tags.
    async fn keys(&self) -> Value {
        let listing = self.server.get("/store/?list=keys").await.bytes().await.unwrap();
        let listing: Value = serde_json::from_slice(&listing).unwrap();
        assert!(listing["cursor"].is_null() && listing["keys"].as_array().unwrap().len() > 8, "{listing}");
        json!([listing["keys"], listing["values"]])
    }

    /// Sends a request that must be rejected with this problem type, and checks that nothing was written.
    async fn send(&mut self, request: RequestBuilder, kind: ProblemType) -> Problem {
        let before = self.keys().await;
        let request = request.build().unwrap();
        let body = request.body().and_then(|body| body.as_bytes()).unwrap_or_default();
        let sent = String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned();
        let what = format!("{} {} {sent:?}", request.method(), request.url());
        let answer = reqwest::Client::new().execute(request).await.unwrap();
        let (status, media) = (answer.status(), answer.headers().get(header::CONTENT_TYPE).cloned());
        let body = answer.bytes().await.unwrap();
        let text = String::from_utf8_lossy(&body).into_owned();
        assert_eq!(self.keys().await, before, "{what} changed the store: {text}");
        self.rejected += 1;
        let found = Problem::from_json(&body);
        let is_problem = media.is_some_and(|media| media == "application/problem+json");
        match found {
            Some(found) if found.kind == kind && status == kind.status() && is_problem => found,
            other => {
                self.failures.push(format!("{what}: {status} instead of {}: {text}", kind.slug()));
                other.unwrap_or_else(|| Problem::new(kind))
            }
        }
    }

    /// Records a failed expectation.
    fn check(&mut self, condition: bool, what: impl FnOnce() -> String) {
        if !condition {
            self.failures.push(what());
        }
    }

    fn request(&self, method: Method, path: &str, media: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.server.request(method, path).header(header::CONTENT_TYPE, media).body(body)
    }

    async fn declare(&mut self, path: &str, zom: &Value, kind: ProblemType) -> Problem {
        let request = self.request(Method::PUT, &format!("/node/{path}"), JSON, zom.to_string());
        self.send(request, kind).await
    }

    async fn patch(&mut self, path: &str, patch: &str, kind: ProblemType) -> Problem {
        let media = "application/merge-patch+json";
        let request = self.request(Method::PATCH, &format!("/node/{path}"), media, patch.to_owned());
        self.send(request, kind).await
    }

    async fn write(&mut self, target: &str, media: &str, body: impl Into<Vec<u8>>, kind: ProblemType) -> Problem {
        let request = self.request(Method::PUT, &format!("/array/{target}"), media, body.into());
        self.send(request, kind).await
    }

    async fn append(&mut self, target: &str, media: &str, body: impl Into<Vec<u8>>, kind: ProblemType) -> Problem {
        let request = self.request(Method::POST, &format!("/array/{target}"), media, body.into());
        self.send(request, kind).await
    }

    fn end(self, what: &str) {
        assert!(self.failures.is_empty(), "{what}:\n{}", self.failures.join("\n"));
        note(format_args!("{what}: {} requests were rejected, and nothing was written", self.rejected));
        self.server.stop();
    }
}

fn v3(shape: &[u64], chunk: &[u64], data_type: &Value, fill: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    })
}

fn v2(shape: &[u64]) -> Value {
    json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null, "attributes": {},
    })
}

fn group(members: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

/// A `.npy` file of version 1.
fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (head.len() + 11).next_multiple_of(64) - 11;
    head.push_str(&" ".repeat(padded - head.len()));
    head.push('\n');
    let len = u16::try_from(head.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], head.as_bytes(), elements].concat()
}

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

#[tokio::test]
async fn invalid_bodies_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    let sizes = |problem: &Problem| (problem.members.expected, problem.members.actual);
    for array in ["lab/bytes", "old/bytes", "sketch/bytes"] {
        for (select, expected) in [("", 24), ("?select=1:3,::2", 6), ("?select=0,(5,0,3)", 3)] {
            for length in [0, 1, expected - 1, expected + 1, 100] {
                let found = rejections
                    .write(&format!("{array}{select}"), RAW, vec![7; length], ProblemType::BodyShapeMismatch)
                    .await;
                let both = (Some(expected as u64), Some(length as u64));
                rejections.check(sizes(&found) == both, || format!("{array}{select} {length}: {found:?}"));
            }
        }
        // The length of a body without Content-Length is checked as it arrives.
        for length in [5_usize, 23, 25, 1000] {
            let parts = (0..length).map(|_| Ok::<_, std::io::Error>(vec![7]));
            let body = reqwest::Body::wrap_stream(futures::stream::iter(parts));
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, body);
            let found = rejections.send(request, ProblemType::BodyShapeMismatch).await;
            rejections.check(found.members.expected == Some(24), || format!("{length} bytes in pieces: {found:?}"));
        }
        for (select, file) in [
            ("", npy("|u1", "(24,)", &[1; 24])),
            ("", npy("|u1", "(6, 4)", &[1; 24])),
            ("?select=0", npy("|u1", "(1, 6)", &[1; 6])),
        ] {
            rejections.write(&format!("{array}{select}"), NPY, file, ProblemType::BodyShapeMismatch).await;
        }
        for (select, tree) in [
            ("", json!([1, 2, 3])),
            ("", json!([[1, 2, 3, 4, 5, 6]])),
            ("", json!([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5]])),
            ("?select=0", json!([1, 2, 3, 4, 5])),
            ("?select=:1", json!([1, 2, 3, 4, 5, 6])),
        ] {
            let target = format!("{array}{select}");
            rejections.write(&target, JSON, tree.to_string(), ProblemType::BodyShapeMismatch).await;
        }
        for text in ["", "[", "[[1,2,3,4,5,6],", "[[1,]", "nul", "7 x"] {
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), JSON, text);
            rejections.send(request, ProblemType::InvalidBody).await;
        }
        for file in [
            Vec::new(),
            b"NUMPY".to_vec(),
            npy("|u1", "(4, 6)", &[1; 24])[..30].to_vec(),
            npy("oops", "(4, 6)", &[1; 24]),
        ] {
            rejections.write(array, NPY, file, ProblemType::InvalidBody).await;
        }
        // Appends.
        for (target, body) in [("?append=0", vec![7; 7]), ("?append=1", vec![7; 6]), ("?append=-1", vec![7; 1])] {
            let found = rejections.append(&format!("{array}{target}"), RAW, body, ProblemType::BodyShapeMismatch).await;
            rejections.check(sizes(&found).0 > Some(1), || format!("{found:?}"));
        }
        for (target, file) in [
            ("?append=0", npy("|u1", "(2, 5)", &[1; 10])),
            ("?append=1", npy("|u1", "(5, 2)", &[1; 10])),
            ("?append=0", npy("|u1", "(6,)", &[1; 6])),
        ] {
            rejections.append(&format!("{array}{target}"), NPY, file, ProblemType::BodyShapeMismatch).await;
        }
        rejections.append(&format!("{array}?append=0"), JSON, "[[1,2,3]]", ProblemType::BodyShapeMismatch).await;
        rejections
            .append(&format!("{array}?append=0"), JSON, "[[1,2,3,4,5,6],[1,2]]", ProblemType::BodyShapeMismatch)
            .await;
        for dimension in ["2", "-3", "x", "99999999999999999999"] {
            rejections
                .append(&format!("{array}?append={dimension}"), RAW, vec![7; 6], ProblemType::InvalidParameter)
                .await;
        }
        // Selections.
        for (select, kind) in [
            ("4", ProblemType::IndexOutOfBounds),
            ("0,0,0", ProblemType::SelectionRankMismatch),
            ("(1,1)", ProblemType::InvalidSelection),
            ("(1,-3)", ProblemType::InvalidSelection),
            ("x", ProblemType::InvalidSelection),
            ("::0", ProblemType::InvalidSelection),
        ] {
            rejections.write(&format!("{array}?select={select}"), RAW, vec![7; 6], kind).await;
        }
        // Preconditions, media types and codings.
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections.send(request.header(header::IF_MATCH, "\"other\""), ProblemType::PreconditionFailed).await;
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections.send(request.header(header::IF_NONE_MATCH, "*"), ProblemType::PreconditionFailed).await;
        rejections.write(array, "text/csv", "1,2", ProblemType::UnsupportedMediaType).await;
        let request = rejections.request(Method::PUT, &format!("/array/{array}"), RAW, vec![7; 24]);
        rejections
            .send(request.header(header::CONTENT_ENCODING, "gzip"), ProblemType::UnsupportedContentEncoding)
            .await;
    }
    rejections.write("lab", RAW, vec![7; 24], ProblemType::NotAnArray).await;
    rejections.write("lab/nothing", RAW, vec![7; 24], ProblemType::NoSuchNode).await;
    rejections.append("lab/deep?append=0", RAW, vec![7; 24], ProblemType::NotAnArray).await;
    rejections.end("bodies that do not fit");
}

#[tokio::test]
async fn values_out_of_the_data_type_range_are_rejected() {
    let mut rejections = RejectionTest::start().await;
    for array in ["lab/bytes", "old/bytes", "sketch/bytes"] {
        for value in [
            json!(256),
            json!(-1),
            json!(1.5),
            json!("NaN"),
            json!(null),
            json!(true),
            json!("7"),
            json!([1]),
            json!({}),
            json!(1e300),
        ] {
            let mut tree = json!([[1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]]);
            tree[2][5] = value.clone();
            let request = rejections.request(Method::PUT, &format!("/array/{array}"), JSON, tree.to_string());
            let found = rejections.send(request, ProblemType::InvalidElement).await;
            let element = found.members.element.as_deref() == Some(&[2, 5]);
            rejections.check(element, || format!("{array} {value}: {found:?}"));
            // A scalar for all elements.
            if !value.is_array() {
                let found = rejections.write(array, JSON, value.to_string(), ProblemType::InvalidElement).await;
                let element = found.members.element.as_deref();
                rejections
                    .check(element.is_none_or(<[u64]>::is_empty), || format!("{array} {value} for all: {found:?}"));
                rejections
                    .append(
                        &format!("{array}?append=0"),
                        JSON,
                        format!("[[1,2,3,4,{value},6]]"),
                        ProblemType::InvalidElement,
                    )
                    .await;
            }
        }
    }
    for value in ["\"x\"", "[1,2]", "true", "null", "\"0x12\""] {
        let found =
            rejections.write("lab/floats", JSON, format!("[0,1,2,{value},4]"), ProblemType::InvalidElement).await;
        rejections.check(found.members.element.as_deref() == Some(&[3]), || format!("{value}: {found:?}"));
    }
    for value in ["7", "null", "\"three\"", "false"] {
        let found =
            rejections.write("lab/words", JSON, format!("[\"a\",{value},\"b\"]"), ProblemType::InvalidElement).await;
        rejections.check(found.members.element.as_deref() == Some(&[1]), || format!("{value}: {found:?}"));
    }
    // Numbers of another type, including NaN, and of a non-numeric type.
    let floats: Vec<u8> = [1.0_f32, 2.0, f32::NAN].into_iter().cycle().take(24).flat_map(f32::to_le_bytes).collect();
    for (target, file) in [
        ("lab/bytes", npy("<f4", "(4, 6)", &floats)),
        ("old/bytes", npy("<f4", "(4, 6)", &floats)),
        ("lab/bytes", npy("<i8", "(4, 6)", &[0xff; 192])),
        ("lab/words", npy("<U5", "(3,)", &[65, 0, 0, 0].repeat(15))),
        ("lab/floats", npy("<U2", "(5,)", &[65, 0, 0, 0].repeat(10))),
    ] {
        let request = rejections.request(Method::PUT, &format!("/array/{target}"), NPY, file);
        let before = rejections.keys().await;
        let found = Problem::from_json(&request.send().await.unwrap().bytes().await.unwrap()).unwrap();
        let kinds = [ProblemType::InvalidElement, ProblemType::BodyShapeMismatch, ProblemType::InvalidBody];
        assert!(kinds.contains(&found.kind), "{target}: {found:?}");
        assert_eq!(rejections.keys().await, before);
    }
    rejections.end("values that the data type cannot hold");
}
