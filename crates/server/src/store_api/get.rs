//! Handlers that read values.

use axum::{body::Body, extract::State, response::Response};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{
        ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
        LAST_MODIFIED,
    },
};
use zarrd_store::{GetResult, Key, ReadableStore, StoreError, ValueMeta, until_unchanged};
use zarrd_wire::{
    attributes, etag,
    headers::MODIFIED,
    range::{ContentRange, RangeRequest},
    time,
};

use super::{content_type, redirect};
use crate::{
    app::App,
    error::ApiError,
    extract::{ConditionOutcome, KeyPath, ReadConditions},
    headers::{REVALIDATE, SANDBOX},
    response_body::value_body,
    snapshot_api::ReadSource,
};

const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// The part of a value that is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Representation {
    Full,
    Partial,
}

/// `GET`: returns the value or a range of it, or redirects to the prefix of the same name.
pub(crate) async fn get(
    State(app): State<App>,
    KeyPath(key): KeyPath,
    source: ReadSource,
    uri: Uri,
    conditions: ReadConditions,
) -> Result<Response, ApiError> {
    match value(source.values(&key)?, &key, &conditions).await? {
        Some(response) => Ok(response),
        None if conditions.is_plain() && !source.is_snapshot() => redirect::to_prefix(&app, &key, &uri).await,
        None => Err(ApiError::no_such_key(&key)),
    }
}

/// `HEAD`: returns the headers of `GET` for the full value, or redirects to the prefix of the same name.
pub(crate) async fn head(
    State(app): State<App>,
    KeyPath(key): KeyPath,
    source: ReadSource,
    uri: Uri,
    conditions: ReadConditions,
) -> Result<Response, ApiError> {
    match value_head(source.values(&key)?, &key, &conditions).await? {
        Some(response) => Ok(response),
        None if conditions.is_plain() && !source.is_snapshot() => redirect::to_prefix(&app, &key, &uri).await,
        None => Err(ApiError::no_such_key(&key)),
    }
}

/// The response with a value; `None` if there is none.
pub(crate) async fn value(
    store: &dyn ReadableStore,
    key: &Key,
    conditions: &ReadConditions,
) -> Result<Option<Response>, ApiError> {
    until_unchanged(|| read(store, key, conditions)).await
}

/// The head of the response with a value; `None` if there is none.
pub(crate) async fn value_head(
    store: &dyn ReadableStore,
    key: &Key,
    conditions: &ReadConditions,
) -> Result<Option<Response>, ApiError> {
    let Some(meta) = store.head(key).await? else { return Ok(None) };
    if let Some(response) = check_conditions(conditions, key, &meta)? {
        return Ok(Some(response));
    }
    let mut response = head_with_validators(StatusCode::OK, key, &meta, conditions);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(meta.size));
    Ok(Some(response))
}

async fn read(store: &dyn ReadableStore, key: &Key, conditions: &ReadConditions) -> Result<Option<Response>, ApiError> {
    let range = match conditions.range() {
        RangeRequest::Whole => None,
        RangeRequest::One(range) => Some(range),
        RangeRequest::Unsatisfiable => return range_not_satisfiable(store, key, conditions).await,
    };
    let result = store.get(key, range).await;
    let meta = match &result {
        Ok(Some(value)) => value.meta.clone(),
        Err(StoreError::RangeNotSatisfiable { meta }) => meta.clone(),
        _ => return result.map(|_| None).map_err(ApiError::from),
    };
    if let Some(response) = check_conditions(conditions, key, &meta)? {
        return Ok(Some(response));
    }
    let representation = if range.is_some() { Representation::Partial } else { Representation::Full };
    if representation == Representation::Partial && !conditions.range_applies_to(&meta) {
        return get_full(store, key, conditions).await;
    }
    match result? {
        Some(value) => value_response(key, value, representation, conditions).await.map(Some),
        None => Ok(None),
    }
}

/// Responds to a range that is unsatisfiable for any value.
async fn range_not_satisfiable(
    store: &dyn ReadableStore,
    key: &Key,
    conditions: &ReadConditions,
) -> Result<Option<Response>, ApiError> {
    let Some(meta) = store.head(key).await? else { return Ok(None) };
    if let Some(response) = check_conditions(conditions, key, &meta)? {
        return Ok(Some(response));
    }
    match conditions.range_applies_to(&meta) {
        true => Err(StoreError::RangeNotSatisfiable { meta }.into()),
        false => get_full(store, key, conditions).await,
    }
}

async fn get_full(
    store: &dyn ReadableStore,
    key: &Key,
    conditions: &ReadConditions,
) -> Result<Option<Response>, ApiError> {
    match store.get(key, None).await? {
        Some(value) => value_response(key, value, Representation::Full, conditions).await.map(Some),
        None => Ok(None),
    }
}

/// Evaluates the conditions; returns a response if they decide it.
fn check_conditions(conditions: &ReadConditions, key: &Key, meta: &ValueMeta) -> Result<Option<Response>, ApiError> {
    match conditions.evaluate(meta) {
        ConditionOutcome::Proceed => Ok(None),
        ConditionOutcome::NotModified => Ok(Some(not_modified(meta, conditions))),
        ConditionOutcome::PreconditionFailed => {
            Err(StoreError::PreconditionFailed { key: key.clone(), current: Some(meta.version) }.into())
        }
    }
}

async fn value_response(
    key: &Key,
    value: GetResult,
    representation: Representation,
    conditions: &ReadConditions,
) -> Result<Response, ApiError> {
    let (meta, range) = (value.meta.clone(), value.range.clone());
    let length = range.end.saturating_sub(range.start);
    // A suffix range of an empty value is that value, and cannot be expressed as a Content-Range.
    let partial = representation == Representation::Partial && length > 0;
    let body = value_body(value).await?;
    let status = if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = head_with_validators(status, key, &meta, conditions).map(|_: Body| body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if partial {
        let text = ContentRange { range: Some(range), size: meta.size }.render();
        headers.extend(HeaderValue::try_from(text).map(|value| (CONTENT_RANGE, value)));
    }
    Ok(response)
}

fn head_with_validators(status: StatusCode, key: &Key, meta: &ValueMeta, conditions: &ReadConditions) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(16);
    headers.insert(CONTENT_TYPE, content_type::for_key(key));
    headers.insert(ACCEPT_RANGES, BYTES);
    headers.insert(CONTENT_SECURITY_POLICY, SANDBOX);
    validators(headers, meta, conditions);
    headers.extend(attributes::to_headers(&meta.attributes));
    response
}

fn not_modified(meta: &ValueMeta, conditions: &ReadConditions) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    validators(response.headers_mut(), meta, conditions);
    response
}

fn validators(headers: &mut HeaderMap, meta: &ValueMeta, conditions: &ReadConditions) {
    headers.insert(ETAG, etag::render(meta.version));
    headers.insert(CACHE_CONTROL, REVALIDATE);
    let date = conditions.last_modified(meta);
    for (name, text) in [(LAST_MODIFIED, time::http_date(date)), (MODIFIED, time::rfc3339(meta.modified))] {
        headers.extend(HeaderValue::try_from(text).map(|value| (name, value)));
    }
}
