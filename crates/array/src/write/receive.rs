//! Taking in the elements of a region: chunks that come whole are made at once, parts of chunks are kept until everything is there.

use std::sync::Arc;

use bytes::Bytes;
use codec::{Elements, VariableBuilder};
use tokio::task::JoinSet;

use super::{
    ElementSource, WriteError,
    encode::{BaseContent, BodyKind, EncodeJob, StagedChunk, WriteContext},
    gather::{Patch, SourceElements},
    layout::ChunkPart,
    memory::{MemoryShare, MemoryUse, WriteMemory},
    pending::PendingParts,
    reader::{ElementReader, ReadOutcome, ReadWindow},
};
use crate::{error::ArrayError, memory::Account};

/// How many bytes a window has if it can end there.
const WINDOW: u64 = 8 << 20;

/// How many bytes of chunks are made together.
pub(super) const BATCH: u64 = 256 << 10;

/// What a chunk that is to be made counts beside its elements.
const PER_WORK: u64 = 256;

/// Up to how many bytes are taken without a reservation.
const LIGHT: u64 = 64 << 10;

/// What came of a region.
pub(super) struct ReceivedChunks {
    /// The chunks that were made.
    pub(super) chunks: Vec<StagedChunk>,
    /// The parts of the others.
    pub(super) pending: PendingParts,
    /// For what they take, where that is much.
    pub(super) memory: Option<WriteMemory>,
}

/// Chunks being made, several at a time.
pub(super) struct ChunkEncoder {
    target: Arc<WriteContext>,
    tasks: JoinSet<Result<Vec<StagedChunk>, WriteError>>,
    done: Vec<StagedChunk>,
    account: Option<Account>,
    memory: Option<WriteMemory>,
    batch: Vec<EncodeJob>,
    batch_bytes: u64,
    /// What making the batch takes, no more than the least that there is for it.
    batch_memory: u64,
}

/// Takes in all elements.
pub(super) async fn receive(
    target: &Arc<WriteContext>,
    account: Account,
    elements: ElementSource,
) -> Result<ReceivedChunks, WriteError> {
    target.check_work(match &elements {
        ElementSource::Fixed(_) | ElementSource::Variable(_) => BodyKind::All,
        ElementSource::Scalar(_) => BodyKind::One,
    })?;
    let count = target.layout.elements();
    let rank = target.array.model().shape.len();
    let source = match (elements, target.size) {
        (ElementSource::Fixed(stream), Some(size)) => return receive_stream(target, account, stream, size).await,
        (ElementSource::Scalar(element), size) => SourceElements::scalar(scalar(element, size)?, rank),
        (ElementSource::Variable(elements), None) => {
            if elements.len() as u64 != count {
                return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
            }
            SourceElements::new(Elements::Variable(elements), &target.layout.whole().extents())
        }
        (ElementSource::Variable(elements), Some(_)) => {
            return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
        }
        (ElementSource::Fixed(_), None) => return Err(WriteError::Count { expected: count, found: 0 }),
    };
    let mut encoder = ChunkEncoder::new(target.clone(), Some(account), None);
    let mut pending = PendingParts::default();
    let window = target.layout.whole();
    let mut parts = false;
    for part in target.layout.parts(&window) {
        match part.is_complete() {
            true => encoder.add(part, source.clone()).await?,
            false => parts = true,
        }
    }
    if parts {
        pending.push_window(window, source);
    }
    let (made, memory) = encoder.finish().await?;
    Ok(ReceivedChunks { chunks: made, pending, memory })
}

/// Fails unless there are no elements, where there is no place for any.
pub(super) async fn expect_no_elements(elements: ElementSource) -> Result<(), WriteError> {
    match elements {
        ElementSource::Fixed(stream) => ElementReader::new(stream, 0).end().await,
        ElementSource::Variable(elements) if !elements.is_empty() => {
            Err(WriteError::Count { expected: 0, found: elements.len() as u64 })
        }
        ElementSource::Variable(_) | ElementSource::Scalar(_) => Ok(()),
    }
}

async fn receive_stream(
    target: &Arc<WriteContext>,
    account: Account,
    stream: store::ByteStream,
    size: usize,
) -> Result<ReceivedChunks, WriteError> {
    let size = size as u64;
    let mut reader = ElementReader::new(stream, target.layout.elements().saturating_mul(size));
    let mut encoder = ChunkEncoder::new(target.clone(), Some(account), None);
    let mut pending = PendingParts::default();
    let options = &target.context.options;
    // Larger windows are worth their memory where they spare parts of chunks the way through the store.
    let row = target.layout.row().saturating_mul(size);
    let most = match row <= options.slab_memory.saturating_mul(2).min(options.max_memory / 4) {
        true => row.max(options.slab_memory / 2),
        false => options.slab_memory / 2,
    };
    // Of elements without bytes there may be any number, and they all have come.
    let most = most.checked_div(size).unwrap_or(u64::MAX).max(1);
    let least = WINDOW.checked_div(size).unwrap_or(u64::MAX).clamp(1, most);
    let mut windows = target.layout.windows(least, most);
    while let Some(mut window) = windows.next() {
        let ReadWindow { bytes, memory } =
            match reader.take(window.elements().saturating_mul(size), &mut encoder).await? {
                ReadOutcome::All(taken) => taken,
                ReadOutcome::Part(taken) => {
                    // There is no memory for all of it, so that it is made smaller; what came beyond comes again.
                    window = windows.shortened(window, taken.bytes.len() as u64 / size.max(1));
                    reader.put_back(taken, window.elements().saturating_mul(size))
                }
            };
        let source = SourceElements::new(Elements::Fixed(bytes), &window.extents());
        let mut parts = Vec::new();
        for part in target.layout.parts(&window) {
            match part.is_complete() {
                true => encoder.add(part, source.clone()).await?,
                false => parts.push(part),
            }
        }
        if !parts.is_empty() {
            pending.push_parts(target, encoder.memory.as_ref(), (window, memory), source, &parts).await?;
        }
    }
    reader.end().await?;
    let (made, memory) = encoder.finish().await?;
    Ok(ReceivedChunks { chunks: made, pending, memory })
}

/// One element; fails unless it has the size.
fn scalar(element: Vec<u8>, size: Option<usize>) -> Result<Elements, WriteError> {
    match size {
        Some(size) if element.len() == size => Ok(Elements::Fixed(Bytes::from(element))),
        Some(size) => Err(WriteError::Length { expected: size as u64, found: element.len() as u64 }),
        None => {
            let mut elements = VariableBuilder::new(u64::MAX);
            elements.push(&element).map_err(|_| ArrayError::Busy)?;
            Ok(Elements::Variable(elements.finish()))
        }
    }
}

impl ChunkEncoder {
    /// Makes chunks with the memory of a write: what is in `purse`, or else what `account` has yet to reserve.
    pub(super) fn new(target: Arc<WriteContext>, account: Option<Account>, memory: Option<WriteMemory>) -> Self {
        let (tasks, done, batch) = (JoinSet::new(), Vec::new(), Vec::new());
        Self { target, tasks, done, account, memory, batch, batch_bytes: 0, batch_memory: 0 }
    }

    /// Makes a chunk that came whole, with others if it is small.
    async fn add(&mut self, part: ChunkPart, source: SourceElements) -> Result<(), WriteError> {
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

    /// Starts to make what was added.
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

    /// Makes something beside the others, when there is room for it.
    pub(super) async fn spawn(
        &mut self,
        share: Option<MemoryShare>,
        encoder: impl Future<Output = Result<Vec<StagedChunk>, WriteError>> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.tasks.len() >= self.target.context.options.parallelism.max(1) {
            self.join().await?;
        }
        self.tasks.spawn(async move {
            let made = encoder.await;
            drop(share);
            made
        });
        Ok(())
    }

    /// Memory for making a chunk of a shape.
    pub(super) async fn reserve_chunk(&mut self, shape: &[u64]) -> Result<Option<MemoryShare>, WriteError> {
        self.reserve(self.target.chunk_memory(shape)?).await
    }

    async fn reserve(&mut self, bytes: u64) -> Result<Option<MemoryShare>, WriteError> {
        if bytes <= LIGHT {
            return Ok(None);
        }
        let bytes = bytes.min(self.target.context.options.max_chunk_memory());
        self.take(MemoryUse::Making, bytes).await.map(Some)
    }

    /// Memory for something. What is being made for the same write is waited for, and nothing else.
    pub(super) async fn take(&mut self, what: MemoryUse, bytes: u64) -> Result<MemoryShare, WriteError> {
        let memory = self.memory().await?;
        loop {
            match memory.take(what, bytes) {
                Ok(share) => return Ok(share),
                Err(error) if !self.made_something().await? => return Err(ArrayError::from(error).into()),
                Err(_) => {}
            }
        }
    }

    /// Memory beside the least. What is being made is waited for, if there is none else; `None` where there is none even then.
    pub(super) async fn more(&mut self, bytes: u64) -> Result<Option<MemoryShare>, WriteError> {
        let memory = self.memory().await?;
        loop {
            if let Ok(share) = memory.more(bytes) {
                return Ok(Some(share));
            }
            if !self.made_something().await? {
                return Ok(None);
            }
        }
    }

    /// Waits for something to be made, of which memory comes back; whether there was anything.
    async fn made_something(&mut self) -> Result<bool, WriteError> {
        if self.tasks.is_empty() {
            // A batch keeps the window that its chunks come from. The memory to make it is there, since nothing is being made.
            Box::pin(self.start()).await?;
        }
        let any = !self.tasks.is_empty();
        self.join().await?;
        Ok(any)
    }

    /// The memory of the write, whose least is waited for when it is first needed.
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

    /// All that was made, and the memory for it.
    pub(super) async fn finish(mut self) -> Result<(Vec<StagedChunk>, Option<WriteMemory>), WriteError> {
        if self.tasks.is_empty() && self.batch_bytes <= LIGHT {
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
