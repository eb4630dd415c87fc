//! Headers of requests in problem documents.

use http::HeaderValue;

/// What a header says, cut to a length that can be truncated.
pub(super) fn truncated(header: &HeaderValue) -> String {
    String::from_utf8_lossy(header.as_bytes()).chars().take(256).collect()
}
