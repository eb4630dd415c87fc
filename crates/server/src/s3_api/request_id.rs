//! The id of a request in the forms of S3: a header of the response, and an element of its error.

use axum::{
    body::{self, Body},
    response::Response,
};
use http::{HeaderName, HeaderValue, header::CONTENT_LENGTH};
use http_body::Body as _;
use zarrd_wire::headers::REQUEST_ID;

const AMZ_REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");
/// The maximum length of an error, in bytes.
const MAX_ERROR_LEN: usize = 16 << 10;
const END: &[u8] = b"</Error>";

/// Adds the id to a response that has it in the form of the other surfaces.
pub(super) async fn add(mut response: Response) -> Response {
    let Some(id) = response.headers().get(REQUEST_ID).cloned() else { return response };
    response.headers_mut().insert(AMZ_REQUEST_ID, id.clone());
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let is_short = |body: &Body| body.size_hint().exact().is_some_and(|len| (1..=MAX_ERROR_LEN as u64).contains(&len));
    if !is_short(response.body()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    // Its length is known, so that it is in memory.
    let error = body::to_bytes(body, MAX_ERROR_LEN).await.unwrap_or_default();
    let error = match error.strip_suffix(END) {
        Some(start) => [start, b"<RequestId>", id.as_bytes(), b"</RequestId>", END].concat().into(),
        None => error,
    };
    parts.headers.insert(CONTENT_LENGTH, HeaderValue::from(error.len()));
    Response::from_parts(parts, Body::from(error))
}
