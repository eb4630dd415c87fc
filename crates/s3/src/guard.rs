//! What is refused before a request is routed: s3s would take it for something else, or ignore it.

use http::{HeaderMap, HeaderValue, Method, header::CONTENT_TYPE};
use percent_encoding::percent_decode_str;
use s3s::{S3Error, s3_error};

use crate::{headers::COPY_SOURCE, names::Bucket, sigv4::SignedRequest};

/// The source of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopySource {
    /// The bucket.
    pub bucket: Bucket,
    /// The key in it.
    pub key: String,
}

/// The checks of a request's head.
#[derive(Clone, Copy, Debug)]
pub struct Guard<'r>(pub SignedRequest<'r>);

/// The version that every object has.
pub const NULL_VERSION: &str = "null";

/// The source of copies in requests to s3s, which knows fewer names of buckets than there are.
const PLACEHOLDER: HeaderValue = HeaderValue::from_static("source/key");
const VERSION_ID: &str = "versionId";
/// The first characters of the names of headers that ask for what zarrd does not have.
const REFUSED: [&str; 9] = [
    "x-amz-bucket-object-lock-",
    "x-amz-copy-source-server-side-encryption",
    "x-amz-grant-",
    "x-amz-object-lock-",
    "x-amz-server-side-encryption",
    "x-amz-tagging",
    "x-amz-website-redirect-location",
    "x-amz-write-offset-bytes",
    "x-amz-rename-source",
];
/// Headers that are accepted with some values, which ask for what zarrd does anyway.
const ACCEPTED: [(&str, &[&str]); 4] = [
    ("x-amz-acl", &["private", "bucket-owner-full-control"]),
    ("x-amz-storage-class", &["STANDARD"]),
    ("x-amz-tagging-directive", &["COPY"]),
    ("x-amz-bucket-object-lock-enabled", &["false", "False"]),
];
/// The sub-resources that are known. Others would be taken for the resource itself: `DELETE /lab?unknown` for the bucket.
const SUB_RESOURCES: [&str; 31] = [
    "accelerate",
    "acl",
    "analytics",
    "attributes",
    "cors",
    "delete",
    "encryption",
    "intelligent-tiering",
    "inventory",
    "legal-hold",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "ownershipControls",
    "policy",
    "policyStatus",
    "publicAccessBlock",
    "replication",
    "requestPayment",
    "restore",
    "retention",
    "select",
    "tagging",
    "torrent",
    "uploads",
    "versioning",
    "versions",
    "website",
];
/// Parameters that are numbers or ids, and so not empty.
const NOT_EMPTY: [&str; 8] = [
    "list-type",
    "max-buckets",
    "max-keys",
    "max-parts",
    "max-uploads",
    "part-number-marker",
    "partNumber",
    "uploadId",
];
/// The parameters that may have an empty value.
const MAY_BE_EMPTY: [&str; 9] = [
    "prefix",
    "delimiter",
    "marker",
    "start-after",
    "continuation-token",
    "key-marker",
    "upload-id-marker",
    "version-id-marker",
    "encoding-type",
];

impl Guard<'_> {
    /// Fails if the request is a form, or asks for what would be ignored or taken for something else.
    pub fn check(&self) -> Result<(), S3Error> {
        let SignedRequest { method, uri, headers } = self.0;
        if *method == Method::POST {
            let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().to_ascii_lowercase()).unwrap_or_default();
            if kind.starts_with(b"multipart/form-data") {
                return Err(s3_error!(NotImplemented, "uploads by forms are not supported"));
            }
            if uri.path() == "/" {
                return Err(s3_error!(MethodNotAllowed, "POST is not supported here"));
            }
        }
        check_headers(headers)?;
        check_query(uri.query().unwrap_or_default())
    }

    /// True if the request asks for other headers of the response than the object has.
    pub fn overrides_response(&self) -> bool {
        let query = self.0.uri.query().unwrap_or_default();
        query.split('&').any(|parameter| decoded(parameter).0.starts_with("response-"))
    }

    /// The source of the copy that the request asks for, if it does.
    pub fn copy_source(&self) -> Result<Option<CopySource>, S3Error> {
        let Some(line) = self.0.headers.get(COPY_SOURCE) else { return Ok(None) };
        let invalid = || s3_error!(InvalidArgument, "{COPY_SOURCE} is not a bucket, `/` and a key, percent-encoded");
        let line = line.to_str().map_err(|_| invalid())?;
        let (path, version) = line.split_once("?versionId=").map_or((line, None), |(path, id)| (path, Some(id)));
        if version.is_some_and(|version| version != NULL_VERSION) {
            return Err(no_such_version());
        }
        let path = percent_decode_str(path).decode_utf8().map_err(|_| invalid())?;
        let (bucket, key) = path.strip_prefix('/').unwrap_or(&path).split_once('/').ok_or_else(invalid)?;
        if key.is_empty() {
            return Err(invalid());
        }
        Ok(Some(CopySource { bucket: bucket.parse()?, key: key.to_owned() }))
    }

    /// Replaces the source of a copy by one that s3s can parse.
    pub fn hide_copy_source(headers: &mut HeaderMap) {
        if headers.contains_key(COPY_SOURCE) {
            headers.insert(COPY_SOURCE, PLACEHOLDER);
        }
    }

    /// The query for s3s: without the signature, and without `versionId=null`.
    pub fn query_to_route(query: &str) -> Result<String, S3Error> {
        let mut routed = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = decoded(parameter);
            if name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("X-Amz-")) {
                continue;
            }
            match name == VERSION_ID {
                true => check_version(&value)?,
                false => routed.push(parameter),
            }
        }
        Ok(routed.join("&"))
    }
}

/// Fails unless the version that a request names is `null`, which every object has, or empty.
pub fn check_version(version: &str) -> Result<(), S3Error> {
    if version.is_empty() || version == NULL_VERSION { Ok(()) } else { Err(no_such_version()) }
}

fn check_headers(headers: &HeaderMap) -> Result<(), S3Error> {
    for (name, value) in headers {
        if let Some((_, accepted)) = ACCEPTED.iter().find(|(known, _)| name == known) {
            if !accepted.iter().any(|accepted| value == accepted) {
                return Err(s3_error!(NotImplemented, "this value of {name} is not supported"));
            }
        } else if REFUSED.iter().any(|start| name.as_str().starts_with(start)) {
            return Err(s3_error!(NotImplemented, "{name} is not supported"));
        }
    }
    Ok(())
}

fn check_query(query: &str) -> Result<(), S3Error> {
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = decoded(parameter);
        if NOT_EMPTY.contains(&&*name) && value.is_empty() {
            return Err(s3_error!(InvalidArgument, "{name} is empty"));
        }
        // s3s takes any other number for the first version.
        if name == "list-type" && value != "2" {
            return Err(s3_error!(InvalidArgument, "list-type is 2"));
        }
        let is_known = SUB_RESOURCES.contains(&&*name) || MAY_BE_EMPTY.contains(&&*name);
        if value.is_empty() && !is_known && name != VERSION_ID && !name.starts_with("X-Amz-") {
            return Err(s3_error!(NotImplemented, "this sub-resource is not supported"));
        }
    }
    Ok(())
}

/// The name and the value of a parameter.
pub(crate) fn decoded(parameter: &str) -> (String, String) {
    let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let decode = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    (decode(name), decode(value))
}

fn no_such_version() -> S3Error {
    s3_error!(NoSuchVersion, "objects have one version, which is `null`")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// The code with which a request is refused.
    fn refused(method: &str, uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        let guard = Guard(SignedRequest { method: request.method(), uri: request.uri(), headers: request.headers() });
        let checked = guard.check().and_then(|()| guard.copy_source()).map(drop);
        let checked = checked.and_then(|()| Guard::query_to_route(request.uri().query().unwrap_or_default()));
        checked.err().map(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn what_would_be_ignored_is_refused() {
        for (method, uri, headers, code) in [
            ("POST", "/", &[][..], Some("MethodNotAllowed")),
            ("POST", "/lab", &[("content-type", "multipart/form-data; boundary=x")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-acl", "public-read")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-acl", "private"), ("x-amz-storage-class", "STANDARD")], None),
            ("PUT", "/lab/a", &[("x-amz-storage-class", "GLACIER")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-tagging", "a=b")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-tagging-directive", "COPY")], None),
            ("PUT", "/lab/a", &[("x-amz-server-side-encryption", "AES256")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-object-lock-mode", "GOVERNANCE")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-grant-read", "id=1")], Some("NotImplemented")),
            ("PUT", "/lab/a", &[("x-amz-meta-a", "b"), ("x-amz-expected-bucket-owner", "1")], None),
            ("DELETE", "/lab?unknown", &[], Some("NotImplemented")),
            ("DELETE", "/lab?%75nknown=", &[], Some("NotImplemented")),
            ("GET", "/lab?prefix=&delimiter=&list-type=2&x-id=List", &[], None),
            ("GET", "/lab?list-type=3", &[], Some("InvalidArgument")),
            ("GET", "/lab?max-keys=", &[], Some("InvalidArgument")),
            ("PUT", "/lab/a?partNumber=&uploadId=1", &[], Some("InvalidArgument")),
            ("GET", "/lab/a?versionId=null", &[], None),
            ("GET", "/lab/a?versionId=1", &[], Some("NoSuchVersion")),
        ] {
            assert_eq!(refused(method, uri, headers).as_deref(), code, "{method} {uri} {headers:?}");
        }
    }

    #[test]
    fn sources_of_copies_are_parsed() {
        let source = |line: &str| {
            let headers = HeaderMap::from_iter([(COPY_SOURCE, line.parse().unwrap())]);
            let (method, uri) = (Method::PUT, "/a/b".parse().unwrap());
            let source = Guard(SignedRequest { method: &method, uri: &uri, headers: &headers }).copy_source();
            source
                .map(|source| source.map(|source| (source.bucket.as_str().to_owned(), source.key)))
                .map_err(|error| error.code().as_str().to_owned())
        };
        let of = |bucket: &str, key: &str| Ok(Some((bucket.to_owned(), key.to_owned())));
        for (line, expected) in [
            ("lab/a", of("lab", "a")),
            ("/Lab_1/a%20b/c+d", of("Lab_1", "a b/c+d")),
            ("lab/a?versionId=null", of("lab", "a")),
            ("lab/a%3FversionId=1", of("lab", "a?versionId=1")),
            ("lab/a?versionId=1", Err("NoSuchVersion".to_owned())),
            ("lab", Err("InvalidArgument".to_owned())),
            ("lab/", Err("InvalidArgument".to_owned())),
            ("lab/%ff", Err("InvalidArgument".to_owned())),
            ("..%2Fa/b", Err("InvalidBucketName".to_owned())),
            ("arn:aws:s3:us-east-1:1:accesspoint/a/object/b", Err("InvalidBucketName".to_owned())),
        ] {
            assert_eq!(source(line), expected, "{line}");
        }
    }

    #[test]
    fn query_to_route_has_no_signature() {
        let query = "X-Amz-Signature=a&x-id=Get&versionId=null&x%2damz-date=1&uploads";
        assert_eq!(Guard::query_to_route(query).unwrap(), "x-id=Get&uploads");
    }
}
