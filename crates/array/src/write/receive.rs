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
use crate::{ArrayError, shared::UNIT};

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
    /// For what the chunks that were made take.
    pub(super) memory: Option<OwnedSemaphorePermit>,
}

/// Chunks being made, several at a time.
pub(super) struct Making {
    target: Arc<Target>,
    tasks: JoinSet<Result<Done, WriteError>>,
    done: Vec<Made>,
    /// For what is done.
    memory: Option<OwnedSemaphorePermit>,
    batch: Vec<Work>,
    batch_bytes: u64,
}

/// Chunks that were made, and the reservation of what they take.
pub(super) type Done = (Vec<Made>, Option<OwnedSemaphorePermit>);

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
    let (made, memory) = making.finish().await?;
    Ok(Received { made, kept, memory })
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
    let options = &target.shared.options;
    // Larger windows are worth their memory where they spare parts of chunks the way through the store.
    let row = target.layout.row().saturating_mul(size);
    let most = match row <= options.assembly.saturating_mul(2).min(options.memory / 4) {
        true => row.max(options.assembly / 2),
        false => options.assembly / 2,
    };
    let most = (most / size.max(1)).max(1);
    let least = (WINDOW / size.max(1)).clamp(1, most);
    for window in target.layout.windows(least, most) {
        let len = window.elements().saturating_mul(size);
        let bytes = intake.take(len, &mut making).await?;
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
    let (made, memory) = making.finish().await?;
    Ok(Received { made, kept, memory })
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
        Self { target, tasks: JoinSet::new(), done: Vec::new(), memory: None, batch: Vec::new(), batch_bytes: 0 }
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
        self.spawn(permit, async move { target.make(works).await }).await
    }

    /// Makes something beside the others, when there is room for it. Of the memory reserved for that, what staged values may take stays reserved.
    pub(super) async fn spawn(
        &mut self,
        permit: Option<OwnedSemaphorePermit>,
        making: impl Future<Output = Result<Vec<Made>, WriteError>> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.tasks.len() >= self.target.shared.options.parallelism.max(1) {
            self.join().await?;
        }
        self.tasks.spawn(async move {
            let made = making.await?;
            let units = made.iter().map(Made::memory).sum::<u64>().div_ceil(UNIT);
            let left =
                permit.and_then(|mut permit| permit.split(usize::try_from(units).ok()?.min(permit.num_permits())));
            Ok((made, left))
        });
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
            let (made, memory) = done.unwrap_or(Err(ArrayError::Stopped.into()))?;
            self.done.extend(made);
            match (&mut self.memory, memory) {
                (Some(all), Some(more)) => all.merge(more),
                (none, more) => *none = none.take().or(more),
            }
        }
        Ok(())
    }

    /// All that was made.
    pub(super) async fn finish(mut self) -> Result<Done, WriteError> {
        if self.tasks.is_empty() {
            let works = std::mem::take(&mut self.batch);
            self.done.extend(self.target.make(works).await?);
        }
        self.start().await?;
        while !self.tasks.is_empty() {
            self.join().await?;
        }
        Ok((self.done, self.memory))
    }
}
