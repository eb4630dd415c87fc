//! Writes and erasures of values.

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG},
};
use zarrd_store::{Attributes, Key, KeyCount, Payload, Precondition, Prefix, PutResult, StoreError, WriteableStore};
use zarrd_wire::{
    attributes, etag, headers, health::Readiness, listing::Erased, problem::Problem, query::Confirmation, routes,
};

use crate::{
    HttpStore,
    deadline::Deadline,
    error::RequestError,
    precondition::{conditional, idempotency},
    problem,
    response::{ErrorResponse, Response},
    retry::{FailedAttempt, Idempotency},
    transport::Transport,
    upload::Upload,
};

/// Maximum size of a JSON report, in bytes.
const MAX_REPORT_BYTES: usize = 64 * 1024;

#[async_trait]
impl WriteableStore for HttpStore {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        let (transport, precondition) = (&self.transport, &precondition);
        let attributes = content.attributes.clone();
        let deadline = transport.start_deadline();
        let bytes = match Upload::new(content, deadline).await? {
            Upload::Replayable(bytes) => bytes,
            Upload::Once(streamed) => {
                let response = streamed.send(put(transport, key, &attributes, precondition), deadline).await?;
                return written(response, key).await.map_err(|failed| failed.error);
            }
        };
        let attempt = || try_set(transport, key, (bytes.clone(), &attributes), precondition, deadline);
        transport.backoff(deadline).retry(idempotency(precondition), attempt).await
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let (transport, precondition) = (&self.transport, &precondition);
        let attempt = |deadline| try_erase(transport, key, precondition, deadline);
        transport.retry(idempotency(precondition), attempt).await
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let transport = &self.transport;
        let attempt = |deadline: Deadline| try_erase_prefix(transport, prefix, deadline.for_long_work());
        transport.retry(Idempotency::Idempotent, attempt).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        match self.ready().await? {
            Readiness { writable: true, .. } => Ok(()),
            Readiness { writable: false, problem, .. } => {
                let (request, problem) = (String::new(), problem.map(Problem::new));
                let response = ErrorResponse { status: StatusCode::OK, request, retry_after: None, problem };
                Err(problem::into_failure(response, None).error)
            }
        }
    }
}

impl HttpStore {
    /// Returns the readiness of the server: whether it serves requests, and whether it accepts changes. Fails if the
    /// server is unreachable, is stopping, or has become read-only after a failed write.
    pub async fn ready(&self) -> Result<Readiness, StoreError> {
        let transport = &self.transport;
        transport.retry(Idempotency::Idempotent, |deadline| try_ready(transport, deadline)).await
    }
}

async fn try_set(
    transport: &Transport,
    key: &Key,
    (bytes, attributes): (Bytes, &Attributes),
    precondition: &Precondition,
    deadline: Deadline,
) -> Result<PutResult, FailedAttempt<StoreError>> {
    let response = transport.send(put(transport, key, attributes, precondition).body(bytes), deadline).await?;
    written(response, key).await
}

fn put(transport: &Transport, key: &Key, attributes: &Attributes, precondition: &Precondition) -> RequestBuilder {
    let request = transport.request(Method::PUT, &routes::key_path(key)).header(CONTENT_TYPE, headers::OCTETS);
    let request =
        attributes::to_headers(attributes).fold(request, |request, (name, value)| request.header(name, value));
    conditional(request, precondition)
}

async fn written(response: Response, key: &Key) -> Result<PutResult, FailedAttempt<StoreError>> {
    let replaced = match response.status() {
        StatusCode::CREATED => false,
        StatusCode::NO_CONTENT => true,
        _ => return Err(problem::read_failure(response, Some(key)).await),
    };
    let version = response.header(ETAG).and_then(etag::parse);
    let version = version.ok_or_else(|| RequestError::protocol("a written value without the ETag of its version"))?;
    response.discard().await;
    Ok(PutResult { version, replaced })
}

async fn try_erase(
    transport: &Transport,
    key: &Key,
    precondition: &Precondition,
    deadline: Deadline,
) -> Result<bool, FailedAttempt<StoreError>> {
    let request = transport.request(Method::DELETE, &routes::key_path(key));
    let response = transport.send(conditional(request, precondition), deadline).await?;
    if response.status() != StatusCode::NO_CONTENT {
        let failed = problem::read_failure(response, Some(key)).await;
        // There is a node of that name, and no key.
        return if matches!(failed.error, StoreError::NotEmpty { .. }) { Ok(false) } else { Err(failed) };
    }
    match response.header(headers::EXISTED) {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(RequestError::protocol(format!("an erased key without a valid {}", headers::EXISTED)).into()),
    }
}

async fn try_erase_prefix(
    transport: &Transport,
    prefix: &Prefix,
    deadline: Deadline,
) -> Result<KeyCount, FailedAttempt<StoreError>> {
    let path = routes::prefix_path(prefix);
    let target = if prefix.is_root() { format!("{path}?{}", Confirmation::All.render()) } else { path };
    let response = transport.send(transport.request(Method::DELETE, &target), deadline).await?;
    if response.status() != StatusCode::OK {
        return Err(problem::read_failure(response, None).await);
    }
    Ok(response.json::<Erased>(MAX_REPORT_BYTES).await?.into())
}

async fn try_ready(transport: &Transport, deadline: Deadline) -> Result<Readiness, FailedAttempt<StoreError>> {
    let response = transport.send(transport.request(Method::GET, routes::READY), deadline).await?;
    if response.status() != StatusCode::OK {
        return Err(problem::read_failure(response, None).await);
    }
    Ok(response.json(MAX_REPORT_BYTES).await?)
}
