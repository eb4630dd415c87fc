//! Taking in a value.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use store::{Key, Payload, StoreError, UploadError};

use super::core::Core;
use crate::{
    blocking::run_blocking,
    commit::{InlineValue, StagedContent, StagedValue},
    record::MAX_INLINE,
    values::{Buffer, Buffers, FinishError, PIECE, Writer},
};

/// A value on its way into the store.
struct Upload {
    core: Arc<Core>,
    /// What came since the last write began. One write is under way while the next piece is gathered, so an upload holds
    /// at most two buffers.
    gathered: Gathered,
    received: u64,
    announced: Option<u64>,
    file: File,
}

/// The file of a value that is on its way, if it has one yet.
enum File {
    None,
    Writing(tokio::task::JoinHandle<Result<Writer, StoreError>>),
}

/// Bytes that are gathered. An upload takes a buffer only once it has brought more than a few bytes, so that many slow
/// ones do not hold many buffers.
#[derive(Default)]
struct Gathered {
    few: Vec<u8>,
    buffer: Option<Buffer>,
    len: usize,
}

/// How many bytes are few.
const FEW: usize = 32 << 10;

/// Writes a value without making it visible: into memory if it is small, else into a file that is durable but for its
/// directory's entry.
pub(super) async fn stage(core: &Arc<Core>, key: &Key, mut content: Payload) -> Result<StagedValue, StoreError> {
    core.failure.check()?;
    let announced = content.size.unwrap_or_default();
    if core.has_space(announced).is_err() {
        let core = Arc::clone(core);
        run_blocking(move || core.check_space(announced)).await?;
    }
    let mut upload = Upload {
        core: Arc::clone(core),
        gathered: Gathered::default(),
        received: 0,
        announced: content.size,
        file: File::None,
    };
    while let Some(piece) = content.stream.next().await {
        upload.take(&piece?).await?;
    }
    upload.finish(key).await
}

impl Upload {
    async fn take(&mut self, mut piece: &[u8]) -> Result<(), StoreError> {
        self.received = self.received.saturating_add(piece.len() as u64);
        if self.announced.is_some_and(|announced| self.received > announced) {
            return Err(self.wrong_length());
        }
        loop {
            piece = self.gathered.take(piece, &self.core.buffers);
            if piece.is_empty() {
                return Ok(());
            }
            self.write_gathered().await?;
        }
    }

    /// Waits for the write that is under way and begins that of what was gathered.
    async fn write_gathered(&mut self) -> Result<(), StoreError> {
        let writer = self.writer().await?;
        let mut gathered = std::mem::take(&mut self.gathered);
        let core = Arc::clone(&self.core);
        self.file = File::Writing(tokio::task::spawn_blocking(move || {
            core.check_space(gathered.len as u64)?;
            let mut writer = core.writer(writer)?;
            writer.write(gathered.bytes())?;
            Ok(writer)
        }));
        Ok(())
    }

    async fn writer(&mut self) -> Result<Option<Writer>, StoreError> {
        match std::mem::replace(&mut self.file, File::None) {
            File::None => Ok(None),
            File::Writing(task) => task.await.map_err(|_| StoreError::Closed)?.map(Some),
        }
    }

    async fn finish(mut self, key: &Key) -> Result<StagedValue, StoreError> {
        if self.announced.is_some_and(|announced| self.received != announced) {
            return Err(self.wrong_length());
        }
        let writer = self.writer().await?;
        if writer.is_none() && self.gathered.len <= MAX_INLINE {
            let bytes = Bytes::copy_from_slice(self.gathered.bytes());
            return self.core.small(bytes).await.map(StagedValue::new);
        }
        let (core, key, mut gathered) = (self.core, key.clone(), self.gathered);
        run_blocking(move || {
            let mut writer = core.writer(writer)?;
            writer.write(gathered.bytes())?;
            match writer.finish(&key, core.epoch_start) {
                Ok(staged) => Ok(StagedValue::new(StagedContent::File(staged))),
                Err(FinishError::Store(error)) => Err(error),
                Err(FinishError::Sync(error)) => Err(core.sync_failed(error)),
            }
        })
        .await
    }

    fn wrong_length(&self) -> StoreError {
        let announced = self.announced.unwrap_or_default();
        UploadError::LengthMismatch { announced, received: self.received }.into()
    }
}

impl Gathered {
    /// Takes as much of `piece` as there is room for, and gives back the rest.
    fn take<'p>(&mut self, piece: &'p [u8], buffers: &Buffers) -> &'p [u8] {
        let (now, rest) = piece.split_at(piece.len().min(PIECE.saturating_sub(self.len)));
        let (start, end) = (self.len, self.len.saturating_add(now.len()));
        self.len = end;
        if end <= FEW {
            self.few.extend_from_slice(now);
            return rest;
        }
        let few = &self.few;
        let buffer = self.buffer.get_or_insert_with(|| {
            let mut buffer = buffers.take();
            buffer.part(0, few.len()).copy_from_slice(few);
            buffer
        });
        buffer.part(start, end).copy_from_slice(now);
        rest
    }

    fn bytes(&mut self) -> &[u8] {
        match &mut self.buffer {
            Some(buffer) => buffer.part(0, self.len),
            None => &self.few,
        }
    }
}

impl Core {
    /// A small value: in memory if there is room for it, else spilled.
    async fn small(self: Arc<Self>, bytes: Bytes) -> Result<StagedContent, StoreError> {
        // A value without bytes takes memory as well.
        let permits = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_add(64);
        match Arc::clone(&self.inline).try_acquire_many_owned(permits) {
            Ok(permit) => Ok(StagedContent::Inline(InlineValue { bytes, _permit: permit })),
            Err(_) => run_blocking(move || self.spill.push(&bytes).map(StagedContent::Spilled)).await,
        }
    }

    /// Goes on with a file, or makes one. Blocks.
    fn writer(&self, writer: Option<Writer>) -> Result<Writer, StoreError> {
        match writer {
            Some(writer) => Ok(writer),
            None => Writer::create(&self.directory, self.next_file_id(), self.collector.clone()),
        }
    }

    /// A full disk concerns only the value at hand; any other failure to sync concerns them all.
    fn sync_failed(&self, error: std::io::Error) -> StoreError {
        match StoreError::io("sync a value file", error) {
            StoreError::OutOfSpace => StoreError::OutOfSpace,
            error => {
                self.failure.set(&error);
                StoreError::ReadOnly
            }
        }
    }
}
