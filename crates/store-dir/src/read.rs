//! Reading a value.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use rustix::{
    buffer::spare_capacity,
    fd::OwnedFd,
    io::{Errno, pread},
};
use store::{ByteRange, ByteStream, GetResult, Key, StoreError, ValueMeta};
use tokio::sync::OwnedSemaphorePermit;

use crate::{
    attributes::{Attributes, Kind, Versions},
    error::{Failure, file_error},
    faults::Moment,
    inner::Inner,
    names::is_visible,
    quiet::Precision,
    root::Opened,
};

/// Up to so many bytes are read and checked before the result is returned, so that a changed value is an error and not
/// a broken stream.
const PREFETCH_BYTES: u64 = 1 << 20;

/// The size of the later buffers, in bytes.
const BUFFER_BYTES: u64 = 256 << 10;

/// The size of the first buffer if the memory for the beginnings of values is used up, in bytes.
const SMALL_BUFFER_BYTES: u64 = 64 << 10;

/// The number of times that a value is read again from the beginning because it was changed.
const TRIES: u32 = 8;

/// The time after which a value that changes again and again is given up.
const MAX_WAIT: Duration = Duration::from_secs(4);

const ACTION: &str = "read the file of a value";

/// Returns the value of a key.
pub(crate) async fn get(
    inner: &Arc<Inner>,
    key: &Key,
    range: Option<ByteRange>,
) -> Result<Option<GetResult>, StoreError> {
    if !is_visible(key.as_str()) {
        return Ok(None);
    }
    let mut waited = Duration::ZERO;
    for _ in 0..TRIES {
        let at = key.clone();
        let mut begun = inner.run(move |inner| open(inner, at, range)).await?;
        if let Begun::Young(file, wait) = begun {
            if waited > MAX_WAIT {
                break;
            }
            tokio::time::sleep(wait).await;
            waited = waited.saturating_add(wait);
            begun = inner.run(move |inner| open_again(inner, file, range)).await?;
        }
        match begun {
            Begun::Absent => return Ok(None),
            Begun::Ready(result) => return Ok(Some(result)),
            Begun::Young(..) | Begun::Changed => {}
        }
    }
    Err(StoreError::Changed { key: key.clone() })
}

/// Returns the metadata of the value of a key.
pub(crate) async fn head(inner: &Arc<Inner>, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
    if !is_visible(key.as_str()) {
        return Ok(None);
    }
    let (mut waited, mut last) = (Duration::ZERO, None);
    for _ in 0..TRIES {
        let at = key.clone();
        let found = inner.run(move |inner| look(inner, &at)).await?;
        let Some((found, wait)) = found else { return Ok(None) };
        let Some(wait) = wait else { return Ok(Some(inner.meta(key, &found.attributes))) };
        last = Some(found.attributes);
        if waited > MAX_WAIT {
            break;
        }
        tokio::time::sleep(wait).await;
        waited = waited.saturating_add(wait);
        let (at, then) = (key.clone(), found.attributes);
        let now = inner.run(move |inner| attributes_now(inner, &at, &found.file, found.precision)).await?;
        if now.is_some_and(|now| then.has_same_bytes(&now)) {
            return Ok(Some(inner.meta(key, &then)));
        }
    }
    Ok(last.map(|attributes| Versions::unsettled_meta(&attributes)))
}

/// A read that was begun.
enum Begun {
    Absent,
    /// The file may not have been quiet for long enough; it has been if it is unchanged after this time.
    Young(ValueFile, Duration),
    Changed,
    Ready(GetResult),
}

/// The open file of a value.
#[derive(Clone)]
struct ValueFile {
    key: Key,
    file: Arc<OwnedFd>,
    /// The attributes that the file had when it was opened.
    attributes: Attributes,
    precision: Precision,
}

/// The bytes of a value that are still to be yielded.
struct Reader {
    inner: Arc<Inner>,
    value: ValueFile,
    first: Option<Bytes>,
    remaining: Range<u64>,
    /// The share of the prefetch limit.
    permit: Option<OwnedSemaphorePermit>,
}

fn look(inner: &Arc<Inner>, key: &Key) -> Result<Option<(Opened, Option<Duration>)>, StoreError> {
    let found = inner.root.look_up(key.as_str()).map_err(|failure| file_error(ACTION, key.as_str(), failure))?;
    let Some(mut found) = found.filter(|found| found.attributes.kind == Kind::Regular) else { return Ok(None) };
    // To open a file for reading asks the server of a network file system for its attributes, to look it up does not.
    if found.precision == Precision::Coarse {
        let Some(now) = attributes_now(inner, key, &found.file, found.precision)? else { return Ok(None) };
        found.attributes = now;
    }
    let wait = inner.wait(key, &found.attributes, found.precision);
    Ok(Some((found, wait)))
}

fn open(inner: &Arc<Inner>, key: Key, range: Option<ByteRange>) -> Result<Begun, StoreError> {
    let opened = inner.root.open_value(key.as_str());
    let Some(opened) = opened.map_err(|failure| file_error(ACTION, key.as_str(), failure))? else {
        return Ok(Begun::Absent);
    };
    let Opened { file, attributes, precision } = opened;
    let wait = inner.wait(&key, &attributes, precision);
    let value = ValueFile { key, file: Arc::new(file), attributes, precision };
    match wait {
        Some(wait) => Ok(Begun::Young(value, wait)),
        None => begin(inner, value, range),
    }
}

/// Continues with a file that was not quiet when it was opened.
fn open_again(inner: &Arc<Inner>, value: ValueFile, range: Option<ByteRange>) -> Result<Begun, StoreError> {
    if value.is_unchanged(inner)? { begin(inner, value, range) } else { Ok(Begun::Changed) }
}

/// Reads the first buffer of a quiet file.
fn begin(inner: &Arc<Inner>, value: ValueFile, range: Option<ByteRange>) -> Result<Begun, StoreError> {
    let meta = inner.meta(&value.key, &value.attributes);
    let range = match range {
        None => 0..meta.size,
        Some(range) => range.resolve(meta.size).ok_or(StoreError::RangeNotSatisfiable { meta })?,
    };
    let len = range.end.saturating_sub(range.start);
    let wanted = if len <= PREFETCH_BYTES { len } else { BUFFER_BYTES };
    let permits = u32::try_from(wanted.div_ceil(1024)).unwrap_or(u32::MAX);
    let permit = Arc::clone(&inner.prefetch).try_acquire_many_owned(permits).ok();
    let wanted = if permit.is_some() { wanted } else { wanted.min(SMALL_BUFFER_BYTES) };
    let Some(first) = value.read(inner, range.start..range.start.saturating_add(wanted))? else {
        return Ok(Begun::Changed);
    };
    let remaining = range.start.saturating_add(wanted)..range.end;
    let reader = Reader { inner: Arc::clone(inner), value, first: Some(first), remaining, permit };
    Ok(Begun::Ready(GetResult { meta, range, stream: reader.stream() }))
}

/// The attributes of an open file at this moment; `None` if its server has removed it.
fn attributes_now(
    inner: &Arc<Inner>,
    key: &Key,
    file: &OwnedFd,
    precision: Precision,
) -> Result<Option<Attributes>, StoreError> {
    match inner.root.attributes(file, precision.current()) {
        Ok(attributes) => Ok(Some(attributes)),
        Err(Failure::File(Errno::STALE)) => Ok(None),
        Err(failure) => Err(file_error(ACTION, key.as_str(), failure)),
    }
}

impl ValueFile {
    /// True if the file has the bytes that it had when it was opened.
    fn is_unchanged(&self, inner: &Arc<Inner>) -> Result<bool, StoreError> {
        let now = attributes_now(inner, &self.key, &self.file, self.precision)?;
        Ok(now.is_some_and(|now| self.attributes.has_same_bytes(&now)))
    }

    /// Reads a range of the file; `None` if the file was changed.
    fn read(&self, inner: &Arc<Inner>, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or_default();
        let mut bytes = Vec::with_capacity(len);
        while bytes.len() < len {
            let at = range.start.saturating_add(bytes.len() as u64);
            match pread(&self.file, spare_capacity(&mut bytes), at) {
                // The file is shorter than it was.
                Ok(0) | Err(Errno::STALE) => return Ok(None),
                Ok(_) | Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(file_error(ACTION, self.key.as_str(), error.into())),
            }
        }
        // The capacity may be larger than what was asked for.
        bytes.truncate(len);
        inner.root.faults.moment(Moment::Read);
        Ok(self.is_unchanged(inner)?.then(|| bytes.into()))
    }
}

impl Reader {
    fn stream(self) -> ByteStream {
        stream::try_unfold(self, |mut reader| async move {
            if let Some(first) = reader.first.take().filter(|first| !first.is_empty()) {
                return Ok(Some((first, reader)));
            }
            reader.permit = None;
            if reader.remaining.is_empty() {
                return Ok(None);
            }
            let Range { start, end } = reader.remaining;
            let until = start.saturating_add(BUFFER_BYTES).min(end);
            let value = reader.value.clone();
            let bytes = reader.inner.run(move |inner| value.read(inner, start..until)).await?;
            let bytes = bytes.ok_or_else(|| StoreError::Changed { key: reader.value.key.clone() })?;
            reader.remaining = until..end;
            Ok(Some((bytes, reader)))
        })
        .boxed()
    }
}
