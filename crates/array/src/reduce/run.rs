//! Running reductions.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::{FutureExt, Stream, future::BoxFuture, stream};
use zarrd_codec::Elements;
use zarrd_compute::{ComputeError, GroupGrid, Partial};
use zarrd_executor::{Cost, Work};
use zarrd_meta::selection::{DimensionSelection, Region};

use super::{
    request::{ReducePlan, ReduceRequest},
    sink::{MakePartial, ReductionSink},
    slabs::{ReductionSlab, Slabs},
};
use crate::{
    buffer_pool::with_permit,
    error::ArrayError,
    grid::{
        projection::{ElementSelection, VisitOrder},
        slab::Slab,
    },
    map::{Decode, ElementMap},
    memory::claim::Permit,
    read::{
        array_read::ArrayRead,
        assemble::pass_elements,
        context::ReadContext,
        memory::{GrantedMemory, JobMemory},
        needs::SMALL_STATE,
        scheduler::PassOrder,
    },
    result_cache::{Compute, ResultKey},
};

/// A planned reduction of a read.
#[derive(Debug)]
pub(crate) struct ReducedRead {
    pub(crate) read: ArrayRead,
    pub(crate) plan: Arc<ReducePlan>,
    /// The identity of the result, if it is known before it is made.
    pub(crate) key: Option<ResultKey>,
    pub(crate) decode: Decode,
}

/// Passes over the elements of a read, with the memory that it was granted.
pub(crate) struct Reducer {
    source: Arc<ReadContext>,
    parallel: usize,
    jobs: JobMemory,
    partials: usize,
    memory: Option<Arc<Permit>>,
}

impl Reducer {
    /// Waits for the memory of a read whose state takes `state` bytes.
    pub(crate) async fn new(read: ArrayRead, state: u64) -> Result<Self, ArrayError> {
        let source = read.source;
        let GrantedMemory { assembly, parallel, jobs, memory } =
            read.prepared.memory.take(&source.context.options).await?;
        let partials = match state <= SMALL_STATE {
            true => parallel,
            // More of them than there are cores to add to them would only be merged.
            false => {
                let most = parallel.min(source.context.executor().cores().max(2)).max(1);
                usize::try_from(assembly / state.max(1)).unwrap_or(1).clamp(1, most)
            }
        };
        Ok(Self { source, parallel, jobs, partials, memory: memory.map(Arc::new) })
    }

    /// The order of a first pass. If another scan of the array runs, it begins where that one is, so that what either
    /// decodes is for both, and ends with what comes before.
    pub(crate) fn first_order(&self, is_repeated: bool) -> PassOrder {
        self.source.start_scan();
        let visits = VisitOrder { from: self.source.running_scan(), reversed: false };
        PassOrder { visits, is_repeated }
    }

    /// Adds the elements of a region to partial results in this order, and merges them.
    pub(crate) async fn pass(
        &self,
        (region, order): (&Region, &PassOrder),
        grid: Arc<GroupGrid>,
        decode: Option<Arc<dyn ElementMap>>,
        make: Box<MakePartial>,
    ) -> Result<Partial, ArrayError> {
        let fill = &self.source.array.model().fill_value;
        let sink = Arc::new(ReductionSink::new(make, decode, fill, (grid, self.partials)));
        if let Some(selection) = ElementSelection::of(region) {
            let extents = region.dimensions.iter().map(DimensionSelection::len).collect();
            let slab = Slab { extents, selection };
            pass_elements(self.source.clone(), (slab, order), sink.clone(), (self.parallel, self.jobs)).await?;
        }
        let cost = Cost::of(Work::Compute, sink.merge_work());
        self.source.context.run(cost, move || sink.merged()).await?
    }

    /// Runs work on a partial result off the async threads.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        steps: u64,
        work: impl FnOnce() -> Result<T, ArrayError> + Send + 'static,
    ) -> Result<T, ArrayError> {
        self.source.context.run(Cost::codec(steps), work).await?
    }
}

/// The state of a stream of results.
enum Progress {
    Waiting(Box<ReducedRead>),
    Running(Box<Running>),
}

struct Running {
    reducer: Reducer,
    plan: Arc<ReducePlan>,
    slabs: Slabs,
}

impl ReducedRead {
    /// The reduction of a read that was planned for it.
    pub(crate) fn new(read: ArrayRead, request: &ReduceRequest, limit: u64) -> Result<Self, ArrayError> {
        let options = read.source.context.options;
        let plan = Arc::new(request.plan(&read.source.array, read.resolved(), (&options, limit))?);
        let key = read.fingerprint().map(|input| ResultKey { input, computation: request.fingerprint() });
        Ok(Self { read, plan, key, decode: request.decode.unwrap_or_default() })
    }

    /// The results in C order.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Elements, ArrayError>> + Send + 'static {
        stream::unfold(Some(Progress::Waiting(Box::new(self))), |progress| async move {
            let running = match progress? {
                Progress::Running(running) => running,
                Progress::Waiting(read) => match read.begin().await {
                    Ok(Begun::Known(elements)) => return Some((Ok(elements), None)),
                    Ok(Begun::Running(running)) => running,
                    Err(error) => return Some((Err(error), None)),
                },
            };
            match running.next().await {
                Ok(Some((elements, running))) => Some((Ok(elements), Some(Progress::Running(running)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    async fn begin(self: Box<Self>) -> Result<Begun, ArrayError> {
        let Self { read, plan, key, .. } = *self;
        let results = read.source.context.results.clone();
        let len = plan.len().filter(|&len| len <= results.max_size()).and_then(|len| usize::try_from(len).ok());
        match key.zip(len) {
            Some((key, len)) => {
                let mut compute = ComputeResult { read: Some(read), plan, len };
                results.get_or_compute(key, &mut compute).await.map(Elements::Fixed).map(Begun::Known)
            }
            None => Running::start(read, plan).await.map(Begun::Running),
        }
    }
}

/// The computation of a result of `len` bytes.
struct ComputeResult {
    read: Option<ArrayRead>,
    plan: Arc<ReducePlan>,
    len: usize,
}

#[async_trait]
impl Compute for ComputeResult {
    async fn prepare(&mut self) -> Result<(), ArrayError> {
        match &mut self.read {
            Some(read) => read.reserve().await,
            None => Ok(()),
        }
    }

    fn start(&mut self) -> BoxFuture<'static, Result<Bytes, ArrayError>> {
        let (read, plan, len) = (self.read.take(), self.plan.clone(), self.len);
        let compute = async move {
            let read = read.ok_or(ComputeError::Internal)?;
            Running::start(read, plan).await?.into_bytes(len).await
        };
        compute.boxed()
    }
}

enum Begun {
    Known(Elements),
    Running(Box<Running>),
}

impl Running {
    /// Waits for the memory of a reduction.
    async fn start(read: ArrayRead, plan: Arc<ReducePlan>) -> Result<Box<Self>, ArrayError> {
        let slabs = plan.slabs(&read.source.array);
        let reducer = Reducer::new(read, plan.state()).await?;
        Ok(Box::new(Self { reducer, plan, slabs }))
    }

    /// All results, of `len` bytes.
    async fn into_bytes(self: Box<Self>, len: usize) -> Result<Bytes, ArrayError> {
        let (mut running, mut bytes) = (self, Vec::with_capacity(len));
        while let Some((elements, rest)) = running.next().await? {
            // Texts have no size in advance.
            let Elements::Fixed(part) = elements else { return Err(ComputeError::Internal.into()) };
            bytes.extend_from_slice(&part);
            running = rest;
        }
        Ok(bytes.into())
    }

    async fn next(mut self: Box<Self>) -> Result<Option<(Elements, Box<Self>)>, ArrayError> {
        let Some(ReductionSlab { region, windows }) = self.slabs.next() else { return Ok(None) };
        let grid = Arc::new(GroupGrid::new(&windows).ok_or(ComputeError::Internal)?);
        let (plan, groups, of_slab) = (self.plan.clone(), grid.groups(), grid.clone());
        let make = Box::new(move || plan.reduction.partial(of_slab.clone()));
        let order = self.reducer.first_order(false);
        let partial = self.reducer.pass((&region, &order), grid, self.plan.steps.decode.clone(), make).await?;
        let (plan, steps) = (self.plan.clone(), (groups as u64).saturating_mul(1 << 8));
        let results = self.reducer.run(steps, move || Ok(plan.reduction.finish(&partial, groups)?)).await?;
        let results = match results {
            Elements::Fixed(bytes) => Elements::Fixed(with_permit(bytes, self.reducer.memory.clone())),
            other => other,
        };
        Ok(Some((results, self)))
    }
}
