//! CORS headers (Fetch standard).

use axum::{body::Body, response::Response};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{
        ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
        ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
        ACCESS_CONTROL_REQUEST_METHOD, ALLOW, AUTHORIZATION, ORIGIN, X_CONTENT_TYPE_OPTIONS,
    },
};

use zarrd_wire::dav::{CLASSES, DAV};

use super::access::{allowed_methods, origin_allowed};
use crate::{app::App, routes::Route, settings::Changes};

/// Request headers allowed for pages of any origin.
const ALLOWED_REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept, authorization, cache-control, content-digest, content-type, if-match, if-modified-since, if-none-match, \
     if-range, if-unmodified-since, pragma, range, x-request-id",
);
/// One day, which exceeds the limit of every browser.
const MAX_AGE: HeaderValue = HeaderValue::from_static("86400");
/// Response headers exposed to pages of any origin, by name: `*` covers neither requests with credentials nor older
/// browsers.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static(
    "accept-ranges, allow, content-disposition, content-encoding, content-length, content-range, date, etag, last-modified, link, location, \
     retry-after, server-timing, vary, www-authenticate, x-request-id, zarr-broken, zarr-consistency, zarr-consolidated, zarr-cursor, zarr-data-type, zarr-dialect, zarr-dialects-differ, zarr-dimension-names, \
     zarr-existed, zarr-losses, zarr-modified, zarr-northward-rows, zarr-other-dialects, zarr-read, zarr-selected, zarr-shape, zarr-undecoded",
);
/// `Allow` of a resource whose store supports nothing that can be done with it.
const OPTIONS_ALONE: &[u8] = b"OPTIONS";
/// The methods of the S3 surface that change nothing.
const S3_SAFE: HeaderValue = HeaderValue::from_static("GET, HEAD, OPTIONS");
const ANY: HeaderValue = HeaderValue::from_static("*");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");

/// Adds the headers common to all responses: CORS for any origin, and `nosniff`.
///
/// They do not depend on the origin, so that caches can store the response.
pub(crate) fn add_common_headers(headers: &mut HeaderMap) {
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
}

/// Responds to `OPTIONS` with the supported methods, and to a preflight with those permitted for the page's origin.
pub(crate) fn preflight(app: &App, route: &Route, uri: &Uri, request_headers: &HeaderMap) -> Response {
    let all = methods(allowed_methods(app, route, uri));
    let safe = || methods(route.allow_safe(uri.query().unwrap_or_default()));
    let mut response = preflight_response(app, all.clone(), safe, request_headers);
    let headers = response.headers_mut();
    let reads_properties = route.operations.iter().any(|operation| operation.is_propfind());
    if reads_properties && all.as_bytes() != OPTIONS_ALONE {
        headers.insert(DAV, HeaderValue::from_static(CLASSES));
    }
    response
}

/// Responds to `OPTIONS` of the S3 surface, whose headers `x-amz-*` are allowed for pages like the others.
pub(crate) fn s3_preflight(app: &App, request_headers: &HeaderMap) -> Response {
    let all = match app.settings().changes {
        Changes::Accepted => HeaderValue::from_static("GET, HEAD, PUT, POST, DELETE, OPTIONS"),
        Changes::Rejected => S3_SAFE,
    };
    let mut response = preflight_response(app, all, || S3_SAFE, request_headers);
    if let Some(allowed) = response.headers_mut().get_mut(ACCESS_CONTROL_ALLOW_HEADERS) {
        let amazon = header_names(request_headers).filter(|name| name.starts_with("x-amz-"));
        let names = amazon.fold(allowed.to_str().unwrap_or_default().to_owned(), |names, name| names + ", " + &name);
        *allowed = HeaderValue::try_from(names).unwrap_or(ALLOWED_REQUEST_HEADERS);
    }
    response
}

/// Method names and commas as a header value.
fn methods(methods: String) -> HeaderValue {
    HeaderValue::try_from(methods).unwrap_or(HeaderValue::from_static("OPTIONS"))
}

/// The response to `OPTIONS` of a resource with these methods, of which a page that may not change anything has the safe
/// ones.
fn preflight_response(
    app: &App,
    all: HeaderValue,
    safe: impl FnOnce() -> HeaderValue,
    request_headers: &HeaderMap,
) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    if let Some(origin) =
        request_headers.get(ORIGIN).filter(|_| request_headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD))
    {
        // A page of any origin may use a bearer token that it has.
        let may_change = origin_allowed(app, origin.as_bytes()) || requests_authorization(request_headers);
        let methods = if may_change { all.clone() } else { safe() };
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED_REQUEST_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    }
    headers.insert(ALLOW, all);
    response
}

/// True if the page announces an `Authorization` header.
fn requests_authorization(headers: &HeaderMap) -> bool {
    header_names(headers).any(|name| name == AUTHORIZATION.as_str())
}

/// The names of headers that the page announces, in lower case.
fn header_names(headers: &HeaderMap) -> impl Iterator<Item = String> {
    let lines = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    names.map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
}
