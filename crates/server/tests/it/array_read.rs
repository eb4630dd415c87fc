//! Reading elements: formats, headers, conditions, codings.

use std::io::Read;

use crate::common::{
    RunningServer, TestServer,
    arrays::{floats, matrix, matrix_server, put, v3, v3_with},
};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use zarrd_wire::problem::ProblemType;

const ZSTD: (&str, &str) = ("accept-encoding", "zstd");
const JSON_BODY: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn json_is_the_default_format() {
    let server = matrix_server().await;
    for (path, elements) in [
        (
            "/array/m",
            json!([
                [0.0, 1.0, 2.0, 3.0, 4.0, 5.0],
                [6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
                [12.0, 13.0, 14.0, 15.0, 16.0, 17.0],
                [18.0, 19.0, 20.0, 21.0, 22.0, 23.0]
            ]),
        ),
        ("/array/m/?select=1", json!([6.0, 7.0, 8.0, 9.0, 10.0, 11.0])),
        ("/array/m?select=-1,-1", json!(23.0)),
        ("/array/m?select=::-2,1:5:3", json!([[19.0, 22.0], [7.0, 10.0]])),
        ("/array/m?select=(3,0),[5,5]", json!([[23.0, 23.0], [5.0, 5.0]])),
        ("/array/m?select=1:1", json!([])),
        ("/array/m?select=...,2:2", json!([[], [], [], []])),
        ("/array//g//old", json!([5, 6, 7])),
        ("/array/g%2Fold?select=1:&dialect=v2", json!([6, 7])),
    ] {
        let got = server.get(path, &[]).await;
        assert_eq!((got.status, got.json()), (StatusCode::OK, elements), "{path}");
        assert_eq!(got.header("content-type"), "application/json");
        assert_eq!(got.header("content-length"), got.body.len().to_string(), "small answers are one buffer");
    }
}

#[tokio::test]
async fn headers_describe_the_elements() {
    let server = matrix_server().await;
    let got = server.get("/array/m?select=1:3&format=raw", &[("origin", "https://viewer.example")]).await;
    assert_eq!(got.body, floats(18)[24..]);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-length", "48"),
        ("zarr-data-type", "float32"),
        ("zarr-shape", "2,6"),
        ("zarr-dimension-names", r#"["y",null]"#),
        ("zarr-dialect", "v3"),
        // Two rows of four chunks of six float32.
        ("zarr-read", "chunks=4, stored=4, bytes=96"),
        ("vary", "accept, accept-encoding"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(got.header(name), value, "{name}");
    }
    assert!(got.header("server-timing").starts_with("plan;dur="), "{}", got.header("server-timing"));
    let exposed = got.header("access-control-expose-headers");
    for name in ["zarr-data-type", "zarr-shape", "zarr-dimension-names", "zarr-dialect", "zarr-read", "server-timing"] {
        assert!(exposed.split(", ").any(|exposed| exposed == name), "{name} in {exposed}");
    }
    let old = server.get("/array/g/old?select=1&format=raw", &[]).await;
    assert_eq!(old.body, &[6, 0][..], "little-endian, whatever is stored");
    assert_eq!((old.header("zarr-shape"), old.header("zarr-dialect")), ("", "v2"));
    assert!(!old.headers.contains_key("zarr-dimension-names"));
}

#[tokio::test]
async fn each_format_encodes_elements() {
    let server = matrix_server().await;
    for (format, accept, kind, body) in [
        ("raw", "application/octet-stream", "application/octet-stream", floats(2)),
        ("csv", "text/csv", "text/csv; charset=utf-8; header=absent", b"0.0\r\n1.0\r\n".to_vec()),
        ("json", "application/json", "application/json", b"[0.0,1.0]".to_vec()),
    ] {
        let asked = server.get(&format!("/array/m?select=0,:2&format={format}"), &[("accept", "text/html")]).await;
        assert_eq!((asked.status, asked.header("content-type"), &asked.body[..]), (StatusCode::OK, kind, &body[..]));
        let accepted = server.get("/array/m?select=0,:2", &[("accept", accept)]).await;
        assert_eq!((accepted.header("content-type"), &accepted.body[..]), (kind, &body[..]));
        assert_eq!(accepted.header("etag"), asked.header("etag"));
    }
    let npy = server.get("/array/m?select=0,:2", &[("accept", "application/x-npy, */*;q=0.1")]).await;
    assert_eq!((npy.header("content-type"), npy.header("content-length")), ("application/x-npy", "136"));
    assert!(
        npy.body.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }")
    );
    assert_eq!(npy.body[128..], floats(2)[..]);
    let rows = server.get("/array/m?select=:2,::5&format=csv", &[]).await;
    assert_eq!(rows.text(), "0.0,5.0\r\n6.0,11.0\r\n");
}

pub(crate) fn pixels(file: &[u8]) -> (u32, u32, Vec<u8>) {
    let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    (info.height, info.width, samples)
}

#[tokio::test]
async fn png_scales_values() {
    let server = matrix_server().await;
    let own = server.get("/array/m?select=0:2,0:2", &[("accept", "image/avif,image/*,*/*;q=0.8"), ZSTD]).await;
    assert_eq!(own.header("content-type"), "image/png");
    assert!(!own.headers.contains_key("content-encoding"), "an image is compressed already");
    assert_eq!(pixels(&own.body), (2, 2, vec![0, 36, 219, 255]));
    let given = server.get("/array/m?select=0:2,0:2&format=png&min=0.5&max=6.5", &[]).await;
    assert_eq!(pixels(&given.body), (2, 2, vec![0, 21, 234, 255]));
    assert_ne!(own.header("etag"), given.header("etag"));
    assert_eq!(given.header("content-length"), given.body.len().to_string());
    let problem = server.get("/array/m?min=1", &[]).await.problem(ProblemType::InvalidParameter);
    assert_eq!(problem.members.parameter.as_deref(), Some("min"));
}

#[tokio::test]
async fn png_has_the_colors_of_its_thresholds() {
    let server = matrix_server().await;
    let select =
        "select=0:2,0:2&cmap=viridis&scale=symlog&linthresh=2&limits=robust&max=6.5&under=010203&over=ff00ff80";
    let colors = server.get(&format!("/array/m?{select}&thresholds"), &[("accept", "image/png")]).await;
    assert_eq!((colors.status, colors.header("content-type")), (StatusCode::OK, "application/json"));
    let described = colors.json();
    assert_eq!(
        json!([described["cmap"], described["scale"], described["linthresh"], described["limits"], described["max"]]),
        json!(["viridis", "symlog", 2.0, "robust", 6.5])
    );
    // 0, 1, 6 and 7, of which 2% are 0.06.
    assert_eq!(
        (&described["min"], &described["under"], &described["over"]),
        (&json!(0.06), &json!("010203"), &json!("ff00ff80"))
    );
    let level = |value: f64| {
        let thresholds = described["thresholds"].as_array().unwrap();
        let at = thresholds.iter().rposition(|threshold| threshold.as_f64().unwrap() <= value).unwrap();
        described["colors"][at].as_str().unwrap().to_owned()
    };
    let file = server.get(&format!("/array/m?{select}"), &[("accept", "image/png")]).await;
    let mut decoder = png::Decoder::new(std::io::Cursor::new(&file.body[..]));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    reader.next_frame(&mut samples).unwrap();
    let pixels: Vec<_> = samples.chunks(4).map(|pixel| u32::from_be_bytes(pixel.try_into().unwrap())).collect();
    let expected = ["010203ff".to_owned(), level(1.0) + "ff", level(6.0) + "ff", "ff00ff80".to_owned()];
    assert_eq!(pixels.iter().map(|pixel| format!("{pixel:08x}")).collect::<Vec<_>>(), expected);
    assert_ne!(file.header("etag"), colors.header("etag"));
    let line = server.get("/array/m?select=0&thresholds&format=json&min=1&max=2", &[]).await.json();
    assert_eq!((&line["min"], &line["nan"]), (&json!(1.0), &json!("00000000")), "of any number of dimensions");
    for (query, parameter) in
        [("cmap=grey", "cmap"), ("format=raw&thresholds", "thresholds"), ("format=csv&nan=ffffff", "nan")]
    {
        let problem = server.get(&format!("/array/m?{query}"), &[]).await.problem(ProblemType::InvalidParameter);
        assert_eq!(problem.members.parameter.as_deref(), Some(parameter), "{query}");
    }
}

#[tokio::test]
async fn png_shows_channels_as_they_are() {
    let server = TestServer::new();
    v3(&server, "rgb", json!("uint8"), &[1, 2, 3], &[1, 2, 3], json!(0)).await;
    put(&server, "rgb/c/0/0/0", vec![1, 2, 3, 250, 251, 252]).await;
    let file = server.get("/array/rgb?format=png&rgb", &[]).await;
    assert_eq!(pixels(&file.body), (1, 2, vec![1, 2, 3, 250, 251, 252]));
    server.get("/array/rgb?format=png", &[]).await.problem(ProblemType::UnsuitableFormat);
    server.get("/array/rgb?select=:,:,:2&format=png&rgb", &[]).await.problem(ProblemType::UnsuitableFormat);
}

#[tokio::test]
async fn strings_in_each_format() {
    let server = TestServer::new();
    v3_with(&server, "s", json!("string"), &[3], &[3], json!(""), json!([{"name": "vlen-utf8"}])).await;
    put(&server, "s/c/0", b"\x03\0\0\0\x01\0\0\0a\x03\0\0\0b,\"\0\0\0\0".to_vec()).await;
    assert_eq!(server.get("/array/s", &[]).await.json(), json!(["a", "b,\"", ""]));
    assert_eq!(server.get("/array/s?format=csv", &[]).await.text(), "a\r\n\"b,\"\"\"\r\n\"\"\r\n");
    let raw = server.get("/array/s?format=raw&select=1:", &[]).await;
    assert_eq!(raw.body, &b"\x02\0\0\0\x03\0\0\0b,\"\0\0\0\0"[..]);
    let npy = server.get("/array/s?format=npy", &[]).await;
    assert!(
        npy.body.starts_with(b"\x93NUMPY\x01\x00\x76\x00{'descr': '<U3', 'fortran_order': False, 'shape': (3,), }")
    );
    assert_eq!(npy.body.len(), 128 + 3 * 12);
    assert_eq!(npy.header("content-length"), "164");
    assert!(!server.head("/array/s?format=npy", &[]).await.headers.contains_key("content-length"));
}

#[tokio::test]
async fn head_decodes_nothing() {
    let server = matrix_server().await;
    for query in ["select=1&format=raw", "select=1:3&format=npy", "format=raw"] {
        let path = format!("/array/m?{query}");
        let (head, get) = (server.head(&path, &[]).await, server.get(&path, &[]).await);
        assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
        assert_eq!(head.header("content-length"), get.body.len().to_string(), "{query}");
        for name in ["content-type", "etag", "vary", "zarr-shape", "zarr-data-type", "zarr-dialect"] {
            assert_eq!(head.header(name), get.header(name), "{query} {name}");
        }
    }
    let json = server.head("/array/m", &[]).await;
    assert!(!json.headers.contains_key("content-length"), "its length is not known");
    put(&server, "m/c/0/0", b"junk".to_vec()).await;
    assert_eq!(server.head("/array/m", &[]).await.status, StatusCode::OK);
    assert_eq!(server.get("/array/m", &[]).await.status, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(server.head("/array/none", &[]).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn etag_depends_on_elements_and_format() {
    let server = matrix_server().await;
    let tag = async |path: &str, headers: &[(&str, &str)]| {
        let got = server.get(path, headers).await;
        assert_eq!(got.status, StatusCode::OK, "{path}");
        let tag = got.header("etag").to_owned();
        assert!(zarrd_wire::etag::parse(&tag).is_some(), "{tag}");
        tag
    };
    let first = tag("/array/m?select=0", &[]).await;
    assert_eq!(first, tag("/array/m?select=%200%20,%20:", &[]).await, "another text of the same selection");
    for other in ["/array/m?select=1", "/array/m?select=0&format=raw", "/array/m"] {
        assert_ne!(first, tag(other, &[]).await, "{other}");
    }
    assert_ne!(first, tag("/array/m?select=0", &[ZSTD]).await);

    let known = server.get("/array/m?select=0", &[("if-none-match", &first)]).await;
    assert_eq!((known.status, known.body.len(), known.header("etag")), (StatusCode::NOT_MODIFIED, 0, first.as_str()));
    assert_eq!(known.header("vary"), "accept, accept-encoding");
    assert_eq!(server.head("/array/m?select=0", &[("if-none-match", "*")]).await.status, StatusCode::NOT_MODIFIED);
    assert_eq!(server.get("/array/m?select=0", &[("if-match", &first)]).await.status, StatusCode::OK);
    let failed = server.get("/array/m?select=0", &[("if-match", "\"other\"")]).await;
    assert_eq!(failed.problem(ProblemType::PreconditionFailed).members.current.as_deref(), Some(first.as_str()));
    server.get("/array/m", &[("if-match", "other")]).await.problem(ProblemType::InvalidHeader);

    // A change of an unrelated chunk keeps the tag; a change of a selected chunk changes it, even to an undecodable
    // one.
    put(&server, "m/c/1/0", vec![0; 24]).await;
    assert_eq!(first, tag("/array/m?select=0", &[]).await);
    put(&server, "m/c/0/0", b"junk".to_vec()).await;
    let changed = server.get("/array/m?select=0", &[("if-none-match", &first)]).await;
    changed.problem(ProblemType::UndecodableChunk);
    matrix(&server).await;
    assert_ne!(first, tag("/array/m?select=0", &[]).await);
}

/// A server with `long`: 100,000 bytes of value 7, more than one buffer.
async fn long_array() -> TestServer {
    let server = TestServer::new();
    v3(&server, "long", json!("uint8"), &[100_000], &[30_000], json!(7)).await;
    put(&server, "long/c/1", vec![8; 30_000]).await;
    server
}

#[tokio::test]
async fn large_responses_are_compressed() {
    let server = long_array().await;
    let plain = server.get("/array/long?format=raw", &[]).await;
    assert_eq!((plain.body.len(), plain.header("content-length")), (100_000, "100000"));
    for path in ["/array/long?format=raw", "/array/long?format=npy", "/array/long", "/array/long?select=:2000"] {
        let plain = server.get(path, &[]).await;
        let zstd = server.get(path, &[ZSTD]).await;
        assert_eq!(zstd.header("content-encoding"), "zstd", "{path}");
        assert!(zstd.body.len() < plain.body.len() / 10);
        assert_eq!(zstd::stream::decode_all(&zstd.body[..]).unwrap(), plain.body);
        let gzip = server.get(path, &[("accept-encoding", "gzip, deflate")]).await;
        assert_eq!(gzip.header("content-encoding"), "gzip", "{path}");
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut back).unwrap();
        assert_eq!(back, plain.body);
    }
    let small = server.get("/array/long?select=:200&format=raw", &[ZSTD]).await;
    assert!(!small.headers.contains_key("content-encoding"));
    assert_eq!(small.header("content-length"), "200");
    let (coded, identity) =
        (server.head("/array/long?format=raw", &[ZSTD]).await, server.head("/array/long?format=raw", &[]).await);
    assert_eq!((coded.header("content-encoding"), coded.header("content-length")), ("zstd", ""));
    assert_eq!((identity.header("content-encoding"), identity.header("content-length")), ("", "100000"));
}

#[tokio::test]
async fn long_text_is_streamed() {
    let server = long_array().await;
    let got = server.get("/array/long", &[]).await;
    assert!(!got.headers.contains_key("content-length"));
    let elements: Vec<u8> = serde_json::from_slice(&got.body).unwrap();
    assert_eq!(elements.len(), 100_000);
    assert_eq!((elements[29_999], elements[30_000], elements[60_000]), (7, 8, 7));
    let lines = server.get("/array/long?format=csv", &[]).await;
    assert_eq!(lines.text().lines().count(), 100_000);
}

#[tokio::test]
async fn post_selects_by_body() {
    let server = matrix_server().await;
    let post = async |query: &str, body: Value| {
        server.request(Method::POST, &format!("/array/m?{query}"), &[JSON_BODY], body.to_string()).await
    };
    for (body, shape, elements) in [
        (json!({"select": [[0, 3], {"start": 4}]}), "2,2", json!([[4.0, 5.0], [22.0, 23.0]])),
        (json!({"points": [[0, 1], [-1, -1], [0, 1]]}), "3", json!([1.0, 23.0, 1.0])),
        (json!({"stack": ["0,:2", "3,4:"]}), "2,2", json!([[0.0, 1.0], [22.0, 23.0]])),
        (json!({"points": []}), "0", json!([])),
    ] {
        let got = post("read", body.clone()).await;
        assert_eq!((got.status, got.json()), (StatusCode::OK, elements), "{body}");
        assert_eq!(got.header("zarr-shape"), shape);
        let raw = post("read&format=raw", body).await;
        assert_eq!(raw.body.len() as u64, 4 * zarrd_wire::array::parse_shape(shape).unwrap().iter().product::<u64>());
    }
    let many: Vec<_> = (0..20_000).map(|at| json!([at % 4, at % 6])).collect();
    let got = post("read", json!({"points": many})).await;
    assert_eq!(got.json().as_array().map(Vec::len), Some(20_000));
    let tag = got.header("etag").to_owned();
    let known = [JSON_BODY, ("if-none-match", tag.as_str())];
    let body = json!({"points": many}).to_string();
    let again = server.request(Method::POST, "/array/m?read", &known, body).await;
    again.problem(ProblemType::PreconditionFailed);
}

#[tokio::test]
async fn pages_of_any_origin_may_read_by_post() {
    let settings = zarrd_server::Settings {
        access: zarrd_server::AccessPolicy::anonymous(zarrd_server::Right::Read),
        ..zarrd_server::Settings::default()
    };
    let server = TestServer::with(settings);
    matrix(&server).await;
    let headers = [JSON_BODY, ("origin", "https://other.example")];
    let got = server.request(Method::POST, "/array/m?read", &headers, r#"{"select": "0,0"}"#).await;
    assert_eq!((got.status, got.json()), (StatusCode::OK, json!(0.0)));
    assert_eq!(got.header("access-control-allow-origin"), "*");
    let asked = [("origin", "https://other.example"), ("access-control-request-method", "POST")];
    let preflight = server.request(Method::OPTIONS, "/array/m?read", &asked, "").await;
    assert_eq!(preflight.header("access-control-allow-methods"), "GET, HEAD, POST, OPTIONS");
    assert!(preflight.header("access-control-allow-headers").contains("content-type"));
}

#[tokio::test]
async fn root_array_is_read() {
    let server = TestServer::new();
    v3(&server, "sub", json!("uint8"), &[2], &[2], json!(1)).await;
    let document = server.value("sub/zarr.json").await.unwrap();
    put(&server, "zarr.json", document.to_vec()).await;
    for root in ["/array", "/array/", "/array//"] {
        assert_eq!(server.get(root, &[]).await.json(), json!([1, 1]), "{root}");
    }
}

#[tokio::test]
async fn head_without_length_keeps_the_connection() {
    let running = RunningServer::start(zarrd_server::Settings::default()).await;
    let server = TestServer { router: axum::Router::new(), store: running.store.clone() };
    matrix(&server).await;
    let mut raw = running.connect().await;
    raw.send("HEAD /array/m HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let head = raw.until("\r\n\r\n").await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("\r\ncontent-length"), "{head}");
    raw.send("GET /array/m?select=0,:2 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await;
    let answer = raw.rest().await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\n[0.0,1.0]"), "{answer}");
}

#[tokio::test]
async fn late_failure_aborts_the_response() {
    let running = RunningServer::start(with_small_slabs()).await;
    let server = TestServer { router: axum::Router::new(), store: running.store.clone() };
    v3(&server, "tall", json!("uint8"), &[64, 16_384], &[1, 16_384], json!(7)).await;
    put(&server, "tall/c/60/0", b"junk".to_vec()).await;
    for format in ["raw", "json"] {
        let request =
            format!("GET /array/tall?format={format} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let answer = running.exchange(&request).await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        match format {
            "raw" => assert!(head.contains("content-length: 1048576") && body.len() < 1_048_576, "{}", body.len()),
            _ => assert!(head.contains("chunked") && !body.ends_with("0\r\n\r\n")),
        }
    }
}

/// Settings under which responses of more than 128 KiB take several slabs.
fn with_small_slabs() -> zarrd_server::Settings {
    let arrays = zarrd_server::ArrayOptions { slab_memory: 1 << 18, ..zarrd_server::ArrayOptions::default() };
    zarrd_server::Settings { arrays, ..zarrd_server::Settings::default() }
}

#[tokio::test]
async fn decoded_chunks_are_counted() {
    let server = matrix_server().await;
    server.get("/array/m", &[]).await;
    server.get("/array/m", &[]).await;
    let metrics = server.get("/metrics", &[]).await;
    let count = |name: &str| {
        let line = metrics.text().lines().find(|line| line.starts_with(name)).unwrap();
        line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(count("zarrd_array_chunks_decoded_total") + count("zarrd_array_chunks_cached_total"), 8);
}

#[tokio::test]
async fn responses_have_file_names() {
    let server = matrix_server().await;
    for (path, name) in [
        ("/array/m?format=npy", "attachment; filename=\"m.npy\""),
        ("/array/m?format=raw&select=0", "attachment; filename=\"m.raw\""),
        ("/array/m", "inline; filename=\"m.json\""),
        ("/array/g/old?format=csv", "inline; filename=\"old.csv\""),
        ("/array/m?format=png", "inline; filename=\"m.png\""),
    ] {
        assert_eq!(server.get(path, &[]).await.header("content-disposition"), name, "{path}");
        assert_eq!(server.head(path, &[]).await.header("content-disposition"), name, "{path}");
    }
    v3(&server, "o\";\\%é", json!("uint8"), &[1], &[1], json!(0)).await;
    let odd = server.get("/array/o%22;%5C%25%C3%A9?format=raw", &[]).await;
    assert_eq!(
        odd.header("content-disposition"),
        "attachment; filename=\"o_;___.raw\"; filename*=UTF-8''o%22%3B%5C%25%C3%A9.raw"
    );
    server.get("/array/none", &[]).await.problem(ProblemType::NoSuchNode);
}

#[tokio::test]
async fn plus_in_query_is_a_space() {
    let server = matrix_server().await;
    let spaced = server.get("/array/m?select=1,+%3A2&format=json", &[]).await;
    assert_eq!(spaced.json(), json!([6.0, 7.0]));
    assert_eq!(server.get("/array/m?select=%2B1,0", &[]).await.json(), json!(6.0), "an index with its sign");
    for twice in ["/array/m?select=%252B1", "/array/m?select=%2531", "/array/m?select=1%2B,0"] {
        server.get(twice, &[]).await.problem(ProblemType::InvalidSelection);
    }
    let twice = server.get("/array/m?format=j%2573on", &[]).await;
    assert_eq!(twice.problem(ProblemType::InvalidParameter).members.parameter.as_deref(), Some("format"));
    let known = server.get("/array/m?select%2B=1", &[]).await.problem(ProblemType::UnknownParameter).members.known;
    assert!(known.unwrap().contains(&"select".to_owned()));
    server.set("a+b/c", b"1").await;
    assert_eq!(server.get("/store/a+b/c", &[]).await.status, StatusCode::OK, "a plus in a path is itself");
    let nonsense = server.get("/array/m", &[("accept", "???, ,;;=,/,q=1")]).await;
    assert!(nonsense.problem(ProblemType::NotAcceptable).members.known.unwrap().contains(&"text/csv".to_owned()));
}
