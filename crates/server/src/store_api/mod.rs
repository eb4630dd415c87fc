//! `/store`: keys and their bytes.

use http::HeaderValue;

pub(crate) mod erase;
pub(crate) mod get;
mod html;
pub(crate) mod list;
mod media;
pub(crate) mod put;
mod redirect;
mod walk;

/// For `Cache-Control`: answers may be kept, but nobody may rely on them without asking whether they changed, since
/// any key can be set again at any time.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");
