//! The slabs of an answer, one after the other, as they become ready.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use codec::Elements;
use futures::{
    FutureExt, SinkExt, Stream, StreamExt,
    channel::mpsc,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use meta::grid::DimensionGrid;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use super::{
    Source,
    buffers::Retained,
    feed::Feed,
    job::{Job, Painting},
    lanes::{Canvas, Layout, PlaceError, Supplies, UNIT},
    needs::Needs,
};
use crate::{
    ArrayError, Options,
    plan::{Slab, Slabs},
    share::{Account, MemoryError, Permit},
};

/// The elements of all the slabs.
pub(super) fn pieces(
    source: Arc<Source>,
    slabs: Slabs,
    memory: Memory,
) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
    stream::unfold(Some(State::Waiting(source, slabs, memory)), |state| async move {
        let mut running = match state? {
            State::Running(running) => running,
            State::Waiting(source, slabs, memory) => match Running::begin(source, slabs, memory).await {
                Ok(running) => Box::new(running),
                Err(error) => return Some((Err(error), None)),
            },
        };
        match running.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(State::Running(running)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

enum State {
    Waiting(Arc<Source>, Slabs, Memory),
    Running(Box<Running>),
}

/// An answer being assembled.
struct Running {
    source: Arc<Source>,
    /// Finds the jobs; `None` when it has found them all.
    feeder: Option<BoxFuture<'static, Result<(), ArrayError>>>,
    fed: mpsc::Receiver<Fed>,
    /// Whether more may come of `fed`.
    feeding: bool,
    jobs: FuturesUnordered<BoxFuture<'static, Result<(), ArrayError>>>,
    parallel: usize,
    /// The slabs being assembled, and which lane of the first is yielded next.
    open: VecDeque<Arc<Painting>>,
    lane: usize,
}

/// The memory for a reading, of which the least may be there already.
#[derive(Debug)]
pub(crate) struct Memory {
    /// What is reserved so far, at least what the plan takes.
    pub(crate) account: Account,
    /// How much the plan takes.
    pub(crate) plan: u64,
    pub(crate) needs: Needs,
}

/// What a reading may take.
struct Granted {
    /// Bytes for slabs.
    assembly: u64,
    /// Jobs at a time.
    parallel: usize,
    /// All of it.
    memory: Option<Permit>,
}

impl Memory {
    /// How much there has to be before anything is read.
    pub(crate) fn least(&self, options: &Options) -> u64 {
        self.plan.saturating_add(self.needs.least(options))
    }

    /// Reserves the least, and beside it so much for something else.
    pub(crate) async fn reserve_beside(&mut self, options: &Options, bytes: u64) -> Result<Permit, MemoryError> {
        let least = self.least(options);
        self.account.reserve_beside(least, bytes).await
    }

    async fn take(mut self, options: &Options) -> Result<Granted, ArrayError> {
        self.account.reserve(self.least(options)).await?;
        let Self { mut account, needs: Needs { assembly, slab, job, jobs }, .. } = self;
        let assembly = if account.try_more(assembly.saturating_sub(slab)) { assembly } else { slab };
        // As many at a time as there is memory for.
        let mut more = jobs.saturating_sub(1);
        while more > 0 && !account.try_more(job.saturating_mul(more)) {
            more /= 2;
        }
        let parallel = usize::try_from(more.saturating_add(1)).unwrap_or(1);
        Ok(Granted { assembly, parallel, memory: account.into_permit() })
    }
}

/// What the feeder finds.
enum Fed {
    Slab(Arc<Painting>),
    Job(Job, Arc<Painting>),
}

impl Running {
    /// Waits for the least memory that it can do with, if it has not got that, and takes what else is free.
    async fn begin(source: Arc<Source>, slabs: Slabs, memory: Memory) -> Result<Self, ArrayError> {
        let Granted { assembly, parallel, memory } = memory.take(&source.shared.options).await?;
        let (sender, fed) = mpsc::channel(parallel);
        let supplies = Supplies {
            buffers: Arc::default(),
            retained: Arc::new(Retained::new(assembly.max(source.budget()))),
            memory: memory.map(Arc::new),
        };
        let feeder = feed(source.clone(), slabs, assembly, supplies, sender).boxed();
        Ok(Self {
            source,
            feeder: Some(feeder),
            fed,
            feeding: true,
            jobs: FuturesUnordered::new(),
            parallel,
            open: VecDeque::new(),
            lane: 0,
        })
    }

    async fn next(&mut self) -> Result<Option<Elements>, ArrayError> {
        poll_fn(|cx| {
            // What can go on goes on before a lane is yielded, so that nobody is idle while a slab that is ready is being sent.
            self.advance(cx)?;
            if let Some(piece) = self.full_lane()? {
                return Poll::Ready(Ok(Some(piece)));
            }
            if self.feeding || !self.jobs.is_empty() || self.feeder.is_some() {
                return Poll::Pending;
            }
            // Every element was placed, or a lane of ours would wait for ever.
            Poll::Ready(if self.open.is_empty() { Ok(None) } else { Err(self.source.misplaced(PlaceError::Misplaced)) })
        })
        .await
    }

    /// Takes note of jobs that are done, and starts others until there are enough.
    fn advance(&mut self, cx: &mut Context<'_>) -> Result<(), ArrayError> {
        // Jobs that are done at once must not keep a lane from being yielded.
        let mut starts = self.parallel;
        loop {
            let mut moved = false;
            if let Some(feeder) = &mut self.feeder
                && let Poll::Ready(done) = feeder.as_mut().poll(cx)
            {
                self.feeder = None;
                done?;
            }
            while let Poll::Ready(Some(done)) = self.jobs.poll_next_unpin(cx) {
                done?;
                moved = true;
            }
            while self.feeding && self.jobs.len() < self.parallel {
                let Some(left) = starts.checked_sub(1) else {
                    cx.waker().wake_by_ref();
                    return Ok(());
                };
                match self.fed.poll_next_unpin(cx) {
                    Poll::Pending => break,
                    Poll::Ready(None) => self.feeding = false,
                    Poll::Ready(Some(Fed::Slab(slab))) => self.open.push_back(slab),
                    Poll::Ready(Some(Fed::Job(job, slab))) => {
                        starts = left;
                        self.start(job, slab)?;
                    }
                }
                moved = true;
            }
            if !moved {
                return Ok(());
            }
        }
    }

    /// A lane that is full, if it is the next to be yielded.
    fn full_lane(&mut self) -> Result<Option<Elements>, ArrayError> {
        while let Some(slab) = self.open.front() {
            if self.lane >= slab.canvas.lanes() {
                self.open.pop_front();
                self.lane = 0;
                continue;
            }
            let Some(taken) = slab.canvas.take(self.lane) else { return Ok(None) };
            self.lane += 1;
            return taken.map(Some).map_err(|error| self.source.misplaced(error));
        }
        Ok(None)
    }

    fn start(&mut self, job: Job, slab: Arc<Painting>) -> Result<(), ArrayError> {
        if let Some(done) = job.now(&self.source, &slab) {
            return done;
        }
        let light = job.is_light(&self.source);
        let run = job.run(self.source.clone(), slab);
        self.jobs.push(match light {
            true => run.boxed(),
            false => {
                let task = AbortOnDropHandle::new(tokio::spawn(run));
                async move { task.await.unwrap_or(Err(ArrayError::Stopped)) }.boxed()
            }
        });
        Ok(())
    }
}

/// Finds everything that there is to do, slab by slab, as memory for slabs and room for jobs come free.
async fn feed(
    source: Arc<Source>,
    slabs: Slabs,
    assembly: u64,
    supplies: Supplies,
    mut found: mpsc::Sender<Fed>,
) -> Result<(), ArrayError> {
    let units = usize::try_from(assembly.div_ceil(UNIT)).unwrap_or(Semaphore::MAX_PERMITS);
    let memory = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
    for slab in slabs {
        let layout = layout(&source, &slab);
        let size = source.array.model().data_type.fixed_size();
        let needed = u32::try_from(layout.units(size).min(units as u64)).unwrap_or(u32::MAX);
        // What is assembled and not taken yet has all of it, so that this is waited for only where a lane of it will be.
        let permit = memory.clone().acquire_many_owned(needed).await.map_err(|_| ArrayError::Stopped)?;
        let canvas = Canvas::new(layout, size, permit, supplies.clone());
        let painting = Arc::new(Painting { canvas, strides: slab.strides() });
        // A reader who is gone has taken the other end along, and needs no answer.
        if found.send(Fed::Slab(painting.clone())).await.is_err() {
            return Ok(());
        }
        let mut feed = Feed::new(source.clone(), &slab.picks, painting.strides.clone());
        while let Some(jobs) = feed.next().await? {
            for job in jobs {
                if found.send(Fed::Job(job, painting.clone())).await.is_err() {
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

fn layout(source: &Source, slab: &Slab) -> Layout {
    let model = source.array.model();
    let dimension = |axis: usize| model.grid.dimensions().get(axis.checked_sub(slab.axes_before())?);
    Layout::new(&slab.extents, source.per_element(), |axis| match dimension(axis) {
        Some(DimensionGrid::Regular { length }) => *length,
        _ => 1,
    })
}
