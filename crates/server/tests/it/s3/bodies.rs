//! Bodies: checksums, framing, XML, and limits.

use base64::{Engine, engine::general_purpose::STANDARD};
use hex::ToHex;
use http::{Method, StatusCode};
use sha2::{Digest, Sha256};
use zarrd_server::{Limits, Settings};

use super::client::{Keys, S3Request, Site, code, day, mac, now, open_keys, refused, signing_key};

fn put(body: &str) -> S3Request {
    S3Request::new(Method::PUT, "/lab/a", body)
}

fn erase(body: &str) -> S3Request {
    S3Request::new(Method::POST, "/lab?delete", body)
}

fn sha256(body: &str) -> String {
    STANDARD.encode(Sha256::digest(body))
}

/// A body in one chunk, each part of which is signed.
fn signed_chunks(request: S3Request, keys: &Keys, data: &str) -> S3Request {
    let time = now();
    let mut request = request
        .header("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
        .header("x-amz-decoded-content-length", &data.len().to_string())
        .header("content-encoding", "aws-chunked")
        .signed_at(keys, &time);
    let mut previous = request.headers.last().unwrap().1.split("Signature=").nth(1).unwrap().to_owned();
    let scope = format!("{}/us-east-1/s3/aws4_request", day(&time));
    let mut body = String::new();
    for chunk in [data, ""] {
        let [empty, hash]: [String; 2] = ["", chunk].map(|text| Sha256::digest(text).encode_hex());
        let text = format!("AWS4-HMAC-SHA256-PAYLOAD\n{time}\n{scope}\n{previous}\n{empty}\n{hash}");
        previous = mac(&signing_key(keys, &time), &text).encode_hex();
        body += &format!("{:x};chunk-signature={previous}\r\n{chunk}\r\n", chunk.len());
    }
    request.body = body.into_bytes();
    request
}

#[tokio::test]
async fn checksums_are_compared_before_anything_is_stored() {
    let site = Site::new();
    for (name, value, expected) in [
        ("x-amz-checksum-sha256", sha256("hello"), None),
        ("x-amz-checksum-sha256", sha256("other"), Some("BadDigest")),
        ("x-amz-checksum-crc32", "NhCmhg==".into(), None),
        ("x-amz-checksum-crc32", "AAAAAA==".into(), Some("BadDigest")),
        ("x-amz-checksum-crc32", "AAAA".into(), Some("InvalidRequest")),
        ("content-md5", "XUFAKrxLKna5cZ2REBfFkg==".into(), None),
        ("content-md5", "AUFAKrxLKna5cZ2REBfFkg==".into(), Some("BadDigest")),
        ("content-md5", "short".into(), Some("InvalidDigest")),
    ] {
        site.plain(Method::DELETE, "/lab/a", "").await;
        let answer = site.send(put("hello").header(name, &value)).await;
        let stored = site.api.value("lab/a").await;
        match expected {
            None => assert_eq!((answer.status, stored.is_some()), (StatusCode::OK, true), "{name}: {value}"),
            Some(expected) => {
                assert_eq!((code(&answer), stored), (refused(400, expected), None), "{name}: {value}");
            }
        }
    }
    let found = site.send(put("hello").header("x-amz-checksum-crc32", "NhCmhg==")).await;
    assert_eq!(found.header("x-amz-checksum-crc32"), "NhCmhg==");
    let head = S3Request::new(Method::HEAD, "/lab/a", "").header("x-amz-checksum-mode", "ENABLED");
    assert_eq!(site.send(head).await.header("x-amz-checksum-crc32"), "NhCmhg==");
}

#[tokio::test]
async fn unsigned_chunks_are_decoded_with_their_trailers() {
    let site = Site::new();
    let chunked = |body: &str| {
        put(body)
            .header("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")
            .header("x-amz-decoded-content-length", "5")
            .header("content-encoding", "gzip,aws-chunked")
            .header("x-amz-trailer", "x-amz-checksum-crc32")
    };
    let good = "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";
    assert_eq!(site.send(chunked(good)).await.status, StatusCode::OK);
    let found = site.plain(Method::GET, "/lab/a", "").await;
    assert_eq!((found.text(), found.header("content-encoding")), ("hello", "gzip"));
    assert_eq!(site.send(chunked(good).signed(&open_keys())).await.status, StatusCode::OK);
    for (body, expected) in [
        ("5\r\nhello\r\n0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n", "BadDigest"),
        ("5\r\nhello\r\n0\r\n\r\n", "MalformedTrailerError"),
        ("5\r\nhel", "IncompleteBody"),
        ("6\r\nhello!\r\n0\r\n\r\n", "IncompleteBody"),
        ("hello", "IncompleteBody"),
        ("x\r\nhello\r\n0\r\n\r\n", "InvalidRequest"),
    ] {
        assert_eq!(code(&site.send(chunked(body)).await), refused(400, expected), "{body:?}");
    }
    let without_length = put(good).header("content-encoding", "aws-chunked");
    assert_eq!(code(&site.send(without_length).await), refused(411, "MissingContentLength"));
}

#[tokio::test]
async fn signed_chunks_are_verified() {
    let site = Site::new();
    let request = signed_chunks(put(""), &open_keys(), "hello");
    assert_eq!(site.send(request).await.status, StatusCode::OK);
    assert_eq!(site.api.value("lab/a").await.unwrap(), "hello");
    site.plain(Method::DELETE, "/lab/a", "").await;
    let mut changed = signed_chunks(put(""), &open_keys(), "hello");
    changed.body = String::from_utf8(changed.body).unwrap().replace("hello", "hallo").into_bytes();
    assert_eq!(code(&site.send(changed).await), refused(403, "SignatureDoesNotMatch"));
    let mut unsigned = signed_chunks(put(""), &open_keys(), "hello");
    unsigned.headers.retain(|(name, _)| name != "authorization");
    assert_eq!(code(&site.send(unsigned).await), refused(400, "InvalidRequest"));
    assert_eq!(site.api.value("lab/a").await, None);
}

#[tokio::test]
async fn malformed_xml_is_refused() {
    let site = Site::new();
    site.send(put("hello")).await;
    let with_sum = |body: &str| erase(body).header("x-amz-checksum-sha256", &sha256(body));
    let good = "<Delete><Object><Key>a</Key></Object></Delete>";
    assert_eq!(code(&site.send(erase(good)).await), refused(400, "InvalidRequest"));
    let bomb =
        format!("<!DOCTYPE a [<!ENTITY b \"{}\">]><Delete><Object><Key>&b;</Key></Object></Delete>", "x".repeat(99));
    let many = format!("<Delete>{}</Delete>", "<Object><Key>a</Key></Object>".repeat(1001));
    for bad in ["", "x", "<Delete>", "<Delete></Delete>", "<Other/>", &bomb, &many] {
        let answer = site.send(with_sum(bad)).await;
        assert!(answer.status.is_client_error(), "{bad} {}", answer.text());
    }
    let large = format!("<Delete><Object><Key>{}</Key></Object></Delete>", "x".repeat(5 << 20));
    assert_eq!(code(&site.send(with_sum(&large)).await), refused(400, "MaxMessageLengthExceeded"));
    let stale = erase("<Delete/>").header("x-amz-checksum-sha256", &sha256(good));
    assert_eq!(code(&site.send(stale).await), refused(400, "BadDigest"));
    assert!(site.api.value("lab/a").await.is_some());
    assert_eq!(site.send(with_sum(good)).await.status, StatusCode::OK);
    assert!(site.api.value("lab/a").await.is_none());
}

#[tokio::test]
async fn large_objects_are_refused_by_their_length() {
    let limits = Limits { value: 4, ..Limits::default() };
    let site = Site::with(Settings { limits, ..Settings::default() });
    assert_eq!(code(&site.send(put("hello")).await), refused(400, "EntityTooLarge"));
    assert_eq!(site.send(put("hell")).await.status, StatusCode::OK);
}

#[tokio::test]
async fn directories_are_no_keys() {
    let site = Site::new();
    let directory = |method, body| S3Request::new(method, "/lab/dir/", body);
    assert_eq!(site.send(directory(Method::PUT, "")).await.status, StatusCode::OK);
    assert_eq!(code(&site.send(directory(Method::PUT, "x")).await), refused(400, "InvalidArgument"));
    assert_eq!(site.send(directory(Method::HEAD, "")).await.status, StatusCode::NOT_FOUND);
    assert_eq!(site.send(directory(Method::DELETE, "")).await.status, StatusCode::NO_CONTENT);
    assert!(site.api.keys().await.is_empty());
}

#[tokio::test]
async fn response_that_no_continue_preceded_closes_its_connection() {
    let site = Site::new();
    let connection = async |headers: &[(&str, &str)], body: &str| {
        let request = S3Request::new(Method::PUT, "/lab/a", body);
        let answer =
            site.send(headers.iter().fold(request, |request, (name, value)| request.header(name, value))).await;
        answer.headers.get("connection").map(|value| value.to_str().unwrap().to_owned())
    };
    let expects = ("expect", "100-continue");
    assert_eq!(connection(&[expects], "hello").await, None);
    assert_eq!(connection(&[expects], "").await.as_deref(), Some("close"));
    assert_eq!(connection(&[], "").await, None);
    // Refused without its body.
    assert_eq!(connection(&[expects, ("if-match", "\"none\"")], "hello").await.as_deref(), Some("close"));
}
