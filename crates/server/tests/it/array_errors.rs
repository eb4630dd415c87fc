//! Invalid requests for elements and their problem types.

use crate::common::{
    TestResponse, TestServer,
    arrays::{matrix, matrix_server, put, two_layouts, v3, v3_with},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_server::{ArrayOptions, Limits, Settings};
use zarrd_wire::problem::{Problem, ProblemType};

async fn assert_problem(server: &TestServer, path: &str, kind: ProblemType) -> Problem {
    let problem = server.get(path, &[]).await.problem(kind);
    assert_eq!(server.head(path, &[]).await.status, kind.status(), "{path}");
    problem
}

async fn post(server: &TestServer, path: &str, body: impl Into<axum::body::Body>) -> TestResponse {
    server.request(Method::POST, path, &[("content-type", "application/json")], body).await
}

#[tokio::test]
async fn invalid_paths() {
    let server = matrix_server().await;
    for path in ["/array/none", "/array/m/c", "/array/g/old/0", "/array/g/none?dialect=v2", "/array/m?dialect=v2"] {
        let problem = assert_problem(&server, path, ProblemType::NoSuchNode).await;
        assert!(problem.members.path.is_some_and(|path| path.starts_with('/')), "{path}");
    }
    let problem = assert_problem(&server, "/array/g/", ProblemType::NotAnArray).await;
    assert_eq!((problem.status, problem.members.path.as_deref()), (409, Some("/g")));
    for path in ["/array/a/../b", "/array/%2e", "/array/a%00", "/array/a%ff", "/array/%zz", "/array/%2Fm"] {
        assert_problem(&server, path, ProblemType::InvalidPath).await;
    }
    post(&server, "/array//m?read", "{}").await.problem(ProblemType::InvalidPath);
    for method in [Method::DELETE, Method::PATCH] {
        let answer = server.request(method, "/array/m", &[], "").await;
        answer.problem(ProblemType::MethodNotAllowed);
        assert_eq!(answer.header("allow"), "GET, HEAD, PUT, POST, OPTIONS");
    }
}

#[tokio::test]
async fn invalid_queries() {
    let server = matrix_server().await;
    let problem = assert_problem(&server, "/array/m?slect=0", ProblemType::UnknownParameter).await;
    assert_eq!(problem.members.parameter.as_deref(), Some("slect"));
    assert_eq!(problem.members.known.unwrap(), zarrd_wire::query::ELEMENTS_PARAMETERS);
    assert_problem(&server, "/array/m?format=raw&format=raw", ProblemType::DuplicateParameter).await;
    for query in ["format=npz", "dialect=v4", "format=png&min=nan", "format=png&min=2&max=1", "max=1"] {
        assert_problem(&server, &format!("/array/m?{query}"), ProblemType::InvalidParameter).await;
    }
    let answer = server.get("/array/m", &[("accept", "text/html, image/webp")]).await;
    let problem = answer.problem(ProblemType::NotAcceptable);
    assert_eq!(problem.members.known.unwrap().len(), 5);
}

#[tokio::test]
async fn invalid_selections() {
    let server = matrix_server().await;
    for (text, position) in [("0,x", 2), ("1:2:0", 0), ("0 1", 2), ("(1,", 3), ("...,...", 4)] {
        let path = format!("/array/m?select={}", zarrd_wire::routes::encode(text));
        let problem = assert_problem(&server, &path, ProblemType::InvalidSelection).await;
        assert_eq!(problem.members.position, Some(position), "{text}: {}", problem.detail);
        assert_eq!(problem.members.parameter.as_deref(), Some("select"));
    }
    let problem = assert_problem(&server, "/array/m?select=0,0,0", ProblemType::SelectionRankMismatch).await;
    assert_eq!(problem.detail, "selection has 3 items, but the array has 2 dimensions");
    for (select, dimension, index, extent) in
        [("4", 0, 4, 4), ("0,-7", 1, -7, 6), (":,(0,6)", 1, 6, 6), ("99999999999999999999", 0, i64::MAX, 4)]
    {
        let problem =
            assert_problem(&server, &format!("/array/m?select={select}"), ProblemType::IndexOutOfBounds).await;
        let members = problem.members;
        assert_eq!((members.dimension, members.index, members.extent), (Some(dimension), Some(index), Some(extent)));
    }
}

#[tokio::test]
async fn invalid_bodies() {
    let server = matrix_server().await;
    let invalid =
        async |body: &str| post(&server, "/array/m?read", body.to_owned()).await.problem(ProblemType::InvalidSelection);
    for (body, pointer) in [
        ("", ""),
        ("{}", ""),
        (r#"{"select": 5}"#, "/select"),
        (r#"{"points": [[0, 1], [0, "x"]]}"#, "/points/1/1"),
        (r#"{"stack": []}"#, "/stack"),
    ] {
        assert_eq!(invalid(body).await.members.pointer.as_deref(), Some(pointer), "{body}");
    }
    let problem = invalid(r#"{"stack": ["0", "0,x"]}"#).await;
    assert_eq!((problem.members.pointer.as_deref(), problem.members.position), (Some("/stack/1"), Some(2)));
    let answer = post(&server, "/array/m?read", r#"{"points": [[0, 0], [1, 6]]}"#).await;
    let members = answer.problem(ProblemType::IndexOutOfBounds).members;
    assert_eq!((members.dimension, members.index, members.extent), (Some(1), Some(6), Some(6)));
    post(&server, "/array/m?read", r#"{"stack": ["0", "0:2"]}"#).await.problem(ProblemType::InvalidSelection);

    let problem = post(&server, "/array/m", "{}").await.problem(ProblemType::MissingParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("read"));
    post(&server, "/array/m?read&select=0", "{}").await.problem(ProblemType::UnknownParameter);
    for headers in [&[][..], &[("content-type", "text/plain")]] {
        let answer = server.request(Method::POST, "/array/m?read", headers, "{}").await;
        assert_eq!(answer.problem(ProblemType::UnsupportedMediaType).members.known.unwrap(), ["application/json"]);
    }
    let coded = [("content-type", "application/json; charset=utf-8"), ("content-encoding", "gzip")];
    server.request(Method::POST, "/array/m?read", &coded, "{}").await.problem(ProblemType::UnsupportedContentEncoding);
}

#[tokio::test]
async fn oversized_bodies() {
    let limits = Limits { read_request: 100_000, ..Limits::default() };
    let server = TestServer::with(Settings { limits, ..Settings::default() });
    matrix(&server).await;
    let body = format!("{{\"select\": \"0,0\"{}}}", " ".repeat(99_983));
    assert_eq!((body.len(), post(&server, "/array/m?read", body.clone()).await.status), (100_000, StatusCode::OK));
    let pieces = |body: String| axum::body::Body::from_stream(futures::stream::iter([Ok::<_, std::io::Error>(body)]));
    assert_eq!(post(&server, "/array/m?read", pieces(body.clone())).await.status, StatusCode::OK);
    let longer = format!("{body} ");
    for body in [longer.clone().into(), pieces(longer)] {
        let problem = post(&server, "/array/m?read", body).await.problem(ProblemType::BodyTooLarge);
        assert_eq!(problem.members.limit, Some(100_000));
    }
}

#[tokio::test]
async fn unsupported_formats_name_alternatives() {
    let server = matrix_server().await;
    v3(&server, "cube", json!("uint8"), &[2, 2, 2], &[2, 2, 2], json!(0)).await;
    v3_with(&server, "s", json!("string"), &[2, 2], &[2, 2], json!(""), json!([{"name": "vlen-utf8"}])).await;
    v3_with(&server, "b", json!("bytes"), &[2], &[2], json!(""), json!([{"name": "vlen-bytes"}])).await;
    for (path, known) in [
        ("/array/cube?format=csv", &["json", "raw", "npy", "xarray"][..]),
        ("/array/cube?format=png", &["json", "raw", "npy", "xarray"]),
        ("/array/s?format=png", &["json", "raw", "npy", "csv", "xarray"]),
        ("/array/b?format=npy", &["json", "raw", "csv", "xarray"]),
        ("/array/m?select=0&format=png", &["json", "raw", "npy", "csv", "xarray"]),
        ("/array/m?select=1:1&format=png", &["json", "raw", "npy", "csv", "xarray"]),
    ] {
        let problem = assert_problem(&server, path, ProblemType::UnsuitableFormat).await;
        assert_eq!(problem.members.known.unwrap(), known, "{path}: {}", problem.detail);
    }
    put(&server, "s/c/0/0", b"\x04\0\0\0\x02\0\0\0a\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()).await;
    let answer = server.get("/array/s?format=npy", &[]).await;
    assert_eq!(answer.problem(ProblemType::UnsuitableFormat).members.known.unwrap(), ["json", "raw", "csv", "xarray"]);
}

#[tokio::test]
async fn limits_suggest_smaller_selections() {
    let limits = Limits { selection: 64, text_selection: 32, ..Limits::default() };
    let arrays = ArrayOptions { max_chunks: 2, ..ArrayOptions::default() };
    let server = TestServer::with(Settings { limits, arrays, ..Settings::default() });
    matrix(&server).await;
    for (query, size, limit, smaller) in
        [("", 96, 32, "0:1,0:6"), ("format=raw", 96, 64, "0:2,0:6"), ("select=1:,::-1&format=csv", 72, 32, "1:2,5::-1")]
    {
        let problem = assert_problem(&server, &format!("/array/m?{query}"), ProblemType::SelectionTooLarge).await;
        assert_eq!((problem.members.size, problem.members.limit), (Some(size), Some(limit)), "{query}");
        let format = if query.contains("raw") { "raw" } else { "json" };
        let text = problem.members.smaller.unwrap();
        let fits =
            server.get(&format!("/array/m?select={}&format={format}", zarrd_wire::routes::encode(&text)), &[]).await;
        assert_eq!((fits.status, text.as_str()), (StatusCode::OK, smaller), "{query}");
    }
    let problem = assert_problem(&server, "/array/m?select=1:3,2:4", ProblemType::TooManyChunks).await;
    assert_eq!((problem.members.chunks, problem.members.limit), (Some(4), Some(2)));

    // Few bytes in memory, but a long text.
    v3(&server, "wide", json!("uint8"), &[1 << 40, 0], &[1, 1], json!(0)).await;
    let problem = assert_problem(&server, "/array/wide", ProblemType::SelectionTooLarge).await;
    assert_eq!(problem.members.limit, Some(32));
    assert_eq!(server.get("/array/wide?format=raw", &[]).await.body.len(), 0);
    v3_with(&server, "s", json!("string"), &[3], &[3], json!(""), json!([{"name": "vlen-utf8"}])).await;
    let problem = assert_problem(&server, "/array/s?format=npy", ProblemType::SelectionTooLarge).await;
    assert_eq!((problem.members.size, problem.members.limit), (Some(48), Some(32)));
    put(&server, "s/c/0", [&b"\x03\0\0\0\x0a\0\0\0"[..], &[b'x'; 10], &[0; 8]].concat()).await;
    let two = server.get("/array/s?format=npy&select=:2", &[]).await.problem(ProblemType::SelectionTooLarge);
    assert_eq!((two.members.size, two.members.limit), (Some(80), Some(32)), "{}", two.detail);
}

/// A selection too large as text is answered with a smaller one that fits.
#[tokio::test]
async fn suggested_selection_fits_as_text() {
    let limits = Limits { selection: 1 << 20, text_selection: 64, ..Limits::default() };
    let server = TestServer::with(Settings { limits, ..Settings::default() });
    v3(&server, "a", json!("uint8"), &[10, 60], &[10, 60], json!(255)).await;
    v3_with(&server, "s", json!("string"), &[9], &[9], json!("ab"), json!([{"name": "vlen-utf8"}])).await;
    for (path, query) in [
        ("a", "select=5"),
        ("a", ""),
        ("a", "select=2:,::-1"),
        ("a", "format=csv"),
        ("a", "format=png"),
        ("s", ""),
        ("s", "format=npy"),
        ("s", "format=csv&select=::-1"),
    ] {
        let problem = assert_problem(&server, &format!("/array/{path}?{query}"), ProblemType::SelectionTooLarge).await;
        assert!(problem.detail.contains("--max-text-selection"), "{}", problem.detail);
        let smaller = problem.members.smaller.unwrap_or_else(|| panic!("{path}?{query}: nothing smaller"));
        let format = query.split('&').find(|part| part.starts_with("format=")).unwrap_or_default();
        let path = format!("/array/{path}?select={}&{format}", zarrd_wire::routes::encode(&smaller));
        let fits = server.get(path.trim_end_matches('&'), &[]).await;
        assert_eq!(fits.status, StatusCode::OK, "{path}: {}", fits.text());
    }
    // A selection of points has no leading part.
    let points: Vec<_> = (0..80).map(|number| [number % 10, number % 60]).collect();
    let answer = post(&server, "/array/a?read", json!({"points": points}).to_string()).await;
    assert_eq!(answer.problem(ProblemType::SelectionTooLarge).members.smaller, None);
}

#[tokio::test]
async fn undecodable_chunks_are_reported() {
    let server = matrix_server().await;
    for junk in [&b"junk"[..], &[0; 25]] {
        put(&server, "m/c/0/1", junk.to_vec()).await;
        for query in ["", "format=raw", "format=png", "format=npy&select=0", "select=(0,1)"] {
            let answer = server.get(&format!("/array/m?{query}"), &[]).await;
            let problem = answer.problem(ProblemType::UndecodableChunk);
            assert_eq!(problem.members.key.as_deref(), Some("m/c/0/1"), "{query}");
            assert_eq!(problem.members.codec.as_deref(), Some("bytes"), "{query}");
        }
        assert_eq!(server.get("/array/m?select=:,:3", &[]).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn unsupported_nodes_are_reported() {
    let server = TestServer::new();
    let bytes = json!([{"name": "bytes"}]);
    let codec = json!([{"name": "bytes"}, {"name": "example.squeeze"}]);
    v3_with(&server, "codec", json!("uint8"), &[1], &[1], json!(0), codec).await;
    v3_with(&server, "type", json!("float7_future"), &[1], &[1], json!(0), bytes.clone()).await;
    v3_with(&server, "extension", json!("uint8"), &[1], &[1], json!(0), bytes.clone()).await;
    let text = server.value("extension/zarr.json").await.unwrap();
    let mut document: Value = serde_json::from_slice(&text).unwrap();
    document["example.future"] = json!({"must_understand": true});
    put(&server, "extension/zarr.json", document.to_string().into_bytes()).await;
    for (path, named) in [("codec", "example.squeeze"), ("type", "float7_future"), ("extension", "example.future")] {
        let problem = assert_problem(&server, &format!("/array/{path}"), ProblemType::UnsupportedNode).await;
        let unsupported = problem.members.unsupported.unwrap();
        assert!(problem.status == 501 && unsupported.contains(named), "{unsupported}");
    }
    v3_with(&server, "fill", json!("uint8"), &[1], &[1], json!(256), bytes.clone()).await;
    v3_with(
        &server,
        "order",
        json!("uint8"),
        &[1],
        &[1],
        json!(0),
        json!([{"name": "gzip", "configuration": {"level": 1}}]),
    )
    .await;
    put(&server, "old/.zarray", b"{\"zarr_format\": 2".to_vec()).await;
    for path in ["fill", "order", "old"] {
        let problem = assert_problem(&server, &format!("/array/{path}"), ProblemType::InvalidMetadata).await;
        assert!(problem.status == 422 && !problem.detail.is_empty(), "{path}");
        assert!(problem.members.key.is_some() || problem.members.path.is_some(), "{path}");
    }
}

#[tokio::test]
async fn documents_of_two_layouts_are_a_conflict_and_other_differences_a_header() {
    let server = matrix_server().await;
    let [of_v2, of_v3] = two_layouts();
    put(&server, "two/.zarray", of_v2).await;
    put(&server, "two/zarr.json", of_v3).await;
    let refused = [
        server.get("/array/two", &[]).await,
        server.json(Method::PUT, "/array/two", &json!(7)).await,
        server.json(Method::PUT, "/array/two?dialect=v2", &json!(7)).await,
        post(&server, "/array/two?append=0", "[7]").await,
        server.json(Method::PATCH, "/node/two", &json!({"shape": [1]})).await,
    ];
    for answer in refused {
        let problem = answer.problem(ProblemType::DialectsDiffer);
        let mut keys = problem.members.keys.clone();
        keys.sort();
        assert_eq!(keys, ["two/.zarray", "two/zarr.json"]);
        assert_eq!(problem.members.relation.as_deref(), Some("layout"));
        assert!(problem.detail.contains("DELETE /store/two/zarr.json"), "{}", problem.detail);
        assert!(problem.detail.contains("PUT /node/two?overwrite"), "{}", problem.detail);
    }
    for path in ["/array/two?dialect=v2", "/array/two?dialect=v3", "/node/two"] {
        let answer = server.get(path, &[]).await;
        assert_eq!((answer.status, answer.header("zarr-dialects-differ")), (StatusCode::OK, "layout"), "{path}");
    }
    // The documents agree but for the shape, which is adopted.
    let of_v2 = json!({"zarr_format": 2, "shape": [6], "chunks": [2], "dtype": "|u1", "fill_value": 0, "order": "C",
        "filters": null, "compressor": null});
    put(&server, "two/.zarray", of_v2.to_string().into_bytes()).await;
    for answer in [
        server.get("/array/two", &[]).await,
        server.get("/array/two?chunks", &[]).await,
        server.get("/array/two?stats", &[]).await,
        server.json(Method::PUT, "/array/two?select=0", &json!(0)).await,
    ] {
        assert_eq!((answer.status, answer.header("zarr-dialects-differ")), (StatusCode::OK, "shape"), "{answer:?}");
    }
    // The write made the shapes equal.
    let appended = post(&server, "/array/two?append=0", "[7]").await;
    assert_eq!((appended.status, appended.header("zarr-dialects-differ")), (StatusCode::OK, ""));
    let answer = server.get("/array/two", &[]).await;
    assert_eq!((answer.header("zarr-dialects-differ"), answer.json()), ("", json!([0, 0, 0, 0, 0, 0, 7])));
}
