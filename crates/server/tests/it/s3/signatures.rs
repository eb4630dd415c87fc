//! Signatures that are forged, stale, of another token, or do not cover what they have to.

use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};

use super::client::{Keys, S3Request, Site, at, code, now, open_keys, refused};
use crate::common::tokens::ServerWithTokens;

fn put(target: &str) -> S3Request {
    S3Request::new(Method::PUT, target, "hello")
}

#[tokio::test]
async fn open_server_accepts_one_pair_and_names_it() {
    let site = Site::new();
    assert_eq!(site.send(put("/lab/a").signed(&open_keys())).await.status, StatusCode::OK);
    assert_eq!(site.plain(Method::GET, "/lab/a", "").await.text(), "hello");
    let other = Keys { secret: "other".into(), ..open_keys() };
    assert_eq!(code(&site.send(put("/lab/a").signed(&other)).await), refused(403, "SignatureDoesNotMatch"));
    let other = Keys { access: "other".into(), ..open_keys() };
    let answer = site.send(put("/lab/a").signed(&other)).await;
    assert_eq!(code(&answer), refused(403, "InvalidAccessKeyId"));
    assert!(answer.text().contains("access key zarrd and the secret key zarrd"), "{}", answer.text());
}

#[tokio::test]
async fn pages_of_other_origins_change_nothing_with_the_pair_that_everyone_knows() {
    let site = Site::new();
    let of_page = || put("/lab/a").header("origin", "https://evil.example");
    for request in [of_page(), of_page().signed(&open_keys())] {
        assert_eq!(code(&site.send(request).await), refused(403, "AccessDenied"));
    }
    assert!(site.api.keys().await.is_empty());
    // A page that has a token's key may use it.
    let server = ServerWithTokens::closed();
    let keys = Keys::of_token(&server, &["write:lab/"]);
    assert_eq!(Site::of(&server).send(of_page().signed(&keys)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn signatures_end_with_their_token_and_their_time() {
    let server = ServerWithTokens::closed();
    let (keys, other) = (Keys::of_token(&server, &["write:lab/"]), Keys::of_token(&server, &["write:/"]));
    let site = Site::of(&server);
    assert_eq!(site.send(put("/lab/a").signed(&keys)).await.status, StatusCode::OK);
    for (shift, is_past) in [(16 * 60, true), (16 * 60, false)] {
        let shift = Duration::from_secs(shift);
        let time = if is_past { SystemTime::now() - shift } else { SystemTime::now() + shift };
        let answer = site.send(put("/lab/a").signed_at(&keys, &at(time))).await;
        assert_eq!(code(&answer), refused(403, "RequestTimeTooSkewed"));
    }
    // The secret part of another token of the same directory.
    let forged = Keys { secret: other.secret, ..keys.clone() };
    assert_eq!(code(&site.send(put("/lab/a").signed(&forged)).await), refused(403, "SignatureDoesNotMatch"));
    server.directory.revoke(keys.access.parse().unwrap()).unwrap();
    assert_eq!(code(&site.send(put("/lab/a").signed(&keys)).await), refused(403, "InvalidAccessKeyId"));
}

#[tokio::test]
async fn what_was_signed_is_what_is_done() {
    let site = Site::new();
    let keys = open_keys();
    type Change = fn(S3Request) -> S3Request;
    let changes: [(Change, &str); 7] = [
        (|request| S3Request { target: "/lab/b".into(), ..request }, "SignatureDoesNotMatch"),
        (|request| S3Request { method: Method::DELETE, ..request }, "SignatureDoesNotMatch"),
        (|request| S3Request { target: "/lab/a?acl".into(), ..request }, "SignatureDoesNotMatch"),
        (|request| request.header("x-amz-copy-source", "lab/secret"), "AccessDenied"),
        (|request| request.header("x-amz-meta-owner", "eve"), "AccessDenied"),
        (
            |mut request| {
                request.headers.retain(|(name, _)| name != "if-none-match");
                request
            },
            "SignatureDoesNotMatch",
        ),
        (
            |mut request| {
                request.headers.retain(|(name, _)| name != "host");
                request.header("host", "127.0.0.1:9000")
            },
            "SignatureDoesNotMatch",
        ),
    ];
    for (number, (change, expected)) in changes.into_iter().enumerate() {
        let request = put("/lab/a").header("if-none-match", "*").signed(&keys);
        let answer = site.send(change(request)).await;
        assert_eq!(code(&answer), refused(403, expected), "{number}");
    }
    assert!(site.api.keys().await.is_empty());
    let answer = site.send(put("/lab/a").header("if-none-match", "*").signed(&keys)).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn body_is_that_of_the_signature() {
    let site = Site::new();
    let mut request = put("/lab/a").signed(&open_keys());
    request.body = b"other".to_vec();
    assert_eq!(code(&site.send(request).await), refused(400, "XAmzContentSHA256Mismatch"));
    assert!(site.api.keys().await.is_empty());
    let unsigned = put("/lab/a").header("x-amz-content-sha256", "UNSIGNED-PAYLOAD").signed_at(&open_keys(), &now());
    assert_eq!(site.send(unsigned).await.status, StatusCode::OK);
}

#[tokio::test]
async fn forms_and_other_versions_are_refused() {
    let site = Site::new();
    let sig2 = put("/lab/a").header("authorization", "AWS zarrd:c2lnbmF0dXJl");
    assert_eq!(code(&site.send(sig2).await), refused(400, "InvalidRequest"));
    let bearer = put("/lab/a").header("authorization", "Bearer token");
    assert_eq!(code(&site.send(bearer).await), refused(400, "InvalidArgument"));
    let presigned2 = put("/lab/a?AWSAccessKeyId=zarrd&Signature=x&Expires=9999999999");
    assert_eq!(code(&site.send(presigned2).await), refused(400, "InvalidRequest"));
    let form = S3Request::new(Method::POST, "/lab", "").header("content-type", "multipart/form-data; boundary=x");
    assert_eq!(code(&site.send(form).await), refused(501, "NotImplemented"));
    assert_eq!(code(&site.plain(Method::POST, "/", "").await), refused(405, "MethodNotAllowed"));
}
