//! Byte ranges of elements.

use crate::common::{
    TestResponse, TestServer,
    arrays::{floats, matrix_server, put, v3},
};
use http::{Method, StatusCode};
use serde_json::json;
use zarrd_wire::problem::ProblemType;

const RAW: &str = "/array/m?format=raw";

async fn range(server: &TestServer, path: &str, range: &str) -> TestResponse {
    server.get(path, &[("range", range)]).await
}

#[tokio::test]
async fn range_equals_slice_of_full_response() {
    let server = matrix_server().await;
    for path in [RAW, "/array/m?format=npy", "/array/m?format=raw&select=::-1,(5,0,2)", "/array/g/old?format=npy"] {
        let all = server.get(path, &[]).await;
        assert_eq!(all.header("accept-ranges"), "bytes", "{path}");
        let size = all.body.len();
        for start in (0..size).step_by(7) {
            for end in [start + 1, start + 4, start + 61, size] {
                let end = end.min(size);
                let part = range(&server, path, &format!("bytes={start}-{}", end - 1)).await;
                assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{path} {start}..{end}");
                assert_eq!(part.body, all.body.slice(start..end), "{path} {start}..{end}");
                assert_eq!(part.header("content-range"), format!("bytes {start}-{}/{size}", end - 1));
                assert_eq!(part.header("content-length"), (end - start).to_string());
                assert_eq!(part.header("etag"), all.header("etag"));
                assert_eq!(part.header("content-type"), all.header("content-type"));
                assert_eq!(part.header("zarr-shape"), all.header("zarr-shape"), "of the full answer");
            }
        }
        let last = range(&server, path, "bytes=-5").await;
        assert_eq!((last.status, last.body), (StatusCode::PARTIAL_CONTENT, all.body.slice(size - 5..)));
        let more = range(&server, path, &format!("bytes=-{}", size + 5)).await;
        assert_eq!((more.status, &more.body), (StatusCode::PARTIAL_CONTENT, &all.body));
    }
}

#[tokio::test]
async fn chunks_outside_the_range_are_not_read() {
    let server = matrix_server().await;
    put(&server, "m/c/1/0", b"none".to_vec()).await;
    server.get(RAW, &[]).await.problem(ProblemType::UndecodableChunk);
    assert_eq!(range(&server, RAW, "bytes=0-47").await.body, floats(24)[..48]);
    assert_eq!(range(&server, RAW, "bytes=61-70").await.body, floats(24)[61..71], "the right half of a row");
    range(&server, RAW, "bytes=47-48").await.problem(ProblemType::UndecodableChunk);
    let head = range(&server, "/array/m?format=npy", "bytes=0-9").await;
    assert_eq!((head.status, &head.body[..6]), (StatusCode::PARTIAL_CONTENT, &b"\x93NUMPY"[..]));
}

#[tokio::test]
async fn ranges_cross_long_rows() {
    let server = TestServer::new();
    let (rows, columns) = (3_u64, 40_000_u64);
    v3(&server, "long", json!("uint16"), &[rows, columns], &[2, 7000], json!(9)).await;
    let chunk: Vec<u8> = (0..14_000_u16).flat_map(u16::to_le_bytes).collect();
    put(&server, "long/c/0/5", chunk.clone()).await;
    put(&server, "long/c/1/0", chunk).await;
    let all = server.get("/array/long?format=raw", &[]).await.body;
    for (start, end) in
        [(0, 1), (79_999, 80_001), (79_990, 160_003), (70_001, 239_999), (1, 240_000), (160_000, 160_001)]
    {
        let part = range(&server, "/array/long?format=raw", &format!("bytes={start}-{}", end - 1)).await;
        assert!(part.body == all.slice(start..end), "{start}..{end}");
    }
}

#[tokio::test]
async fn unsatisfiable_ranges_are_416() {
    let server = matrix_server().await;
    let etag = server.get(RAW, &[]).await.header("etag").to_owned();
    for bad in ["bytes=96-", "bytes=96-99", "bytes=-0", "bytes=99999999999999999999-"] {
        let answer = range(&server, RAW, bad).await;
        assert_eq!(answer.problem(ProblemType::RangeNotSatisfiable).members.size, Some(96), "{bad}");
        assert_eq!((answer.header("content-range"), answer.header("etag")), ("bytes */96", etag.as_str()), "{bad}");
    }
    let empty = "/array/m?format=raw&select=0:0";
    range(&server, empty, "bytes=0-").await.problem(ProblemType::RangeNotSatisfiable);
    assert_eq!(range(&server, empty, "bytes=-1").await.status, StatusCode::OK, "the last bytes of nothing are nothing");
}

#[tokio::test]
async fn unsupported_ranges_are_ignored() {
    let server = matrix_server().await;
    for ignored in ["bytes=0-1,4-5", "bytes=5-2", "items=0-1", "nonsense", "bytes=", "bytes=a-b"] {
        let answer = range(&server, RAW, ignored).await;
        assert_eq!((answer.status, &answer.body[..]), (StatusCode::OK, &floats(24)[..]), "{ignored}");
    }
    let twice = server.get(RAW, &[("range", "bytes=0-1"), ("range", "bytes=2-3")]).await;
    assert_eq!(twice.status, StatusCode::OK);
    for format in ["json", "csv", "png"] {
        let answer = range(&server, &format!("/array/m?format={format}"), "bytes=0-1").await;
        assert_eq!((answer.status, answer.header("accept-ranges")), (StatusCode::OK, "none"), "{format}");
    }
    let head = server.head(RAW, &[("range", "bytes=0-1")]).await;
    assert_eq!((head.status, head.header("content-length")), (StatusCode::OK, "96"));
    assert_eq!(head.header("accept-ranges"), "bytes");
    let headers = [("range", "bytes=0-1"), ("content-type", "application/json")];
    let post = server.request(Method::POST, "/array/m?read&format=raw", &headers, r#"{"select": "0"}"#).await;
    assert_eq!((post.status, post.body.len()), (StatusCode::OK, 24), "only GET has ranges");
}

#[tokio::test]
async fn if_range_mismatch_returns_everything() {
    let server = matrix_server().await;
    let before = server.get(RAW, &[]).await;
    let etag = before.header("etag");
    let with = async |condition: &str| {
        let answer = server.get(RAW, &[("range", "bytes=4-7"), ("if-range", condition)]).await;
        (answer.status, answer.body.len())
    };
    assert_eq!(with(etag).await, (StatusCode::PARTIAL_CONTENT, 4));
    let weak = format!("W/{etag}");
    for other in [weak.as_str(), "\"x\"", "nonsense", "Sun, 22 Nov 2026 19:00:00 GMT"] {
        assert_eq!(with(other).await, (StatusCode::OK, 96), "{other}");
    }
    put(&server, "m/c/1/1", vec![1; 24]).await;
    assert_eq!(with(etag).await, (StatusCode::OK, 96), "a chunk outside of the range changed");
    let current = server.get(RAW, &[("range", "bytes=4-7")]).await;
    assert_ne!(current.header("etag"), etag);
    let known = server.get(RAW, &[("range", "bytes=4-7"), ("if-none-match", current.header("etag"))]).await;
    assert_eq!(known.status, StatusCode::NOT_MODIFIED);
    let gone = server.get(RAW, &[("range", "bytes=4-7"), ("if-match", etag)]).await;
    gone.problem(ProblemType::PreconditionFailed);
}

#[tokio::test]
async fn ranges_disable_content_coding() {
    let server = TestServer::new();
    v3(&server, "zeros", json!("uint8"), &[4096], &[4096], json!(7)).await;
    let path = "/array/zeros?format=raw";
    let plain = server.get(path, &[]).await;
    let coded = server.get(path, &[("accept-encoding", "gzip")]).await;
    assert_eq!((coded.header("content-encoding"), coded.header("accept-ranges")), ("gzip", ""));
    let part = server.get(path, &[("accept-encoding", "gzip"), ("range", "bytes=0-9")]).await;
    assert_eq!((part.status, part.header("content-encoding"), part.body.len()), (StatusCode::PARTIAL_CONTENT, "", 10));
    assert_eq!(part.header("etag"), plain.header("etag"));
    assert_eq!(part.header("vary"), "accept, accept-encoding");
    let resumed = [("accept-encoding", "gzip"), ("range", "bytes=5-"), ("if-range", coded.header("etag"))];
    let resumed = server.get(path, &resumed).await;
    assert_eq!((resumed.status, resumed.body.len()), (StatusCode::OK, 4096), "what was begun was another one");
    let refused = server.get(path, &[("accept-encoding", "gzip, identity;q=0"), ("range", "bytes=0-9")]).await;
    assert_eq!((refused.status, refused.header("content-encoding")), (StatusCode::OK, "gzip"));
    let short = [("accept-encoding", "gzip"), ("range", "bytes=0-1")];
    let tag = server.get("/array/zeros?format=raw&select=:9", &[("accept-encoding", "gzip")]).await;
    assert_eq!(server.get("/array/zeros?format=raw&select=:9", &short).await.header("etag"), tag.header("etag"));
}
