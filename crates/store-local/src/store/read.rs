//! Reading a value.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{ByteRange, ByteStream, GetResult, Key, StoreError, ValueMeta};

use super::inner::StoreInner;
use crate::{
    commit::{StagedContent, StagedValue},
    error::is_missing_file,
    record::{FileRef, Location, Record},
    values::OpenValue,
};

/// The bytes of a value that are read and checked before the result is returned, so that damage in them is an error and
/// not a broken stream.
const PREFETCH_BYTES: u64 = 1 << 20;

/// Returns the value of a key.
pub(crate) async fn get(
    inner: &Arc<StoreInner>,
    key: &Key,
    range: Option<ByteRange>,
) -> Result<Option<GetResult>, StoreError> {
    let mut record = inner.record(key)?;
    loop {
        let Some(current) = record else { return Ok(None) };
        match open_value(inner, key, &current, range).await {
            // The file may have been replaced before it was opened: then the key has another record by now.
            Err(error) if is_missing_file(&error) => {
                record = inner.record(key)?;
                if record.as_ref() == Some(&current) {
                    return Err(error);
                }
            }
            result => return result.map(Some),
        }
    }
}

/// Opens the value of a record. Its file may be removed by now, unless it is pinned.
pub(crate) async fn open_value(
    inner: &Arc<StoreInner>,
    key: &Key,
    record: &Record,
    range: Option<ByteRange>,
) -> Result<GetResult, StoreError> {
    let meta = record.meta(inner.store_id());
    let range = match range {
        None => 0..meta.size,
        Some(range) => range.resolve(meta.size).ok_or(StoreError::RangeNotSatisfiable { meta: meta.clone() })?,
    };
    match &record.location {
        Location::Inline(bytes) => Ok(inline(meta, range, bytes)),
        Location::File(file) => file_value(inner, key, *file, meta, range).await,
    }
}

/// Returns the bytes of a staged value.
pub(super) async fn staged(
    inner: &Arc<StoreInner>,
    key: &Key,
    value: &StagedValue,
    range: Option<ByteRange>,
) -> Result<ByteStream, StoreError> {
    let range = range.map_or(Some(0..value.size()), |range| range.resolve(value.size()));
    let Some(range) = range else { return Ok(stream::empty().boxed()) };
    match &value.content {
        StagedContent::Inline(value) => Ok(slice_stream(&range, &value.bytes)),
        StagedContent::Spilled(spilled) => Ok(slice_stream(&range, &spilled.read()?)),
        StagedContent::File(staged) => {
            let open = OpenValue::open(&inner.directory, key, staged.file, &inner.buffers).await?;
            Ok(ValueReader { open, remaining: range, prefetch: VecDeque::new(), permit: None }.stream())
        }
    }
}

fn inline(meta: ValueMeta, range: Range<u64>, bytes: &Bytes) -> GetResult {
    let stream = slice_stream(&range, bytes);
    GetResult { meta, range, stream }
}

fn slice_stream(range: &Range<u64>, bytes: &Bytes) -> ByteStream {
    let index = |at| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
    let bytes = bytes.slice(index(range.start)..index(range.end));
    stream::once(std::future::ready(Ok(bytes))).boxed()
}

async fn file_value(
    inner: &Arc<StoreInner>,
    key: &Key,
    file: FileRef,
    meta: ValueMeta,
    range: Range<u64>,
) -> Result<GetResult, StoreError> {
    let open = OpenValue::open(&inner.directory, key, file, &inner.buffers).await?;
    let wanted = range.end.saturating_sub(range.start).min(PREFETCH_BYTES);
    let permits = u32::try_from(wanted.div_ceil(1024)).unwrap_or(u32::MAX);
    // If other readers use the whole limit, prefetch only one chunk.
    let permit = Arc::clone(&inner.prefetch).try_acquire_many_owned(permits).ok();
    let mut reader = ValueReader { open, remaining: range.clone(), prefetch: VecDeque::new(), permit };
    let until = range.start.saturating_add(if reader.permit.is_some() { wanted } else { wanted.min(1) });
    while reader.remaining.start < until {
        let chunk = reader.open.read(&mut reader.remaining).await?;
        reader.prefetch.push_back(chunk);
    }
    Ok(GetResult { meta, range, stream: reader.stream() })
}

/// A value file being read.
struct ValueReader {
    open: OpenValue,
    remaining: Range<u64>,
    prefetch: VecDeque<Bytes>,
    /// The share of the prefetch limit.
    permit: Option<OwnedSemaphorePermit>,
}

impl ValueReader {
    fn stream(self) -> ByteStream {
        stream::try_unfold(self, |mut reader| async move {
            if let Some(chunk) = reader.prefetch.pop_front() {
                return Ok(Some((chunk, reader)));
            }
            reader.permit = None;
            if reader.remaining.is_empty() {
                return Ok(None);
            }
            let chunk = reader.open.read(&mut reader.remaining).await?;
            Ok(Some((chunk, reader)))
        })
        .boxed()
    }
}
