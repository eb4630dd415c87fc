//! Names of headers and media types that the `http` crate does not have.

use http::{HeaderName, HeaderValue};

/// The id of a request. A client may choose it, see [`is_request_id`]; every answer bears it.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The digests of a body, as in RFC 9530.
pub const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");
/// The time a value was set, in RFC 3339 with milliseconds; `Last-Modified` has only seconds.
pub const MODIFIED: HeaderName = HeaderName::from_static("zarr-modified");
/// True if an erased key had a value: `true` or `false`.
pub const EXISTED: HeaderName = HeaderName::from_static("zarr-existed");
/// The content type that a value was set with, see [`attributes`](crate::attributes).
pub const VALUE_CONTENT_TYPE: HeaderName = HeaderName::from_static("zarr-content-type");
/// The content encoding that a value was set with.
pub const VALUE_CONTENT_ENCODING: HeaderName = HeaderName::from_static("zarr-content-encoding");
/// The content language that a value was set with.
pub const VALUE_CONTENT_LANGUAGE: HeaderName = HeaderName::from_static("zarr-content-language");
/// The content disposition that a value was set with.
pub const VALUE_CONTENT_DISPOSITION: HeaderName = HeaderName::from_static("zarr-content-disposition");
/// The directives for caches that a value was set with.
pub const VALUE_CACHE_CONTROL: HeaderName = HeaderName::from_static("zarr-cache-control");
/// The time of expiry that a value was set with.
pub const VALUE_EXPIRES: HeaderName = HeaderName::from_static("zarr-expires");
/// The checksum that a value was set with.
pub const CHECKSUM: HeaderName = HeaderName::from_static("zarr-checksum");
/// The prefix of the names of headers with the metadata that a value was set with.
pub const META_PREFIX: &str = "zarr-meta-";
/// The data type of an answer's elements, see [`array::data_type`](crate::array::data_type).
pub const DATA_TYPE: HeaderName = HeaderName::from_static("zarr-data-type");
/// The shape of an answer, see [`array::shape`](crate::array::shape).
pub const SHAPE: HeaderName = HeaderName::from_static("zarr-shape");
/// The names of an answer's dimensions, see [`array::dimension_names`](crate::array::dimension_names).
pub const DIMENSION_NAMES: HeaderName = HeaderName::from_static("zarr-dimension-names");
/// The dialect of the node that answered: `v2`, `v3` or `draft`.
pub const DIALECT: HeaderName = HeaderName::from_static("zarr-dialect");
/// The number of properties that an answer in another dialect's model cannot represent; absent if it is 0.
pub const LOSSES: HeaderName = HeaderName::from_static("zarr-losses");
/// The number of nodes that an answer leaves out because one of their documents cannot be read; absent if it is 0.
pub const BROKEN: HeaderName = HeaderName::from_static("zarr-broken");
/// The number of children that an answer leaves out because they are nodes of another dialect; absent if it is 0.
pub const OTHER_DIALECTS: HeaderName = HeaderName::from_static("zarr-other-dialects");
/// The relation of the documents that v2 and v3 have at the path of the node: `independent`, `attributes`, `shape`,
/// `layout` or `unreadable`; absent if they describe the same, or only one exists.
pub const DIALECTS_DIFFER: HeaderName = HeaderName::from_static("zarr-dialects-differ");
/// The consolidated metadata that a change removed, since it would have been larger than servers keep up to date:
/// `removed` and its key, which is percent-encoded; several are separated by commas.
pub const CONSOLIDATED: HeaderName = HeaderName::from_static("zarr-consolidated");
/// The moment to which the values in an answer belong: `commit`, or `key` if each value is of its own moment.
pub const CONSISTENCY: HeaderName = HeaderName::from_static("zarr-consistency");
/// The cursor for the next page of a group's members; not there on the last page.
pub const CURSOR: HeaderName = HeaderName::from_static("zarr-cursor");
/// The selected indices of the dimensions that were selected by name: a JSON object, see
/// [`array::selected`](crate::array::selected).
pub const SELECTED: HeaderName = HeaderName::from_static("zarr-selected");
/// The decoding that the elements of an answer lack, which are as they are stored because the request asks for neither:
/// `cf`, that of packed numbers and missing values.
pub const UNDECODED: HeaderName = HeaderName::from_static("zarr-undecoded");
/// The value of [`UNDECODED`] for the conventions for climate and forecast metadata.
pub const CF: HeaderValue = HeaderValue::from_static("cf");
/// The dimension along which the rows of a picture go north, so that the south is at the top, see
/// [`array::dimension_name`](crate::array::dimension_name).
pub const NORTHWARD_ROWS: HeaderName = HeaderName::from_static("zarr-northward-rows");
/// The stored values that an answer needs, see [`array::read_cost`](crate::array::read_cost).
pub const READ: HeaderName = HeaderName::from_static("zarr-read");
/// The time that parts of a request took, in milliseconds (W3C Server Timing).
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// The media type of values.
pub const OCTETS: HeaderValue = HeaderValue::from_static("application/octet-stream");
/// The media type of JSON documents.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// The media type of listings with one JSON document per line.
pub const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");
/// The media type of JSON Schemas.
pub const SCHEMA_JSON: HeaderValue = HeaderValue::from_static("application/schema+json");
/// The media type of merge patches (RFC 7396).
pub const MERGE_PATCH_JSON: HeaderValue = HeaderValue::from_static("application/merge-patch+json");
/// The media type of problem documents.
pub const PROBLEM_JSON: HeaderValue = HeaderValue::from_static("application/problem+json");

/// The media types of `.npz` files, of which the first is that of requests.
pub const NPZ_MEDIA_TYPES: [&str; 2] = ["application/x-npz", "application/zip"];
/// The media type of forms, whose parts may be the arrays of a dataset.
pub const MULTIPART_MEDIA_TYPE: &str = "multipart/form-data";

/// The most bytes that a request id has.
pub const MAX_REQUEST_ID: usize = 64;

/// True if the text may be the id of a request: 1 to [`MAX_REQUEST_ID`] letters, digits, `-`, `_` and `.`.
pub fn is_request_id(text: &[u8]) -> bool {
    (1..=MAX_REQUEST_ID).contains(&text.len())
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_have_a_length_and_an_alphabet() {
        for good in ["a", "0190-ab_c.d", &"x".repeat(64)] {
            assert!(is_request_id(good.as_bytes()), "{good}");
        }
        for bad in ["", "a b", "a\"", "ä", &"x".repeat(65)] {
            assert!(!is_request_id(bad.as_bytes()), "{bad}");
        }
    }
}
