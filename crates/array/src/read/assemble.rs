//! The assembly of an output, slab by slab.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll},
};

use futures::{
    FutureExt, Stream, StreamExt, TryFutureExt,
    future::BoxFuture,
    stream::{self, FuturesUnordered},
};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;
use tracing::{Instrument, trace_span};
use zarrd_codec::Elements;
use zarrd_executor::STEPS;
use zarrd_meta::grid::DimensionGrid;

use super::{
    cached_units::{CachedUnit, CachedUnits},
    context::ReadContext,
    job::{Job, SlabWriter},
    memory::{GrantedMemory, JobMemory, ReadMemory},
    scheduler::{ChunkScheduler, PassOrder},
    sink::ElementSink,
    slab_buffer::{BufferResources, PERMIT_UNIT, ScatterError, SegmentLayout, SlabBuffer},
};
use crate::{
    buffer_pool::ByteCounter,
    error::ArrayError,
    grid::slab::{Slab, Slabs},
};

/// The rounds of starting jobs in one poll, at most, before other tasks have their turn.
const ROUNDS_IN_A_POLL: usize = 16;

/// The elements of all slabs, in order, as soon as they are ready.
pub(crate) fn stream_slabs(
    source: Arc<ReadContext>,
    slabs: Slabs,
    memory: ReadMemory,
) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
    stream::unfold(Some(AssemblyState::Waiting(source, slabs, memory)), |state| async move {
        let mut running = match state? {
            AssemblyState::Running(running) => running,
            AssemblyState::Waiting(source, slabs, memory) => match Assembly::begin(source, slabs, memory).await {
                Ok(running) => Box::new(running),
                Err(error) => return Some((Err(error), None)),
            },
        };
        match running.next().await {
            Ok(Some(piece)) => Some((Ok(piece), Some(AssemblyState::Running(running)))),
            Ok(None) => None,
            Err(error) => Some((Err(error), None)),
        }
    })
}

/// Passes the elements of a slab to a sink, in this order, with `parallel` jobs at a time.
pub(crate) async fn pass_elements(
    source: Arc<ReadContext>,
    (slab, order): (Slab, &PassOrder),
    sink: Arc<dyn ElementSink>,
    (parallel, memory): (usize, JobMemory),
) -> Result<(), ArrayError> {
    let schedule = Arc::new(Schedule::new(parallel));
    let found = schedule.clone();
    let mut feed = ChunkScheduler::in_order(source.clone(), (&slab.selection, slab.strides()), parallel, order);
    let feeder = async move { schedule_jobs(&mut feed, &sink, &found).await }.boxed();
    let mut jobs = Assembly::new(source.clone(), (feeder, schedule), parallel, memory);
    match jobs.next().await? {
        None => Ok(()),
        Some(_) => Err(source.scatter_error(ScatterError::Internal)),
    }
}

enum AssemblyState {
    Waiting(Arc<ReadContext>, Slabs, ReadMemory),
    Running(Box<Assembly>),
}

/// A running assembly.
struct Assembly {
    source: Arc<ReadContext>,
    /// Schedules jobs; `None` once all are scheduled.
    scheduler: Option<BoxFuture<'static, Result<(), ArrayError>>>,
    scheduled: Arc<Schedule>,
    /// The jobs that run, each with the memory that it takes.
    jobs: FuturesUnordered<BoxFuture<'static, Result<u64, ArrayError>>>,
    /// The units that writers, which are jobs as well, will take.
    cached: Arc<CachedUnits>,
    parallel: usize,
    memory: JobMemory,
    /// The memory that jobs take, in bytes.
    taken: u64,
    /// The next job, if it waits for memory of others.
    next: Option<(Job, Arc<dyn ElementSink>)>,
    /// The slabs being assembled, and the segment of the first that is returned next.
    open_slabs: VecDeque<Arc<SlabWriter>>,
    next_segment: usize,
}

/// The state of an assembly that has advanced.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It may start more jobs, after it has returned a segment that is full.
    MayStartMore,
    /// It waits for jobs, memory or the scheduler, or has ended.
    Waits,
}

/// An item of the schedule.
enum Scheduled {
    Slab(Arc<SlabWriter>),
    Job(Job, Arc<dyn ElementSink>),
}

/// The items that the scheduler of an assembly has found, and that the assembly has not taken. The assembly polls the scheduler
/// whenever it has taken one, so neither wakes the other: a task that wakes itself moves to another thread.
struct Schedule {
    items: Mutex<VecDeque<Scheduled>>,
    most: usize,
}

impl Schedule {
    /// An empty schedule of at most this many items.
    fn new(most: usize) -> Self {
        // Most reads have one job.
        Self { items: Mutex::new(VecDeque::with_capacity(1)), most: most.max(1) }
    }

    /// Adds an item as soon as there is room.
    async fn push(&self, item: Scheduled) {
        poll_fn(|_| if self.items.lock().len() < self.most { Poll::Ready(()) } else { Poll::Pending }).await;
        self.items.lock().push_back(item);
    }

    fn pop(&self) -> Option<Scheduled> {
        self.items.lock().pop_front()
    }

    fn is_empty(&self) -> bool {
        self.items.lock().is_empty()
    }
}

impl Assembly {
    /// Waits for the minimum memory, if it is not reserved yet, and takes more if it is free.
    async fn begin(source: Arc<ReadContext>, slabs: Slabs, memory: ReadMemory) -> Result<Self, ArrayError> {
        let GrantedMemory { assembly, parallel, jobs, memory } = memory.take(&source.context.options).await?;
        let schedule = Arc::new(Schedule::new(parallel));
        let supplies = BufferResources {
            buffers: source.context.buffers.clone(),
            retained: Arc::new(ByteCounter::new(assembly.max(source.variable_length_budget()))),
            memory: memory.map(Arc::new),
        };
        let feeder = schedule_slabs(source.clone(), slabs, (assembly, parallel), supplies, schedule.clone()).boxed();
        Ok(Self::new(source, (feeder, schedule), parallel, jobs))
    }

    fn new(
        source: Arc<ReadContext>,
        (feeder, scheduled): (BoxFuture<'static, Result<(), ArrayError>>, Arc<Schedule>),
        parallel: usize,
        memory: JobMemory,
    ) -> Self {
        source.start_scan();
        Self {
            cached: Arc::new(CachedUnits::new(parallel, source.context.executor().cores())),
            source,
            scheduler: Some(feeder),
            scheduled,
            jobs: FuturesUnordered::new(),
            parallel,
            memory,
            taken: 0,
            next: None,
            open_slabs: VecDeque::new(),
            next_segment: 0,
        }
    }

    async fn next(&mut self) -> Result<Option<Elements>, ArrayError> {
        poll_fn(|cx| {
            for _ in 0..ROUNDS_IN_A_POLL {
                // Jobs advance before a segment is returned, so that none is idle while a slab is being sent.
                let progress = self.advance(cx)?;
                if let Some(piece) = self.take_full_segment()? {
                    return Poll::Ready(Ok(Some(piece)));
                }
                if progress == Progress::Waits {
                    return self.waits_or_ends();
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await
    }

    /// Pending while there are jobs, or may be some later; else the end.
    fn waits_or_ends(&self) -> Poll<Result<Option<Elements>, ArrayError>> {
        if self.is_scheduling() || !self.jobs.is_empty() {
            return Poll::Pending;
        }
        // If a slab were still open, some element was never written.
        Poll::Ready(match self.open_slabs.is_empty() {
            true => Ok(None),
            false => Err(self.source.scatter_error(ScatterError::Internal)),
        })
    }

    /// True if there is a job to start, or may be one later.
    fn is_scheduling(&self) -> bool {
        self.scheduler.is_some() || self.next.is_some() || !self.scheduled.is_empty()
    }

    /// Collects finished jobs, and starts new ones up to the limit.
    fn advance(&mut self, cx: &mut Context<'_>) -> Result<Progress, ArrayError> {
        // Bound the jobs that finish at once, or a full segment would not be returned in time.
        let mut starts = self.parallel;
        loop {
            let mut moved = false;
            self.taken = self.taken.saturating_sub(self.cached.poll_released(cx.waker()));
            if let Some(feeder) = &mut self.scheduler
                && let Poll::Ready(done) = feeder.as_mut().poll(cx)
            {
                self.scheduler = None;
                done?;
            }
            while let Poll::Ready(Some(done)) = self.jobs.poll_next_unpin(cx) {
                self.taken = self.taken.saturating_sub(done?);
                moved = true;
            }
            while self.is_scheduling() && self.jobs.len().saturating_add(self.cached.len()) < self.parallel {
                let Some(left) = starts.checked_sub(1) else { return Ok(Progress::MayStartMore) };
                if let Some((job, sink)) = self.next.take() {
                    if self.must_wait(&job) {
                        self.next = Some((job, sink));
                        break;
                    }
                    starts = left;
                    self.start(job, sink)?;
                    moved = true;
                    continue;
                }
                match self.scheduled.pop() {
                    None => break,
                    Some(Scheduled::Slab(slab)) => self.open_slabs.push_back(slab),
                    Some(Scheduled::Job(job, sink)) => self.next = Some((job, sink)),
                }
                moved = true;
            }
            if !moved {
                return Ok(Progress::Waits);
            }
        }
    }

    /// The next segment of the output, if it is full.
    fn take_full_segment(&mut self) -> Result<Option<Elements>, ArrayError> {
        while let Some(slab) = self.open_slabs.front() {
            if self.next_segment >= slab.buffer.segments() {
                self.open_slabs.pop_front();
                self.next_segment = 0;
                continue;
            }
            let Some(taken) = slab.buffer.take(self.next_segment) else { return Ok(None) };
            self.next_segment += 1;
            return taken.map(Some).map_err(|error| self.source.scatter_error(error));
        }
        Ok(None)
    }

    /// True if a job has to wait until others release their memory.
    fn must_wait(&self, job: &Job) -> bool {
        let needed = self.needed(job);
        self.taken > 0 && self.memory.all.is_some_and(|all| self.taken.saturating_add(needed) > all)
    }

    /// The memory that a job takes of what all share.
    fn needed(&self, job: &Job) -> u64 {
        if self.memory.all.is_some() { job.memory(self.memory.most) } else { 0 }
    }

    fn start(&mut self, job: Job, sink: Arc<dyn ElementSink>) -> Result<(), ArrayError> {
        let step = trace_span!(target: STEPS, "decode");
        if let Some(done) = step.in_scope(|| job.try_run_inline(&self.source, &*sink)) {
            return done;
        }
        let needed = self.needed(&job);
        self.taken = self.taken.saturating_add(needed);
        let job = match job.into_cached(&self.source) {
            Ok((unit, elements)) => {
                if self.cached.push(CachedUnit { unit, elements, sink, memory: needed }) {
                    self.jobs.push(in_task(self.cached.clone().write(self.source.clone()).instrument(step), 0));
                }
                return Ok(());
            }
            Err(job) => job,
        };
        let light = job.is_cheap(&self.source);
        let run = job.run(self.source.clone(), sink).instrument(step);
        self.jobs.push(if light { run.map_ok(move |()| needed).boxed() } else { in_task(run, needed) });
        Ok(())
    }
}

impl Drop for Assembly {
    fn drop(&mut self) {
        self.cached.clear();
    }
}

/// Runs a job that takes `memory` bytes in a task of its own, and returns that memory.
fn in_task(
    job: impl Future<Output = Result<(), ArrayError>> + Send + 'static,
    memory: u64,
) -> BoxFuture<'static, Result<u64, ArrayError>> {
    let task = AbortOnDropHandle::new(tokio::spawn(job));
    async move { task.await.unwrap_or(Err(ArrayError::ShuttingDown)).map(|()| memory) }.boxed()
}

/// Schedules all jobs, slab by slab, as memory for slabs and permits for jobs become available.
async fn schedule_slabs(
    source: Arc<ReadContext>,
    slabs: Slabs,
    (assembly, jobs): (u64, usize),
    supplies: BufferResources,
    found: Arc<Schedule>,
) -> Result<(), ArrayError> {
    let units = usize::try_from(assembly.div_ceil(PERMIT_UNIT)).unwrap_or(Semaphore::MAX_PERMITS);
    let memory = Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS)));
    for slab in slabs {
        let step = trace_span!(target: STEPS, "split");
        let layout = step.in_scope(|| layout(&source, &slab));
        let size = source.array.model().data_type.fixed_size();
        let needed = u32::try_from(layout.units(size).min(units as u64)).unwrap_or(u32::MAX);
        // Only segments that are neither full nor taken hold memory, so this waits only for segments that will be
        // taken.
        let permit = memory.clone().acquire_many_owned(needed).await.map_err(|_| ArrayError::ShuttingDown)?;
        let buffer = SlabBuffer::new(layout, size, permit, supplies.clone());
        let writer = Arc::new(SlabWriter { buffer, strides: slab.strides() });
        found.push(Scheduled::Slab(writer.clone())).await;
        let scheduler = || ChunkScheduler::new(source.clone(), &slab.selection, writer.strides.clone(), jobs);
        let mut feed = step.in_scope(scheduler);
        drop(step);
        schedule_jobs(&mut feed, &(writer as Arc<dyn ElementSink>), &found).await?;
    }
    Ok(())
}

/// Schedules the jobs of a slab.
async fn schedule_jobs(
    feed: &mut ChunkScheduler,
    sink: &Arc<dyn ElementSink>,
    found: &Schedule,
) -> Result<(), ArrayError> {
    while let Some(jobs) = feed.next().await? {
        for job in jobs {
            found.push(Scheduled::Job(job, sink.clone())).await;
        }
    }
    Ok(())
}

fn layout(source: &ReadContext, slab: &Slab) -> SegmentLayout {
    let model = source.array.model();
    let dimension = |axis: usize| model.grid.dimensions().get(axis.checked_sub(slab.stack_axes())?);
    SegmentLayout::new(&slab.extents, source.element_size(), |axis| match dimension(axis) {
        Some(DimensionGrid::Regular { length }) => *length,
        _ => 1,
    })
}
