//! Values of headers that several surfaces have.

use http::HeaderValue;

/// For `Cache-Control`: answers may be kept, but nobody may rely on them without asking whether they changed, since
/// any key can be set again at any time.
pub(crate) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
