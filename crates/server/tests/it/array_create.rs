//! Creating arrays from their elements, and from declarations that leave out most.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

use crate::common::{
    TestServer,
    npz::{doubles, longs, npy, singles},
};

const NPY: [(&str, &str); 1] = [("content-type", "application/x-npy")];
const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

async fn elements(server: &TestServer, path: &str) -> Value {
    server.get(path, &[]).await.json()
}

#[tokio::test]
async fn npy_files_become_arrays() {
    let server = TestServer::new();
    let file = npy("<f4", &[2, 3], &singles(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]));
    let answer = server.put("/array/lab/exp/a?create&dims=y,x", &NPY, file).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    assert_eq!(
        answer.json(),
        json!({"shape": [2, 3], "chunks_written": 1, "chunks_erased": 0, "conflicts_retried": 0})
    );
    let node = server.get("/node/lab/exp/a", &[]).await;
    assert_eq!(answer.header("etag"), node.header("etag"));
    let document = node.json();
    assert_eq!(document["data_type"], json!("float32"));
    assert_eq!(document["dimension_names"], json!(["y", "x"]));
    assert_eq!(document["chunk_grid"]["configuration"]["chunk_shape"], json!([2, 3]));
    assert_eq!(document["codecs"][1]["name"], json!("zstd"));
    assert_eq!(elements(&server, "/array/lab/exp/a").await, json!([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]));
    // Big-endian, in Fortran order, texts, times and a scalar.
    for (name, descr, shape, bytes, expected) in [
        ("be", ">i2", &[2][..], vec![1, 0, 0, 2], json!([256, 2])),
        ("text", "<U2", &[1], b"a\0\0\0\xe9\0\0\0".to_vec(), json!(["aé"])),
        ("time", "<M8[D]", &[2], longs(&[1, i64::MIN]), json!(["1970-01-02", "NaT"])),
        ("scalar", "<f8", &[], doubles(&[1.5]), json!(1.5)),
        ("empty", "<f8", &[0, 3], vec![], json!([])),
        ("zeros", "|u1", &[3], vec![0; 3], json!([0, 0, 0])),
    ] {
        let answer = server.put(&format!("/array/n/{name}?create"), &NPY, npy(descr, shape, &bytes)).await;
        assert_eq!(answer.status, StatusCode::CREATED, "{name}: {answer:?}");
        assert_eq!(elements(&server, &format!("/array/n/{name}")).await, expected, "{name}");
    }
    let fortran = String::from_utf8_lossy(&npy("<i8", &[2, 2], &[])).replace("False", "True ");
    let head: Vec<u8> =
        fortran.chars().map(|character| if character == '\u{fffd}' { 0x93 } else { character as u8 }).collect();
    let answer = server.put("/array/f?create", &NPY, [head, longs(&[1, 3, 2, 4])].concat()).await;
    assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
    assert_eq!(elements(&server, "/array/f").await, json!([[1, 2], [3, 4]]));
}

#[tokio::test]
async fn other_bodies_need_a_shape_and_a_type() {
    let server = TestServer::new();
    let raw = server.put("/array/raw?create&shape=2,2&dtype=%3Ci8", &[], longs(&[1, 2, 3, 4])).await;
    assert_eq!(raw.status, StatusCode::CREATED, "{raw:?}");
    assert_eq!(elements(&server, "/array/raw").await, json!([[1, 2], [3, 4]]));
    let json = server.put("/array/json?create&shape=3&dtype=string", &JSON, r#"["a", "", "é"]"#).await;
    assert_eq!(json.status, StatusCode::CREATED, "{json:?}");
    assert_eq!(elements(&server, "/array/json").await, json!(["a", "", "é"]));
    let v2 = server.put("/array/two?create&shape=2&dtype=float32&dialect=v2", &JSON, "[1, 2]").await;
    assert_eq!(v2.status, StatusCode::CREATED, "{v2:?}");
    assert!(server.keys().await.contains(&"two/.zarray".to_owned()));
    assert_eq!(elements(&server, "/array/two").await, json!([1.0, 2.0]));
    let before = server.all().await;
    for (query, kind) in [
        ("create", ProblemType::MissingParameter),
        ("create&shape=2", ProblemType::MissingParameter),
        ("create&shape=x&dtype=bool", ProblemType::InvalidParameter),
        ("create&shape=2&dtype=float128", ProblemType::InvalidZom),
        ("create&shape=2&dtype=bool&dims=a,b", ProblemType::InvalidZom),
        ("create&shape=3&dtype=uint8", ProblemType::BodyShapeMismatch),
        ("create&shape=2&dtype=bool", ProblemType::InvalidElement),
        ("create&shape=2&dtype=uint8&select=0", ProblemType::UnknownParameter),
    ] {
        server.put(&format!("/array/x?{query}"), &[], vec![1, 2]).await.problem(kind);
        assert_eq!(server.all().await, before, "{query}");
    }
    server.put("/array/__x?create&shape=1&dtype=uint8", &[], vec![1]).await.problem(ProblemType::InvalidNodeName);
    server.put("/array/x?create", &NPY, "no").await.problem(ProblemType::InvalidBody);
    let pickled = server.put("/array/x?create", &NPY, npy("|O", &[1], b"\x80\x03N.")).await;
    assert!(pickled.problem(ProblemType::InvalidBody).detail.contains("pickled"));
    // An invalid element at the end leaves nothing behind.
    let mut many = vec![1; 5 << 20];
    many.push(2);
    let bools = format!("/array/x?create&shape={}&dtype=bool", many.len());
    server.put(&bools, &[], many).await.problem(ProblemType::InvalidElement);
    assert_eq!(server.all().await, before);
}

#[tokio::test]
async fn existing_nodes_are_kept_or_replaced() {
    let server = TestServer::new();
    let create = async |query: &str, values: &[i64]| {
        server.put(&format!("/array/a?create{query}"), &NPY, npy("<i8", &[values.len() as u64], &longs(values))).await
    };
    assert_eq!(create("", &[1, 2]).await.status, StatusCode::CREATED);
    let before = server.all().await;
    create("", &[1, 2]).await.problem(ProblemType::NodeConflict);
    create("", &[1, 2, 3]).await.problem(ProblemType::NodeConflict);
    assert_eq!(server.all().await, before);
    assert_eq!(create("&overwrite", &[7, 8]).await.status, StatusCode::CREATED);
    assert_eq!(elements(&server, "/array/a").await, json!([7, 8]), "equal metadata, other elements");
    assert_eq!(create("&overwrite", &[0, 0]).await.status, StatusCode::CREATED);
    assert_eq!(elements(&server, "/array/a").await, json!([0, 0]));
    assert_eq!(create("&overwrite", &[1, 2, 3]).await.status, StatusCode::CREATED);
    assert_eq!(elements(&server, "/array/a").await, json!([1, 2, 3]));
    let conditions = [("content-type", "application/x-npy"), ("if-none-match", "*")];
    let answer = server.put("/array/a?create&overwrite", &conditions, npy("<i8", &[1], &longs(&[1]))).await;
    answer.problem(ProblemType::PreconditionFailed);
    server.set("stray/x", b"1").await;
    let stray = server.put("/array/stray?create&shape=1&dtype=uint8", &[], vec![1]).await;
    stray.problem(ProblemType::StrayKeys);
    let below = server.put("/array/a/b?create&shape=1&dtype=uint8", &[], vec![1]).await;
    below.problem(ProblemType::ParentIsArray);
}

#[tokio::test]
async fn large_arrays_are_chunked() {
    let server = TestServer::new();
    let values: Vec<i64> = (0..400_000).collect();
    let answer = server.put("/array/a?create", &NPY, npy("<i8", &[400, 1000], &longs(&values))).await;
    assert_eq!(answer.json()["chunks_written"], json!(4), "{answer:?}");
    let chunks = &server.get("/node/a", &[]).await.json()["chunk_grid"]["configuration"]["chunk_shape"].clone();
    assert_eq!(*chunks, json!([400, 250]));
    assert_eq!(elements(&server, "/array/a?select=399,998:").await, json!([399_998, 399_999]));
}

#[tokio::test]
async fn declarations_need_only_a_shape_and_a_type() {
    let server = TestServer::new();
    let created = server.json(Method::PUT, "/node/a", &json!({"shape": [4, 3], "dtype": "int16"})).await;
    assert_eq!(created.status, StatusCode::CREATED, "{created:?}");
    assert_eq!(created.json()["chunk_grid"]["configuration"]["chunk_shape"], json!([4, 3]));
    assert_eq!(server.put("/array/a?select=0", &JSON, "[1, 2, 3]").await.status, StatusCode::OK);
    assert_eq!(elements(&server, "/array/a?select=:2").await, json!([[1, 2, 3], [0, 0, 0]]));
    let again = server.json(Method::PUT, "/node/a", &json!({"shape": [4, 3], "dtype": "int16"})).await;
    assert_eq!(again.status, StatusCode::OK, "it is equal");
    let wrong = server.json(Method::PUT, "/node/b", &json!({"shape": [4, 3]})).await;
    wrong.problem(ProblemType::InvalidZom);
}
