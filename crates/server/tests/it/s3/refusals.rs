//! Refusals: each row of the table in the guide is sent, and answered with the code that it names.

use http::{Method, StatusCode};

use super::client::{S3Request, Site, code};

/// The requests of a row: method, target and headers.
type Requests = &'static [(&'static str, &'static str, &'static [(&'static str, &'static str)])];

/// The rows that are an error, by the first words of what they are about.
const ROWS: [(&str, Requests); 11] = [
    (
        "signatures of version 2",
        &[
            ("GET", "/lab/a", &[("authorization", "AWS zarrd:c2lnbmF0dXJl")]),
            ("GET", "/lab/a?AWSAccessKeyId=zarrd&Signature=x&Expires=9999999999", &[]),
            ("GET", "/lab/a?response-content-type=text%2Fplain", &[]),
        ],
    ),
    ("forms", &[("POST", "/lab", &[("content-type", "multipart/form-data; boundary=x")])]),
    (
        "ACLs other than",
        &[
            ("PUT", "/lab/a", &[("x-amz-acl", "public-read")]),
            ("PUT", "/lab/a", &[("x-amz-grant-read", "id=1")]),
            ("PUT", "/lab?acl", &[("x-amz-acl", "private")]),
            ("PUT", "/lab/a?acl", &[("x-amz-acl", "private")]),
        ],
    ),
    (
        "tags, encryption",
        &[
            ("PUT", "/lab/a", &[("x-amz-tagging", "a=b")]),
            ("PUT", "/lab/a", &[("x-amz-server-side-encryption", "AES256")]),
            ("PUT", "/lab/a", &[("x-amz-object-lock-mode", "GOVERNANCE")]),
            ("PUT", "/lab/a", &[("x-amz-website-redirect-location", "/")]),
            ("PUT", "/lab/a", &[("x-amz-write-offset-bytes", "1")]),
            ("PUT", "/lab/a", &[("x-amz-storage-class", "GLACIER")]),
            ("DELETE", "/lab/a?tagging", &[]),
        ],
    ),
    (
        "versions other than",
        &[
            ("GET", "/lab/a?versionId=1", &[]),
            ("DELETE", "/lab/a?versionId=1", &[]),
            ("PUT", "/lab/b", &[("x-amz-copy-source", "lab/a?versionId=1")]),
        ],
    ),
    (
        "delimiters other than",
        &[
            ("GET", "/lab?delimiter=a", &[]),
            ("GET", "/lab?list-type=2&delimiter=a", &[]),
            ("GET", "/lab?versions&delimiter=a", &[]),
            ("GET", "/lab?uploads&delimiter=a", &[]),
        ],
    ),
    (
        "keys with an empty segment",
        &[
            ("PUT", "/lab/a//b", &[]),
            ("PUT", "/lab/a/%2E%2E/b", &[]),
            ("PUT", "/lab/a%01", &[]),
            ("POST", "/lab/a/?uploads", &[]),
        ],
    ),
    ("keys of more than", &[]),
    ("parts of a completed object", &[("GET", "/lab/a?partNumber=2", &[]), ("GET", "/lab/a?partNumber=3", &[])]),
    (
        "unknown sub-resources",
        &[("GET", "/lab/a?torrent", &[]), ("POST", "/lab/a?restore", &[]), ("DELETE", "/lab?unknown", &[])],
    ),
    (
        "changes of the settings",
        &[
            ("DELETE", "/lab?policy", &[]),
            ("DELETE", "/lab?lifecycle", &[]),
            ("DELETE", "/lab?cors", &[]),
            ("DELETE", "/lab?encryption", &[]),
            ("DELETE", "/lab?replication", &[]),
            ("DELETE", "/lab?tagging", &[]),
            ("DELETE", "/lab?website", &[]),
        ],
    ),
];

/// The rows of the table that name a code: what they are about, with the statuses and codes.
fn documented() -> Vec<(String, Vec<(StatusCode, String)>)> {
    let guide = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/s3.md")).unwrap();
    let (_, table) = guide.split_once("## What it does not have").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let coded = rows.filter_map(|(what, answers)| {
        let answer = |text: &str| {
            let (status, code) = text.split_once(' ')?;
            Some((status.parse().ok()?, code.trim_matches('`').to_owned()))
        };
        Some((what.to_owned(), answers.split(", ").map(answer).collect::<Option<_>>()?))
    });
    coded.collect()
}

#[tokio::test]
async fn what_the_guide_lists_is_refused_with_its_code() {
    let site = Site::new();
    site.api.set("lab/a", b"value").await;
    let documented = documented();
    assert_eq!(documented.len(), ROWS.len(), "{documented:?}");
    let long: &str = format!("/lab/{}", "k".repeat(1021)).leak();
    for ((what, answers), (start, requests)) in documented.iter().zip(ROWS) {
        assert!(what.starts_with(start), "{what}: {start}");
        let mut requests = requests.to_vec();
        if requests.is_empty() {
            requests.push(("PUT", long, &[]));
        }
        for (method, target, headers) in requests {
            let method: Method = method.parse().unwrap();
            let request = headers
                .iter()
                .fold(S3Request::new(method, target, ""), |request, (name, value)| request.header(name, value));
            let found = code(&site.send(request).await);
            assert!(answers.contains(&found), "{what}: {target} {headers:?}: {found:?}");
        }
    }
    assert_eq!(site.api.value("lab/a").await.unwrap(), &b"value"[..]);
}
