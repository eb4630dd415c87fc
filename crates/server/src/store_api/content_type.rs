//! The media types of values.

use http::HeaderValue;
use store::Key;
use wire::headers::{JSON, OCTETS};

/// The media type of a key's value, by its name: nothing that a browser would run.
pub(super) fn for_key(key: &Key) -> HeaderValue {
    match key.name() {
        ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata" => JSON,
        name if name.ends_with(".json") => JSON,
        _ => OCTETS,
    }
}
