//! Where a prefix is that was asked for without its slash.

use axum::{body::Body, response::Response};
use http::{
    HeaderValue, StatusCode, Uri,
    header::{CACHE_CONTROL, LOCATION},
};
use store::{Key, Page, Prefix};
use wire::routes::{decode, encode};

use crate::{app::App, error::ApiError, headers::REVALIDATE};

/// Sends on to the prefix that `key` would be with a `/`, if anything lies below it.
pub(super) async fn to_prefix(app: &App, key: &Key, uri: &Uri) -> Result<Response, ApiError> {
    let Some(prefix) = Prefix::below(key) else { return Err(ApiError::no_such_key(key)) };
    let below = app.store().list_dir(&prefix, Page::first(1)).await?;
    if below.keys.is_empty() && below.prefixes.is_empty() {
        return Err(ApiError::no_such_key(key));
    }
    with_slash(uri)
}

/// Sends on to the path of `uri` with a `/` at its end.
///
/// The location is relative to the last literal `/`, so that it stays right behind a proxy that serves us below
/// another path.
pub(super) fn with_slash(uri: &Uri) -> Result<Response, ApiError> {
    let last = uri.path().rsplit('/').next().unwrap_or_default();
    let name = String::from_utf8_lossy(&decode(last)?).into_owned();
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let location = HeaderValue::try_from(format!("{}/{query}", encode(&name)));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
    let headers = response.headers_mut();
    headers.extend(location.map(|location| (LOCATION, location)));
    // A browser would otherwise remember the redirect for ever, and never see a key that is set in its place.
    headers.insert(CACHE_CONTROL, REVALIDATE);
    Ok(response)
}
