//! Request headers quoted in problem documents.

use http::HeaderValue;

/// Returns the text of a header, truncated to 256 characters.
pub(super) fn truncated(header: &HeaderValue) -> String {
    String::from_utf8_lossy(header.as_bytes()).chars().take(256).collect()
}
