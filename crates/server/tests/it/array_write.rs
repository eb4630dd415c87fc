//! Writing and appending elements.

use crate::common::{
    RunningServer, TestResponse, TestServer,
    arrays::{floats, matrix, matrix_server, put, v3, v3_with},
};
use axum::body::Body;
use futures::stream;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::Settings;
use zarrd_store::{Key, MemoryStore, TransactionalStore};
use zarrd_wire::{
    node::WriteAnswer,
    problem::{Problem, ProblemType},
};

/// The report of a successful write.
#[track_caller]
fn assert_written(answer: &TestResponse) -> WriteAnswer {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    let assert_written: WriteAnswer = serde_json::from_slice(&answer.body).unwrap();
    let shape: Vec<_> = assert_written.shape.iter().map(u64::to_string).collect();
    assert_eq!(answer.header("zarr-shape"), shape.join(","));
    assert_written
}

async fn elements(server: &TestServer, path: &str) -> Value {
    server.get(path, &[]).await.json()
}

/// An `.npy` file of version 1.
fn npy(descr: &str, shape: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    file.extend(header.as_bytes());
    file.extend(bytes);
    file
}

fn pieces(body: Vec<u8>, size: usize) -> Body {
    let pieces: Vec<_> = body.chunks(size).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    Body::from_stream(stream::iter(pieces))
}

#[tokio::test]
async fn regions_are_written_in_each_format() {
    let (json, npy_type) = ([("content-type", "application/json")], [("content-type", "application/x-npy")]);
    let octets = [("content-type", "application/octet-stream")];
    let expected = json!([[0.0, 100.0, 101.0, 3.0], [6.0, 102.0, 103.0, 9.0]]);
    let raw: Vec<u8> = [100_f32, 101.0, 102.0, 103.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let bodies: [(&[_], Vec<u8>); 5] = [
        (&[], raw.clone()),
        (&octets, raw.clone()),
        (&json, br#"[[100, 101], [102, 103.0]]"#.to_vec()),
        (&npy_type, npy("<f4", "(2, 2)", &raw)),
        (&[("content-type", "Application/JSON; charset=utf-8")], b"[[100,101],[102,103]]".to_vec()),
    ];
    for (headers, body) in bodies {
        for body in [Body::from(body.clone()), pieces(body, 3)] {
            let server = matrix_server().await;
            let answer = server.put("/array/m?select=:2,1:3", headers, body).await;
            let report = assert_written(&answer);
            assert_eq!(
                report,
                WriteAnswer { shape: vec![4, 6], chunks_written: 1, chunks_erased: 0, conflicts_retried: 0 }
            );
            assert_eq!(answer.header("etag"), server.get("/node/m", &[]).await.header("etag"));
            assert_eq!(elements(&server, "/array/m?select=:2,:4").await, expected, "{headers:?}");
            assert_eq!(elements(&server, "/array/m?select=2").await, json!([12.0, 13.0, 14.0, 15.0, 16.0, 17.0]));
        }
    }
}

/// A body of points, given as `shape` and numbers of `descr`, and of elements.
fn at_points(descr: &str, shape: &str, numbers: &[u8], elements: &[u8]) -> Vec<u8> {
    let mut body = npy(descr, shape, numbers);
    body.extend(elements);
    body
}

fn longs(numbers: &[i64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

#[tokio::test]
async fn points_are_written_in_each_format_and_the_last_of_a_place_counts() {
    let raw: Vec<u8> = [50_f32, 60.0, 70.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    let at = longs(&[0, 1, -1, 5, 0, 1]);
    let json: (&[_], _) = (&[("content-type", "application/json")], b"[50, 60, 70.0]".to_vec());
    let file: (&[_], _) = (&[("content-type", "application/x-npy")], npy("<f4", "(3,)", &raw));
    let columns = [0_i32, -1, 0, 1, 5, 1].iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<_>>();
    let fortran = String::from_utf8_lossy(&npy(">i4", "(3, 2)", &[])[10..]).replace("False", "True ");
    let columns = [&npy(">i4", "(3, 2)", &[])[..10], fortran.as_bytes(), &columns].concat();
    for (headers, elements) in [(&[][..], raw.clone()), json, file] {
        let rows = at_points("<i8", "(3, 2)", &at, &elements);
        for body in [pieces(rows.clone(), 7), Body::from(rows), Body::from([columns.clone(), elements].concat())] {
            let server = matrix_server().await;
            assert_written(&server.put("/array/m?points", headers, body).await);
            assert_eq!(server.get("/array/m?select=0", &[]).await.json(), json!([0.0, 70.0, 2.0, 3.0, 4.0, 5.0]));
            assert_eq!(server.get("/array/m?select=3,4:", &[]).await.json(), json!([22.0, 60.0]));
        }
    }
    let server = matrix_server().await;
    let scalar = at_points("<u1", "(2, 2)", &[0, 0, 3, 5], b"9");
    assert_written(&server.put("/array/m?points", &[("content-type", "application/json")], scalar).await);
    assert_eq!(server.get("/array/m?select=(0,3),(0,5)", &[]).await.json(), json!([[9.0, 5.0], [18.0, 9.0]]));
    assert_written(&server.put("/array/m?points", &[], npy("<i8", "(0, 2)", &[])).await);
}

#[tokio::test]
async fn bad_points_change_nothing() {
    use ProblemType::*;
    let one = |shape| at_points("<i8", shape, &longs(&[0, 0]), &[0, 0, 0, 0]);
    let cases: [(&str, Vec<u8>, ProblemType); 15] = [
        ("points", b"".to_vec(), InvalidBody),
        ("points", b"[[0, 0]]".to_vec(), InvalidBody),
        ("points", npy("<i8", "(1, 2)", &[0; 15]), InvalidBody),
        ("points", npy("<i8", "(1048576, 2)", &[0; 15]), InvalidBody),
        ("points", npy("<i8", "(1048577, 2)", &[]), InvalidSelection),
        ("points", npy("<i8", "(9223372036854775807, 9223372036854775807)", &[]), InvalidSelection),
        ("points", npy("<i8", "(1, 65)", &[0; 520]), InvalidSelection),
        ("points", at_points("<f8", "(1, 2)", &[0; 16], &[0; 4]), InvalidSelection),
        ("points", one("(2,)"), InvalidSelection),
        ("points", at_points("<i8", "(1, 1)", &[0; 8], &[0; 4]), SelectionRankMismatch),
        ("points", at_points("<i8", "(1, 2)", &longs(&[0, 6]), &[0; 4]), IndexOutOfBounds),
        ("points", at_points("<u8", "(1, 2)", &[255; 16], &[0; 4]), IndexOutOfBounds),
        ("points", at_points("<i8", "(1, 2)", &longs(&[0, 0]), &[0; 5]), BodyShapeMismatch),
        ("points", at_points("<i8", "(1, 2)", &longs(&[0, 0]), &[0; 3]), BodyShapeMismatch),
        ("points&select=0", one("(1, 2)"), SelectionConflict),
    ];
    let server = matrix_server().await;
    let before = elements(&server, "/array/m").await;
    for (query, body, kind) in cases {
        for body in [Body::from(body.clone()), pieces(body, 5)] {
            let request = format!("/array/m?{query}");
            let answer = server.put(&request, &[], body).await;
            let problem = answer.problem(kind);
            assert!(!problem.detail.is_empty(), "{problem:?}");
        }
    }
    server.put("/array/m?points=1", &[], one("(1, 2)")).await.problem(InvalidParameter);
    assert_eq!(elements(&server, "/array/m").await, before);
}

#[tokio::test]
async fn scalars_and_full_arrays_are_written() {
    let server = matrix_server().await;
    let json = [("content-type", "application/json")];
    assert_eq!(assert_written(&server.put("/array/m?select=...,(0,5)", &json, "7").await).chunks_written, 4);
    assert_eq!(elements(&server, "/array/m?select=1").await, json!([7.0, 7.0, 8.0, 9.0, 10.0, 7.0]));
    assert_eq!(assert_written(&server.put("/array/m?select=1,2", &json, "\"NaN\"").await).chunks_written, 1);
    assert_eq!(elements(&server, "/array/m?select=1,2").await, json!("NaN"));
    assert_eq!(assert_written(&server.put("/array/m/", &[], floats(24)).await).chunks_written, 4);
    assert_eq!(elements(&server, "/array/m?select=3,5").await, json!(23.0));
    // Chunks full of the fill value are erased.
    let report = assert_written(&server.put("/array/m?select=:,:3", &json, "0").await);
    assert_eq!((report.chunks_written, report.chunks_erased), (0, 2));
    assert_eq!(server.value("m/c/0/0").await, None);
    // The v2 array is big-endian in storage only.
    assert_written(&server.put("/array/g/old?select=1:", &[], vec![1, 0, 2, 0]).await);
    assert_eq!(server.value("g/old/0").await.unwrap(), &[0, 5, 0, 1, 0, 2][..]);
    // An empty region.
    assert_eq!(assert_written(&server.put("/array/m?select=2:2", &[], "").await).chunks_written, 0);
}

#[tokio::test]
async fn elements_of_variable_length_are_written() {
    let server = matrix_server().await;
    v3_with(&server, "s", json!("string"), &[4], &[2], json!(""), json!([{"name": "vlen-utf8"}])).await;
    let json = [("content-type", "application/json")];
    assert_written(&server.put("/array/s?select=1:3", &json, r#"["é", "long enough"]"#).await);
    assert_eq!(elements(&server, "/array/s").await, json!(["", "é", "long enough", ""]));
    // Raw responses are accepted as raw bodies.
    let raw = server.get("/array/s?format=raw&select=:0:-1", &[]).await.body;
    assert_written(&server.put("/array/s?select=1:", &[], raw).await);
    assert_eq!(elements(&server, "/array/s").await, json!(["", "", "long enough", "é"]));
}

#[tokio::test]
async fn append_grows_the_array() {
    let server = matrix_server().await;
    let json = [("content-type", "application/json")];
    let post = async |path: &str, headers: &[(&str, &str)], body: Body| {
        server.request(Method::POST, path, headers, body).await
    };
    let answer = post("/array/m?append=0", &[], floats(12).into()).await;
    assert_eq!(assert_written(&answer).shape, [6, 6]);
    assert_eq!(answer.header("etag"), server.get("/node/m", &[]).await.header("etag"));
    assert_eq!(elements(&server, "/array/m?select=3:6,0").await, json!([18.0, 0.0, 6.0]));
    assert_eq!(
        assert_written(&post("/array/m?append=-1", &json, "[[1],[2],[3],[4],[5],[6]]".into()).await).shape,
        [6, 7]
    );
    assert_eq!(assert_written(&post("/array/m?append=1", &json, "9".into()).await).shape, [6, 8]);
    assert_eq!(elements(&server, "/array/m?select=5").await, json!([6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 6.0, 9.0]));
    let column: Vec<u8> = (0..8_u8).flat_map(|number| f32::from(number).to_le_bytes()).collect();
    let file = npy("<f4", "(1, 8)", &column);
    let npy_type = [("content-type", "application/x-npy")];
    assert_eq!(assert_written(&post("/array/m?append=0", &npy_type, pieces(file, 7)).await).shape, [7, 8]);
    assert_eq!(assert_written(&post("/array/m?append=0", &[], Body::empty()).await).shape, [7, 8]);
    assert_eq!(assert_written(&post("/array/g/old?append=0", &[], vec![1, 0].into()).await).shape, [4]);
    assert_eq!(elements(&server, "/array/g/old").await, json!([5, 6, 7, 1]));
}

#[tokio::test]
async fn preconditions_are_checked() {
    let server = matrix_server().await;
    let tag = server.get("/node/m", &[]).await.header("etag").to_owned();
    let other = "\"00000000000000000000000000000001\"";
    let answer = server.put("/array/m", &[("if-match", &tag)], floats(24)).await;
    assert_written(&answer);
    assert_eq!(answer.header("etag"), tag, "the node's own documents are what they were");
    let before = server.all().await;
    for header in [("if-match", other), ("if-none-match", "*"), ("if-none-match", tag.as_str())] {
        let problem = server.put("/array/m", &[header], floats(24)).await.problem(ProblemType::PreconditionFailed);
        assert_eq!(problem.members.current.as_deref(), Some(tag.as_str()));
        let append = server.request(Method::POST, "/array/m?append=0", &[header], floats(6)).await;
        append.problem(ProblemType::PreconditionFailed);
    }
    server.put("/array/m", &[("if-match", "x")], floats(24)).await.problem(ProblemType::InvalidHeader);
    assert_eq!(server.all().await, before);
}

/// The problem of a rejected write, after which nothing has changed.
async fn assert_problem(
    server: &TestServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
    kind: ProblemType,
) -> Problem {
    let before = server.all().await;
    let answer = server.request(method, path, headers, body).await;
    assert_eq!(server.all().await, before, "{path}");
    answer.problem(kind)
}

#[tokio::test]
async fn mismatched_bodies_are_rejected() {
    let server = matrix_server().await;
    for body in [Body::from(floats(5)), pieces(floats(5), 3), Body::from(floats(3)), pieces(floats(3), 5)] {
        let problem =
            assert_problem(&server, Method::PUT, "/array/m?select=0:2,0:2", &[], body, ProblemType::BodyShapeMismatch)
                .await;
        let members = problem.members;
        assert_eq!(members.expected, Some(16));
        // The exact number is unknown for a streamed body.
        assert!(matches!(members.actual, Some(12 | 17..=20)), "{members:?}");
    }
    let json = [("content-type", "application/json")];
    for body in ["[[1, 2], [3]]", "[[1, 2]]", "[1, 2, 3, 4]", "[[1, 2], [3, 4], [5, 6]]"] {
        assert_problem(&server, Method::PUT, "/array/m?select=0:2,0:2", &json, body, ProblemType::BodyShapeMismatch)
            .await;
    }
    let npy_type = [("content-type", "application/x-npy")];
    let file = npy("<f4", "(4,)", &floats(4));
    assert_problem(&server, Method::PUT, "/array/m?select=0:2,0:2", &npy_type, file, ProblemType::BodyShapeMismatch)
        .await;

    let problem =
        assert_problem(&server, Method::POST, "/array/m?append=0", &[], floats(7), ProblemType::BodyShapeMismatch)
            .await;
    assert_eq!((problem.members.expected, problem.members.actual), (Some(24), Some(28)));
    for body in ["[[1, 2]]", "[1, 2, 3, 4, 5]"] {
        assert_problem(&server, Method::POST, "/array/m?append=0", &json, body, ProblemType::BodyShapeMismatch).await;
    }
}

#[tokio::test]
async fn invalid_elements_are_rejected() {
    let server = matrix_server().await;
    v3(&server, "bytes", json!("uint8"), &[2, 2], &[2, 2], json!(0)).await;
    let json = [("content-type", "application/json")];
    for (body, element) in [
        ("[[1, 2], [3, 256]]", &[1, 1][..]),
        ("[[1, -1], [3, 4]]", &[0, 1]),
        ("[[\"NaN\", 1], [3, 4]]", &[0, 0]),
        ("[[1, 2], [3.5, 4]]", &[1, 0]),
        ("[[1, 2], [null, 4]]", &[1, 0]),
        ("300", &[]),
    ] {
        let problem =
            assert_problem(&server, Method::PUT, "/array/bytes", &json, body, ProblemType::InvalidElement).await;
        assert_eq!(problem.members.element.as_deref(), Some(element), "{body}");
        assert!(!problem.detail.is_empty());
    }
}

#[tokio::test]
async fn unsupported_bodies_are_rejected() {
    let server = matrix_server().await;
    let json = [("content-type", "application/json")];
    for body in ["", "[[1, 2], [3, 4]", "{", "[[1, 2], [3, 4]] 5"] {
        assert_problem(&server, Method::PUT, "/array/m?select=0:2,0:2", &json, body, ProblemType::InvalidBody).await;
    }
    let npy_type = [("content-type", "application/x-npy")];
    for body in [&b""[..], b"\x93NUMPY", b"\x93NUMPY\x01\x00\xff\xff{", &floats(4)[..]] {
        let body = body.to_vec();
        assert_problem(&server, Method::PUT, "/array/m?select=0:2,0:2", &npy_type, body, ProblemType::InvalidBody)
            .await;
    }
    let kind = ProblemType::UnsupportedMediaType;
    let problem = assert_problem(&server, Method::PUT, "/array/m", &[("content-type", "text/csv")], "1", kind).await;
    let known = ["application/octet-stream", "application/x-npy", "application/json"];
    assert_eq!(problem.members.known.unwrap(), known);
    // What `curl -d` sends would be taken for raw bytes.
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let problem = assert_problem(&server, Method::PUT, "/array/m", &form, floats(24), kind).await;
    assert!(problem.detail.contains("--json"), "{}", problem.detail);
    let coded = [("content-encoding", "zstd")];
    assert_problem(&server, Method::PUT, "/array/m", &coded, floats(24), ProblemType::UnsupportedContentEncoding).await;
    let part = [("content-range", "bytes 0-9/96")];
    assert_problem(&server, Method::PUT, "/array/m", &part, floats(24), ProblemType::InvalidHeader).await;
    let digest = [("content-digest", "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:")];
    assert_problem(&server, Method::PUT, "/array/m", &digest, floats(24), ProblemType::DigestMismatch).await;
}

#[tokio::test]
async fn invalid_requests_are_rejected() {
    let server = matrix_server().await;
    let assert_problem =
        async |method: Method, path: &str, kind| assert_problem(&server, method, path, &[], floats(1), kind).await;
    assert_problem(Method::PUT, "/array/none", ProblemType::NoSuchNode).await;
    assert_problem(Method::PUT, "/array/g", ProblemType::NotAnArray).await;
    assert_problem(Method::POST, "/array/g?append=0", ProblemType::NotAnArray).await;
    assert_problem(Method::PUT, "/array//m", ProblemType::InvalidPath).await;
    let problem = assert_problem(Method::PUT, "/array/m?slect=0", ProblemType::UnknownParameter).await;
    let known = ["select", "isel.DIM", "sel.DIM", "points", "decode", "casting", "create", "dialect"];
    assert_eq!(problem.members.known.unwrap(), known);
    assert_problem(Method::PUT, "/array/m?append=0", ProblemType::UnknownParameter).await;
    assert_problem(Method::PUT, "/array/m?select=0&select=1", ProblemType::DuplicateParameter).await;
    assert_problem(Method::PUT, "/array/m?select=x", ProblemType::InvalidSelection).await;
    assert_problem(Method::PUT, "/array/m?select=0,0,0", ProblemType::SelectionRankMismatch).await;
    assert_problem(Method::PUT, "/array/m?select=4", ProblemType::IndexOutOfBounds).await;
    let problem = assert_problem(Method::PUT, "/array/m?select=0,(1,2,-5)", ProblemType::InvalidSelection).await;
    assert_eq!((problem.members.dimension, problem.members.index), (Some(1), Some(1)), "{problem:?}");
    assert_problem(Method::POST, "/array/m?append=time", ProblemType::UnknownDimension).await;
    for query in ["append=2", "append=-3", "append"] {
        let problem = assert_problem(Method::POST, &format!("/array/m?{query}"), ProblemType::InvalidParameter).await;
        assert_eq!(problem.members.parameter.as_deref(), Some("append"), "{query}");
    }
    let problem = assert_problem(Method::POST, "/array/m?append=0&select=0", ProblemType::UnknownParameter).await;
    assert_eq!(problem.members.known.unwrap(), ["append", "casting", "decode", "dialect"]);
    assert_problem(Method::POST, "/array/m?append=0&append=0", ProblemType::DuplicateParameter).await;
    let problem = assert_problem(Method::POST, "/array/m", ProblemType::MissingParameter).await;
    assert_eq!(problem.members.parameter.as_deref(), Some("read"));
}

#[tokio::test]
async fn writes_over_a_connection() {
    let store: std::sync::Arc<dyn TransactionalStore> = std::sync::Arc::new(MemoryStore::new());
    let server = TestServer::over(store.clone(), Settings::default());
    matrix(&server).await;
    v3(&server, "text", json!("uint8"), &[4], &[4], json!(0)).await;
    put(&server, "text/c/0", b"....".to_vec()).await;
    let running = RunningServer::over(store, Settings::default()).await;
    let head = "host: localhost\r\n";

    // The client waits for 100 Continue, and the elements arrive in pieces.
    let mut raw = running.connect().await;
    raw.send(&format!("PUT /array/text HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: 4\r\n\r\n")).await;
    assert_eq!(raw.until("\r\n\r\n").await, "HTTP/1.1 100 Continue\r\n\r\n");
    raw.send("abcd").await;
    assert!(raw.until("}").await.starts_with("HTTP/1.1 200 OK"));
    raw.send(&format!("PUT /array/text?select=1:3 HTTP/1.1\r\n{head}transfer-encoding: chunked\r\n\r\n")).await;
    raw.send("1\r\nX\r\n1\r\nY\r\n0\r\n\r\n").await;
    assert!(raw.until("}").await.starts_with("HTTP/1.1 200 OK"));
    assert_eq!(server.value("text/c/0").await.unwrap(), "aXYd");

    // A rejected request gets no 100 Continue.
    for (path, status) in
        [("/array/none", 404), ("/array/text?select=9", 400), ("/array/text?select=0:2", 400), ("/array/text?x", 400)]
    {
        let mut raw = running.connect().await;
        raw.send(&format!("PUT {path} HTTP/1.1\r\n{head}expect: 100-continue\r\ncontent-length: 4\r\n\r\n")).await;
        let answer = raw.rest().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {answer}");
        assert!(answer.contains("connection: close"), "{path}: {answer}");
    }

    // An aborted upload changes nothing.
    let mut raw = running.connect().await;
    raw.send(&format!("PUT /array/text HTTP/1.1\r\n{head}content-length: 4\r\n\r\nab")).await;
    raw.close_sending().await;
    let answer = raw.rest().await;
    assert!(answer.is_empty() || answer.contains("length-mismatch") || answer.contains("incomplete-body"), "{answer}");
    assert_eq!(server.value("text/c/0").await.unwrap(), "aXYd");
    assert!(server.store.head(&Key::parse("text/zarr.json").unwrap()).await.unwrap().is_some());
}
