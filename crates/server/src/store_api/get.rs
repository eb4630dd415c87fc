//! Reading values.

use ::store::{GetResult, Key, StoreError, ValueMeta};
use axum::{body::Body, extract::State, response::Response};
use http::{
    HeaderMap, HeaderValue, StatusCode, Uri,
    header::{ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG, LAST_MODIFIED},
};
use wire::{
    etag,
    headers::MODIFIED,
    range::{ContentRange, RangeRequest},
    time,
};

use super::{media, redirect};
use crate::{
    body::value_body,
    extract::{AtKey, Condition, ReadConditions},
    headers::REVALIDATE,
    refusal::Refusal,
    state::App,
};

const BYTES: HeaderValue = HeaderValue::from_static("bytes");

/// Which part of a value is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Whole,
    Range,
}

/// `GET`: the value, a range of it, or where the prefix of that name is.
pub(crate) async fn get(
    State(app): State<App>,
    AtKey(key): AtKey,
    uri: Uri,
    conditions: ReadConditions,
) -> Result<Response, Refusal> {
    match read(&app, &key, &conditions).await? {
        Some(response) => Ok(response),
        None if conditions.is_plain() => redirect::to_prefix(&app, &key, &uri).await,
        None => Err(Refusal::no_such_key(&key)),
    }
}

/// `HEAD`: what `GET` would say of the whole value.
pub(crate) async fn head(
    State(app): State<App>,
    AtKey(key): AtKey,
    conditions: ReadConditions,
) -> Result<Response, Refusal> {
    let meta = app.store().head(&key).await?.ok_or_else(|| Refusal::no_such_key(&key))?;
    if let Some(response) = settled(&conditions, &key, &meta)? {
        return Ok(response);
    }
    let mut response = described(StatusCode::OK, &key, &meta, &conditions);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(meta.size));
    Ok(response)
}

async fn read(app: &App, key: &Key, conditions: &ReadConditions) -> Result<Option<Response>, Refusal> {
    let range = match conditions.range() {
        RangeRequest::Whole => None,
        RangeRequest::One(range) => Some(range),
        RangeRequest::Unsatisfiable => return read_nothing(app, key, conditions).await,
    };
    let found = app.store().get(key, range).await;
    let meta = match &found {
        Ok(Some(value)) => value.meta,
        Err(StoreError::RangeNotSatisfiable { meta }) => *meta,
        _ => return found.map(|_| None).map_err(Refusal::from),
    };
    if let Some(response) = settled(conditions, key, &meta)? {
        return Ok(Some(response));
    }
    let part = if range.is_some() { Part::Range } else { Part::Whole };
    if part == Part::Range && !conditions.range_is_for(&meta) {
        return read_whole(app, key, conditions).await;
    }
    match found? {
        Some(value) => sent(key, value, part, conditions).await.map(Some),
        None => Ok(None),
    }
}

/// Answers a range that names no byte of any value.
async fn read_nothing(app: &App, key: &Key, conditions: &ReadConditions) -> Result<Option<Response>, Refusal> {
    let Some(meta) = app.store().head(key).await? else { return Ok(None) };
    if let Some(response) = settled(conditions, key, &meta)? {
        return Ok(Some(response));
    }
    match conditions.range_is_for(&meta) {
        true => Err(StoreError::RangeNotSatisfiable { meta }.into()),
        false => read_whole(app, key, conditions).await,
    }
}

async fn read_whole(app: &App, key: &Key, conditions: &ReadConditions) -> Result<Option<Response>, Refusal> {
    match app.store().get(key, None).await? {
        Some(value) => sent(key, value, Part::Whole, conditions).await.map(Some),
        None => Ok(None),
    }
}

/// The answer where the conditions settle it, whatever the range.
fn settled(conditions: &ReadConditions, key: &Key, meta: &ValueMeta) -> Result<Option<Response>, Refusal> {
    match conditions.judge(meta) {
        Condition::Holds => Ok(None),
        Condition::NotModified => Ok(Some(not_modified(meta, conditions))),
        Condition::Fails => {
            Err(StoreError::PreconditionFailed { key: key.clone(), current: Some(meta.version) }.into())
        }
    }
}

async fn sent(key: &Key, value: GetResult, part: Part, conditions: &ReadConditions) -> Result<Response, Refusal> {
    let (meta, range) = (value.meta, value.range.clone());
    let length = range.end.saturating_sub(range.start);
    // The last bytes of an empty value are that value, and could not be written as a Content-Range.
    let partial = part == Part::Range && length > 0;
    let body = value_body(value).await?;
    let status = if partial { StatusCode::PARTIAL_CONTENT } else { StatusCode::OK };
    let mut response = described(status, key, &meta, conditions).map(|_: Body| body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if partial {
        let text = ContentRange { range: Some(range), size: meta.size }.render();
        headers.extend(HeaderValue::try_from(text).map(|value| (CONTENT_RANGE, value)));
    }
    Ok(response)
}

fn described(status: StatusCode, key: &Key, meta: &ValueMeta, conditions: &ReadConditions) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.reserve(16);
    headers.insert(CONTENT_TYPE, media::of(key));
    headers.insert(ACCEPT_RANGES, BYTES);
    validators(headers, meta, conditions);
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
