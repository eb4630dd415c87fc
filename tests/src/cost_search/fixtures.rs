//! The contents of the server before the search starts.

use futures::{StreamExt, stream};
use serde_json::{Value, json};

use super::requests::Request;
use crate::server::Server;

/// The paths of the trees.
pub(super) const TREES: &[&str] = &[
    "trees/wide",
    "trees/arrays",
    "trees/deep",
    "trees/large",
    "trees/v2",
    "trees/consolidated",
    "trees",
    "arrays",
    "",
];

/// The number of nodes of the wide trees.
const NODES: usize = 2000;
/// The number of keys to list, each with a name of 1,000 bytes.
const KEYS: usize = 2000;

/// Creates the fixtures.
///
/// # Panics
///
/// If the server rejects them.
pub(super) async fn prepare(server: &Server) {
    let nodes = [
        ("trees/wide", groups(NODES, 3)),
        ("trees/arrays", of_arrays(NODES)),
        ("trees/deep", deep(60)),
        ("trees/v2", groups(NODES, 2)),
        ("trees/consolidated", groups(500, 3)),
    ];
    for (path, document) in nodes {
        let request =
            server.request(http::Method::PUT, &format!("/node/{path}")).header("content-type", "application/json");
        let answer = request.body(document).send().await.expect("an answer");
        let status = answer.status();
        assert!(status.is_success(), "{path}: {status} {}", answer.text().await.unwrap_or_default());
    }
    let members: serde_json::Map<String, Value> =
        (0..500).map(|number| (number.to_string(), json!({"zarr_format": 3, "node_type": "group"}))).collect();
    let consolidated = json!({"zarr_format": 3, "node_type": "group", "attributes": {},
        "consolidated_metadata": {"kind": "inline", "must_understand": false, "metadata": members}});
    put(server, "trees/consolidated/zarr.json", consolidated.to_string().into_bytes()).await;
    // Larger than a single request may declare.
    put(server, "trees/large/zarr.json", group_with_attributes(4 << 20).into_bytes()).await;
    put(server, "values/small", vec![7; 1000]).await;
    put(server, "values/large", vec![7; 8 << 20]).await;
    let keys = (0..KEYS).map(|number| format!("long/{number:06}{}", "k".repeat(990)));
    let prefixes = (0..KEYS).map(|number| format!("prefixes/{number}/{}/a", "p".repeat(900)));
    let all = stream::iter(keys.chain(prefixes));
    all.for_each_concurrent(16, |key| async move { put(server, &key, vec![7; 10]).await }).await;
}

/// A group with `count` groups as members.
pub(super) fn groups(count: usize, format: u8) -> String {
    let group = if format == 3 { json!({"zarr_format": 3, "node_type": "group"}) } else { json!({"zarr_format": 2}) };
    with_members(&group, (0..count).map(|_| group.clone()))
}

/// A group with attributes of `bytes` bytes.
pub(super) fn group_with_attributes(bytes: usize) -> String {
    let small: Vec<Value> = vec![json!({"": 0}); bytes / 7];
    json!({"zarr_format": 3, "node_type": "group", "attributes": {"a": small}}).to_string()
}

/// An array of `uint8`.
pub(super) fn array(shape: &[u64], chunk: &[u64]) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "codecs": [{"name": "bytes"}], "chunk_key_encoding": {"name": "default"},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}})
}

/// Sends a request that is not measured; returns the status.
pub(super) async fn send(server: &Server, request: &Request) -> Option<u16> {
    let mut response = server.request(request.method.clone(), &request.target);
    for (name, value) in &request.headers {
        response = response.header(*name, value);
    }
    let answer = response.body(request.body.clone()).send().await.ok()?;
    let status = answer.status().as_u16();
    answer.bytes().await.ok().map(|_| status)
}

fn of_arrays(count: usize) -> String {
    let group = json!({"zarr_format": 3, "node_type": "group"});
    with_members(&group, (0..count).map(|_| array(&[4; 8], &[4; 8])))
}

fn deep(depth: usize) -> String {
    let group = json!({"zarr_format": 3, "node_type": "group"});
    (0..depth).fold(group.clone(), |inner, _| with(&group, json!({"a": inner}))).to_string()
}

fn with_members(group: &Value, members: impl Iterator<Item = Value>) -> String {
    let members: serde_json::Map<String, Value> =
        members.enumerate().map(|(number, member)| (number.to_string(), member)).collect();
    with(group, Value::Object(members)).to_string()
}

fn with(group: &Value, members: Value) -> Value {
    let mut group = group.clone();
    group["members"] = members;
    group
}

async fn put(server: &Server, key: &str, value: Vec<u8>) {
    let answer = server.put(&format!("/store/{key}"), value).await;
    assert!(answer.status().is_success(), "{key}: {}", answer.status());
}
