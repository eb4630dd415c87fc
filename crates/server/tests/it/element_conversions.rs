//! Writes of elements that are converted, packed, or selected by name.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

use crate::common::{
    TestServer,
    arrays::matrix_server,
    npz::{doubles, longs, npy, singles},
};

const NPY: [(&str, &str); 1] = [("content-type", "application/x-npy")];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// A server with a packed matrix over time and x, and its coordinates.
async fn server() -> TestServer {
    let server = TestServer::new();
    let units = json!({"units": "days since 2020-01-01"});
    let packed = json!({"scale_factor": 0.1, "add_offset": 10.0, "_FillValue": -1});
    let zom = json!({"zarr_format": 3, "node_type": "group", "members": {
        "time": {"shape": [3], "dtype": "int32", "dimension_names": ["time"], "attributes": units},
        "x": {"shape": [2], "dtype": "float64", "dimension_names": ["x"]},
        "t": {"shape": [3, 2], "dtype": "int16", "dimension_names": ["time", "x"], "attributes": packed},
        "bytes": {"shape": [3, 2], "dtype": "int8", "dimension_names": ["time", "x"]},
    }});
    assert_eq!(server.json(Method::PUT, "/node/g", &zom).await.status, StatusCode::CREATED);
    assert_eq!(server.put("/array/g/time", &JSON, "[0, 1, 2]").await.status, StatusCode::OK);
    assert_eq!(server.put("/array/g/x", &JSON, "[1.5, 2.5]").await.status, StatusCode::OK);
    server
}

async fn elements(server: &TestServer, path: &str) -> Value {
    server.get(path, &[]).await.json()
}

async fn written(server: &TestServer, path: &str, headers: &[(&str, &str)], body: impl Into<axum::body::Body>) {
    let answer = server.put(path, headers, body).await;
    assert_eq!(answer.status, StatusCode::OK, "{path}: {answer:?}");
}

#[tokio::test]
async fn types_are_cast_by_the_rules_of_numpy() {
    let server = server().await;
    let file = |values: &[i64]| npy("<i8", &[3, 2], &longs(values));
    written(&server, "/array/g/bytes", &NPY, file(&[1, -2, 3, 4, 5, -128])).await;
    assert_eq!(elements(&server, "/array/g/bytes").await, json!([[1, -2], [3, 4], [5, -128]]));
    let answer = server.put("/array/g/bytes", &NPY, file(&[1, 2, 3, 4, 300, 6])).await;
    let problem = answer.problem(ProblemType::InvalidElement);
    assert_eq!(problem.members.element, Some(vec![2, 0]));
    assert!(problem.detail.contains("300") && problem.detail.contains("int8"), "{problem:?}");
    let answer = server.put("/array/g/bytes?casting=safe", &NPY, file(&[0; 6])).await;
    let problem = answer.problem(ProblemType::BodyShapeMismatch);
    assert!(problem.detail.contains("int64") && problem.detail.contains("casting=safe"), "{problem:?}");
    let floats = npy("<f8", &[3, 2], &doubles(&[1.9; 6]));
    server.put("/array/g/bytes", &NPY, floats.clone()).await.problem(ProblemType::BodyShapeMismatch);
    written(&server, "/array/g/bytes?casting=unsafe", &NPY, floats).await;
    assert_eq!(elements(&server, "/array/g/bytes?select=0").await, json!([1, 1]));
    written(&server, "/array/g/bytes?casting=unsafe", &NPY, file(&[300; 6])).await;
    assert_eq!(elements(&server, "/array/g/bytes?select=0").await, json!([44, 44]));
    // Whatever the pieces of the body are, and in big-endian order.
    let swapped: Vec<u8> = (0..6_i32).flat_map(|value| value.to_be_bytes()).collect();
    let body = npy(">i4", &[3, 2], &swapped);
    let pieces: Vec<_> = body.chunks(3).map(|piece| Ok::<_, std::io::Error>(piece.to_vec())).collect();
    written(&server, "/array/g/bytes", &NPY, axum::body::Body::from_stream(futures::stream::iter(pieces))).await;
    assert_eq!(elements(&server, "/array/g/bytes").await, json!([[0, 1], [2, 3], [4, 5]]));
}

#[tokio::test]
async fn names_and_labels_select_what_is_written() {
    let server = server().await;
    written(&server, "/array/g/bytes?isel.x=1", &JSON, "[1, 2, 3]").await;
    written(&server, "/array/g/bytes?sel.x=1.5&isel.time=-1", &JSON, "9").await;
    written(&server, "/array/g/bytes?sel.time=2020-01-02T00:00:00", &JSON, "[7, 8]").await;
    assert_eq!(elements(&server, "/array/g/bytes").await, json!([[0, 1], [7, 8], [9, 3]]));
    // A date is an interval, of which a row is enough.
    written(&server, "/array/g/bytes?sel.time=2020-01-01", &JSON, "[5, 6]").await;
    written(&server, "/array/g/bytes?sel.time=2020-01-03", &NPY, npy("|i1", &[2], &[3, 4])).await;
    assert_eq!(elements(&server, "/array/g/bytes").await, json!([[5, 6], [7, 8], [3, 4]]));
    for (query, kind) in [
        ("sel.time=2021-01-01T00:00:00", ProblemType::LabelNotFound),
        ("sel.time=x", ProblemType::InvalidLabel),
        ("sel.z=1", ProblemType::UnknownDimension),
        ("isel.time=3", ProblemType::IndexOutOfBounds),
        ("isel.time=0&isel.0=0", ProblemType::DimensionRepeated),
        ("isel.time=0&select=0", ProblemType::SelectionConflict),
        ("isel.time=[0,0]", ProblemType::InvalidSelection),
    ] {
        server.put(&format!("/array/g/bytes?{query}"), &JSON, "1").await.problem(kind);
    }
    assert_eq!(elements(&server, "/array/g/bytes").await, json!([[5, 6], [7, 8], [3, 4]]));
}

#[tokio::test]
async fn rows_need_no_leading_ones() {
    let server = matrix_server().await;
    let row = singles(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    written(&server, "/array/m?select=0:1", &NPY, npy("<f4", &[6], &row)).await;
    written(&server, "/array/m?select=1", &NPY, npy("<f4", &[1, 1, 6], &row)).await;
    written(&server, "/array/m?select=2:3", &JSON, "[1, 2, 3, 4, 5, 6]").await;
    let expected = json!([[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; 3].to_vec());
    assert_eq!(elements(&server, "/array/m?select=:3").await, expected);
    let post = async |query: &str, headers: &[(&str, &str)], body: Vec<u8>| {
        server.request(Method::POST, &format!("/array/m?append={query}"), headers, body).await
    };
    assert_eq!(post("y", &NPY, npy("<f4", &[6], &row)).await.json()["shape"], json!([5, 6]));
    assert_eq!(post("0", &JSON, b"[9, 8, 7, 6, 5, 4]".to_vec()).await.json()["shape"], json!([6, 6]));
    assert_eq!(elements(&server, "/array/m?select=5").await, json!([9.0, 8.0, 7.0, 6.0, 5.0, 4.0]));
    // A column is no row, and neither are several rows.
    for body in [npy("<f4", &[6], &row), npy("<f4", &[2, 6], &[row.clone(), row.clone()].concat())] {
        post("1", &NPY, body).await.problem(ProblemType::BodyShapeMismatch);
    }
    server.put("/array/m?select=0:2", &NPY, npy("<f4", &[6], &row)).await.problem(ProblemType::BodyShapeMismatch);
    server.put("/array/m?select=0:2", &JSON, "[1, 2, 3, 4, 5, 6]").await.problem(ProblemType::BodyShapeMismatch);
    let unknown = post("z", &[], row).await.problem(ProblemType::UnknownDimension);
    assert_eq!(unknown.members.known.unwrap(), ["y"]);
}

#[tokio::test]
async fn decoded_elements_are_packed() {
    let server = server().await;
    let values = npy("<f8", &[3, 2], &doubles(&[10.0, 10.14, 10.16, f64::NAN, -3.0, 20.0]));
    written(&server, "/array/g/t?decode=cf", &NPY, values).await;
    assert_eq!(elements(&server, "/array/g/t").await, json!([[0, 1], [2, -1], [-130, 100]]));
    // What is read can be written, in every format.
    let before = elements(&server, "/array/g/t").await;
    for format in ["raw", "npy", "json"] {
        let answer = server.get(&format!("/array/g/t?decode=cf&format={format}"), &[]).await;
        let content_type = answer.header("content-type").to_owned();
        written(&server, "/array/g/t?decode=cf", &[("content-type", &content_type)], answer.body).await;
        assert_eq!(elements(&server, "/array/g/t").await, before, "{format}");
    }
    let beyond = server.put("/array/g/t?decode=cf&select=0", &JSON, "[1.0, 1e9]").await;
    let problem = beyond.problem(ProblemType::InvalidElement);
    assert_eq!(problem.members.element, Some(vec![1]));
    assert!(problem.detail.contains("1000000000") && problem.detail.contains("int16"), "{problem:?}");
    written(&server, "/array/g/t?decode=cf&select=0", &JSON, "12.5").await;
    assert_eq!(elements(&server, "/array/g/t?select=0").await, json!([25, 25]));
    // Without `decode` elements are as they are stored.
    written(&server, "/array/g/t?select=0", &JSON, "[3, 4]").await;
    assert_eq!(elements(&server, "/array/g/t?select=0").await, json!([3, 4]));
    // An array without attributes has nothing to be packed by.
    written(&server, "/array/g/bytes?decode=cf&select=0", &JSON, "[3, 4]").await;
}

#[tokio::test]
async fn iso_dates_are_times_of_the_array() {
    let server = server().await;
    let post = async |headers: &[(&str, &str)], query: &str, body: Vec<u8>| {
        server.request(Method::POST, &format!("/array/g/time?append=time{query}"), headers, body).await
    };
    assert_eq!(post(&JSON, "", br#"["2020-01-04", "2020-01-05T00:00:00Z"]"#.to_vec()).await.status, StatusCode::OK);
    assert_eq!(post(&JSON, "", br#""2020-01-06""#.to_vec()).await.status, StatusCode::OK);
    assert_eq!(
        post(&NPY, "", npy("<M8[ns]", &[1], &longs(&[18_268 * 86_400_000_000_000]))).await.status,
        StatusCode::OK
    );
    let text: Vec<u8> = "2020-01-08".chars().flat_map(|letter| (letter as u32).to_le_bytes()).collect();
    assert_eq!(post(&NPY, "", npy("<U10", &[1], &text)).await.status, StatusCode::OK);
    assert_eq!(post(&JSON, "&decode=cf", br#"["2020-01-09"]"#.to_vec()).await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/g/time").await, json!([0, 1, 2, 3, 4, 5, 6, 7, 8]));
    for (body, element, text) in [
        (r#"["2020-01-10", "2020-01-10T06"]"#, 1, "days since"),
        (r#"["2020-02-30"]"#, 0, "2020-02-30"),
        (r#"["2020-01-10", "tomorrow"]"#, 1, "tomorrow"),
    ] {
        let problem = post(&JSON, "", body.as_bytes().to_vec()).await.problem(ProblemType::InvalidElement);
        assert_eq!(problem.members.element, Some(vec![element]), "{body}");
        assert!(problem.detail.contains(text), "{problem:?}");
    }
    post(&JSON, "&decode=none", br#"["2020-01-10"]"#.to_vec()).await.problem(ProblemType::InvalidElement);
    // Arrays without units have no times.
    let other = server.put("/array/g/bytes?select=0", &JSON, r#"["2020-01-04", 1]"#).await;
    other.problem(ProblemType::InvalidElement);
}
