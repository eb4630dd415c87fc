//! Header values shared by several handlers.

use http::HeaderValue;

/// `Cache-Control`: caches may store the response, but have to revalidate it, since any key can change at any time.
pub(crate) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
