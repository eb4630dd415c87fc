//! Objects, buckets and listings.

use http::{Method, StatusCode};

use super::client::{S3Request, Site, code, open_keys, refused};
use crate::common::TestResponse;

async fn put(site: &Site, target: &str, headers: &[(&str, &str)]) -> TestResponse {
    let request = S3Request::new(Method::PUT, target, "hello");
    site.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value))).await
}

/// The texts of the elements with a name.
fn elements<'t>(answer: &'t TestResponse, name: &str) -> Vec<&'t str> {
    let end = format!("</{name}>");
    answer.text().split(&format!("<{name}>")).skip(1).map(|rest| rest.split(&end).next().unwrap()).collect()
}

#[tokio::test]
async fn both_surfaces_have_one_version_of_a_value() {
    let site = Site::new();
    let tag = put(&site, "/lab/a", &[]).await.header("etag").to_owned();
    let version = site.api.get("/store/lab/a", &[]).await.header("etag").trim_matches('"').to_owned();
    assert_eq!(tag, format!("\"{version}-1\""));
    site.api.put("/store/lab/b", &[], "raw").await;
    assert_eq!(site.plain(Method::GET, "/lab/b", "").await.text(), "raw");
    // Unquoted, as icechunk sends it.
    assert_eq!(put(&site, "/lab/a", &[("if-match", tag.trim_matches('"'))]).await.status, StatusCode::OK);
    assert_eq!(code(&put(&site, "/lab/a", &[("if-match", &tag)]).await), refused(412, "PreconditionFailed"));
    // The empty tag is tensorstore's for what does not exist.
    assert_eq!(code(&put(&site, "/lab/a", &[("if-match", "\"\"")]).await), refused(412, "PreconditionFailed"));
    assert_eq!(code(&put(&site, "/lab/new", &[("if-match", &tag)]).await), refused(404, "NoSuchKey"));
    assert_eq!(code(&put(&site, "/lab/a", &[("if-none-match", "*")]).await), refused(412, "PreconditionFailed"));
}

#[tokio::test]
async fn bucket_lives_until_it_is_deleted() {
    let site = Site::new();
    assert_eq!(code(&site.plain(Method::GET, "/lab?list-type=2", "").await), refused(404, "NoSuchBucket"));
    assert_eq!(put(&site, "/lab/a", &[]).await.status, StatusCode::OK);
    assert_eq!(site.plain(Method::DELETE, "/lab/a", "").await.status, StatusCode::NO_CONTENT);
    let empty = site.plain(Method::GET, "/lab?list-type=2", "").await;
    assert_eq!((empty.status, elements(&empty, "KeyCount")), (StatusCode::OK, vec!["0"]));
    // A bucket of keys that other surfaces set gets its record with the first change.
    site.api.put("/store/raw/a", &[], "1").await;
    assert_eq!(site.plain(Method::HEAD, "/raw", "").await.status, StatusCode::OK);
    assert_eq!(site.plain(Method::DELETE, "/raw/a", "").await.status, StatusCode::NO_CONTENT);
    let listed = site.plain(Method::GET, "/", "").await;
    assert_eq!(elements(&listed, "Name"), ["lab", "raw"]);
    assert_eq!(put(&site, "/raw/b", &[]).await.status, StatusCode::OK);
    assert_eq!(code(&site.plain(Method::DELETE, "/raw", "").await), refused(409, "BucketNotEmpty"));
    assert_eq!(site.plain(Method::DELETE, "/lab", "").await.status, StatusCode::NO_CONTENT);
    assert_eq!(code(&site.plain(Method::DELETE, "/lab", "").await), refused(404, "NoSuchBucket"));
    for _ in 0..2 {
        assert_eq!(site.plain(Method::PUT, "/new", "").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn hosts_below_the_domain_and_the_root_have_buckets_of_their_own() {
    let site = Site::with_names();
    let of_host = S3Request::new(Method::PUT, "/a/b", "1").header("host", "lab.s3.test:9000");
    assert_eq!(site.send(of_host).await.status, StatusCode::OK);
    assert_eq!(site.plain(Method::GET, "/lab/a/b", "").await.text(), "1");
    assert_eq!(site.plain(Method::GET, "/all/lab/a/b", "").await.text(), "1");
    assert_eq!(put(&site, "/all/top", &[]).await.status, StatusCode::OK);
    let listed = site.plain(Method::GET, "/all?list-type=2", "").await;
    assert_eq!(elements(&listed, "Key"), ["lab/a/b", "top"]);
    assert_eq!(code(&site.plain(Method::DELETE, "/all", "").await), refused(405, "MethodNotAllowed"));
    let foreign = S3Request::new(Method::GET, "/a/b", "").header("host", "lab.evil.test");
    assert_eq!(site.send(foreign).await.status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn listings_are_encoded_if_requested_and_paged_by_any_name() {
    let site = Site::new();
    for name in ["a%20b", "d/1", "d/2", "d-1", "z"] {
        assert_eq!(put(&site, &format!("/lab/{name}"), &[]).await.status, StatusCode::OK);
    }
    let list = async |query: &str| site.plain(Method::GET, &format!("/lab?{query}"), "").await;
    assert_eq!(elements(&list("").await, "Key"), ["a b", "d-1", "d/1", "d/2", "z"]);
    assert_eq!(elements(&list("encoding-type=url").await, "Key")[0], "a%20b");
    let folded = list("list-type=2&delimiter=/&prefix=d").await;
    assert_eq!(elements(&folded, "Key"), ["d-1"]);
    assert!(folded.text().contains("<CommonPrefixes><Prefix>d/</Prefix></CommonPrefixes>"));
    assert_eq!(elements(&list("list-type=2&delimiter=/&start-after=d/1").await, "Key"), ["z"]);
    assert_eq!(elements(&list("list-type=2&start-after=d/").await, "Key"), ["d/1", "d/2", "z"]);
    assert_eq!(elements(&list("marker=d%2F1&max-keys=1").await, "Key"), ["d/2"]);
    assert_eq!(elements(&list("list-type=2&max-keys=0").await, "KeyCount"), ["0"]);
    assert_eq!(elements(&list("list-type=2&max-keys=5000").await, "MaxKeys"), ["1000"]);
    for (query, status, expected) in [
        ("delimiter=-", 501, "NotImplemented"),
        ("max-keys=-1", 400, "InvalidArgument"),
        ("max-keys=x", 400, "InvalidRequest"),
        ("encoding-type=x", 400, "InvalidArgument"),
        ("list-type=2&continuation-token=%21", 400, "InvalidArgument"),
        ("unknown", 501, "NotImplemented"),
    ] {
        let answer = list(query).await;
        assert_eq!(answer.status.as_u16(), status, "{query} {}", answer.text());
        assert!(expected == "InvalidRequest" || code(&answer).1 == expected, "{query} {}", answer.text());
    }
}

#[tokio::test]
async fn copies_are_made_on_conditions_of_both_ends() {
    let site = Site::new();
    let tag =
        put(&site, "/lab/a", &[("x-amz-meta-k", "v"), ("content-type", "text/csv")]).await.header("etag").to_owned();
    let copy = async |headers: &[(&str, &str)]| {
        let request = S3Request::new(Method::PUT, "/Lab_2/b", "").header("x-amz-copy-source", "/lab/a");
        site.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value))).await
    };
    assert_eq!(copy(&[("x-amz-copy-source-if-match", &tag)]).await.status, StatusCode::OK);
    let copied = site.plain(Method::GET, "/Lab_2/b", "").await;
    assert_eq!((copied.header("x-amz-meta-k"), copied.header("content-type")), ("v", "text/csv"));
    assert_eq!(code(&copy(&[("x-amz-copy-source-if-none-match", &tag)]).await), refused(412, "PreconditionFailed"));
    assert_eq!(code(&copy(&[("if-none-match", "*")]).await), refused(412, "PreconditionFailed"));
    for (source, status, expected) in [
        ("lab/none", 404, "NoSuchKey"),
        ("none/none", 404, "NoSuchBucket"),
        ("lab", 400, "InvalidArgument"),
        ("lab/a?versionId=1", 404, "NoSuchVersion"),
        ("Lab_2/b", 400, "InvalidRequest"),
    ] {
        let request = S3Request::new(Method::PUT, "/Lab_2/b", "").header("x-amz-copy-source", source);
        assert_eq!(code(&site.send(request).await), refused(status, expected), "{source}");
    }
}

#[tokio::test]
async fn metadata_beyond_ascii_are_encoded_words() {
    let site = Site::new();
    for (sent, shown) in
        [("caf\u{e9}", "=?UTF-8?B?Y2Fmw6k=?="), ("=?utf-8?q?caf=C3=A9_a?=", "=?UTF-8?B?Y2Fmw6kgYQ==?=")]
    {
        assert_eq!(put(&site, "/lab/a", &[("x-amz-meta-note", sent)]).await.status, StatusCode::OK);
        for method in [Method::GET, Method::HEAD] {
            assert_eq!(site.plain(method, "/lab/a", "").await.header("x-amz-meta-note"), shown);
        }
    }
    let malformed = ("x-amz-meta-note", "=?=");
    assert_eq!(code(&put(&site, "/lab/a", &[malformed]).await), refused(400, "InvalidArgument"));
    let replaced = [malformed, ("x-amz-copy-source", "lab/a"), ("x-amz-metadata-directive", "REPLACE")];
    assert_eq!(code(&put(&site, "/lab/b", &replaced).await), refused(400, "InvalidArgument"));
    let upload = S3Request::new(Method::POST, "/lab/b?uploads", "").header(malformed.0, malformed.1);
    assert_eq!(code(&site.send(upload).await), refused(400, "InvalidArgument"));
}

#[tokio::test]
async fn requests_choose_headers_of_the_response() {
    let site = Site::new();
    put(&site, "/lab/a", &[("content-type", "text/csv"), ("cache-control", "no-store")]).await;
    let query = "response-content-type=text%2Fplain&response-content-disposition=attachment";
    for method in [Method::GET, Method::HEAD] {
        let request = S3Request::new(method, &format!("/lab/a?{query}"), "");
        let answer = site.send(request.signed(&open_keys())).await;
        let shown = ["content-type", "content-disposition", "cache-control"].map(|name| answer.header(name).to_owned());
        assert_eq!(shown, ["text/plain", "attachment", "no-store"]);
    }
    assert_eq!(code(&site.plain(Method::GET, "/lab/a?partNumber=2", "").await), refused(416, "InvalidRange"));
}
