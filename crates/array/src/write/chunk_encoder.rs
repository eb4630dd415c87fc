//! Encodes and stages chunks, several at a time, within the memory of the write.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::{
    encode::{BaseContent, EncodeJob, StagedChunk, WriteContext},
    error::WriteError,
    gather::{Patch, SourceElements},
    layout::ChunkPart,
    memory::{BATCH, MemoryShare, MemoryUse, WriteMemory},
};
use crate::{error::ArrayError, memory::account::Account};

/// The size that an encode job is charged in addition to its elements, in bytes.
const PER_WORK: u64 = 256;

/// The size up to which nothing is reserved, in bytes.
const UNRESERVED: u64 = 64 << 10;

/// Encodes and stages chunks concurrently.
pub(crate) struct ChunkEncoder {
    target: Arc<WriteContext>,
    tasks: JoinSet<Result<Vec<StagedChunk>, WriteError>>,
    done: Vec<StagedChunk>,
    account: Option<Account>,
    pub(super) memory: Option<WriteMemory>,
    batch: Vec<EncodeJob>,
    batch_bytes: u64,
    /// The memory for encoding the batch, at most that of the minimum.
    batch_memory: u64,
}

impl ChunkEncoder {
    /// An encoder with the memory of a write: `memory`, or else what `account` has yet to reserve.
    pub(crate) fn new(target: Arc<WriteContext>, account: Option<Account>, memory: Option<WriteMemory>) -> Self {
        let (tasks, done, batch) = (JoinSet::new(), Vec::new(), Vec::new());
        Self { target, tasks, done, account, memory, batch, batch_bytes: 0, batch_memory: 0 }
    }

    /// Encodes a chunk that was received completely, in a batch with others if it is small.
    pub(crate) async fn add(&mut self, part: ChunkPart, source: SourceElements) -> Result<(), WriteError> {
        let memory = self.target.chunk_memory(&part.shape)?;
        if self.batch_memory.saturating_add(memory) > self.target.least.encoder {
            self.start().await?;
        }
        self.batch_memory = self.batch_memory.saturating_add(memory);
        self.batch_bytes = self.batch_bytes.saturating_add(self.target.chunk_len(&part.shape)).saturating_add(PER_WORK);
        let patches = vec![Patch { selection: part.selection, source }];
        self.batch.push(EncodeJob { position: part.position, shape: part.shape, under: BaseContent::Nothing, patches });
        if self.batch_bytes >= BATCH {
            self.start().await?;
        }
        Ok(())
    }

    /// Starts to encode the batch.
    async fn start(&mut self) -> Result<(), WriteError> {
        let works = std::mem::take(&mut self.batch);
        let memory = std::mem::take(&mut self.batch_memory);
        self.batch_bytes = 0;
        if works.is_empty() {
            return Ok(());
        }
        let share = self.reserve(memory).await?;
        let target = self.target.clone();
        self.spawn(share, async move { target.encode_chunks(works).await }).await
    }

    /// Runs an encode job concurrently, as soon as there is room for it.
    pub(crate) async fn spawn(
        &mut self,
        share: Option<MemoryShare>,
        encoder: impl Future<Output = Result<Vec<StagedChunk>, WriteError>> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.tasks.len() >= self.target.context.options.parallelism.max(1) {
            self.join().await?;
        }
        self.tasks.spawn(async move {
            let staged = encoder.await;
            drop(share);
            staged
        });
        Ok(())
    }

    /// Takes memory for encoding a chunk of a shape.
    pub(crate) async fn reserve_chunk(&mut self, shape: &[u64]) -> Result<Option<MemoryShare>, WriteError> {
        self.reserve(self.target.chunk_memory(shape)?).await
    }

    async fn reserve(&mut self, bytes: u64) -> Result<Option<MemoryShare>, WriteError> {
        if bytes <= UNRESERVED {
            return Ok(None);
        }
        let bytes = bytes.min(self.target.context.options.max_chunk_memory());
        self.take(MemoryUse::Making, bytes).await.map(Some)
    }

    /// Takes memory for a purpose. Waits for running jobs of the same write, and for nothing else.
    pub(crate) async fn take(&mut self, what: MemoryUse, bytes: u64) -> Result<MemoryShare, WriteError> {
        let memory = self.memory().await?;
        loop {
            match memory.take(what, bytes) {
                Ok(share) => return Ok(share),
                Err(error) if !self.join_one().await? => return Err(ArrayError::from(error).into()),
                Err(_) => {}
            }
        }
    }

    /// Takes memory beyond the minimum. Waits for running jobs, if none is free; `None` if there is none even then.
    pub(crate) async fn more(&mut self, bytes: u64) -> Result<Option<MemoryShare>, WriteError> {
        let memory = self.memory().await?;
        loop {
            if let Ok(share) = memory.more(bytes) {
                return Ok(Some(share));
            }
            if !self.join_one().await? {
                return Ok(None);
            }
        }
    }

    /// Waits for a running job, which releases its memory; false if there is none.
    async fn join_one(&mut self) -> Result<bool, WriteError> {
        if self.tasks.is_empty() {
            // A batch retains the window of its chunks. Its memory is available, since nothing else is being encoded.
            Box::pin(self.start()).await?;
        }
        let any = !self.tasks.is_empty();
        self.join().await?;
        Ok(any)
    }

    /// The memory of the write, whose minimum is waited for on first use.
    async fn memory(&mut self) -> Result<WriteMemory, WriteError> {
        if let Some(memory) = &self.memory {
            return Ok(memory.clone());
        }
        let account = self.account.take().ok_or(ArrayError::Busy)?;
        let memory = WriteMemory::open(account, self.target.least).await?;
        self.memory = Some(memory.clone());
        Ok(memory)
    }

    async fn join(&mut self) -> Result<(), WriteError> {
        if let Some(done) = self.tasks.join_next().await {
            self.done.extend(done.unwrap_or(Err(ArrayError::ShuttingDown.into()))?);
        }
        Ok(())
    }

    /// All staged chunks, and their memory.
    pub(crate) async fn finish(mut self) -> Result<(Vec<StagedChunk>, Option<WriteMemory>), WriteError> {
        if self.tasks.is_empty() && self.batch_bytes <= UNRESERVED {
            let works = std::mem::take(&mut self.batch);
            self.done.extend(self.target.encode_chunks(works).await?);
        }
        self.start().await?;
        while !self.tasks.is_empty() {
            self.join().await?;
        }
        Ok((self.done, self.memory))
    }
}
