//! Requests that read or set an object.
//!
//! They are parsed here rather than by s3s, whose inputs and outputs have some fifty members each: routing, parsing and
//! rendering them took a third of the processor time of a `GET` of 1 KiB.

use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri,
    header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES},
};
use percent_encoding::percent_decode_str;
use s3s::{
    S3Error,
    dto::{Timestamp, TimestampFormat},
    s3_error,
};

use crate::{
    guard::decoded,
    headers::{CHECKSUM_MODE, COPY_SOURCE},
};

/// The only part of an object.
const ONLY_PART: i32 = 1;
/// The sub-resources of an object, and the parameter of its uploads, which other operations have.
const SUB_RESOURCES: [&str; 7] = ["acl", "attributes", "legal-hold", "retention", "tagging", "torrent", "uploadId"];
/// The parameters that choose a header of the response.
const OVERRIDES: [(&str, HeaderName); 6] = [
    ("response-cache-control", CACHE_CONTROL),
    ("response-content-disposition", CONTENT_DISPOSITION),
    ("response-content-encoding", CONTENT_ENCODING),
    ("response-content-language", CONTENT_LANGUAGE),
    ("response-content-type", CONTENT_TYPE),
    ("response-expires", EXPIRES),
];

/// A request that reads or sets an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRequest {
    /// The name of the bucket, which may be invalid.
    pub bucket: String,
    /// The key of the object in it.
    pub key: String,
    /// The operation.
    pub operation: ObjectOperation,
    /// True if the response shows the checksum of the object.
    pub shows_checksum: bool,
    /// The headers of the response that the request chooses.
    pub overridden: HeaderMap,
}

/// The operation of an [`ObjectRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectOperation {
    /// `GetObject`.
    Get,
    /// `HeadObject`.
    Head,
    /// `PutObject`.
    Put,
}

impl ObjectRequest {
    /// Parses a request whose path begins with the bucket; `None` if it is for something else.
    pub fn parse(method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Option<Self>, S3Error> {
        let operation = match *method {
            Method::GET => ObjectOperation::Get,
            Method::HEAD => ObjectOperation::Head,
            Method::PUT if !headers.contains_key(COPY_SOURCE) => ObjectOperation::Put,
            _ => return Ok(None),
        };
        let path = percent_decode_str(uri.path()).decode_utf8().map_err(|_| s3_error!(InvalidURI))?;
        let Some((bucket, key)) = path.strip_prefix('/').and_then(|path| path.split_once('/')) else { return Ok(None) };
        if key.is_empty() {
            return Ok(None);
        }
        let mut overridden = HeaderMap::new();
        for parameter in uri.query().unwrap_or_default().split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = decoded(parameter);
            if operation != ObjectOperation::Head && SUB_RESOURCES.contains(&&*name) {
                return Ok(None);
            }
            if operation == ObjectOperation::Put {
                continue;
            }
            if name == "partNumber" {
                check_part(&value)?;
            }
            if let Some((_, header)) = OVERRIDES.iter().find(|(known, _)| name == *known) {
                let value = overriding(header, &value)?;
                if overridden.insert(header, value).is_some() {
                    return Err(s3_error!(InvalidRequest, "{name} is repeated"));
                }
            }
        }
        Ok(Some(Self {
            bucket: bucket.to_owned(),
            key: key.to_owned(),
            operation,
            shows_checksum: headers.contains_key(CHECKSUM_MODE),
            overridden,
        }))
    }
}

fn check_part(number: &str) -> Result<(), S3Error> {
    match number.parse() {
        Ok(ONLY_PART) => Ok(()),
        Ok(_) => Err(s3_error!(InvalidRange, "the object has one part")),
        Err(_) => Err(s3_error!(InvalidArgument, "partNumber is not a number")),
    }
}

fn overriding(header: &HeaderName, value: &str) -> Result<HeaderValue, S3Error> {
    if *header == EXPIRES && Timestamp::parse(TimestampFormat::HttpDate, value).is_err() {
        return Err(s3_error!(InvalidArgument, "response-expires is not an HTTP date"));
    }
    HeaderValue::from_str(value).map_err(|_| s3_error!(InvalidRequest, "{header} cannot have this value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(method: Method, uri: &str) -> Result<Option<ObjectRequest>, String> {
        let request = ObjectRequest::parse(&method, &uri.parse().unwrap(), &HeaderMap::new());
        request.map_err(|error| error.code().as_str().to_owned())
    }

    #[test]
    fn paths_are_of_objects() {
        let read = parsed(Method::GET, "/lab/a%2Fb/c%20d?x-id=GetObject").unwrap().unwrap();
        assert_eq!((&*read.bucket, &*read.key, read.operation), ("lab", "a/b/c d", ObjectOperation::Get));
        assert!(!read.shows_checksum && read.overridden.is_empty());
        assert_eq!(parsed(Method::HEAD, "/lab/a").unwrap().unwrap().operation, ObjectOperation::Head);
        assert_eq!(parsed(Method::PUT, "/lab/a?x-id=Put").unwrap().unwrap().operation, ObjectOperation::Put);
        let copies = HeaderMap::from_iter([(COPY_SOURCE, HeaderValue::from_static("lab/b"))]);
        assert_eq!(ObjectRequest::parse(&Method::PUT, &Uri::from_static("/lab/a"), &copies).unwrap(), None);
        for (method, other) in [
            (Method::GET, "/"),
            (Method::GET, "/lab"),
            (Method::GET, "/lab/?list-type=2"),
            (Method::GET, "/lab/a?acl"),
            (Method::GET, "/lab/a?uploadId=1"),
            (Method::GET, "/lab/a?x-id=GetObjectTagging&%74agging"),
            (Method::PUT, "/lab/a?partNumber=1&uploadId=1"),
            (Method::DELETE, "/lab/a"),
        ] {
            assert_eq!(parsed(method, other), Ok(None), "{other}");
        }
        assert!(parsed(Method::HEAD, "/lab/a?acl").unwrap().is_some());
        assert_eq!(parsed(Method::GET, "/lab/%ff"), Err("InvalidURI".to_owned()));
    }

    #[test]
    fn parameters_choose_headers() {
        let uri = "/lab/a?response-content-type=text%2Fcsv&response-expires=Thu,%2001%20Dec%201994%2016:00:00%20GMT";
        let overridden = parsed(Method::GET, uri).unwrap().unwrap().overridden;
        assert_eq!((&overridden[CONTENT_TYPE], overridden.len()), (&HeaderValue::from_static("text/csv"), 2));
        for (query, code) in [
            ("response-expires=tomorrow", "InvalidArgument"),
            ("response-content-type=a%0Ab", "InvalidRequest"),
            ("response-content-type=a&response-content-type=b", "InvalidRequest"),
            ("partNumber=2", "InvalidRange"),
            ("partNumber=one", "InvalidArgument"),
        ] {
            assert_eq!(parsed(Method::GET, &format!("/lab/a?{query}")), Err(code.to_owned()), "{query}");
        }
        assert!(parsed(Method::GET, "/lab/a?partNumber=1").unwrap().is_some());
    }
}
