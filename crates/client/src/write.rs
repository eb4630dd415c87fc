//! Setting and erasing values.

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{
    Method, RequestBuilder, StatusCode,
    header::{CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH},
};
use store::{Key, KeyCount, Payload, Precondition, Prefix, PutResult, StoreError, WriteableStore};
use wire::{etag, headers, health::Readiness, listing::Erased, problem::Problem, query::Confirm, routes};

use crate::{
    HttpStore,
    answer::{Answer, Refusal},
    failure::{Failure, Fault, Repeat},
    transport::{Clock, Transport},
    upload::Upload,
};

/// The longest small JSON document that is read.
const MAX_SMALL: usize = 64 * 1024;

#[async_trait]
impl WriteableStore for HttpStore {
    async fn set(&self, key: &Key, content: Payload, precondition: Precondition) -> Result<PutResult, StoreError> {
        let clock = self.transport.clock();
        let bytes = match Upload::of(content, clock).await? {
            Upload::Replayable(bytes) => bytes,
            Upload::Once(streamed) => {
                let request = put(&self.transport, key, &precondition);
                let answer = streamed.send(request, clock).await?;
                return written(answer, key).await.map_err(|failure| failure.error);
            }
        };
        let (mut schedule, repeat) = (self.transport.schedule(clock), repeat(&precondition));
        loop {
            match try_set(&self.transport, key, bytes.clone(), &precondition, clock).await {
                Ok(written) => return Ok(written),
                Err(failure) => schedule.wait(failure, repeat).await?,
            }
        }
    }

    async fn erase(&self, key: &Key, precondition: Precondition) -> Result<bool, StoreError> {
        let clock = self.transport.clock();
        let (mut schedule, repeat) = (self.transport.schedule(clock), repeat(&precondition));
        loop {
            match try_erase(&self.transport, key, &precondition, clock).await {
                Ok(existed) => return Ok(existed),
                Err(failure) => schedule.wait(failure, repeat).await?,
            }
        }
    }

    async fn erase_prefix(&self, prefix: &Prefix) -> Result<KeyCount, StoreError> {
        let clock = self.transport.clock().patient();
        let mut schedule = self.transport.schedule(clock);
        loop {
            match try_erase_prefix(&self.transport, prefix, clock).await {
                Ok(erased) => return Ok(erased),
                Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
            }
        }
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        match self.ready().await? {
            Readiness { writable: true, .. } => Ok(()),
            Readiness { writable: false, problem } => {
                let (request, problem) = (String::new(), problem.map(Problem::new));
                let refusal = Refusal { status: StatusCode::OK, request, retry_after: None, problem };
                Err(refusal.into())
            }
        }
    }
}

impl HttpStore {
    /// Asks whether the server can serve, and whether it takes changes. Fails where it cannot be asked, is being stopped, or has
    /// become read-only since a write failed.
    pub async fn ready(&self) -> Result<Readiness, StoreError> {
        let clock = self.transport.clock();
        let mut schedule = self.transport.schedule(clock);
        loop {
            match try_ready(&self.transport, clock).await {
                Ok(readiness) => return Ok(readiness),
                Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
            }
        }
    }
}

/// A conditional change whose answer was lost may be why its own precondition does not hold the second time.
pub(crate) fn repeat(precondition: &Precondition) -> Repeat {
    if *precondition == Precondition::none() { Repeat::Freely } else { Repeat::IfNotDone }
}

async fn try_set(
    transport: &Transport,
    key: &Key,
    bytes: Bytes,
    precondition: &Precondition,
    clock: Clock,
) -> Result<PutResult, Failure<StoreError>> {
    let answer = transport.send(put(transport, key, precondition).body(bytes), clock).await?;
    written(answer, key).await
}

fn put(transport: &Transport, key: &Key, precondition: &Precondition) -> RequestBuilder {
    let request = transport.request(Method::PUT, &routes::key_path(key)).header(CONTENT_TYPE, headers::OCTETS);
    conditional(request, precondition)
}

/// The request under a condition.
pub(crate) fn conditional(mut request: RequestBuilder, precondition: &Precondition) -> RequestBuilder {
    if let Some(wanted) = &precondition.if_match {
        request = request.header(IF_MATCH, etag::render_list(wanted));
    }
    if let Some(unwanted) = &precondition.if_none_match {
        request = request.header(IF_NONE_MATCH, etag::render_list(unwanted));
    }
    request
}

async fn written(answer: Answer, key: &Key) -> Result<PutResult, Failure<StoreError>> {
    let replaced = match answer.status() {
        StatusCode::CREATED => false,
        StatusCode::NO_CONTENT => true,
        _ => return Err(answer.into_failure(Some(key)).await),
    };
    let version = answer.header(ETAG).and_then(etag::parse);
    let version = version.ok_or_else(|| Fault::protocol("a value was set, and its ETag did not come"))?;
    answer.discard().await;
    Ok(PutResult { version, replaced })
}

async fn try_erase(
    transport: &Transport,
    key: &Key,
    precondition: &Precondition,
    clock: Clock,
) -> Result<bool, Failure<StoreError>> {
    let request = transport.request(Method::DELETE, &routes::key_path(key));
    let answer = transport.send(conditional(request, precondition), clock).await?;
    if answer.status() != StatusCode::NO_CONTENT {
        return Err(answer.into_failure(Some(key)).await);
    }
    match answer.header(headers::EXISTED) {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(Fault::protocol("a key was erased, and it was not said whether it had a value").into()),
    }
}

async fn try_erase_prefix(
    transport: &Transport,
    prefix: &Prefix,
    clock: Clock,
) -> Result<KeyCount, Failure<StoreError>> {
    let path = routes::prefix_path(prefix);
    let target = if prefix.is_root() { format!("{path}?{}", Confirm::All.render()) } else { path };
    let answer = transport.send(transport.request(Method::DELETE, &target), clock).await?;
    if answer.status() != StatusCode::OK {
        return Err(answer.into_failure(None).await);
    }
    Ok(answer.json::<Erased>(MAX_SMALL).await?.into())
}

async fn try_ready(transport: &Transport, clock: Clock) -> Result<Readiness, Failure<StoreError>> {
    let answer = transport.send(transport.request(Method::GET, routes::READY), clock).await?;
    if answer.status() != StatusCode::OK {
        return Err(answer.into_failure(None).await);
    }
    Ok(answer.json(MAX_SMALL).await?)
}
