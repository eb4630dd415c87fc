//! Taking in the elements of a region: chunks that come whole are made at once, parts of chunks are kept until everything is there.

use std::sync::Arc;

use bytes::Bytes;
use codec::{Elements, VariableBuilder};
use futures::FutureExt;
use tokio::{sync::OwnedSemaphorePermit, task::JoinSet};

use super::{
    Incoming, WriteError,
    copy::{Patch, Source},
    intake::Intake,
    kept::Kept,
    layout::Part,
    target::{Made, Target, Under, Work},
};
use crate::ArrayError;

/// How many bytes a window has if it can end there.
const WINDOW: u64 = 8 << 20;

/// How many bytes of chunks are made together.
const BATCH: u64 = 256 << 10;

/// Up to how many bytes are taken without a reservation.
const LIGHT: u64 = 64 << 10;

/// What came of a region.
pub(super) struct Received {
    /// The chunks that were made.
    pub(super) made: Vec<Made>,
    /// The parts of the others.
    pub(super) kept: Kept,
}

/// Chunks being made, several at a time.
pub(super) struct Making {
    target: Arc<Target>,
    tasks: JoinSet<Result<Vec<Made>, WriteError>>,
    done: Vec<Made>,
    batch: Vec<Work>,
    batch_bytes: u64,
}

/// Takes in all elements.
pub(super) async fn receive(target: &Arc<Target>, elements: Incoming) -> Result<Received, WriteError> {
    let count = target.layout.elements();
    let rank = target.array.model().shape.len();
    let source = match (elements, target.size) {
        (Incoming::Fixed(stream), Some(size)) => return receive_stream(target, stream, size).await,
        (Incoming::Scalar(element), size) => Source::scalar(scalar(element, size)?, rank),
        (Incoming::Variable(elements), None) => {
            if elements.len() as u64 != count {
                return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
            }
            Source::new(Elements::Variable(elements), &target.layout.whole().extents())
        }
        (Incoming::Variable(elements), Some(_)) => {
            return Err(WriteError::Count { expected: count, found: elements.len() as u64 });
        }
        (Incoming::Fixed(_), None) => return Err(WriteError::Count { expected: count, found: 0 }),
    };
    let mut making = Making::new(target.clone());
    let mut kept = Kept::default();
    let window = target.layout.whole();
    let mut parts = false;
    for part in target.layout.parts(&window) {
        match part.is_complete() {
            true => making.add(part, source.clone()).await?,
            false => parts = true,
        }
    }
    if parts {
        kept.keep_whole(window, source);
    }
    Ok(Received { made: making.finish().await?, kept })
}

/// Fails unless there are no elements, where there is no place for any.
pub(super) async fn nothing(elements: Incoming) -> Result<(), WriteError> {
    match elements {
        Incoming::Fixed(stream) => Intake::new(stream, 0).end().await,
        Incoming::Variable(elements) if !elements.is_empty() => {
            Err(WriteError::Count { expected: 0, found: elements.len() as u64 })
        }
        Incoming::Variable(_) | Incoming::Scalar(_) => Ok(()),
    }
}

async fn receive_stream(target: &Arc<Target>, stream: store::ByteStream, size: usize) -> Result<Received, WriteError> {
    let size = size as u64;
    let mut intake = Intake::new(stream, target.layout.elements().saturating_mul(size));
    let mut making = Making::new(target.clone());
    let mut kept = Kept::default();
    let most = (target.shared.options.assembly / 2 / size.max(1)).max(1);
    let least = (WINDOW / size.max(1)).clamp(1, most);
    for window in target.layout.windows(least, most) {
        let len = window.elements().saturating_mul(size);
        // Memory is reserved when there is something to put there, not while that is waited for.
        intake.begin().await?;
        let permit = match intake.has(len) {
            true => None,
            false => Some(making.admit(len).await?),
        };
        let bytes = intake.take(len, permit).await?;
        let source = Source::new(Elements::Fixed(bytes), &window.extents());
        let mut parts = Vec::new();
        for part in target.layout.parts(&window) {
            match part.is_complete() {
                true => making.add(part, source.clone()).await?,
                false => parts.push(part),
            }
        }
        if !parts.is_empty() {
            kept.keep(target, window, source, &parts).await?;
        }
    }
    intake.end().await?;
    Ok(Received { made: making.finish().await?, kept })
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

impl Making {
    pub(super) fn new(target: Arc<Target>) -> Self {
        Self { target, tasks: JoinSet::new(), done: Vec::new(), batch: Vec::new(), batch_bytes: 0 }
    }

    /// Makes a chunk that came whole, with others if it is small.
    async fn add(&mut self, part: Part, source: Source) -> Result<(), WriteError> {
        self.batch_bytes = self.batch_bytes.saturating_add(self.target.chunk_len(&part.shape));
        let patches = vec![Patch { picks: part.picks, source }];
        self.batch.push(Work { position: part.position, shape: part.shape, under: Under::Nothing, patches });
        if self.batch_bytes >= BATCH {
            self.start().await?;
        }
        Ok(())
    }

    /// Starts to make what was added.
    async fn start(&mut self) -> Result<(), WriteError> {
        let works = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let Some(work) = works.first() else { return Ok(()) };
        let permit = self.admit_chunks(&work.shape, works.len() as u64).await?;
        let target = self.target.clone();
        self.spawn(async move {
            let made = target.make(works).await;
            drop(permit);
            made
        })
        .await
    }

    /// Does something beside the others, when there is room for it.
    pub(super) async fn spawn(
        &mut self,
        making: impl Future<Output = Result<Vec<Made>, WriteError>> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.tasks.len() >= self.target.shared.options.parallelism.max(1) {
            self.join().await?;
        }
        // What is done already frees its memory.
        while let Some(done) = self.tasks.try_join_next() {
            self.done.extend(done.unwrap_or(Err(ArrayError::Stopped.into()))?);
        }
        self.tasks.spawn(making);
        Ok(())
    }

    /// A reservation for making so many chunks of a shape.
    pub(super) async fn admit_chunks(
        &mut self,
        shape: &[u64],
        chunks: u64,
    ) -> Result<Option<OwnedSemaphorePermit>, WriteError> {
        let bytes = self.target.memory(shape)?.saturating_mul(chunks);
        if bytes <= LIGHT {
            return Ok(None);
        }
        self.admit(bytes.min(self.target.shared.options.chunk_memory())).await.map(Some)
    }

    /// A reservation of memory. What is being made for the same write is not waited for with patience, but until it is made.
    pub(super) async fn admit(&mut self, bytes: u64) -> Result<OwnedSemaphorePermit, WriteError> {
        while !self.tasks.is_empty() {
            match self.target.shared.admit(bytes).now_or_never() {
                Some(permit) => return Ok(permit?),
                None => self.join().await?,
            }
        }
        Ok(self.target.shared.admit(bytes).await?)
    }

    async fn join(&mut self) -> Result<(), WriteError> {
        if let Some(done) = self.tasks.join_next().await {
            self.done.extend(done.unwrap_or(Err(ArrayError::Stopped.into()))?);
        }
        Ok(())
    }

    /// All that was made.
    pub(super) async fn finish(mut self) -> Result<Vec<Made>, WriteError> {
        if self.tasks.is_empty() {
            let works = std::mem::take(&mut self.batch);
            self.done.extend(self.target.make(works).await?);
        }
        self.start().await?;
        while !self.tasks.is_empty() {
            self.join().await?;
        }
        Ok(self.done)
    }
}
