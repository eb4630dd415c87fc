//! Listings as JSON, NDJSON and HTML.

use crate::common::TestServer;
use http::StatusCode;
use serde_json::json;
use zarrd_wire::{
    listing::{DirListing, KeyLine},
    problem::ProblemType,
};

async fn example() -> TestServer {
    let server = TestServer::new();
    for key in ["a/b", "a/c/d", "e/f/g"] {
        server.set(key, b"123").await;
    }
    server
}

#[tokio::test]
async fn specification_examples_are_listed() {
    let server = example().await;
    let root = server.get("/store/", &[]).await;
    assert_eq!(root.header("content-type"), "application/json");
    assert_eq!(root.json(), json!({"prefix": "", "keys": [], "values": [], "prefixes": ["a/", "e/"], "cursor": null}));
    let below = server.get("/store/a/", &[]).await.json();
    assert_eq!(below["keys"], json!(["a/b"]));
    assert_eq!(below["prefixes"], json!(["a/c/"]));
    let head = server.head("/store/a/b", &[]).await;
    let value = json!({"size": 3, "etag": head.header("etag"), "modified": head.header("zarr-modified")});
    assert_eq!(below["values"], json!([value]));
    assert_eq!(server.get("/store/a/?list=keys", &[]).await.json()["keys"], json!(["a/b", "a/c/d"]));
    let all = server.get("/store/?list=keys", &[]).await.json();
    assert_eq!(all["keys"], json!(["a/b", "a/c/d", "e/f/g"]));
    assert!(all.get("prefixes").is_none());
    let nothing = server.get("/store/x/", &[]).await;
    assert_eq!((nothing.status, &nothing.json()["keys"]), (StatusCode::OK, &json!([])));
    assert_eq!(server.get("/store//a//", &[]).await.json()["prefix"], "a/");
    assert_eq!(server.get("/store/a%2F", &[]).await.json()["prefix"], "a/");
    let head = server.head("/store/a/", &[]).await;
    assert_eq!(head.header("content-length"), server.get("/store/a/", &[]).await.body.len().to_string());
}

#[tokio::test]
async fn cursors_page_through_listings() {
    let server = example().await;
    let first = server.get("/store/?list=keys&limit=2", &[]).await.json();
    assert_eq!(first["keys"], json!(["a/b", "a/c/d"]));
    let cursor = first["cursor"].as_str().unwrap();
    let second = server.get(&format!("/store/?list=keys&limit=2&cursor={cursor}"), &[]).await.json();
    assert_eq!((&second["keys"], &second["cursor"]), (&json!(["e/f/g"]), &json!(null)));
    let dir: DirListing = serde_json::from_value(server.get("/store/?limit=1", &[]).await.json()).unwrap();
    let page = dir.into_page().unwrap();
    assert_eq!(page.prefixes.len(), 1);
    let next = server.get(&format!("/store/?cursor={}", page.cursor.unwrap().as_str()), &[]).await.json();
    assert_eq!(next["prefixes"], json!(["e/"]));
    server.get(&format!("/store/?cursor={cursor}"), &[]).await.problem(ProblemType::InvalidCursor);
}

#[tokio::test]
async fn invalid_listing_queries_are_rejected() {
    let server = example().await;
    server.get("/store/?cursor=made-up", &[]).await.problem(ProblemType::InvalidCursor);
    server.get("/store/?list=keys&cursor=", &[]).await.problem(ProblemType::InvalidCursor);
    let problem = server.get("/store/?list=tree", &[]).await.problem(ProblemType::UnknownListing);
    assert_eq!(problem.members.known, Some(vec!["dir".to_owned(), "keys".to_owned()]));
    for limit in ["0", "10001", "x", "-1", ""] {
        let problem = server.get(&format!("/store/?limit={limit}"), &[]).await.problem(ProblemType::InvalidParameter);
        assert_eq!(problem.members.parameter.as_deref(), Some("limit"));
    }
    server.get("/store/?limit=1&limit=2", &[]).await.problem(ProblemType::DuplicateParameter);
    assert_eq!(server.get("/store/?_=12345", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn ndjson_lists_all_keys() {
    let server = TestServer::new();
    for number in 0..2500 {
        server.set(&format!("k/{number:04}"), b"1").await;
    }
    let accept = [("accept", "application/x-ndjson")];
    let all = server.get("/store/k/?list=keys", &accept).await;
    assert_eq!(all.header("content-type"), "application/x-ndjson");
    let lines: Vec<KeyLine> = all.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2500);
    assert!(lines.is_sorted_by(|one, two| one.key < two.key));
    assert_eq!(server.get("/store/k/?list=keys&limit=1500", &accept).await.text().lines().count(), 1500);
    assert_eq!(server.get("/store/x/?list=keys", &accept).await.text(), "");
    server.get("/store/k/?list=keys&cursor=x", &accept).await.problem(ProblemType::InvalidCursor);
}

/// The links of a page, as fsspec finds them.
fn links(html: &str) -> Vec<&str> {
    html.split("<a href=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect()
}

const BROWSER: [(&str, &str); 1] = [("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];

#[tokio::test]
async fn empty_prefix_is_404_as_html_only() {
    let server = example().await;
    server.get("/store/nothing/", &BROWSER).await.problem(ProblemType::NoSuchKey);
    assert_eq!(server.get("/store/nothing/", &[]).await.status, StatusCode::OK);
    assert_eq!(TestServer::new().get("/store/", &BROWSER).await.status, StatusCode::OK);
}

#[tokio::test]
async fn links_for_fsspec_are_names() {
    let server = TestServer::new();
    for name in ["a+b", "a:b", "a,b", "x y", "ü", "日本", "100%", "[x]", "http", "%2F", "q'q"] {
        server.set(&format!("g/{name}/zarr.json"), b"{}").await;
    }
    let fsspec = [("accept", "*/*"), ("user-agent", "Python/3.12 aiohttp/3.14.3")];
    let page = server.get("/store/g/", &fsspec).await;
    let html = page.text();
    let mut found = links(html);
    found.sort_unstable();
    let mut names =
        ["%252F/", "./http/", "100%/", "[x]/", "a+b/", "a,b/", "a:b/", "q%27q/", "x y/", "ü/", "日本/"].to_vec();
    names.sort_unstable();
    assert_eq!(found, names);
    let wget = [("accept", "*/*"), ("user-agent", "Wget/1.21.3")];
    let page = server.get("/store/g/", &wget).await;
    assert!(links(page.text()).contains(&"%C3%BC/"));
}

#[tokio::test]
async fn html_contains_only_links_to_children() {
    let server = example().await;
    server.set("a/<b>&\"'", b"1").await;
    server.set("a/x:y z/1", b"1").await;
    let page = server.get("/store/a/", &BROWSER).await;
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    assert_eq!(page.header("vary"), "accept, user-agent");
    let html = page.text();
    assert_eq!(links(html), ["c/", "x%3Ay%20z/", "%3Cb%3E%26%22%27", "b"]);
    assert!(html.contains("<title>Index of /store/a/</title>\n"), "{html}");
    assert!(html.contains(">&lt;b&gt;&amp;&quot;&#39;</a>"), "{html}");
    assert!(!html.contains("<b>") && !html.contains("://"), "{html}");
    assert_eq!(html.matches("<a href=").count(), html.lines().filter(|line| line.contains("<a href=")).count());
    for agent in ["Python/3.12 aiohttp/3.14.3", "GDAL/3.12.0", "Wget/1.21.3", "rclone/v1.60.1-DEV"] {
        let got = server.get("/store/a/", &[("accept", "*/*"), ("user-agent", agent)]).await;
        assert_eq!(got.header("content-type"), "text/html; charset=utf-8", "{agent}");
        let asked = server.get("/store/a/?list=dir", &[("accept", "*/*"), ("user-agent", agent)]).await;
        assert_eq!(asked.header("content-type"), "application/json", "{agent} names a listing");
    }
    let silent = server.get("/store/a/", &[("user-agent", "rclone/v1.60.1-DEV")]).await;
    assert_eq!(silent.header("content-type"), "text/html; charset=utf-8");
    let nonsense = server.get("/store/a/", &[("accept", "???, ,;;=,/,q=1")]).await;
    assert_eq!(nonsense.header("content-type"), "application/json");
    let curl = server.get("/store/a/", &[("accept", "*/*"), ("user-agent", "curl/8.5.0")]).await;
    assert_eq!(curl.header("content-type"), "application/json");
    assert!(server.head("/store/a/", &BROWSER).await.body.is_empty());
}

#[tokio::test]
async fn html_lists_all_children() {
    let server = TestServer::new();
    for number in 0..2500 {
        server.set(&format!("k/{number:04}{}", if number % 2 == 0 { "" } else { "/x" }), b"1").await;
    }
    let page = server.get("/store/k/", &BROWSER).await;
    let mut found = links(page.text());
    assert_eq!(found.len(), 2500);
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 2500);
}
