//! Reading a value.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use bytes::Bytes;
use futures::{StreamExt, stream};
use tokio::sync::OwnedSemaphorePermit;
use zarrd_store::{ByteRange, ByteStream, GetResult, Key, StoreError, ValueMeta};

use super::inner::StoreInner;
use crate::{
    commit::{StagedContent, StagedValue},
    error::{is_missing_file, missing_file},
    gc::{Pin, PinKind},
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
        match open_value(inner, key, &current, range, None).await {
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

/// Opens the value of a record. Its file may be removed by now, unless the reader has pinned it.
pub(crate) async fn open_value(
    inner: &Arc<StoreInner>,
    key: &Key,
    record: &Record,
    range: Option<ByteRange>,
    pin: Option<&Arc<Pin>>,
) -> Result<GetResult, StoreError> {
    let meta = record.meta(inner.store_id());
    let range = match range {
        None => 0..meta.size,
        Some(range) => range.resolve(meta.size).ok_or(StoreError::RangeNotSatisfiable { meta: meta.clone() })?,
    };
    match &record.location {
        Location::Inline(bytes) => Ok(inline(meta, range, bytes)),
        Location::File(file) => {
            let open = OpenValue::open(&inner.directory, key, *file, &inner.buffers).await?;
            let pin = match (&open, pin) {
                (OpenValue::File(_), _) => None,
                (OpenValue::Joined(_), Some(pin)) => Some(Arc::clone(pin)),
                (OpenValue::Joined(_), None) => Some(pin_current(inner, key, record, *file)?),
            };
            file_value(inner, ValueReader::new(open, range, pin), meta).await
        }
    }
}

/// Pins the files of a joined value, which are opened one after the other. Fails like a missing file if the key has another
/// record by now.
fn pin_current(inner: &StoreInner, key: &Key, record: &Record, file: FileRef) -> Result<Arc<Pin>, StoreError> {
    let pin = inner.pin(PinKind::Reader);
    if inner.record(key)?.as_ref() != Some(record) {
        return Err(missing_file(key, &file.id.path()));
    }
    pin.resolve(vec![file.id]);
    Ok(Arc::new(pin))
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
            Ok(ValueReader::new(open, range, None).stream())
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
    mut reader: ValueReader,
    meta: ValueMeta,
) -> Result<GetResult, StoreError> {
    let range = reader.remaining.clone();
    let wanted = range.end.saturating_sub(range.start).min(PREFETCH_BYTES);
    let permits = u32::try_from(wanted.div_ceil(1024)).unwrap_or(u32::MAX);
    // If other readers use the whole limit, prefetch only one chunk.
    reader.permit = Arc::clone(&inner.prefetch).try_acquire_many_owned(permits).ok();
    let until = range.start.saturating_add(if reader.permit.is_some() { wanted } else { wanted.min(1) });
    while reader.remaining.start < until {
        let chunk = reader.read().await?;
        reader.prefetch.push_back(chunk);
    }
    Ok(GetResult { meta, range, stream: reader.stream() })
}

/// A value file, or the files of a joined value, being read.
struct ValueReader {
    open: OpenValue,
    remaining: Range<u64>,
    prefetch: VecDeque<Bytes>,
    /// The share of the prefetch limit.
    permit: Option<OwnedSemaphorePermit>,
    /// Retains files that are not open yet.
    pin: Option<Arc<Pin>>,
}

impl ValueReader {
    fn new(open: OpenValue, remaining: Range<u64>, pin: Option<Arc<Pin>>) -> Self {
        Self { open, remaining, prefetch: VecDeque::new(), permit: None, pin }
    }

    async fn read(&mut self) -> Result<Bytes, StoreError> {
        let read = self.open.read(&mut self.remaining).await;
        let is_pinned = self.pin.as_ref().is_none_or(|pin| pin.touch());
        match read {
            Err(error) if !is_pinned && is_missing_file(&error) => Err(StoreError::SnapshotExpired),
            read => read,
        }
    }

    fn stream(self) -> ByteStream {
        stream::try_unfold(self, |mut reader| async move {
            if let Some(chunk) = reader.prefetch.pop_front() {
                return Ok(Some((chunk, reader)));
            }
            reader.permit = None;
            if reader.remaining.is_empty() {
                return Ok(None);
            }
            let chunk = reader.read().await?;
            Ok(Some((chunk, reader)))
        })
        .boxed()
    }
}
