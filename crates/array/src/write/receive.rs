//! Taking in the elements of a region: chunks that come whole are made at once, parts of chunks are kept until everything is there.

use std::sync::Arc;

use bytes::Bytes;
use codec::{Elements, VariableBuilder};
use tokio::task::JoinSet;

use super::{
    Incoming, WriteError,
    copy::{Patch, Source},
    intake::{Intake, Taken, Took},
    kept::Kept,
    layout::Part,
    purse::{Purse, Share, Use},
    target::{Carried, Made, Target, Under, Work},
};
use crate::{ArrayError, share::Account};

/// How many bytes a window has if it can end there.
const WINDOW: u64 = 8 << 20;

/// How many bytes of chunks are made together.
pub(super) const BATCH: u64 = 256 << 10;

/// What a chunk that is to be made counts beside its elements.
const PER_WORK: u64 = 256;

/// Up to how many bytes are taken without a reservation.
const LIGHT: u64 = 64 << 10;

/// What came of a region.
pub(super) struct Received {
    /// The chunks that were made.
    pub(super) made: Vec<Made>,
    /// The parts of the others.
    pub(super) kept: Kept,
    /// For what they take, where that is much.
    pub(super) purse: Option<Purse>,
}

/// Chunks being made, several at a time.
pub(super) struct Making {
    target: Arc<Target>,
    tasks: JoinSet<Result<Vec<Made>, WriteError>>,
    done: Vec<Made>,
    account: Option<Account>,
    purse: Option<Purse>,
    batch: Vec<Work>,
    batch_bytes: u64,
    /// What making the batch takes, no more than the least that there is for it.
    batch_memory: u64,
}

/// Takes in all elements.
pub(super) async fn receive(
    target: &Arc<Target>,
    account: Account,
    elements: Incoming,
) -> Result<Received, WriteError> {
    target.check_work(match &elements {
        Incoming::Fixed(_) | Incoming::Variable(_) => Carried::All,
        Incoming::Scalar(_) => Carried::One,
    })?;
    let count = target.layout.elements();
    let rank = target.array.model().shape.len();
    let source = match (elements, target.size) {
        (Incoming::Fixed(stream), Some(size)) => return receive_stream(target, account, stream, size).await,
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
    let mut making = Making::new(target.clone(), Some(account), None);
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
    let (made, purse) = making.finish().await?;
    Ok(Received { made, kept, purse })
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

async fn receive_stream(
    target: &Arc<Target>,
    account: Account,
    stream: store::ByteStream,
    size: usize,
) -> Result<Received, WriteError> {
    let size = size as u64;
    let mut intake = Intake::new(stream, target.layout.elements().saturating_mul(size));
    let mut making = Making::new(target.clone(), Some(account), None);
    let mut kept = Kept::default();
    let options = &target.shared.options;
    // Larger windows are worth their memory where they spare parts of chunks the way through the store.
    let row = target.layout.row().saturating_mul(size);
    let most = match row <= options.assembly.saturating_mul(2).min(options.memory / 4) {
        true => row.max(options.assembly / 2),
        false => options.assembly / 2,
    };
    // Of elements without bytes there may be any number, and they all have come.
    let most = most.checked_div(size).unwrap_or(u64::MAX).max(1);
    let least = WINDOW.checked_div(size).unwrap_or(u64::MAX).clamp(1, most);
    let mut windows = target.layout.windows(least, most);
    while let Some(mut window) = windows.next() {
        let Taken { bytes, memory } = match intake.take(window.elements().saturating_mul(size), &mut making).await? {
            Took::All(taken) => taken,
            Took::Part(taken) => {
                // There is no memory for all of it, so that it is made smaller; what came beyond comes again.
                window = windows.shortened(window, taken.bytes.len() as u64 / size.max(1));
                intake.put_back(taken, window.elements().saturating_mul(size))
            }
        };
        let source = Source::new(Elements::Fixed(bytes), &window.extents());
        let mut parts = Vec::new();
        for part in target.layout.parts(&window) {
            match part.is_complete() {
                true => making.add(part, source.clone()).await?,
                false => parts.push(part),
            }
        }
        if !parts.is_empty() {
            kept.keep(target, making.purse.as_ref(), (window, memory), source, &parts).await?;
        }
    }
    intake.end().await?;
    let (made, purse) = making.finish().await?;
    Ok(Received { made, kept, purse })
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
    /// Makes chunks with the memory of a write: what is in `purse`, or else what `account` has yet to reserve.
    pub(super) fn new(target: Arc<Target>, account: Option<Account>, purse: Option<Purse>) -> Self {
        let (tasks, done, batch) = (JoinSet::new(), Vec::new(), Vec::new());
        Self { target, tasks, done, account, purse, batch, batch_bytes: 0, batch_memory: 0 }
    }

    /// Makes a chunk that came whole, with others if it is small.
    async fn add(&mut self, part: Part, source: Source) -> Result<(), WriteError> {
        let memory = self.target.memory(&part.shape)?;
        if self.batch_memory.saturating_add(memory) > self.target.least.making {
            self.start().await?;
        }
        self.batch_memory = self.batch_memory.saturating_add(memory);
        self.batch_bytes = self.batch_bytes.saturating_add(self.target.chunk_len(&part.shape)).saturating_add(PER_WORK);
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
        let memory = std::mem::take(&mut self.batch_memory);
        self.batch_bytes = 0;
        if works.is_empty() {
            return Ok(());
        }
        let share = self.reserve(memory).await?;
        let target = self.target.clone();
        self.spawn(share, async move { target.make(works).await }).await
    }

    /// Makes something beside the others, when there is room for it.
    pub(super) async fn spawn(
        &mut self,
        share: Option<Share>,
        making: impl Future<Output = Result<Vec<Made>, WriteError>> + Send + 'static,
    ) -> Result<(), WriteError> {
        while self.tasks.len() >= self.target.shared.options.parallelism.max(1) {
            self.join().await?;
        }
        self.tasks.spawn(async move {
            let made = making.await;
            drop(share);
            made
        });
        Ok(())
    }

    /// Memory for making a chunk of a shape.
    pub(super) async fn reserve_chunk(&mut self, shape: &[u64]) -> Result<Option<Share>, WriteError> {
        self.reserve(self.target.memory(shape)?).await
    }

    async fn reserve(&mut self, bytes: u64) -> Result<Option<Share>, WriteError> {
        if bytes <= LIGHT {
            return Ok(None);
        }
        let bytes = bytes.min(self.target.shared.options.chunk_memory());
        self.take(Use::Making, bytes).await.map(Some)
    }

    /// Memory for something. What is being made for the same write is waited for, and nothing else.
    pub(super) async fn take(&mut self, what: Use, bytes: u64) -> Result<Share, WriteError> {
        let purse = self.purse().await?;
        loop {
            match purse.take(what, bytes) {
                Ok(share) => return Ok(share),
                Err(error) if !self.made_something().await? => return Err(ArrayError::from(error).into()),
                Err(_) => {}
            }
        }
    }

    /// Memory beside the least. What is being made is waited for, if there is none else; `None` where there is none even then.
    pub(super) async fn more(&mut self, bytes: u64) -> Result<Option<Share>, WriteError> {
        let purse = self.purse().await?;
        loop {
            if let Ok(share) = purse.more(bytes) {
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
    async fn purse(&mut self) -> Result<Purse, WriteError> {
        if let Some(purse) = &self.purse {
            return Ok(purse.clone());
        }
        let account = self.account.take().ok_or(ArrayError::Busy)?;
        let purse = Purse::open(account, self.target.least).await?;
        self.purse = Some(purse.clone());
        Ok(purse)
    }

    async fn join(&mut self) -> Result<(), WriteError> {
        if let Some(done) = self.tasks.join_next().await {
            self.done.extend(done.unwrap_or(Err(ArrayError::Stopped.into()))?);
        }
        Ok(())
    }

    /// All that was made, and the memory for it.
    pub(super) async fn finish(mut self) -> Result<(Vec<Made>, Option<Purse>), WriteError> {
        if self.tasks.is_empty() && self.batch_bytes <= LIGHT {
            let works = std::mem::take(&mut self.batch);
            self.done.extend(self.target.make(works).await?);
        }
        self.start().await?;
        while !self.tasks.is_empty() {
            self.join().await?;
        }
        Ok((self.done, self.purse))
    }
}
