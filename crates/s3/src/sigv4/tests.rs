//! Tests with the examples of Amazon's documentation.

use http::Request;
use proptest::prelude::*;
use s3s::S3ErrorCode;

use super::*;

const ACCESS: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const PRESIGNED: &str = "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404";

fn at(text: &str) -> SystemTime {
    parse::time(text).unwrap()
}

fn signed(signed_headers: &str, signature: &str) -> http::request::Builder {
    let line = format!(
        "AWS4-HMAC-SHA256 Credential={ACCESS}/20130524/us-east-1/s3/aws4_request,SignedHeaders={signed_headers},Signature={signature}"
    );
    let request = Request::builder().header("host", "examplebucket.s3.amazonaws.com").header("authorization", line);
    request.header("x-amz-content-sha256", EMPTY).header("x-amz-date", "20130524T000000Z")
}

fn get_with_range() -> Request<()> {
    let signature = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";
    let request = signed("host;range;x-amz-content-sha256;x-amz-date", signature);
    request.uri("/test.txt").header("range", "bytes=0-9").body(()).unwrap()
}

fn head<B>(request: &Request<B>) -> SignedRequest<'_> {
    SignedRequest { method: request.method(), uri: request.uri(), headers: request.headers() }
}

/// The code with which a request is refused; `None` if its signature is verified.
fn refused<B>(request: &Request<B>, secret: &str, now: &str) -> Option<S3ErrorCode> {
    let verified = Signature::of(head(request)).and_then(|signature| match signature {
        Some(signature) => signature.verify(head(request), secret, at(now)).map(drop),
        None => Err(s3_error!(AccessDenied, "unsigned")),
    });
    verified.err().map(|error| error.code().clone())
}

#[test]
fn examples_of_the_documentation_are_verified() {
    let now = "20130524T000000Z";
    assert_eq!(refused(&get_with_range(), SECRET, now), None);
    let signature = "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    let lifecycle = signed("host;x-amz-content-sha256;x-amz-date", signature).uri("/?lifecycle").body(()).unwrap();
    assert_eq!(refused(&lifecycle, SECRET, now), None);
    let signature = "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7";
    let request = signed("host;x-amz-content-sha256;x-amz-date", signature);
    let list = request.uri("/?max-keys=2&prefix=J").body(()).unwrap();
    assert_eq!(refused(&list, SECRET, now), None);
    let presigned =
        Request::builder().uri(PRESIGNED).header("host", "examplebucket.s3.amazonaws.com").body(()).unwrap();
    assert_eq!(refused(&presigned, SECRET, "20130524T235959Z"), None);
    assert_eq!(refused(&presigned, SECRET, "20130525T000001Z"), Some(S3ErrorCode::AccessDenied));
    assert_eq!(refused(&presigned, SECRET, "20130523T234000Z"), Some(S3ErrorCode::RequestTimeTooSkewed));
}

#[test]
fn changed_requests_are_refused() {
    let now = "20130524T000500Z";
    let mismatch = Some(S3ErrorCode::SignatureDoesNotMatch);
    type Change = fn(&mut Request<()>);
    let changes: [(Change, Option<S3ErrorCode>); 9] = [
        (|_| {}, None),
        (|request| *request.method_mut() = Method::PUT, mismatch.clone()),
        (|request| *request.uri_mut() = "/other.txt".parse().unwrap(), mismatch.clone()),
        (|request| *request.uri_mut() = "/test.txt?acl".parse().unwrap(), mismatch.clone()),
        (|request| drop(request.headers_mut().insert("range", "bytes=0-10".parse().unwrap())), mismatch.clone()),
        (|request| drop(request.headers_mut().remove("range")), mismatch.clone()),
        (|request| drop(request.headers_mut().insert("host", "other".parse().unwrap())), mismatch.clone()),
        (
            |request| drop(request.headers_mut().insert("x-amz-copy-source", "lab/secret".parse().unwrap())),
            Some(S3ErrorCode::AccessDenied),
        ),
        (
            |request| {
                let _ = request.headers_mut().append("authorization", "AWS4-HMAC-SHA256 ".parse().unwrap());
            },
            Some(S3ErrorCode::InvalidArgument),
        ),
    ];
    for (number, (change, code)) in changes.into_iter().enumerate() {
        let mut request = get_with_range();
        change(&mut request);
        assert_eq!(refused(&request, SECRET, now), code, "{number}");
    }
    assert_eq!(refused(&get_with_range(), "another", now), mismatch);
    assert_eq!(refused(&get_with_range(), SECRET, "20130524T001501Z"), Some(S3ErrorCode::RequestTimeTooSkewed));
}

#[test]
fn other_forms_of_signatures_are_refused() {
    let with = |line: &str| Request::builder().uri("/a/b").header("authorization", line).body(()).unwrap();
    for (line, code) in [
        ("AWS key:signature", S3ErrorCode::InvalidRequest),
        ("Bearer token", S3ErrorCode::InvalidArgument),
        ("AWS4-HMAC-SHA256", S3ErrorCode::AuthorizationHeaderMalformed),
        ("AWS4-HMAC-SHA256 Credential=a, Credential=b", S3ErrorCode::AuthorizationHeaderMalformed),
    ] {
        assert_eq!(refused(&with(line), SECRET, "20130524T000000Z"), Some(code), "{line}");
    }
    let mut both = get_with_range();
    *both.uri_mut() = PRESIGNED.parse().unwrap();
    assert_eq!(refused(&both, SECRET, "20130524T000000Z"), Some(S3ErrorCode::InvalidArgument));
    for (from, to, code) in [
        ("X-Amz-Expires=86400", "X-Amz-Expires=604801", S3ErrorCode::AuthorizationQueryParametersError),
        ("X-Amz-Expires=86400", "X-Amz-Expires=0", S3ErrorCode::AuthorizationQueryParametersError),
        ("&X-Amz-Expires=86400", "", S3ErrorCode::AuthorizationQueryParametersError),
        ("X-Amz-Date=2", "X-Amz-Date=2&X-Amz-Date=2", S3ErrorCode::AuthorizationQueryParametersError),
        ("%2Fs3%2F", "%2Fsts%2F", S3ErrorCode::AuthorizationQueryParametersError),
        ("SignedHeaders=host", "SignedHeaders=date", S3ErrorCode::AccessDenied),
        ("X-Amz-Algorithm=AWS4-HMAC-SHA256", "AWSAccessKeyId=a&Signature=b", S3ErrorCode::InvalidRequest),
    ] {
        let uri = PRESIGNED.replace(from, to);
        let request = Request::builder().uri(uri).header("host", "examplebucket.s3.amazonaws.com").body(()).unwrap();
        assert_eq!(refused(&request, SECRET, "20130524T000000Z"), Some(code), "{to}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(line in "(AWS4-HMAC-SHA256 )?[ -~]{0,80}", query in "(X-Amz-[A-Za-z]{4,14}=?[ -~&&[^ #<>\"]]{0,9}&?){0,7}", date in "[0-9TZ]{0,18}") {
        let uri = format!("/a?{query}").replace(['"', '<', '>', '`', '{', '}', '|', '^', '\\'], "");
        if let Ok(uri) = uri.parse::<Uri>() {
            let mut request = Request::builder().uri(uri).header("x-amz-date", date).body(()).unwrap();
            let _ = refused(&request, SECRET, "20130524T000000Z");
            request.headers_mut().insert("authorization", line.parse().unwrap());
            prop_assert!(refused(&request, SECRET, "20130524T000000Z").is_some());
        }
    }
}
