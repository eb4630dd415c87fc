//! Handlers that read values.

use std::time::SystemTime;

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

/// The headers in which a surface describes values.
pub(crate) trait ValueHeaders: Sync {
    /// The headers of a response with a value or a part of it, except for their length and range.
    fn of_value(&self, key: &Key, meta: &ValueMeta, modified: SystemTime, status: StatusCode) -> HeaderMap;

    /// The headers of a response to a client that has the value.
    fn of_unmodified(&self, meta: &ValueMeta, modified: SystemTime) -> HeaderMap;
}

/// The headers of values in `/store`.
struct StoreHeaders;

/// A request for a value.
struct ValueRequest<'a> {
    store: &'a dyn ReadableStore,
    key: &'a Key,
    conditions: &'a ReadConditions,
    described: &'a dyn ValueHeaders,
}

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
    match value(source.values(&key)?, &key, &conditions, &StoreHeaders).await? {
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
    match value_head(source.values(&key)?, &key, &conditions, &StoreHeaders).await? {
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
    described: &dyn ValueHeaders,
) -> Result<Option<Response>, ApiError> {
    let request = ValueRequest { store, key, conditions, described };
    until_unchanged(|| request.read()).await
}

/// The head of the response with a value; `None` if there is none.
pub(crate) async fn value_head(
    store: &dyn ReadableStore,
    key: &Key,
    conditions: &ReadConditions,
    described: &dyn ValueHeaders,
) -> Result<Option<Response>, ApiError> {
    let request = ValueRequest { store, key, conditions, described };
    let Some(meta) = store.head(key).await? else { return Ok(None) };
    if let Some(response) = request.decided(&meta)? {
        return Ok(Some(response));
    }
    let mut response = request.head(StatusCode::OK, &meta);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(meta.size));
    Ok(Some(response))
}

impl ValueRequest<'_> {
    async fn read(&self) -> Result<Option<Response>, ApiError> {
        let range = match self.conditions.range() {
            RangeRequest::Whole => None,
            RangeRequest::One(range) => Some(range),
            RangeRequest::Unsatisfiable => return self.range_not_satisfiable().await,
        };
        let result = self.store.get(self.key, range).await;
        let meta = match &result {
            Ok(Some(value)) => value.meta.clone(),
            Err(StoreError::RangeNotSatisfiable { meta }) => meta.clone(),
            _ => return result.map(|_| None).map_err(ApiError::from),
        };
        if let Some(response) = self.decided(&meta)? {
            return Ok(Some(response));
        }
        let representation = if range.is_some() { Representation::Partial } else { Representation::Full };
        if representation == Representation::Partial && !self.conditions.range_applies_to(&meta) {
            return self.get_full().await;
        }
        match result? {
            Some(value) => self.response(value, representation).await.map(Some),
            None => Ok(None),
        }
    }

    /// Responds to a range that is unsatisfiable for any value.
    async fn range_not_satisfiable(&self) -> Result<Option<Response>, ApiError> {
        let Some(meta) = self.store.head(self.key).await? else { return Ok(None) };
        if let Some(response) = self.decided(&meta)? {
            return Ok(Some(response));
        }
        match self.conditions.range_applies_to(&meta) {
            true => Err(StoreError::RangeNotSatisfiable { meta }.into()),
            false => self.get_full().await,
        }
    }

    async fn get_full(&self) -> Result<Option<Response>, ApiError> {
        match self.store.get(self.key, None).await? {
            Some(value) => self.response(value, Representation::Full).await.map(Some),
            None => Ok(None),
        }
    }

    /// Evaluates the conditions; returns a response if they decide it.
    fn decided(&self, meta: &ValueMeta) -> Result<Option<Response>, ApiError> {
        match self.conditions.evaluate(meta) {
            ConditionOutcome::Proceed => Ok(None),
            ConditionOutcome::NotModified => {
                let headers = self.described.of_unmodified(meta, self.conditions.last_modified(meta));
                Ok(Some(with_headers(StatusCode::NOT_MODIFIED, headers)))
            }
            ConditionOutcome::PreconditionFailed => {
                Err(StoreError::PreconditionFailed { key: self.key.clone(), current: Some(meta.version) }.into())
            }
        }
    }

    async fn response(&self, value: GetResult, representation: Representation) -> Result<Response, ApiError> {
        let (meta, range) = (value.meta.clone(), value.range.clone());
        let length = range.end.saturating_sub(range.start);
        // A suffix range of an empty value is that value, and cannot be expressed as a Content-Range.
        let partial = representation == Representation::Partial && length > 0;
        let body = value_body(value).await?;
        let status = if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
        let mut response = self.head(status, &meta).map(|_: Body| body);
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        if partial {
            let text = ContentRange { range: Some(range), size: meta.size }.render();
            headers.extend(HeaderValue::try_from(text).map(|value| (CONTENT_RANGE, value)));
        }
        Ok(response)
    }

    fn head(&self, status: StatusCode, meta: &ValueMeta) -> Response {
        let modified = self.conditions.last_modified(meta);
        with_headers(status, self.described.of_value(self.key, meta, modified, status))
    }
}

impl ValueHeaders for StoreHeaders {
    fn of_value(&self, key: &Key, meta: &ValueMeta, modified: SystemTime, _: StatusCode) -> HeaderMap {
        let mut headers = self.of_unmodified(meta, modified);
        headers.insert(CONTENT_TYPE, content_type::for_key(key));
        headers.insert(ACCEPT_RANGES, BYTES);
        headers.insert(CONTENT_SECURITY_POLICY, SANDBOX);
        headers.extend(attributes::to_headers(&meta.attributes));
        headers
    }

    fn of_unmodified(&self, meta: &ValueMeta, modified: SystemTime) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(16);
        headers.insert(ETAG, etag::render(meta.version));
        headers.insert(CACHE_CONTROL, REVALIDATE);
        for (name, text) in [(LAST_MODIFIED, time::http_date(modified)), (MODIFIED, time::rfc3339(meta.modified))] {
            headers.extend(HeaderValue::try_from(text).map(|value| (name, value)));
        }
        headers
    }
}

fn with_headers(status: StatusCode, headers: HeaderMap) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
