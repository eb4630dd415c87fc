//! Reading a value.

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{ByteRange, ByteStream, CachedMeta, GetResult, Key, StoreError, ValueMeta, Version};

use crate::{
    attributes::Versions,
    error::{Failure, StepError, step_error},
    inner::Inner,
    names::is_visible,
    quiet::Precision,
    root::{TypeCheck, Wait},
    value_file::{ACTION, ValueFile},
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

/// Returns the value of a key, or that of this version, if one is given.
pub(crate) async fn get(
    inner: &Arc<Inner>,
    key: &Key,
    range: Option<ByteRange>,
    version: Option<Version>,
) -> Result<Option<GetResult>, StoreError> {
    if !is_visible(key.as_str()) {
        return Ok(None);
    }
    if let Some(file) = version.and_then(|version| inner.open_files.find(key, version))
        && let Begun::Ready(result) = begin(inner, file, range).await?
    {
        return Ok(Some(result));
    }
    // Whoever knows the version has seen a regular file.
    let mut check = if version.is_some() { TypeCheck::Done } else { TypeCheck::Needed };
    let mut waited = Duration::ZERO;
    for _ in 0..TRIES {
        let found = match inner.at_once(|inner| open(inner, key, check, Wait::Never)) {
            Some(found) => found?,
            None => {
                let at = key.clone();
                inner.run(move |inner| open(inner, &at, check, Wait::Allowed)).await?
            }
        };
        check = TypeCheck::Needed;
        let Some(file) = found else { return Ok(None) };
        let wait = inner.wait(key, &file.attributes, file.precision);
        if let Some(wait) = wait {
            if waited > MAX_WAIT {
                break;
            }
            tokio::time::sleep(wait).await;
            waited = waited.saturating_add(wait);
            let young = file.clone();
            if !inner.run(move |inner| young.is_unchanged(&inner.root)).await? {
                continue;
            }
            inner.open_files.insert(inner.meta(key, &file.attributes).version, file.clone());
        }
        if let Begun::Ready(result) = begin(inner, file, range).await? {
            return Ok(Some(result));
        }
    }
    Err(StoreError::Changed { key: key.clone() })
}

/// Returns the metadata of the value of a key if that waits neither for a disk nor for the file to be quiet.
pub(crate) fn cached_meta(inner: &Inner, key: &Key) -> CachedMeta {
    if !is_visible(key.as_str()) {
        return CachedMeta::Known(None);
    }
    match inner.at_once(|inner| stat(inner, key, Wait::Never)) {
        Some(Ok(FileState::Absent)) => CachedMeta::Known(None),
        Some(Ok(FileState::Quiet(meta))) => CachedMeta::Known(Some(meta)),
        _ => CachedMeta::Unknown,
    }
}

/// Returns the metadata of the value of a key.
pub(crate) async fn head(inner: &Arc<Inner>, key: &Key) -> Result<Option<ValueMeta>, StoreError> {
    if !is_visible(key.as_str()) {
        return Ok(None);
    }
    let (mut waited, mut last) = (Duration::ZERO, None);
    for _ in 0..TRIES {
        let found = match inner.at_once(|inner| stat(inner, key, Wait::Never)) {
            Some(found) => found?,
            None => {
                let at = key.clone();
                inner.run(move |inner| stat(inner, &at, Wait::Allowed)).await?
            }
        };
        let (file, wait, readable) = match found {
            FileState::Absent => return Ok(None),
            FileState::Quiet(meta) => return Ok(Some(meta)),
            FileState::Young { file, wait, readable } => (file, wait, readable),
        };
        last = Some(file.attributes);
        if waited > MAX_WAIT {
            break;
        }
        tokio::time::sleep(wait).await;
        waited = waited.saturating_add(wait);
        let young = file.clone();
        if inner.run(move |inner| young.is_unchanged(&inner.root)).await? {
            let meta = inner.meta(key, &file.attributes);
            if readable {
                inner.open_files.insert(meta.version, file);
            }
            return Ok(Some(meta));
        }
    }
    Ok(last.map(|attributes| Versions::unsettled_meta(&attributes)))
}

/// The start of a read.
enum Begun {
    Changed,
    Ready(GetResult),
}

/// What the attributes of a file say about its value.
enum FileState {
    Absent,
    Quiet(ValueMeta),
    /// It may not have been quiet for long enough; it has been if it is unchanged after this time.
    Young {
        file: ValueFile,
        wait: Duration,
        /// True if it is open for reading.
        readable: bool,
    },
}

/// The bytes of a value that are still to be yielded.
struct Reader {
    inner: Arc<Inner>,
    file: ValueFile,
    first: Option<Bytes>,
    remaining: Range<u64>,
    /// The share of the prefetch limit.
    permit: Option<OwnedSemaphorePermit>,
}

fn stat(inner: &Inner, key: &Key, wait: Wait) -> Result<FileState, StepError> {
    let failed = |failure: Failure| step_error(ACTION, key.as_str(), failure);
    let found = inner.root.look_up(key.as_str(), wait).map_err(failed)?;
    let Some(found) = found else { return Ok(FileState::Absent) };
    if !found.attributes.is_value().map_err(failed)? {
        return Ok(FileState::Absent);
    }
    // To open a file for reading asks the server of a network file system for its attributes, to look it up does not.
    let (mut attributes, precision) = (found.attributes, found.precision);
    let file = ValueFile::new(key.clone(), found);
    if precision == Precision::Coarse {
        let Some(now) = file.attributes_now(&inner.root)? else { return Ok(FileState::Absent) };
        attributes = now;
    }
    let Some(quiet) = inner.wait(key, &attributes, precision) else {
        return Ok(FileState::Quiet(inner.meta(key, &attributes)));
    };
    // It stays open for a read, if that is possible.
    match inner.root.open_value(key.as_str(), TypeCheck::Done, wait) {
        Ok(Some(opened)) if opened.attributes == attributes => {
            Ok(FileState::Young { file: ValueFile::new(key.clone(), opened), wait: quiet, readable: true })
        }
        Err(Failure::WouldBlock) => Err(StepError::WouldBlock),
        _ => Ok(FileState::Young { file: file.with(attributes), wait: quiet, readable: false }),
    }
}

fn open(inner: &Inner, key: &Key, check: TypeCheck, wait: Wait) -> Result<Option<ValueFile>, StepError> {
    let opened = inner.root.open_value(key.as_str(), check, wait);
    let opened = opened.map_err(|failure| step_error(ACTION, key.as_str(), failure))?;
    Ok(opened.map(|opened| ValueFile::new(key.clone(), opened)))
}

/// Reads the first buffer of a quiet file.
async fn begin(inner: &Arc<Inner>, file: ValueFile, range: Option<ByteRange>) -> Result<Begun, StoreError> {
    let meta = inner.meta(&file.key, &file.attributes);
    let range = match range {
        None => 0..meta.size,
        Some(range) => range.resolve(meta.size).ok_or(StoreError::RangeNotSatisfiable { meta: meta.clone() })?,
    };
    let len = range.end.saturating_sub(range.start);
    let wanted = if len <= PREFETCH_BYTES { len } else { BUFFER_BYTES };
    let permits = u32::try_from(wanted.div_ceil(1024)).unwrap_or(u32::MAX);
    let permit = Arc::clone(&inner.prefetch).try_acquire_many_owned(permits).ok();
    let wanted = if permit.is_some() { wanted } else { wanted.min(SMALL_BUFFER_BYTES) };
    let first = read(inner, &file, range.start..range.start.saturating_add(wanted)).await?;
    let Some(first) = first else { return Ok(Begun::Changed) };
    let remaining = range.start.saturating_add(wanted)..range.end;
    let reader = Reader { inner: Arc::clone(inner), file, first: Some(first), remaining, permit };
    Ok(Begun::Ready(GetResult { meta, range, stream: reader.stream() }))
}

/// Reads a range of a file, at once if it is in memory; `None` if the file was changed.
async fn read(inner: &Arc<Inner>, file: &ValueFile, range: Range<u64>) -> Result<Option<Bytes>, StoreError> {
    if let Some(read) = inner.at_once(|inner| file.read((&inner.root, &inner.buffers), range.clone(), Wait::Never)) {
        return read;
    }
    let file = file.clone();
    inner.run(move |inner| file.read((&inner.root, &inner.buffers), range, Wait::Allowed)).await
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
            let bytes = read(&reader.inner, &reader.file, start..until).await?;
            let bytes = bytes.ok_or_else(|| StoreError::Changed { key: reader.file.key.clone() })?;
            reader.remaining = until..end;
            Ok(Some((bytes, reader)))
        })
        .boxed()
    }
}
