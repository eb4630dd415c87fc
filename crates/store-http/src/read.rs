//! Reading values.

use std::{ops::Range, sync::Arc};

use bytes::Buf;
use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use reqwest::{
    Method, Response,
    header::{HeaderMap, HeaderName, HeaderValue, IF_MATCH, IF_UNMODIFIED_SINCE, RANGE},
};
use zarrd_store::{ByteRange, GetResult, Key, StoreError, ValueMeta, Version};
use zarrd_store_remote::{Attempts, Body, Resume, resumed};

use crate::{
    answer::{Answer, Head, Pin},
    failure::Failure,
    inner::Inner,
};

/// The number of times that a read begins again because the value changed in between.
const TRIES: u32 = 4;

/// No value is larger. Positions beyond it are not sent, as some servers cannot parse them.
const MAX_SIZE: u64 = 1 << 53;

/// The metadata of a value.
pub(crate) async fn head(inner: &Inner, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
    let check = |response: Response| check(inner, key, &response, None);
    match inner.request(&Method::HEAD, key, &HeaderMap::new(), check).await {
        Ok(answer) => Ok(Some(answer.meta)),
        Err(failure) => inner.absence(failure).map(|()| None).map_err(|failure| inner.failed(key, failure)),
    }
}

/// A value, or a range of one. If the caller wants a version, any other may be an error.
pub(crate) async fn get(
    inner: &Arc<Inner>,
    key: &Key,
    range: Option<ByteRange>,
    wanted: Option<Version>,
) -> Result<Option<GetResult>, StoreError> {
    let pin = wanted.and_then(|version| inner.pins.pin(version));
    for _ in 0..TRIES {
        let failure = match fetch(inner, key, range, pin.as_ref()).await {
            Ok((answer, response)) => return begin(inner, key, answer, response).map(Some),
            Err(failure) if failure.status() == Some(412) && pin.is_some() => break,
            Err(failure) if failure.status() == Some(416) => failure,
            Err(failure) => return inner.absence(failure).map(|()| None).map_err(|failure| inner.failed(key, failure)),
        };
        // The answer does not have the metadata.
        let Some(meta) = head(inner, key).await? else { return Ok(None) };
        match range.map(|range| range.resolve(meta.size)) {
            Some(None) => return Err(StoreError::RangeNotSatisfiable { meta }),
            // The last bytes of an empty value.
            Some(Some(range)) if range.is_empty() => {
                return Ok(Some(GetResult { meta, range, stream: stream::empty().boxed() }));
            }
            // The value was shorter a moment ago.
            Some(Some(_)) => {}
            None => return Err(inner.failed(key, failure)),
        }
    }
    Err(StoreError::Changed { key: key.clone() })
}

/// Asks for a value.
async fn fetch(
    inner: &Inner,
    key: &Key,
    range: Option<ByteRange>,
    pin: Option<&Pin>,
) -> Result<(Answer, Response), Failure> {
    let mut headers = HeaderMap::new();
    if let Some(range) = range {
        headers.extend(header(RANGE, &range_text(range).ok_or(Failure::refused(416))?));
    }
    match pin {
        Some(Pin::ETag(etag)) => headers.extend(header(IF_MATCH, etag)),
        Some(Pin::Modified(time)) => headers.extend(header(IF_UNMODIFIED_SINCE, time)),
        Some(Pin::Constant) | None => {}
    }
    let check = |response: Response| check(inner, key, &response, range).map(|answer| (answer, response));
    inner.request(&Method::GET, key, &headers, check).await
}

fn check(inner: &Inner, key: &Key, response: &Response, requested: Option<ByteRange>) -> Result<Answer, Failure> {
    let head = Head { status: response.status(), headers: response.headers() };
    head.check(&inner.pins, inner.url.versions(), key, requested)
}

fn header(name: HeaderName, value: &str) -> Option<(HeaderName, HeaderValue)> {
    Some((name, HeaderValue::try_from(value).ok()?))
}

/// The value of `Range`; `None` if the range begins beyond the end of any value.
fn range_text(range: ByteRange) -> Option<String> {
    Some(match range {
        ByteRange::Bounded { start, .. } | ByteRange::From(start) if start >= MAX_SIZE => return None,
        ByteRange::Bounded { start, end } if end < MAX_SIZE => format!("bytes={start}-{}", end.saturating_sub(1)),
        ByteRange::Bounded { start, .. } | ByteRange::From(start) => format!("bytes={start}-"),
        ByteRange::Last(count) => format!("bytes=-{}", count.min(MAX_SIZE)),
    })
}

/// Begins to read a value.
fn begin(inner: &Arc<Inner>, key: &Key, answer: Answer, response: Response) -> Result<GetResult, StoreError> {
    let Answer { meta, pin, range, skip } = answer;
    let Some(range) = range else { return Err(StoreError::RangeNotSatisfiable { meta }) };
    let body = part(response, skip, range.end.saturating_sub(range.start));
    let source = Source { inner: Arc::clone(inner), key: key.clone(), version: meta.version, pin };
    Ok(GetResult { meta, range: range.clone(), stream: resumed(source, range, body) })
}

/// The bytes of a body after those that were not asked for, as many as were asked for.
fn part(response: Response, skip: u64, len: u64) -> Body<Failure> {
    let body = response.bytes_stream().map_err(Failure::from).boxed();
    let rest = stream::try_unfold((body, skip, len), |(mut body, mut skip, mut len)| async move {
        while len > 0 {
            let Some(mut bytes) = body.try_next().await? else { return Ok(None) };
            let before = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
            bytes.advance(before);
            skip = skip.saturating_sub(before as u64);
            bytes.truncate(usize::try_from(len).unwrap_or(usize::MAX));
            len = len.saturating_sub(bytes.len() as u64);
            if !bytes.is_empty() {
                return Ok(Some((bytes, (body, skip, len))));
            }
        }
        Ok(None)
    });
    rest.boxed()
}

/// A value that is being read.
struct Source {
    inner: Arc<Inner>,
    key: Key,
    version: Version,
    pin: Pin,
}

impl Resume for Source {
    type Failure = Failure;

    fn resume(&self, remaining: Range<u64>) -> BoxFuture<'_, Result<Body<Failure>, StoreError>> {
        self.ask(remaining).boxed()
    }

    fn attempts(&self) -> Attempts {
        self.inner.attempts()
    }

    fn error(&self, failure: Failure) -> StoreError {
        self.inner.failed(&self.key, failure)
    }
}

impl Source {
    async fn ask(&self, remaining: Range<u64>) -> Result<Body<Failure>, StoreError> {
        let changed = || StoreError::Changed { key: self.key.clone() };
        let range = ByteRange::Bounded { start: remaining.start, end: remaining.end };
        let (answer, response) = match fetch(&self.inner, &self.key, Some(range), Some(&self.pin)).await {
            Ok(found) => found,
            Err(failure) if matches!(failure.status(), Some(404 | 412 | 416)) => return Err(changed()),
            Err(failure) => return Err(self.error(failure)),
        };
        if answer.meta.version != self.version || answer.range.as_ref() != Some(&remaining) {
            return Err(changed());
        }
        Ok(part(response, answer.skip, remaining.end.saturating_sub(remaining.start)))
    }
}
