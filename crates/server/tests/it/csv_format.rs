//! CSV and its header line.

use crate::common::{
    TestServer,
    arrays::{put, v3},
};
use http::Method;
use serde_json::json;
use zarrd_wire::problem::ProblemType;

const PRESENT: &str = "text/csv; charset=utf-8; header=present";
const ABSENT: &str = "text/csv; charset=utf-8; header=absent";

/// A server with `named`: two rows and three columns `x` with the numbers 0 to 5; `line`: three numbers along `t`;
/// `plain`: unnamed dimensions; and `people`: two structs.
async fn server() -> TestServer {
    let server = TestServer::new();
    for (path, shape, names) in
        [("named", vec![2, 3], json!(["y", "x"])), ("line", vec![3], json!(["t"])), ("plain", vec![2, 3], json!(null))]
    {
        let document = json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "dimension_names": names, "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}}, "fill_value": 0,
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}],
        });
        assert!(server.json(Method::PUT, &format!("/node/{path}"), &document).await.status.is_success(), "{path}");
        let elements: Vec<u8> = (0..shape.iter().product::<u8>()).collect();
        let written = server.put(&format!("/array/{path}"), &[], elements).await;
        assert!(written.status.is_success(), "{}", written.text());
    }
    let fields = json!({"name": "struct", "configuration": {"fields": [
        {"name": "id", "data_type": "uint8"},
        {"name": "a,b", "data_type": {"name": "fixed_length_utf32", "configuration": {"length_bytes": 8}}},
    ]}});
    v3(&server, "people", fields, &[2], &[2], json!("AAAAAAAAAAAA")).await;
    let people = b"\x01a\0\0\0,\0\0\0\x02\0\0\0\0\0\0\0\0".to_vec();
    put(&server, "people/c/0", people).await;
    server
}

async fn csv(server: &TestServer, path: &str) -> (String, String) {
    let answer = server.get(path, &[("accept", "text/csv")]).await;
    assert!(answer.status.is_success(), "{path}: {}", answer.text());
    (answer.header("content-type").to_owned(), answer.text().to_owned())
}

#[tokio::test]
async fn named_columns_have_a_header_line() {
    let server = server().await;
    for (path, kind, text) in [
        ("/array/named", PRESENT, "x_0,x_1,x_2\r\n0,1,2\r\n3,4,5\r\n"),
        ("/array/named?select=:,::-2", PRESENT, "x_2,x_0\r\n2,0\r\n5,3\r\n"),
        ("/array/named?select=1,1:", PRESENT, "named\r\n4\r\n5\r\n"),
        ("/array/named?select=0:0", PRESENT, "x_0,x_1,x_2\r\n"),
        ("/array/named?select=1,1", ABSENT, "4\r\n"),
        ("/array/named?header=false", ABSENT, "0,1,2\r\n3,4,5\r\n"),
        ("/array/line", PRESENT, "line\r\n0\r\n1\r\n2\r\n"),
        ("/array/plain", ABSENT, "0,1,2\r\n3,4,5\r\n"),
        ("/array/plain?header=true&select=:,1:", PRESENT, "1,2\r\n1,2\r\n4,5\r\n"),
        ("/array/plain?header=true&select=1,1", PRESENT, "plain\r\n4\r\n"),
        ("/array/people", PRESENT, "id,\"a,b\"\r\n1,\"a,\"\r\n2,\"\"\r\n"),
        ("/array/people?select=0", PRESENT, "id,\"a,b\"\r\n1,\"a,\"\r\n"),
        ("/array/people?header=false", ABSENT, "1,\"a,\"\r\n2,\"\"\r\n"),
    ] {
        assert_eq!(csv(&server, path).await, (kind.to_owned(), text.to_owned()), "{path}");
        assert_eq!(server.head(path, &[("accept", "text/csv")]).await.header("content-type"), kind, "{path}");
    }
    let json = server.get("/array/people", &[]).await;
    assert_eq!(json.json(), json!([[1, "a,"], [2, ""]]));
}

#[tokio::test]
async fn points_and_stacks_number_their_columns() {
    let server = server().await;
    let headers = [("accept", "text/csv"), ("content-type", "application/json")];
    for (query, body, text) in [
        ("read", r#"{"points": [[1, 2]]}"#, "5\r\n"),
        ("read&header=true", r#"{"points": [[1, 2]]}"#, "named\r\n5\r\n"),
        ("read", r#"{"stack": ["0,1:", "1,:2"]}"#, "x_0,x_1\r\n1,2\r\n3,4\r\n"),
    ] {
        let answer = server.request(Method::POST, &format!("/array/named?{query}"), &headers, body).await;
        assert_eq!(answer.text(), text, "{query} {body}");
    }
}

#[tokio::test]
async fn header_line_changes_etag() {
    let server = server().await;
    let tag =
        async |query: &str| server.get(&format!("/array/named?format=csv{query}"), &[]).await.header("etag").to_owned();
    assert_eq!(tag("").await, tag("&header=true").await);
    assert_ne!(tag("").await, tag("&header=false").await);
}

#[tokio::test]
async fn invalid_header_parameter_is_rejected() {
    let server = server().await;
    for bad in ["format=csv&header=present", "format=csv&header", "format=csv&header=", "format=json&header=true"] {
        let problem = server.get(&format!("/array/named?{bad}"), &[]).await.problem(ProblemType::InvalidParameter);
        assert_eq!(problem.members.parameter.as_deref(), Some("header"), "{bad}");
    }
}
