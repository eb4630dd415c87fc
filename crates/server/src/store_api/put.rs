//! Handlers that set values.

use std::time::SystemTime;

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, header::ETAG};
use zarrd_store::{Key, Precondition, StoreError};
use zarrd_wire::{attributes, etag, time};

use crate::{
    app::App,
    error::ApiError,
    extract::{KeyPath, NoQuery, Query, WriteConditions},
    request_body::{Upload, payload},
};

/// `PUT`: sets the value to the body.
pub(crate) async fn put(
    State(app): State<App>,
    KeyPath(key): KeyPath,
    _: Query<NoQuery>,
    conditions: WriteConditions,
    headers: HeaderMap,
    upload: Upload,
) -> Result<Response, ApiError> {
    let attributes = attributes::from_headers(&headers);
    let attributes = attributes.map_err(|error| ApiError::invalid_header("Zarr-…", error.to_string()))?;
    let precondition = precondition(&app, &key, conditions).await?;
    let payload = payload(&app, upload).with_attributes(attributes);
    let result = app.writes()?.set(&key, payload, precondition).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = if result.replaced { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
    response.headers_mut().insert(ETAG, etag::render(result.version));
    Ok(response)
}

/// Returns the precondition that the store checks atomically with the change.
///
/// A date, and states of WebDAV, are checked now, and the version that they were checked against becomes the precondition.
pub(crate) async fn precondition(
    app: &App,
    key: &Key,
    conditions: WriteConditions,
) -> Result<Precondition, StoreError> {
    if conditions.states.is_some() {
        let meta = app.store().head(key).await?;
        conditions.check(key, meta.as_ref(), &[])?;
        return Ok(Precondition::unchanged(meta.map(|meta| meta.version)));
    }
    let Some(since) = conditions.unmodified_since else { return Ok(conditions.precondition) };
    let Some(info) = app.store().head(key).await? else { return Ok(conditions.precondition) };
    if !time::is_unmodified_since(info.modified, since, SystemTime::now()) {
        return Err(StoreError::PreconditionFailed { key: key.clone(), current: Some(info.version) });
    }
    Ok(conditions.pinned(info.version))
}
