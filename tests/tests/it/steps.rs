//! The log of one request has the steps of ARCHITECTURE.md.

use std::fs;

use http::StatusCode;
use serde_json::Value;
use zarrd_tests::{
    binary::workspace,
    server::{Launch, Server},
};

/// Two chunks of four elements, compressed, so that a read decodes.
const DOCUMENT: &str = r#"{
    "zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "int32", "fill_value": 0, "attributes": {},
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 5}}]
}"#;

/// The names in bold of the numbered steps of "A read".
fn documented_steps() -> Vec<String> {
    let text = fs::read_to_string(workspace().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## A read\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let numbered = |line: &str| {
        let (number, rest) = line.split_once(". **")?;
        number.parse::<u32>().ok()?;
        Some(rest.split_once("**")?.0.to_owned())
    };
    section.lines().filter_map(numbered).collect()
}

/// The names of the spans in the log, in the order in which they start.
fn started_spans(log: &str) -> Vec<String> {
    let span = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let is_start = line["target"] == zarrd_executor::STEPS && line["message"] == "new";
        is_start.then(|| line["span"]["name"].as_str().unwrap().to_owned())
    };
    log.lines().filter_map(span).collect()
}

async fn write_array(server: &Server) {
    assert!(server.put("/store/a/zarr.json", DOCUMENT).await.status().is_success());
    let elements: Vec<u8> = (0..8_i32).flat_map(i32::to_le_bytes).collect();
    let written = server.request(http::Method::PUT, "/array/a").header("content-type", "application/octet-stream");
    assert!(written.body(elements).send().await.unwrap().status().is_success());
}

#[tokio::test]
async fn log_of_a_slice_has_the_steps_of_the_architecture() {
    let documented = documented_steps();
    assert_eq!(documented.len(), 10, "{documented:?}");
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch::sled(dir.path());
    let server = launch.start();
    write_array(&server).await;
    server.stop();
    let server = launch.env("RUST_LOG", "zarrd_server=trace").arg("--log=json").start();
    assert_eq!(server.answer("/array/a?select=3:5").await, (StatusCode::OK, b"[3,4]".to_vec()));
    server.wait_for_log("request completed");
    let log = server.log();
    let mut steps: Vec<String> = Vec::new();
    for step in started_spans(&log) {
        // Chunks are decoded at a time, so their steps alternate.
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    assert_eq!(steps, documented, "{log}");
}

#[tokio::test]
async fn log_has_no_steps_unless_they_are_traced() {
    let dir = tempfile::tempdir().unwrap();
    let server = Launch::sled(dir.path()).env("RUST_LOG", "debug").arg("--log=json").start();
    write_array(&server).await;
    assert_eq!(server.answer("/array/a?select=3:5").await.0, StatusCode::OK);
    server.wait_for_log("\"method\":\"GET\"");
    assert_eq!(started_spans(&server.log()), Vec::<String>::new());
}
