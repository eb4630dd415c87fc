//! Reads of values.

use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::{
    Method, StatusCode,
    header::{IF_MATCH, RANGE},
};
use zarrd_store::{ByteRange, ByteStream, GetResult, Key, ReadableStore, StoreError, ValueMeta};
use zarrd_wire::{etag, headers, problem::ProblemType, range, routes};

use crate::{
    HttpStore,
    deadline::Deadline,
    error::{RequestError, TransportError},
    problem,
    response::Response,
    retry::{Backoff, FailedAttempt, Idempotency},
    transport::Transport,
};

#[async_trait]
impl ReadableStore for HttpStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let transport = &self.transport;
        let deadline = transport.start_deadline();
        let mut backoff = transport.backoff(deadline);
        let response = backoff.retry(Idempotency::Idempotent, || try_get(self, key, range, deadline)).await?;
        let Some(GetResponse { info, range, response }) = response else { return Ok(None) };
        let download = Download {
            store: self.clone(),
            key: key.clone(),
            info: info.clone(),
            remaining: range.clone(),
            response: Some(response),
            deadline,
            backoff,
        };
        Ok(Some(GetResult { meta: info, range, stream: download.into_stream() }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        self.transport.retry(Idempotency::Idempotent, |deadline| try_head(self, key, deadline)).await
    }
}

/// A successful response to a `GET`.
struct GetResponse {
    info: ValueMeta,
    range: Range<u64>,
    response: Response,
}

/// A value whose body is being read.
struct Download {
    store: HttpStore,
    key: Key,
    info: ValueMeta,
    /// The range that has not been received.
    remaining: Range<u64>,
    /// The response whose body is read; `None` after it was interrupted.
    response: Option<Response>,
    deadline: Deadline,
    /// Continues that of the request, so that the request and its resumptions share one number of retries.
    backoff: Backoff,
}

async fn try_head(
    store: &HttpStore,
    key: &Key,
    deadline: Deadline,
) -> Result<Option<ValueMeta>, FailedAttempt<StoreError>> {
    let (transport, path) = (&store.transport, routes::key_path(key));
    let request = transport.request(Method::HEAD, &store.value_target(key));
    let response = transport.send(request, deadline).await?;
    match response.status() {
        StatusCode::OK => Ok(Some(response.info(response.value_length()?)?)),
        // A response to HEAD has no problem document, but zarrd adds a request ID. Without it, this may be another
        // server.
        StatusCode::NOT_FOUND if response.header(headers::REQUEST_ID).is_some() => Ok(None),
        StatusCode::MOVED_PERMANENTLY if redirects_to_prefix(transport, &response, &path) => Ok(None),
        _ => Err(problem::read_failure(response, Some(key)).await),
    }
}

async fn try_get(
    store: &HttpStore,
    key: &Key,
    range: Option<ByteRange>,
    deadline: Deadline,
) -> Result<Option<GetResponse>, FailedAttempt<StoreError>> {
    let (transport, path) = (&store.transport, routes::key_path(key));
    let mut request = transport.request(Method::GET, &store.value_target(key));
    if let Some(range) = range {
        request = request.header(RANGE, range::render(range));
    }
    let response = transport.send(request, deadline).await?;
    match response.status() {
        StatusCode::OK => Ok(Some(full_value(response, range)?)),
        StatusCode::PARTIAL_CONTENT => Ok(Some(partial_value(response, range)?)),
        StatusCode::MOVED_PERMANENTLY if redirects_to_prefix(transport, &response, &path) => {
            response.discard().await;
            Ok(None)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let info = response.info(response.content_range()?.size)?;
            response.discard().await;
            Err(FailedAttempt::terminal(StoreError::RangeNotSatisfiable { meta: info }))
        }
        _ => {
            let response = response.into_error_response().await;
            // Other 404s mean that the URL is not that of a zarrd server.
            match response.kind() {
                Some(ProblemType::NoSuchKey) => Ok(None),
                _ => Err(problem::into_failure(response, Some(key))),
            }
        }
    }
}

fn full_value(response: Response, range: Option<ByteRange>) -> Result<GetResponse, RequestError> {
    let info = response.info(response.value_length()?)?;
    let full = 0..info.size;
    if range.is_some_and(|range| range.resolve(info.size) != Some(full.clone())) {
        return Err(RequestError::protocol("the full value in response to a range request"));
    }
    Ok(GetResponse { info, range: full, response })
}

fn partial_value(response: Response, range: Option<ByteRange>) -> Result<GetResponse, RequestError> {
    let content_range = response.content_range()?;
    let info = response.info(content_range.size)?;
    let requested = range.and_then(|range| range.resolve(info.size));
    match (requested, content_range.range) {
        (Some(requested), Some(range)) if requested == range && response.value_length()? == range.end - range.start => {
            Ok(GetResponse { info, range, response })
        }
        _ => Err(RequestError::protocol("the Content-Range is not the requested range")),
    }
}

/// True if the response redirects to the prefix of the same name, which means that the key has no value.
fn redirects_to_prefix(transport: &Transport, response: &Response, path: &str) -> bool {
    response.location().is_some_and(|location| transport.base().is_directory_of(location, path))
}

impl Download {
    fn into_stream(self) -> ByteStream {
        stream::try_unfold(self, |mut download| async move {
            let bytes = download.next_bytes().await?;
            Ok(bytes.map(|bytes| (bytes, download)))
        })
        .boxed()
    }

    async fn next_bytes(&mut self) -> Result<Option<Bytes>, StoreError> {
        while self.remaining.start < self.remaining.end {
            match self.try_next_bytes().await {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(failed) => {
                    self.response = None;
                    self.backoff.wait(failed, Idempotency::Idempotent).await?;
                }
            }
        }
        Ok(None)
    }

    async fn try_next_bytes(&mut self) -> Result<Bytes, FailedAttempt<StoreError>> {
        let response = match &mut self.response {
            Some(response) => response,
            none => none.insert(resume(&self.store, &self.key, &self.info, &self.remaining, self.deadline).await?),
        };
        let Range { start: at, end } = self.remaining;
        let bytes = response.next_bytes().await?.ok_or(TransportError::Truncated { at, end })?;
        let next = at.checked_add(bytes.len() as u64).filter(|&next| next <= end);
        self.remaining.start = next.ok_or_else(|| RequestError::protocol("the body is longer than its length"))?;
        Ok(bytes)
    }
}

/// Requests the rest of a value, provided that the value has not changed.
async fn resume(
    store: &HttpStore,
    key: &Key,
    info: &ValueMeta,
    remaining: &Range<u64>,
    deadline: Deadline,
) -> Result<Response, FailedAttempt<StoreError>> {
    let range = ByteRange::Bounded { start: remaining.start, end: remaining.end };
    let transport = &store.transport;
    let request = transport
        .request(Method::GET, &store.value_target(key))
        .header(RANGE, range::render(range))
        .header(IF_MATCH, etag::render(info.version));
    let response = transport.send(request, deadline).await?;
    match response.status() {
        StatusCode::PARTIAL_CONTENT => {
            let partial = partial_value(response, Some(range))?;
            if (partial.info.version, partial.info.size) != (info.version, info.size) {
                return Err(RequestError::protocol("another version in response to If-Match").into());
            }
            Ok(partial.response)
        }
        StatusCode::PRECONDITION_FAILED | StatusCode::NOT_FOUND => Err(TransportError::Replaced.into()),
        _ => Err(problem::read_failure(response, Some(key)).await),
    }
}
