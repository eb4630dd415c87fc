//! Header values shared by several handlers.

use http::HeaderValue;
use store::Guarantees;

/// `Cache-Control`: caches may store the response, but have to revalidate it, since any key can change at any time.
pub(crate) const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

/// The value of `Zarr-Consistency` for a response with several values of a store.
pub(crate) fn consistency(guarantees: Guarantees) -> HeaderValue {
    HeaderValue::from_static(guarantees.reads.as_str())
}
