//! Handing out a value.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use store::{ByteRange, ByteStream, GetResult, Key, StoreError, ValueMeta};
use tokio::sync::OwnedSemaphorePermit;

use super::core::Core;
use crate::{
    commit::{StagedContent, StagedValue},
    error::is_missing_file,
    record::{FileRef, Location, Record},
    values::OpenValue,
};

/// How much of a value is read and checked before the answer begins, so that damage in it is an error with a name and
/// not a stream that breaks off, in bytes.
const AHEAD: u64 = 1 << 20;

/// The value of a key.
pub(crate) async fn get(
    core: &Arc<Core>,
    key: &Key,
    range: Option<ByteRange>,
) -> Result<Option<GetResult>, StoreError> {
    let mut record = core.record(key)?;
    loop {
        let Some(current) = record else { return Ok(None) };
        match value_of(core, key, &current, range).await {
            // The file that the record names may have been replaced before it was open: then the key has another by now.
            Err(error) if is_missing_file(&error) => {
                record = core.record(key)?;
                if record.as_ref() == Some(&current) {
                    return Err(error);
                }
            }
            result => return result.map(Some),
        }
    }
}

/// The value that a record names. Its file may be gone by now unless it is pinned.
pub(crate) async fn value_of(
    core: &Arc<Core>,
    key: &Key,
    record: &Record,
    range: Option<ByteRange>,
) -> Result<GetResult, StoreError> {
    let meta = record.meta(core.store_id());
    let range = match range {
        None => 0..meta.size,
        Some(range) => range.resolve(meta.size).ok_or(StoreError::RangeNotSatisfiable { meta })?,
    };
    match &record.location {
        Location::Inline(bytes) => Ok(inline(meta, range, bytes)),
        Location::File(file) => from_file(core, key, *file, meta, range).await,
    }
}

/// The bytes of a staged value.
pub(super) async fn staged(
    core: &Arc<Core>,
    key: &Key,
    value: &StagedValue,
    range: Option<ByteRange>,
) -> Result<ByteStream, StoreError> {
    let range = range.map_or(Some(0..value.size()), |range| range.resolve(value.size()));
    let Some(range) = range else { return Ok(stream::empty().boxed()) };
    match &value.content {
        StagedContent::Inline(value) => Ok(part(&range, &value.bytes)),
        StagedContent::Spilled(spilled) => Ok(part(&range, &spilled.read()?)),
        StagedContent::File(staged) => {
            let open = OpenValue::open(&core.directory, key, staged.file, &core.buffers).await?;
            Ok(Reading { open, rest: range, ahead: VecDeque::new(), permit: None }.stream())
        }
    }
}

fn inline(meta: ValueMeta, range: Range<u64>, bytes: &Bytes) -> GetResult {
    let stream = part(&range, bytes);
    GetResult { meta: meta, range, stream }
}

fn part(range: &Range<u64>, bytes: &Bytes) -> ByteStream {
    let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let bytes = bytes.slice(index(range.start)..index(range.end));
    stream::once(std::future::ready(Ok(bytes))).boxed()
}

async fn from_file(
    core: &Arc<Core>,
    key: &Key,
    file: FileRef,
    meta: ValueMeta,
    range: Range<u64>,
) -> Result<GetResult, StoreError> {
    let open = OpenValue::open(&core.directory, key, file, &core.buffers).await?;
    let wanted = range.end.saturating_sub(range.start).min(AHEAD);
    let permits = u32::try_from(wanted.div_ceil(1024)).unwrap_or(u32::MAX);
    // Where others have read ahead all that may be, one piece must do.
    let permit = Arc::clone(&core.ahead).try_acquire_many_owned(permits).ok();
    let mut reading = Reading { open, rest: range.clone(), ahead: VecDeque::new(), permit };
    let until = range.start.saturating_add(if reading.permit.is_some() { wanted } else { wanted.min(1) });
    while reading.rest.start < until {
        let piece = reading.open.read(&mut reading.rest).await?;
        reading.ahead.push_back(piece);
    }
    Ok(GetResult { meta: meta, range, stream: reading.stream() })
}

/// A file being read.
struct Reading {
    open: OpenValue,
    rest: Range<u64>,
    ahead: VecDeque<Bytes>,
    /// The right to hold what was read ahead.
    permit: Option<OwnedSemaphorePermit>,
}

impl Reading {
    fn stream(self) -> ByteStream {
        stream::try_unfold(self, |mut reading| async move {
            if let Some(piece) = reading.ahead.pop_front() {
                return Ok(Some((piece, reading)));
            }
            reading.permit = None;
            if reading.rest.is_empty() {
                return Ok(None);
            }
            let piece = reading.open.read(&mut reading.rest).await?;
            Ok(Some((piece, reading)))
        })
        .boxed()
    }
}
