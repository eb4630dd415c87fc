//! Names of headers.

use http::HeaderName;

pub(crate) const CHECKSUM_MODE: HeaderName = HeaderName::from_static("x-amz-checksum-mode");
pub(crate) const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// The header with the hash of the body, or with the kind of its framing.
pub(crate) const CONTENT_SHA256: HeaderName = HeaderName::from_static("x-amz-content-sha256");
pub(crate) const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
pub(crate) const DECODED_LENGTH: HeaderName = HeaderName::from_static("x-amz-decoded-content-length");
pub(crate) const TRAILER: HeaderName = HeaderName::from_static("x-amz-trailer");
