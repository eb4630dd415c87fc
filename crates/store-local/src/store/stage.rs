//! Receiving a value.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use zarrd_store::{Key, Payload, StoreError, UploadError, Version};

use super::inner::StoreInner;
use crate::{
    blocking::run_blocking,
    commit::{InlineValue, StagedContent, StagedValue},
    gc::PinKind,
    record::{Location, Record, max_inline_bytes},
    values::{BUFFER_BYTES, Buffer, Buffers, FinishError, JoinError, PartFile, StagedFile, Writer, join},
};

/// A value being received.
struct Upload {
    inner: Arc<StoreInner>,
    /// The data received since the last write began. One write runs while the next buffer is filled, so an upload uses
    /// at most two buffers.
    buffered: UploadBuffer,
    received: u64,
    announced: Option<u64>,
    file: UploadFile,
}

/// The file of a value being received, if it has one.
enum UploadFile {
    None,
    Writing(tokio::task::JoinHandle<Result<Writer, StoreError>>),
}

/// Received data. An upload takes a buffer from the pool only after [`SMALL_BUFFER_BYTES`], so that many slow uploads
/// do not occupy many buffers.
#[derive(Default)]
struct UploadBuffer {
    small: Vec<u8>,
    buffer: Option<Buffer>,
    len: usize,
}

/// The data that an upload collects before it takes a buffer from the pool, in bytes.
const SMALL_BUFFER_BYTES: usize = 32 << 10;

/// Writes a value without making it visible: to memory if it is small, else to a file that is durable except for its
/// directory entry.
pub(super) async fn stage(inner: &Arc<StoreInner>, key: &Key, mut content: Payload) -> Result<StagedValue, StoreError> {
    inner.read_only.check()?;
    let announced = content.size.unwrap_or_default();
    if inner.has_space(announced).is_err() {
        let inner = Arc::clone(inner);
        run_blocking(move || inner.check_space(announced)).await?;
    }
    let mut upload = Upload {
        inner: Arc::clone(inner),
        buffered: UploadBuffer::default(),
        received: 0,
        announced: content.size,
        file: UploadFile::None,
    };
    while let Some(chunk) = content.stream.next().await {
        upload.append(&chunk?).await?;
    }
    upload.finish(key).await
}

/// Joins the values of other keys, which must have these versions, to one without copying them. `None` if they are too small
/// for that, or if the file system has no hard links.
pub(super) async fn stage_joined(
    inner: &Arc<StoreInner>,
    key: &Key,
    parts: &[(Key, Version)],
) -> Result<Option<StagedValue>, StoreError> {
    inner.read_only.check()?;
    let (inner, key, parts) = (Arc::clone(inner), key.clone(), parts.to_vec());
    run_blocking(move || {
        let pin = inner.pin(PinKind::Reader);
        let records = inner.records_at(&parts)?;
        pin.resolve(records.iter().filter_map(Record::file).map(|file| file.id).collect());
        let size = records.iter().map(Record::size).fold(0, u64::saturating_add);
        let others = records.split_last().map_or(&[][..], |(_, others)| others);
        if size < inner.min_joined_bytes || others.iter().any(|record| record.file().is_none()) {
            return Ok(None);
        }
        inner.check_space(0)?;
        let files = parts.iter().zip(&records).map(|((key, _), record)| inner.part_file(key, record));
        // Once what was staged is linked, only the joined value needs it.
        let (files, _staged): (Vec<_>, Vec<_>) = files.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
        let (id, collector) = (inner.next_file_id(), inner.collector.clone());
        match join(&inner.directory, id, &key, &files, inner.start, collector) {
            Ok(staged) => Ok(Some(StagedValue::new(StagedContent::File(staged)))),
            Err(JoinError::NoLinks) => Ok(None),
            Err(JoinError::Finish(error)) => Err(inner.finish_failed(error)),
        }
    })
    .await
}

impl Upload {
    async fn append(&mut self, mut chunk: &[u8]) -> Result<(), StoreError> {
        self.received = self.received.saturating_add(chunk.len() as u64);
        if self.announced.is_some_and(|announced| self.received > announced) {
            return Err(self.length_mismatch());
        }
        loop {
            chunk = self.buffered.append(chunk, &self.inner.buffers);
            if chunk.is_empty() {
                return Ok(());
            }
            self.write_buffered().await?;
        }
    }

    /// Waits for the running write and starts the next one.
    async fn write_buffered(&mut self) -> Result<(), StoreError> {
        let writer = self.writer().await?;
        let mut buffered = std::mem::take(&mut self.buffered);
        let inner = Arc::clone(&self.inner);
        self.file = UploadFile::Writing(zarrd_executor::spawn_blocking(move || {
            inner.check_space(buffered.len as u64)?;
            let mut writer = inner.writer(writer)?;
            writer.write(buffered.bytes())?;
            Ok(writer)
        }));
        Ok(())
    }

    async fn writer(&mut self) -> Result<Option<Writer>, StoreError> {
        match std::mem::replace(&mut self.file, UploadFile::None) {
            UploadFile::None => Ok(None),
            UploadFile::Writing(task) => task.await.map_err(|_| StoreError::Closed)?.map(Some),
        }
    }

    async fn finish(mut self, key: &Key) -> Result<StagedValue, StoreError> {
        if self.announced.is_some_and(|announced| self.received != announced) {
            return Err(self.length_mismatch());
        }
        let writer = self.writer().await?;
        if writer.is_none() && self.buffered.len <= max_inline_bytes(key) {
            let bytes = Bytes::copy_from_slice(self.buffered.bytes());
            return self.inner.stage_small(bytes).await.map(StagedValue::new);
        }
        let (inner, key, mut buffered) = (self.inner, key.clone(), self.buffered);
        run_blocking(move || {
            let mut writer = inner.writer(writer)?;
            writer.write(buffered.bytes())?;
            let staged = writer.finish(&key, inner.start).map_err(|error| inner.finish_failed(error))?;
            Ok(StagedValue::new(StagedContent::File(staged)))
        })
        .await
    }

    fn length_mismatch(&self) -> StoreError {
        let announced = self.announced.unwrap_or_default();
        UploadError::LengthMismatch { announced, received: self.received }.into()
    }
}

impl UploadBuffer {
    /// Appends as much of `chunk` as fits, and returns the rest.
    fn append<'p>(&mut self, chunk: &'p [u8], buffers: &Buffers) -> &'p [u8] {
        let (head, rest) = chunk.split_at(chunk.len().min(BUFFER_BYTES.saturating_sub(self.len)));
        let (start, end) = (self.len, self.len.saturating_add(head.len()));
        self.len = end;
        if end <= SMALL_BUFFER_BYTES {
            self.small.extend_from_slice(head);
            return rest;
        }
        let small = &self.small;
        let buffer = self.buffer.get_or_insert_with(|| {
            let mut buffer = buffers.take();
            buffer.slice_mut(0, small.len()).copy_from_slice(small);
            buffer
        });
        buffer.slice_mut(start, end).copy_from_slice(head);
        rest
    }

    fn bytes(&mut self) -> &[u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.slice_mut(0, self.len),
            None => &self.small,
        }
    }
}

impl StoreInner {
    /// Stages a small value: in memory if it fits, else in a spill file.
    async fn stage_small(self: Arc<Self>, bytes: Bytes) -> Result<StagedContent, StoreError> {
        // An empty value takes memory as well.
        let permits = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(64);
        match Arc::clone(&self.inline).try_acquire_many_owned(permits) {
            Ok(permit) => Ok(StagedContent::Inline(InlineValue { bytes, _permit: permit })),
            Err(_) => run_blocking(move || self.spill.push(&bytes).map(StagedContent::Spilled)).await,
        }
    }

    /// Returns the open file, or creates it. Blocks.
    fn writer(&self, writer: Option<Writer>) -> Result<Writer, StoreError> {
        match writer {
            Some(writer) => Ok(writer),
            None => Writer::create(&self.directory, self.next_file_id(), self.collector.clone()),
        }
    }

    /// The records of keys as of one moment. Fails with [`StoreError::PreconditionFailed`] for the first that has another
    /// version.
    fn records_at(&self, keys: &[(Key, Version)]) -> Result<Vec<Record>, StoreError> {
        let (view, _gate) = self.views.stable()?;
        let records = keys.iter().map(|(key, version)| {
            let record = view.record(key)?;
            let current = record.as_ref().map(|record| record.version(self.store_id()));
            record
                .filter(|_| current == Some(*version))
                .ok_or_else(|| StoreError::PreconditionFailed { key: key.clone(), current })
        });
        records.collect()
    }

    /// The file of a record as a part; a new one, which is removed on drop, if the value is small. Blocks.
    fn part_file(&self, key: &Key, record: &Record) -> Result<(PartFile, Option<StagedFile>), StoreError> {
        let bytes = match &record.location {
            Location::File(file) => return Ok((PartFile { key: key.clone(), file: *file }, None)),
            Location::Inline(bytes) => bytes,
        };
        let mut writer = self.writer(None)?;
        writer.write(bytes)?;
        let staged = writer.finish(key, self.start).map_err(|error| self.finish_failed(error))?;
        Ok((PartFile { key: key.clone(), file: staged.file }, Some(staged)))
    }

    /// A full disk affects only this value; any other failed sync makes the store read-only.
    fn finish_failed(&self, error: FinishError) -> StoreError {
        let error = match error {
            FinishError::Store(error) => return error,
            FinishError::Sync(error) => error,
        };
        match StoreError::io("sync a value file", error) {
            StoreError::OutOfSpace => StoreError::OutOfSpace,
            error => {
                self.read_only.set(&error);
                StoreError::ReadOnly
            }
        }
    }
}
