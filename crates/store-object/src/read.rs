//! Reading values.

use std::{ops::Range, sync::Arc};

use futures::{FutureExt, StreamExt, TryStreamExt, future::BoxFuture, stream};
use object_store::{GetOptions, GetRange, GetResult as Answer, path::Path};
use zarrd_store::{ByteRange, GetResult, Key, StoreError, ValueMeta, Version};
use zarrd_store_remote::{Attempts, Body, Resume, resumed};

use crate::{
    failure::{Failure, Refusal},
    inner::Inner,
    location::{Forbidden, Service},
    provider::get_options,
    validators::Pin,
};

/// The action that fails if a value cannot be read.
const ACTION: &str = "read";

/// The number of times that a read begins again because the value changed in between.
const TRIES: u32 = 4;

/// No object is larger. Positions beyond it are not sent, as some servers cannot parse them.
const MAX_SIZE: u64 = 1 << 53;

/// The result of a request for a value.
enum Found {
    Value(GetResult),
    Absent,
    /// The object has another version than the one that was asked for.
    Changed,
    /// Nothing is known but that the range may contain no byte.
    Unsatisfiable(Failure),
}

/// The metadata of a value.
pub(crate) async fn head(inner: &Inner, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
    let Some(path) = inner.path(key) else { return Ok(None) };
    Ok(request_head(inner, key, &path).await?.map(|(meta, _)| meta))
}

/// A value, or a range of one. If the caller wants a version, any other may be an error.
pub(crate) async fn get(
    inner: &Arc<Inner>,
    key: &Key,
    range: Option<ByteRange>,
    wanted: Option<Version>,
) -> Result<Option<GetResult>, StoreError> {
    let Some(path) = inner.path(key) else { return Ok(None) };
    let pin = wanted.and_then(|version| inner.validators.pin(version));
    for _ in 0..TRIES {
        let failure = match fetch(inner, key, &path, range, pin.clone()).await? {
            Found::Value(value) => return Ok(Some(value)),
            Found::Absent => return Ok(None),
            Found::Changed if pin.is_some() => break,
            Found::Changed => continue,
            Found::Unsatisfiable(failure) => failure,
        };
        // The answer does not have the metadata.
        let Some((meta, _)) = request_head(inner, key, &path).await? else { return Ok(None) };
        match range.map(|range| range.resolve(meta.size)) {
            Some(None) => return Err(StoreError::RangeNotSatisfiable { meta }),
            // The last bytes of an empty value.
            Some(Some(range)) if range.is_empty() => {
                return Ok(Some(GetResult { meta, range, stream: stream::empty().boxed() }));
            }
            // The value was shorter a moment ago.
            _ if failure.status() == Some(416) => {}
            _ => return Err(inner.error(ACTION, key.as_str(), failure)),
        }
    }
    Err(StoreError::Changed { key: key.clone() })
}

/// Requests the metadata of a value.
async fn request_head(inner: &Inner, key: &Key, path: &Path) -> Result<Option<(ValueMeta, Pin)>, StoreError> {
    let found = head_object(inner, path).await.and_then(|answer| match answer {
        Some(answer) => inner.validators.meta(key, &answer.meta).map(Some),
        None => Ok(None),
    });
    found.map_err(|failure| inner.error(ACTION, key.as_str(), failure))
}

/// Requests the metadata of an object; `None` if it does not exist.
pub(crate) async fn head_object(inner: &Inner, path: &Path) -> Result<Option<Answer>, Failure> {
    match inner.request(|| inner.bucket.get_opts(path, GetOptions { head: true, ..get_options() })).await {
        Ok(answer) => {
            inner.mark_seen();
            Ok(Some(answer))
        }
        Err(failure) => absence(inner, failure).await.map(|()| None),
    }
}

/// Asks for a value.
async fn fetch(
    inner: &Arc<Inner>,
    key: &Key,
    path: &Path,
    range: Option<ByteRange>,
    mut pin: Option<Pin>,
) -> Result<Found, StoreError> {
    let range = match range {
        None => None,
        Some(ByteRange::Bounded { start, .. } | ByteRange::From(start)) if start >= MAX_SIZE => {
            return Ok(Found::Unsatisfiable(Failure::Other("the range begins beyond the end of any object")));
        }
        Some(ByteRange::Bounded { start, end }) if end < MAX_SIZE => Some(GetRange::Bounded(start..end)),
        Some(ByteRange::Bounded { start, .. } | ByteRange::From(start)) => Some(GetRange::Offset(start)),
        Some(ByteRange::Last(count)) if inner.location.service == Service::Azure => {
            // Azure has no ranges of last bytes.
            let Some((meta, found)) = request_head(inner, key, path).await? else { return Ok(Found::Absent) };
            pin = pin.or(Some(found));
            match meta.size.saturating_sub(count)..meta.size {
                range if range.is_empty() => return Ok(Found::Unsatisfiable(refused(416))),
                range => Some(GetRange::Bounded(range)),
            }
        }
        Some(ByteRange::Last(count)) => Some(GetRange::Suffix(count.min(MAX_SIZE))),
    };
    let is_range = range.is_some();
    let options = || pinned(pin.as_ref(), GetOptions { range: range.clone(), ..get_options() });
    let failure = match inner.request(|| inner.bucket.get_opts(path, options())).await {
        Ok(answer) => return begin(inner, key, path, answer).map(Found::Value),
        Err(failure) => failure,
    };
    match failure {
        failure if failure.status() == Some(412) => Ok(Found::Changed),
        failure if is_range && (failure.status() == Some(416) || is_doubtful(&failure)) => {
            Ok(Found::Unsatisfiable(failure))
        }
        failure => match absence(inner, failure).await {
            Ok(()) => Ok(Found::Absent),
            Err(failure) => Err(inner.error(ACTION, key.as_str(), failure)),
        },
    }
}

/// True if the failure may be the way in which an answer says that the range has no byte: some services send all of an
/// empty object.
fn is_doubtful(failure: &Failure) -> bool {
    matches!(failure, Failure::Whole | Failure::Other(_))
}

fn refused(status: u16) -> Failure {
    Failure::Refused(Refusal { status, ..Refusal::default() })
}

/// Asks for a pinned value only.
fn pinned(pin: Option<&Pin>, options: GetOptions) -> GetOptions {
    match pin {
        None => options,
        Some(Pin::ETag(etag)) => GetOptions { if_match: Some(etag.to_string()), ..options },
        Some(Pin::Version(version)) => GetOptions { version: Some(version.to_string()), ..options },
    }
}

/// Returns the failure unless it means that the object does not exist.
async fn absence(inner: &Inner, failure: Failure) -> Result<(), Failure> {
    let Failure::Refused(refusal) = &failure else { return Err(failure) };
    let is_absent = match refusal.status {
        404 => !refusal.is_missing_bucket(),
        403 => inner.forbidden == Forbidden::Absent && refusal.is_access_denied(),
        _ => false,
    };
    if !is_absent {
        return Err(failure);
    }
    if refusal.is(&["NoSuchKey", "BlobNotFound", "NoSuchObject"]) {
        inner.mark_seen();
        return Ok(());
    }
    // The answer to a HEAD does not say whether it is the object or the bucket that does not exist, nor whether it is
    // the object or the credentials that are the reason for a refusal.
    inner.check_bucket().await
}

/// Begins to read a value.
fn begin(inner: &Arc<Inner>, key: &Key, path: &Path, answer: Answer) -> Result<GetResult, StoreError> {
    inner.mark_seen();
    let failed = |failure| inner.error(ACTION, key.as_str(), failure);
    let (meta, pin) = inner.validators.meta(key, &answer.meta).map_err(failed)?;
    let range = answer.range.clone();
    if range.start > range.end || range.end > meta.size {
        return Err(failed(Failure::Other("the answer has bytes from beyond the end of the object")));
    }
    let source = Source { inner: Arc::clone(inner), key: key.clone(), path: path.clone(), version: meta.version, pin };
    let stream = resumed(source, range.clone(), body_of(answer));
    Ok(GetResult { meta, range, stream })
}

fn body_of(answer: Answer) -> Body<Failure> {
    answer.into_stream().map_err(|error| Failure::of(&error)).boxed()
}

/// A value that is being read.
struct Source {
    inner: Arc<Inner>,
    key: Key,
    path: Path,
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
        self.inner.error(ACTION, self.key.as_str(), failure)
    }
}

impl Source {
    async fn ask(&self, remaining: Range<u64>) -> Result<Body<Failure>, StoreError> {
        let changed = || StoreError::Changed { key: self.key.clone() };
        let range = Some(GetRange::Bounded(remaining.clone()));
        let options = || pinned(Some(&self.pin), GetOptions { range: range.clone(), ..get_options() });
        let answer = match self.inner.request(|| self.inner.bucket.get_opts(&self.path, options())).await {
            Ok(answer) => answer,
            Err(failure) if matches!(failure.status(), Some(404 | 412 | 416)) => return Err(changed()),
            Err(failure) => return Err(self.error(failure)),
        };
        let (meta, _) = self.inner.validators.meta(&self.key, &answer.meta).map_err(|failure| self.error(failure))?;
        if meta.version != self.version {
            return Err(changed());
        }
        if answer.range != remaining {
            return Err(self.error(Failure::Whole));
        }
        Ok(body_of(answer))
    }
}
