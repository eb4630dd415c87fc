//! The slabs of an answer, one after the other, as they become ready.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use codec::{Chain, Elements};
use futures::{
    FutureExt, SinkExt, Stream, StreamExt,
    channel::mpsc,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use meta::grid::DimensionGrid;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::AbortOnDropHandle;

use super::{
    Source,
    buffers::{Buffers, Retained},
    feed::Feed,
    job::{Job, Painting},
    lanes::{Canvas, Layout, PlaceError},
};
use crate::{
    ArrayError,
    plan::{Slab, Slabs, Strides},
    shared::UNIT,
};

/// How many bytes of encoded and decoded chunks a job takes that is made of small ones.
const SMALL_JOB: u64 = 8 << 20;

/// The elements of all the slabs.
pub(super) fn pieces(
    source: Arc<Source>,
    slabs: Slabs,
) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
    stream::unfold(Some(State::Waiting(source, slabs)), |state| async move {
        let mut running = match state? {
            State::Running(running) => running,
            State::Waiting(source, slabs) => match Running::begin(source, slabs).await {
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
    Waiting(Arc<Source>, Slabs),
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
    _memory: OwnedSemaphorePermit,
}

/// What the feeder finds.
enum Fed {
    Slab(Arc<Painting>),
    Job(Job, Arc<Painting>),
}

impl Running {
    /// Waits for memory.
    async fn begin(source: Arc<Source>, slabs: Slabs) -> Result<Self, ArrayError> {
        let Share { assembly, parallel, total } = Share::of(&source, &slabs)?;
        let memory = source.shared.admit(total).await?;
        let (sender, fed) = mpsc::channel(parallel);
        let feeder = feed(source.clone(), slabs, assembly, sender).boxed();
        Ok(Self {
            source,
            feeder: Some(feeder),
            fed,
            feeding: true,
            jobs: FuturesUnordered::new(),
            parallel,
            open: VecDeque::new(),
            lane: 0,
            _memory: memory,
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

/// What a reading may take.
struct Share {
    /// Bytes for slabs.
    assembly: u64,
    /// Jobs at a time.
    parallel: usize,
    /// Bytes in all.
    total: u64,
}

impl Share {
    fn of(source: &Source, slabs: &Slabs) -> Result<Self, ArrayError> {
        let options = &source.shared.options;
        let job = source.array.largest_chain()?.map_or(SMALL_JOB, |chain| job_memory(source, &chain));
        let size = source.per_element();
        // Each lane is counted in whole units.
        let assembly = options
            .assembly
            .min(slabs.largest_two().saturating_mul(size.saturating_add(size / 8)).saturating_add(UNIT * 64));
        let room = options.reading_memory().saturating_sub(assembly);
        let parallel =
            usize::try_from(room / 2 / job.max(1)).unwrap_or(usize::MAX).clamp(1, options.parallelism.max(1));
        let jobs = source.chunks.clamp(1, parallel as u64);
        // A single job that is larger than the room has failed, or will, with an error that says so.
        let total = assembly.saturating_add(job.saturating_mul(jobs)).min(options.reading_memory());
        Ok(Self { assembly, parallel, total })
    }
}

/// How many bytes one job takes beside the slab, at the most: what is fetched and what is decoded at a time.
fn job_memory(source: &Source, chain: &Chain) -> u64 {
    match chain.access() {
        codec::Access::Shard(sharding) => job_memory(source, sharding.inner()).saturating_add(sharding.index_len()),
        codec::Access::Elements(_) => SMALL_JOB.min(chain.array().fixed_len().unwrap_or(SMALL_JOB)).saturating_mul(2),
        codec::Access::Whole => {
            let decoded = chain.working_len().unwrap_or_else(|| source.budget());
            let encoded = chain.encoded_len().map_or(decoded, codec::EncodedLen::max).min(decoded);
            decoded.saturating_add(encoded)
        }
    }
}

/// Finds everything that there is to do, slab by slab, as memory for slabs and room for jobs come free.
async fn feed(
    source: Arc<Source>,
    slabs: Slabs,
    assembly: u64,
    mut found: mpsc::Sender<Fed>,
) -> Result<(), ArrayError> {
    let units = usize::try_from(assembly.div_ceil(UNIT)).unwrap_or(Semaphore::MAX_PERMITS);
    let memory = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
    let buffers = Arc::<Buffers>::default();
    let retained = Arc::new(Retained::new(assembly.max(source.budget())));
    for slab in slabs {
        let layout = layout(&source, &slab);
        let size = source.array.model().data_type.fixed_size();
        let needed = u32::try_from(layout.units(size).min(units as u64)).unwrap_or(u32::MAX);
        let permit = memory.clone().acquire_many_owned(needed).await.map_err(|_| ArrayError::Stopped)?;
        let canvas = Canvas::new(layout, size, permit, (buffers.clone(), retained.clone()));
        let painting = Arc::new(Painting { canvas, strides: Strides::of(&slab.extents) });
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
    Layout::new(&slab.extents, source.per_element(), |axis| match model.grid.dimensions().get(axis) {
        Some(DimensionGrid::Regular { length }) => *length,
        _ => 1,
    })
}
