//! Reading values.

use std::{ops::Range, sync::Arc};

use async_trait::async_trait;
use bytes::Bytes;
use futures::{StreamExt, stream};
use reqwest::{
    Method, StatusCode,
    header::{IF_MATCH, RANGE},
};
use store::{ByteRange, ByteStream, GetResult, Key, ReadableStore, StoreError, ValueMeta};
use wire::{etag, headers, problem::ProblemType, range, routes};

use crate::{
    HttpStore,
    answer::Answer,
    failure::{Failure, Fault, Repeat, Schedule, TransportError},
    transport::{Clock, Transport},
};

#[async_trait]
impl ReadableStore for HttpStore {
    async fn get(&self, key: &Key, range: Option<ByteRange>) -> Result<Option<GetResult>, StoreError> {
        let clock = self.transport.clock();
        let mut schedule = self.transport.schedule(clock);
        let found = loop {
            match try_get(&self.transport, key, range, clock).await {
                Ok(found) => break found,
                Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
            }
        };
        let Some(Found { info, range, answer }) = found else { return Ok(None) };
        let download = Download {
            transport: Arc::clone(&self.transport),
            key: key.clone(),
            info,
            rest: range.clone(),
            answer: Some(answer),
            clock,
            schedule,
        };
        Ok(Some(GetResult { meta: info, range, stream: download.into_stream() }))
    }

    async fn head(&self, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
        let clock = self.transport.clock();
        let mut schedule = self.transport.schedule(clock);
        loop {
            match try_head(&self.transport, key, clock).await {
                Ok(found) => return Ok(found),
                Err(failure) => schedule.wait(failure, Repeat::Freely).await?,
            }
        }
    }
}

/// A value whose head has come.
struct Found {
    info: ValueMeta,
    range: Range<u64>,
    answer: Answer,
}

/// A value on its way.
struct Download {
    transport: Arc<Transport>,
    key: Key,
    info: ValueMeta,
    /// What has not come yet.
    rest: Range<u64>,
    /// What it comes from, or `None` where that broke off.
    answer: Option<Answer>,
    clock: Clock,
    /// The same as of the request before it, so that a value and its beginning are tried so often together.
    schedule: Schedule,
}

async fn try_head(transport: &Transport, key: &Key, clock: Clock) -> Result<Option<ValueMeta>, Failure<StoreError>> {
    let request = transport.request(Method::HEAD, &routes::key_path(key));
    let answer = transport.send(request, clock).await?;
    match answer.status() {
        StatusCode::OK => Ok(Some(answer.info(answer.length()?)?)),
        // There is no document that says who answers, but our server gives each request an id. What does not may be
        // another server, and then nothing is known of the key.
        StatusCode::NOT_FOUND if answer.header(headers::REQUEST_ID).is_some() => Ok(None),
        _ => Err(answer.into_failure(Some(key)).await),
    }
}

async fn try_get(
    transport: &Transport,
    key: &Key,
    range: Option<ByteRange>,
    clock: Clock,
) -> Result<Option<Found>, Failure<StoreError>> {
    let path = routes::key_path(key);
    let mut request = transport.request(Method::GET, &path);
    if let Some(range) = range {
        request = request.header(RANGE, range::render(range));
    }
    let answer = transport.send(request, clock).await?;
    match answer.status() {
        StatusCode::OK => Ok(Some(whole(answer, range)?)),
        StatusCode::PARTIAL_CONTENT => Ok(Some(part(answer, range)?)),
        StatusCode::MOVED_PERMANENTLY if is_prefix(transport, &answer, &path) => {
            answer.discard().await;
            Ok(None)
        }
        StatusCode::RANGE_NOT_SATISFIABLE => {
            let info = answer.info(answer.content_range()?.size)?;
            answer.discard().await;
            Err(Failure::answered(StoreError::RangeNotSatisfiable { meta: info }))
        }
        _ => {
            let refusal = answer.into_problem().await;
            // Any other 404 says that there is no store here, and nothing of the key.
            let no_value = refusal.kind() == Some(ProblemType::NoSuchKey);
            if no_value { Ok(None) } else { Err(refusal.into_failure(Some(key))) }
        }
    }
}

fn whole(answer: Answer, range: Option<ByteRange>) -> Result<Found, Fault> {
    let info = answer.info(answer.length()?)?;
    let whole = 0..info.size;
    if range.is_some_and(|range| range.resolve(info.size) != Some(whole.clone())) {
        return Err(Fault::protocol("a range was asked for, and the whole value came"));
    }
    Ok(Found { info, range: whole, answer })
}

fn part(answer: Answer, range: Option<ByteRange>) -> Result<Found, Fault> {
    let stated = answer.content_range()?;
    let info = answer.info(stated.size)?;
    let asked = range.and_then(|range| range.resolve(info.size));
    match (asked, stated.range) {
        (Some(asked), Some(came)) if asked == came && answer.length()? == came.end - came.start => {
            Ok(Found { info, range: came, answer })
        }
        _ => Err(Fault::protocol("another range came than was asked for")),
    }
}

/// True if the answer sends on to the prefix of the same name: then the key has no value.
fn is_prefix(transport: &Transport, answer: &Answer, path: &str) -> bool {
    answer.location().is_some_and(|location| transport.base().is_directory_of(location, path))
}

impl Download {
    fn into_stream(self) -> ByteStream {
        stream::try_unfold(self, |mut download| async move {
            let piece = download.piece().await?;
            Ok(piece.map(|piece| (piece, download)))
        })
        .boxed()
    }

    async fn piece(&mut self) -> Result<Option<Bytes>, StoreError> {
        while self.rest.start < self.rest.end {
            match self.try_piece().await {
                Ok(piece) => return Ok(Some(piece)),
                Err(failure) => {
                    self.answer = None;
                    self.schedule.wait(failure, Repeat::Freely).await?;
                }
            }
        }
        Ok(None)
    }

    async fn try_piece(&mut self) -> Result<Bytes, Failure<StoreError>> {
        let answer = match &mut self.answer {
            Some(answer) => answer,
            broken => broken.insert(reopen(&self.transport, &self.key, &self.info, &self.rest, self.clock).await?),
        };
        let Range { start: at, end } = self.rest;
        let piece = answer.piece().await?.ok_or(TransportError::Short { at, end })?;
        let next = at.checked_add(piece.len() as u64).filter(|&next| next <= end);
        self.rest.start = next.ok_or_else(|| Fault::protocol("more bytes came than were announced"))?;
        Ok(piece)
    }
}

/// Asks for what is left of a value, if it is still the same.
async fn reopen(
    transport: &Transport,
    key: &Key,
    info: &ValueMeta,
    rest: &Range<u64>,
    clock: Clock,
) -> Result<Answer, Failure<StoreError>> {
    let range = ByteRange::Bounded { start: rest.start, end: rest.end };
    let request = transport
        .request(Method::GET, &routes::key_path(key))
        .header(RANGE, range::render(range))
        .header(IF_MATCH, etag::render(info.version));
    let answer = transport.send(request, clock).await?;
    match answer.status() {
        StatusCode::PARTIAL_CONTENT => {
            let found = part(answer, Some(range))?;
            if (found.info.version, found.info.size) != (info.version, info.size) {
                return Err(Fault::protocol("If-Match was disregarded").into());
            }
            Ok(found.answer)
        }
        StatusCode::PRECONDITION_FAILED | StatusCode::NOT_FOUND => Err(TransportError::Replaced.into()),
        _ => Err(answer.into_failure(Some(key)).await),
    }
}
