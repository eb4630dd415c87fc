//! Requests that must be rejected, and the nodes that they are about.

use http::{Method, header};
use reqwest::RequestBuilder;
use serde_json::{Value, json};
use zarrd_tests::{
    server::{Launch, Server},
    skip::note,
};
use zarrd_wire::problem::{Problem, ProblemType};

pub(crate) const JSON: &str = "application/json";
pub(crate) const NPY: &str = "application/x-npy";
pub(crate) const RAW: &str = "application/octet-stream";

/// A server with some nodes, and the number of rejected requests.
pub(crate) struct RejectionTest {
    pub(crate) server: Server,
    rejected: usize,
    /// Requests that were not rejected as expected.
    failures: Vec<String>,
}

impl RejectionTest {
    /// `/lab` is a group of v3 with the arrays `bytes` (4 × 6, `uint8`), `floats` (5, `float32`) and `words` (3, two
    /// characters each), `/old` one of v2 with the array `bytes`, and `/sketch` one of the draft.
    pub(crate) async fn start() -> Self {
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
    pub(crate) async fn keys(&self) -> Value {
        let listing = self.server.get("/store/?list=keys").await.bytes().await.unwrap();
        let listing: Value = serde_json::from_slice(&listing).unwrap();
        assert!(listing["cursor"].is_null() && listing["keys"].as_array().unwrap().len() > 8, "{listing}");
        json!([listing["keys"], listing["values"]])
    }

    /// Sends a request that must be rejected with this problem type, and checks that nothing was written.
    pub(crate) async fn send(&mut self, request: RequestBuilder, kind: ProblemType) -> Problem {
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
    pub(crate) fn check(&mut self, condition: bool, what: impl FnOnce() -> String) {
        if !condition {
            self.failures.push(what());
        }
    }

    pub(crate) fn request(
        &self,
        method: Method,
        path: &str,
        media: &str,
        body: impl Into<reqwest::Body>,
    ) -> RequestBuilder {
        self.server.request(method, path).header(header::CONTENT_TYPE, media).body(body)
    }

    pub(crate) async fn declare(&mut self, path: &str, zom: &Value, kind: ProblemType) -> Problem {
        let request = self.request(Method::PUT, &format!("/node/{path}"), JSON, zom.to_string());
        self.send(request, kind).await
    }

    pub(crate) async fn patch(&mut self, path: &str, patch: &str, kind: ProblemType) -> Problem {
        let media = "application/merge-patch+json";
        let request = self.request(Method::PATCH, &format!("/node/{path}"), media, patch.to_owned());
        self.send(request, kind).await
    }

    pub(crate) async fn write(
        &mut self,
        target: &str,
        media: &str,
        body: impl Into<Vec<u8>>,
        kind: ProblemType,
    ) -> Problem {
        self.send_elements(Method::PUT, target, (media, body.into()), kind).await
    }

    pub(crate) async fn append(
        &mut self,
        target: &str,
        media: &str,
        body: impl Into<Vec<u8>>,
        kind: ProblemType,
    ) -> Problem {
        self.send_elements(Method::POST, target, (media, body.into()), kind).await
    }

    async fn send_elements(
        &mut self,
        method: Method,
        target: &str,
        (media, body): (&str, Vec<u8>),
        kind: ProblemType,
    ) -> Problem {
        let request = self.request(method, &format!("/array/{target}"), media, body);
        self.send(request, kind).await
    }

    pub(crate) fn end(self, what: &str) {
        assert!(self.failures.is_empty(), "{what}:\n{}", self.failures.join("\n"));
        note(format_args!("{what}: {} requests were rejected, and nothing was written", self.rejected));
        self.server.stop();
    }
}

pub(crate) fn v3(shape: &[u64], chunk: &[u64], data_type: &Value, fill: &Value) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}], "attributes": {},
    })
}

pub(crate) fn v2(shape: &[u64]) -> Value {
    json!({
        "zarr_format": 2, "shape": shape, "chunks": shape, "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null, "attributes": {},
    })
}

pub(crate) fn group(members: &Value) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members})
}

/// A `.npy` file of version 1.
pub(crate) fn npy(descr: &str, shape: &str, elements: &[u8]) -> Vec<u8> {
    let mut head = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = (head.len() + 11).next_multiple_of(64) - 11;
    head.push_str(&" ".repeat(padded - head.len()));
    head.push('\n');
    let len = u16::try_from(head.len()).unwrap().to_le_bytes();
    [b"\x93NUMPY\x01\x00", &len[..], head.as_bytes(), elements].concat()
}
