//! Heads of responses with elements.

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderValue,
    header::{CACHE_CONTROL, ETAG, VARY},
};
use zarrd_store::Version;
use zarrd_wire::etag;

use crate::{array_api::encode::ArraySlice, content_encoding::ContentEncoding, headers::REVALIDATE};

pub(in crate::array_api) const VARY_ACCEPT: HeaderValue = HeaderValue::from_static("accept, accept-encoding");

/// The head of a response, known before anything is decoded.
pub(super) struct ResponseHead {
    pub(super) slice: ArraySlice,
    /// The length without content coding, in bytes, if known.
    pub(super) length: Option<u64>,
    /// The version shown as entity tag.
    pub(super) version: Option<Version>,
    /// Headers that describe the elements, and validators.
    pub(super) headers: HeaderMap,
}

impl ResponseHead {
    pub(super) fn response(self, body: Body) -> Response {
        let mut response = Response::new(body);
        *response.headers_mut() = self.headers;
        response
    }
}

/// Adds the headers that a 304 has too.
pub(super) fn validators(version: Option<Version>, headers: &mut HeaderMap) {
    headers.extend(version.map(|version| (ETAG, etag::render(version))));
    headers.insert(CACHE_CONTROL, REVALIDATE);
    headers.insert(VARY, VARY_ACCEPT);
}

/// Returns the value of `Accept-Ranges`. Ranges address the unencoded bytes, so compressed responses have none.
pub(super) fn accept_ranges(length: Option<u64>, encoding: ContentEncoding) -> Option<HeaderValue> {
    match (length, encoding) {
        (None, _) => Some(HeaderValue::from_static("none")),
        (Some(_), ContentEncoding::Identity) => Some(HeaderValue::from_static("bytes")),
        (Some(_), ContentEncoding::Zstd | ContentEncoding::Gzip) => None,
    }
}
