//! The page: its document, its files, and the beginning of their URLs.

use std::io::Read;

use crate::common::{
    TestResponse, TestServer,
    contract::BASE_PATH,
    tokens::{ServerWithTokens, create_link, new_link},
};
use http::StatusCode;
use zarrd_server::{S3Settings, Settings};
use zarrd_wire::problem::ProblemType;

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// The URLs of the files in a document.
fn files(document: &TestResponse) -> Vec<String> {
    let quoted = document.text().split('"').filter(|text| text.contains("/assets/"));
    quoted.map(str::to_owned).collect()
}

/// The beginning of the URLs of requests in a document.
fn api(document: &TestResponse) -> &str {
    let (_, rest) = document.text().split_once("name=\"zarrd-api\" content=\"").unwrap();
    rest.split('"').next().unwrap()
}

#[tokio::test]
async fn root_is_a_page_for_clients_that_prefer_html() {
    let server = TestServer::new();
    let found = server.get("/", &[BROWSER]).await;
    assert_eq!((found.status, found.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert_eq!(found.header("vary"), "Accept");
    for accept in ["application/json", "*/*", "text/html;q=0.5, application/json", "text/*;q=0"] {
        server.get("/", &[("accept", accept)]).await.problem(ProblemType::NotFound);
    }
    let known = server.get("/", &[]).await.problem(ProblemType::NotFound).members.known.unwrap();
    assert!(["/store/", "/node/", "/array/", "/openapi.yaml"].iter().all(|path| known.contains(&(*path).to_owned())));
    for (path, meant) in
        [("/nodes/lab/x", "/node/lab/x?"), ("/stor/a", "/store/a?"), ("/openapi.yml", "/openapi.yaml?")]
    {
        let problem = server.get(path, &[]).await.problem(ProblemType::NotFound);
        assert!(problem.detail.ends_with(&format!("did you mean {meant}")), "{}", problem.detail);
    }
    let problem = server.get("/zarr.json", &[]).await.problem(ProblemType::NotFound);
    assert!(!problem.detail.contains("did you mean"), "{}", problem.detail);
    // Programs that follow links look for them below `/store/`.
    server.get("/", &[("accept", "*/*"), ("user-agent", "Wget/1.21")]).await.problem(ProblemType::NotFound);
}

#[tokio::test]
async fn document_has_the_url_for_s3_clients_if_there_is_one() {
    for (url, shown) in [(None, ""), (Some("http://:8002"), "http://:8002")] {
        let s3 = S3Settings { url: url.map(str::to_owned), ..S3Settings::default() };
        let server = TestServer::with(Settings { s3, ..Settings::default() });
        let found = server.get("/browse/a", &[]).await;
        assert!(found.text().contains(&format!("name=\"zarrd-s3\" content=\"{shown}\"")), "{}", found.text());
    }
}

#[tokio::test]
async fn document_allows_its_own_files_and_requests_alone() {
    let server = TestServer::new();
    for path in ["/browse", "/browse/", "/browse/a/b", "/browse/%3Cscript%3E?x=%22%3E", "/browse/%zz"] {
        let found = server.get(path, &[]).await;
        assert_eq!(found.status, StatusCode::OK, "{path}");
        let policy = found.header("content-security-policy");
        for part in
            ["default-src 'none'", "connect-src 'self'", "require-trusted-types-for 'script'", "frame-ancestors 'none'"]
        {
            assert!(policy.split("; ").any(|found| found == part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
        assert_eq!((found.header("cache-control"), found.header("referrer-policy")), ("no-cache", "no-referrer"));
        assert_eq!((files(&found).len(), api(&found)), (3, ""), "{path}");
        // Nothing of the request is in the document.
        assert_eq!(found.body, server.get("/browse", &[]).await.body, "{path}");
    }
}

#[tokio::test]
async fn files_are_immutable_and_compressed() {
    let server = TestServer::new();
    for path in files(&server.get("/browse", &[]).await) {
        let plain = server.get(&path, &[]).await;
        assert_eq!(plain.status, StatusCode::OK, "{path}");
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
        assert_eq!(plain.header("content-encoding"), "");
        let gzip = server.get(&path, &[("accept-encoding", "gzip")]).await;
        let mut inflated = Vec::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_end(&mut inflated).unwrap();
        assert_eq!((gzip.header("content-encoding"), &inflated[..]), ("gzip", &plain.body[..]));
        let zstd = server.get(&path, &[("accept-encoding", "gzip, br, zstd")]).await;
        assert_eq!(zstd.header("content-encoding"), "zstd");
        assert_eq!(zstd::stream::decode_all(&zstd.body[..]).unwrap(), plain.body);
    }
    for path in ["/assets/page.js", "/assets/", "/assets/a/b", "/assets/..%2Fpage.js"] {
        server.get(path, &[]).await.problem(ProblemType::NotFound);
    }
}

#[tokio::test]
async fn urls_begin_with_the_base_path() {
    let settings = Settings { base_path: BASE_PATH.parse().unwrap(), ..Settings::default() };
    let server = TestServer::with(settings);
    server.set("a", b"1").await;
    // Some proxies remove the path, and others do not.
    for path in ["/lab/zarr", "/lab/zarr/", "/lab/zarr/browse/a", "/", "/browse/a"] {
        let found = server.get(path, &[BROWSER]).await;
        assert_eq!((found.status, api(&found)), (StatusCode::OK, "/lab/zarr"), "{path}");
        for file in files(&found) {
            assert!(file.starts_with("/lab/zarr/assets/"), "{file}");
            assert_eq!(server.get(&file, &[]).await.status, StatusCode::OK, "{file}");
        }
    }
    for path in ["/lab/zarr/store/a", "/store/a"] {
        assert_eq!(server.get(path, &[]).await.body, b"1"[..], "{path}");
    }
    let listing = server.get("/lab/zarr/store/", &[BROWSER]).await;
    assert!(listing.text().contains("Index of /lab/zarr/store/"), "{}", listing.text());
    server.get("/lab/zarrs/store/a", &[]).await.problem(ProblemType::NotFound);
    server.get("/lab/zarr/nothing", &[]).await.problem(ProblemType::NotFound);
}

#[tokio::test]
async fn page_needs_no_right_and_requests_through_its_link() {
    let closed = ServerWithTokens::closed();
    let found = closed.server.get("/", &[BROWSER]).await;
    assert_eq!((found.status, api(&found)), (StatusCode::OK, ""));
    let (_, link) = create_link(&closed.directory, new_link("lab/"));
    for path in [format!("/s/{link}"), format!("/s/{link}/"), format!("/s/{link}/browse/lab/a")] {
        let found = closed.server.get(&path, &[BROWSER]).await;
        assert_eq!((found.status, api(&found)), (StatusCode::OK, &*format!("/s/{link}")), "{path}");
        assert_eq!(found.header("cache-control"), "private, no-cache");
        assert!(files(&found).iter().all(|file| file.starts_with("/assets/")), "{path}");
    }
    closed.server.get("/s/none/browse", &[BROWSER]).await.problem(ProblemType::Unauthorized);
}
