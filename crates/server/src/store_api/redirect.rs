//! Redirects from a key to the prefix of the same name.

use axum::{body::Body, response::Response};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, LOCATION},
};
use percent_encoding::{CONTROLS, utf8_percent_encode};
use zarrd_store::{Key, Listing, PageRequest, Prefix};
use zarrd_wire::routes::{decode, encode};

use crate::{app::App, error::ApiError, headers::REVALIDATE};

/// Redirects to the prefix named `key` with a trailing slash, if any key exists below it.
pub(super) async fn to_prefix(app: &App, key: &Key, uri: &Uri) -> Result<Response, ApiError> {
    let Some(prefix) = Prefix::from_key(key) else { return Err(ApiError::no_such_key(key)) };
    // Without listings nobody knows which prefixes exist.
    if app.store().guarantees_below(&prefix).listing == Listing::None {
        return Err(ApiError::no_such_key(key));
    }
    let below = app.store().list_dir(&prefix, PageRequest::first(1)).await?;
    if below.keys.is_empty() && below.prefixes.is_empty() {
        return Err(ApiError::no_such_key(key));
    }
    with_slash(uri)
}

/// Redirects to the path of `uri` with a trailing slash.
///
/// The location is relative to the last literal `/`, so that it stays valid behind a proxy that serves this server
/// below another path.
pub(super) fn with_slash(uri: &Uri) -> Result<Response, ApiError> {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    let name = String::from_utf8_lossy(&decode(last)?).into_owned();
    let query = uri.query().map_or_else(String::new, |query| format!("?{}", utf8_percent_encode(query, CONTROLS)));
    let location = HeaderValue::try_from(format!("{}/{query}", encode(&name)));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let headers = response.headers_mut();
    headers.extend(location.map(|location| (LOCATION, location)));
    // Otherwise browsers would cache the redirect permanently, even if a key of this name is set later.
    headers.insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}
