//! Media types of values.

use http::HeaderValue;
use zarrd_store::Key;
use zarrd_wire::headers::{JSON, OCTETS};

/// Returns the media type of a key's value, by its name; never one that browsers execute.
pub(crate) fn for_key(key: &Key) -> HeaderValue {
    match key.name() {
        ".zarray" | ".zgroup" | ".zattrs" | ".zmetadata" => JSON,
        name if name.ends_with(".json") => JSON,
        _ => OCTETS,
    }
}
