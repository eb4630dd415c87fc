//! Attributes of values: over HTTP, and through copies, imports and backups.

use http::{Method, StatusCode};
use zarrd_tests::server::{Launch, Server, zarrd_with};

/// The headers of attributes, and what they are.
const ATTRIBUTES: [(&str, &str); 9] = [
    ("zarr-content-type", "text/html"),
    ("zarr-content-encoding", "gzip"),
    ("zarr-content-language", "de, en"),
    ("zarr-content-disposition", "attachment; filename=\"a b.csv\""),
    ("zarr-cache-control", "no-store"),
    ("zarr-expires", "0"),
    ("zarr-checksum", "crc32c=:4waSgw==:;parts=3"),
    ("zarr-meta-mtime", "1700000000.5"),
    ("zarr-meta-a_b", "x y"),
];

async fn put(server: &Server, key: &str, size: usize, headers: &[(&str, &str)]) -> StatusCode {
    let request = server.request(Method::PUT, &format!("/store/{key}")).body(vec![7; size]);
    let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap().status()
}

/// The headers of a value that are attributes, sorted. Asserts that `GET` and `HEAD` have the same.
async fn attributes(server: &Server, key: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for method in [Method::HEAD, Method::GET] {
        let response = server.request(method, &format!("/store/{key}")).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        // A browser executes nothing, a client decodes nothing, and a cache is told of versions by the server.
        assert_eq!(response.headers()["content-type"], "application/octet-stream");
        assert!(response.headers().get("content-encoding").is_none());
        assert_ne!(response.headers()["cache-control"], "no-store");
        let is_attribute =
            |name: &str| ATTRIBUTES.iter().any(|(known, _)| *known == name) || name.starts_with("zarr-meta-");
        let headers = response.headers().iter().filter(|(name, _)| is_attribute(name.as_str()));
        let mut headers: Vec<_> =
            headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
        headers.sort();
        found.push(headers);
    }
    assert_eq!(found[0], found[1]);
    found.swap_remove(0)
}

fn expected() -> Vec<(String, String)> {
    let mut expected = ATTRIBUTES.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    expected.sort();
    expected
}

/// Sets a small and a large value with attributes, and one without.
async fn set_values(server: &Server) {
    for (key, size) in [("lab/small", 10), ("lab/large", 100_000)] {
        assert_eq!(put(server, key, size, &ATTRIBUTES).await, StatusCode::CREATED);
    }
    // The content type of a request is none of its value: many clients send one that says nothing.
    assert_eq!(put(server, "lab/plain", 10, &[("content-type", "text/html")]).await, StatusCode::CREATED);
}

async fn has_values(server: &Server) {
    assert_eq!(attributes(server, "lab/small").await, expected());
    assert_eq!(attributes(server, "lab/large").await, expected());
    assert_eq!(attributes(server, "lab/plain").await, []);
}

#[tokio::test]
async fn values_keep_what_was_set_with_them() {
    let dir = tempfile::tempdir().unwrap();
    let launch = Launch::of(format!("sled:{}", dir.path().display()));
    let server = launch.start();
    set_values(&server).await;
    has_values(&server).await;
    for bad in [
        ("zarr-meta-a", "x".repeat(2048).as_str()),
        ("zarr-checksum", "md5=:AAAA:"),
        ("zarr-checksum", "crc32=:AAAA:"),
        ("zarr-content-type", ""),
    ] {
        assert_eq!(put(&server, "lab/bad", 1, &[bad]).await, StatusCode::BAD_REQUEST, "{bad:?}");
        assert_eq!(server.answer("/store/lab/bad").await.0, StatusCode::NOT_FOUND);
    }
    let ranged = server.request(Method::GET, "/store/lab/large").header("range", "bytes=0-9").send().await.unwrap();
    assert_eq!(
        (ranged.status(), &ranged.headers()["zarr-meta-a_b"]),
        (StatusCode::PARTIAL_CONTENT, &"x y".parse().unwrap())
    );
    server.stop();
    let server = launch.start();
    has_values(&server).await;
    assert_eq!(put(&server, "lab/small", 1, &[]).await, StatusCode::NO_CONTENT);
    assert_eq!(attributes(&server, "lab/small").await, []);
}

#[tokio::test]
async fn copies_of_every_kind_keep_attributes() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let ended = zarrd_with(arguments.to_vec());
        assert_eq!(ended.code, Some(0), "{arguments:?}: {ended:?}");
    };
    let server = Launch::of(format!("sled:{}", path("first"))).start();
    set_values(&server).await;
    run(&["backup", &path("backup"), "--server", &server.url("")]);
    run(&["restore", &path("backup"), &format!("redb:{}", path("restored")), "--without-access"]);
    has_values(&Launch::of(format!("redb:{}", path("restored"))).start()).await;
    // Again, with what the backup before had.
    run(&["backup", &path("backup"), "--server", &server.url("")]);
    run(&["restore", &path("backup"), &format!("sled:{}", path("again")), "--without-access"]);
    has_values(&Launch::of(format!("sled:{}", path("again"))).start()).await;
    // From one server to another.
    let other = Launch::of(format!("redb:{}", path("other"))).start();
    run(&["import", &server.url("/store/lab/"), "lab", "--server", &other.url("")]);
    has_values(&other).await;
    run(&["import", &server.url("/store/lab/"), "lab", "--store", &format!("sled:{}", path("imported"))]);
    has_values(&Launch::of(format!("sled:{}", path("imported"))).start()).await;
    server.stop();
    run(&["copy", &format!("sled:{}", path("first")), &format!("redb:{}", path("copied"))]);
    has_values(&Launch::of(format!("redb:{}", path("copied"))).start()).await;
    // WebDAV, within a server.
    let copied = other.request("COPY".parse().unwrap(), "/store/lab/large").header("destination", "/store/lab/copy");
    assert!(copied.send().await.unwrap().status().is_success());
    assert_eq!(attributes(&other, "lab/copy").await, expected());
}
