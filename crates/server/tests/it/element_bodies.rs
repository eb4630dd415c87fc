//! Request bodies of `/array` in every format.

use crate::common::{
    TestResponse, TestServer,
    arrays::{floats, matrix_server, v3, v3_with},
};
use axum::body::{Body, Bytes};
use futures::stream;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

const RAW: &str = "application/octet-stream";
const NPY: &str = "application/x-npy";
const JSON: &str = "application/json";

async fn write(server: &TestServer, path: &str, media_type: &str, body: impl Into<Body>) -> TestResponse {
    server.put(path, &[("content-type", media_type)], body).await
}

async fn raw(server: &TestServer, path: &str) -> Bytes {
    let answer = server.get(&format!("/array/{path}?format=raw"), &[]).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text());
    answer.body
}

fn text(length: usize) -> Value {
    json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 4 * length}})
}

/// Each response of one array is accepted as a body by another, in each common format.
#[tokio::test]
async fn responses_are_accepted_as_bodies() {
    let server = TestServer::new();
    let of_variable = json!([{"name": "vlen-utf8"}]);
    let of_bytes = json!([{"name": "vlen-bytes"}]);
    let of_fixed = json!([{"name": "bytes", "configuration": {"endian": "big"}}]);
    for (name, data_type, fill, codecs, elements, forms) in [
        ("int", json!("int16"), json!(0), &of_fixed, json!([[1, -2, 3], [40, 500, 6000]]), &[RAW, NPY, JSON][..]),
        (
            "float",
            json!("float64"),
            json!(0.0),
            &of_fixed,
            json!([[1.5, "NaN", "-Infinity"], [0.0, 1e300, -0.1]]),
            &[RAW, NPY, JSON],
        ),
        (
            "complex",
            json!("complex64"),
            json!([0, 0]),
            &of_fixed,
            json!([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], [[0.0, 1.0], [0.5, 0.25], [7.0, 8.0]]]),
            &[RAW, NPY, JSON],
        ),
        (
            "bool",
            json!("bool"),
            json!(false),
            &of_fixed,
            json!([[true, false, true], [false, false, true]]),
            &[RAW, NPY, JSON],
        ),
        ("text", text(3), json!(""), &of_fixed, json!([["a", "éé", ""], ["abc", "😀", "x"]]), &[RAW, NPY, JSON]),
        (
            "string",
            json!("string"),
            json!(""),
            &of_variable,
            json!([["a", "é", ""], ["abcdef", "😀", "x"]]),
            &[RAW, NPY, JSON],
        ),
        (
            "bytes",
            json!("variable_length_bytes"),
            json!(""),
            &of_bytes,
            json!([["YQ==", "", "YWI="], ["AA==", "//8=", "YWJj"]]),
            &[RAW, JSON],
        ),
        (
            "raw",
            json!("r16"),
            json!([0, 0]),
            &of_fixed,
            json!([[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 255]]]),
            &[RAW, NPY, JSON],
        ),
    ] {
        let made = async |path: &str| {
            v3_with(&server, path, data_type.clone(), &[2, 3], &[2, 2], fill.clone(), codecs.clone()).await
        };
        made(name).await;
        let answer = write(&server, &format!("/array/{name}"), JSON, elements.to_string()).await;
        assert_eq!(
            (answer.status, &answer.json()["shape"]),
            (StatusCode::OK, &json!([2, 3])),
            "{name}: {}",
            answer.text()
        );
        let answer = server.get(&format!("/array/{name}"), &[]).await;
        assert_eq!(answer.json(), elements, "{name}");
        for form in forms {
            let body = server.get(&format!("/array/{name}"), &[("accept", form)]).await;
            assert_eq!(body.status, StatusCode::OK, "{name} {form}");
            let other = format!("{name}-{}", form.rsplit(['/', '-']).next().unwrap());
            made(&other).await;
            let answer = write(&server, &format!("/array/{other}"), form, body.body).await;
            assert_eq!(answer.status, StatusCode::OK, "{name} {form}: {}", answer.text());
            assert_eq!(raw(&server, &other).await, raw(&server, name).await, "{name} {form}");
        }
    }
}

#[tokio::test]
async fn bodies_match_selections_and_appends() {
    let server = matrix_server().await;
    let answer = write(&server, "/array/m?select=1,2:4", JSON, "[-1, -2]").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(server.get("/array/m?select=1", &[]).await.json(), json!([6.0, 7.0, -1.0, -2.0, 10.0, 11.0]));
    let answer = write(&server, "/array/m?select=:,5", JSON, "7").await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
    assert_eq!(server.get("/array/m?select=:,5", &[]).await.json(), json!([7.0, 7.0, 7.0, 7.0]));
    for (body, media_type, shape) in [
        (Bytes::from(floats(12)), RAW, json!([6, 6])),
        (Bytes::from("[[1,2,3,4,5,6]]"), JSON, json!([7, 6])),
        (Bytes::from("9"), JSON, json!([8, 6])),
        (Bytes::from("[]"), JSON, json!([8, 6])),
    ] {
        let answer =
            server.request(Method::POST, "/array/m?append=0", &[("content-type", media_type)], body.clone()).await;
        assert_eq!((answer.status, &answer.json()["shape"]), (StatusCode::OK, &shape), "{body:?}");
    }
    assert_eq!(server.get("/array/m?select=5:,:2", &[]).await.json(), json!([[6.0, 7.0], [1.0, 2.0], [9.0, 9.0]]));
}

/// A write to a view changes the elements that the view shows.
#[tokio::test]
async fn views_are_written_through() {
    let server = TestServer::new();
    v3(&server, "a", json!("int8"), &[10], &[4], json!(0)).await;
    let mut document: Value = serde_json::from_slice(&server.value("a/zarr.json").await.unwrap()).unwrap();
    document["extensions"] = json!([{"name": "example.offset", "configuration": {"offset": [3]}}]);
    crate::common::arrays::put(&server, "a/zarr.json", document.to_string().into_bytes()).await;
    for (path, body) in [("/array/a?select=0", "1"), ("/array/a?select=-1", "2"), ("/array/a?select=2:4", "[3,4]")] {
        let answer = write(&server, path, JSON, body).await;
        assert_eq!((answer.status, &answer.json()["shape"]), (StatusCode::OK, &json!([7])), "{}", answer.text());
    }
    assert_eq!(server.get("/array/a", &[]).await.json(), json!([1, 0, 3, 4, 0, 0, 2]));
    assert_eq!(server.value("a/c/0").await.unwrap(), &[0, 0, 0, 1][..]);
    assert_eq!(server.value("a/c/1").await.unwrap(), &[0, 3, 4, 0][..]);
    let appended = server.request(Method::POST, "/array/a?append=0", &[("content-type", JSON)], "[5]").await;
    assert_eq!(appended.json()["shape"], json!([8]), "{}", appended.text());
    let document: Value = serde_json::from_slice(&server.value("a/zarr.json").await.unwrap()).unwrap();
    assert_eq!(document["shape"], json!([11]));
    assert_eq!(server.get("/array/a?select=-2:", &[]).await.json(), json!([2, 5]));
}

#[tokio::test]
async fn mismatched_bodies_are_rejected() {
    let server = matrix_server().await;
    v3(&server, "flags", json!("bool"), &[2, 2], &[2, 2], json!(false)).await;
    let before = raw(&server, "m").await;
    for (path, media_type, body, kind) in [
        ("m", "text/csv", &b"1,2"[..], ProblemType::UnsupportedMediaType),
        ("m", RAW, b"abc", ProblemType::BodyShapeMismatch),
        ("m?select=0,0", NPY, b"PK", ProblemType::InvalidBody),
        ("m?select=0", JSON, b"[1,2,3]", ProblemType::BodyShapeMismatch),
        ("m?select=0", JSON, b"[1,2,3,4,5,6", ProblemType::InvalidBody),
        ("m?select=0,:2", JSON, b"[1,\"two\"]", ProblemType::InvalidElement),
        ("flags", RAW, &[0, 1, 2, 0], ProblemType::InvalidElement),
    ] {
        let path = format!("/array/{path}");
        let problem = write(&server, &path, media_type, body).await.problem(kind);
        match kind {
            ProblemType::InvalidElement => assert!(problem.members.element.is_some(), "{path}"),
            ProblemType::BodyShapeMismatch => {
                assert!(problem.members.actual.is_some() && problem.members.expected.is_some())
            }
            _ => {}
        }
        // Without an announced length, errors are found in the stream.
        let pieces: Vec<_> =
            body.chunks(1).map(|piece| Ok::<_, std::io::Error>(Bytes::copy_from_slice(piece))).collect();
        write(&server, &path, media_type, Body::from_stream(stream::iter(pieces))).await.problem(kind);
    }
    let flag = write(&server, "/array/flags", RAW, vec![0, 1, 2, 0]).await.problem(ProblemType::InvalidElement);
    assert_eq!(flag.members.element.unwrap(), [1, 0]);
    assert_eq!(raw(&server, "m").await, before);
    assert_eq!(raw(&server, "flags").await, &[0; 4][..]);
}
