//! The arrays of a store: the entry to reading, writing and hierarchies.

use std::{sync::Arc, time::Instant};

use meta::{
    ArrayModel, Dialect, NodePath,
    selection::{ReadRequest, Selection},
};
use store::{MAX_READ_TIME, Precondition, ReadError, ServedStore, Version, WaitTimes, until_unchanged};

use crate::{
    context::Context,
    error::ArrayError,
    hierarchy::hierarchies::Hierarchies,
    memory::{
        caller::Usage,
        claim::{Claim, MemoryBudget},
    },
    node::resolved::ResolvedArray,
    options::Options,
    read::{array_read::ArrayRead, context::ReadContext, plan::ReadPlan},
    retry::MAX_ATTEMPTS,
    rights::NodeRights,
    write::{
        append::Append,
        commit::WriteTarget,
        error::WriteError,
        region::{RegionWrite, check_chunks, check_lists},
    },
};

/// The arrays of a store. Clones share its caches.
#[derive(Clone, Debug)]
pub struct Arrays(Arc<Context>);

impl Arrays {
    /// The arrays of `store`. If it is served for reading only, each change fails with
    /// [`StoreError::Unsupported`](store::StoreError::Unsupported) before it reads anything.
    pub fn new(store: impl Into<ServedStore>, options: Options) -> Self {
        Self(Arc::new(Context::new(store.into(), options)))
    }

    /// The same arrays on behalf of one request, which has a claim on their [memory](Self::memory). If memory or
    /// threads run short, callers take turns, and none has more than half. Without a request, each read and each write
    /// has a claim of its own.
    ///
    /// `rights` are those on nodes that the request does not name; `None` for all.
    pub fn for_request(&self, claim: Claim, rights: Option<Arc<dyn NodeRights>>) -> Self {
        Self(Arc::new(self.0.for_request(claim, rights)))
    }

    /// The memory that all requests together may hold, including what other layers take from the same budget.
    pub fn memory(&self) -> &MemoryBudget {
        self.0.memory()
    }

    /// Runs work on `bytes` bytes of documents on the blocking pool, on behalf of the request. As many jobs run at a
    /// time as there are decoding threads, and callers take turns.
    pub async fn run_on_documents<T: Send + 'static>(
        &self,
        bytes: u64,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ArrayError> {
        self.0.run_on_documents(bytes, work).await
    }

    /// The number of decoding threads, how many are taken, and how many jobs wait for one.
    pub fn threads(&self) -> Usage {
        self.0.threads()
    }

    /// The queues in which requests wait, by name, with the times of waits in each: for memory, for decoding threads,
    /// and those of the store.
    pub fn queues(&self) -> Vec<(&'static str, Arc<WaitTimes>)> {
        self.0.queues()
    }

    /// The size of the cached decoded chunks, in bytes of memory.
    pub fn cached_bytes(&self) -> u64 {
        self.0.cache.used()
    }

    /// The capacity of the cache of decoded chunks, in bytes.
    pub fn cache_capacity(&self) -> u64 {
        self.0.cache.capacity()
    }

    /// The hierarchies that contain the arrays, on behalf of the same request.
    pub fn hierarchies(&self) -> Hierarchies {
        Hierarchies(self.0.clone())
    }

    /// Plans a read of `request` from the array at `path`: of its node in `dialect`, or in the preferred dialect that
    /// has a node there. Only metadata is read; nothing is decoded.
    ///
    /// The selection may have at most `limit` bytes of elements. Elements of variable length or of no size are charged
    /// 16 bytes each; those of variable length are bounded again while they are read.
    pub async fn read(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<ArrayRead, ArrayError> {
        let start = Instant::now();
        let context = self.0.for_operation();
        let read = plan_read(&context, (path, dialect), request, limit).await?;
        read.source.metrics.planned(start.elapsed());
        Ok(read)
    }
}

impl Arrays {
    /// Plans a write of `selection` of the array at `path`. A list with a repeated index is an error, since the last
    /// element to be written would be undefined.
    ///
    /// `condition` is checked against the node's version now, and again by the commit.
    pub async fn write(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: &Selection,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        context.writes()?;
        let resolved = place.resolve(&context).await?;
        let model = resolved.array.model();
        let in_view = selection.resolve(&model.view_shape()).map_err(ArrayError::from)?;
        check_lists(&in_view)?;
        let shape = in_view.shape();
        let region = in_view.shifted(&model.view_offset);
        check_chunks(&resolved.array, &region)?;
        Ok(RegionWrite { context, target: place, resolved, selection: selection.clone(), region, shape })
    }

    /// Plans an append along `dimension`, which counts from the end if negative.
    pub async fn append(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: i64,
        condition: Precondition,
    ) -> Result<Append, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        context.writes()?;
        let resolved = place.resolve(&context).await?;
        Append::new(context, place, resolved, dimension)
    }

    /// The model and version of the array at a path.
    pub async fn model(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<(ArrayModel, Version), ArrayError> {
        let place = WriteTarget { path: path.clone(), dialect, condition: Precondition::none() };
        let resolved = until_unchanged(|| place.resolve_current(&self.0)).await?;
        Ok((resolved.array.model().clone(), resolved.version()))
    }
}

/// Plans a read, until nothing changes while it is planned.
async fn plan_read(
    context: &Arc<Context>,
    (path, dialect): (&NodePath, Option<Dialect>),
    request: &ReadRequest,
    limit: u64,
) -> Result<ArrayRead, ArrayError> {
    let begun = Instant::now();
    let mut cached = context.nodes.get(path, dialect);
    let mut changed = None;
    for attempt in 0..MAX_ATTEMPTS {
        // Other programs may change documents for ever.
        if attempt > 0 && context.is_distant() && begun.elapsed() >= MAX_READ_TIME {
            break;
        }
        let resolved = match cached.take() {
            Some(resolved) => Ok(resolved),
            None => context.resolve_array(path, dialect).await,
        };
        let planned = match resolved {
            Ok(resolved) => plan_on(context, &resolved, request, limit).await,
            Err(error) => Err(error),
        };
        match planned {
            Ok(Some(read)) => return Ok(read),
            Ok(None) => {}
            Err(error) if error.is_changed() => changed = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(changed.unwrap_or_else(|| ArrayError::TooManyConflicts { path: path.clone() }))
}

/// Plans a read of a resolved array; `None` if its documents are not current any more when the versions of the chunks
/// are looked up.
async fn plan_on(
    context: &Arc<Context>,
    resolved: &ResolvedArray,
    request: &ReadRequest,
    limit: u64,
) -> Result<Option<ArrayRead>, ArrayError> {
    let array = &resolved.array;
    // The cached array may be stale, so a selection that does not fit its shape may fit the current one.
    let prepared = ReadPlan::new(context, array, request, limit).await;
    let documents = resolved.read_set.keys().cloned().collect();
    let snapshot = ReadPlan::snapshot(context, documents, prepared.as_ref().ok()).await?;
    if !resolved.read_set.is_current(&*snapshot).await? {
        return Ok(None);
    }
    let mut prepared = prepared?;
    let (snapshot, found) = prepared.stored_chunks(context, snapshot).await?;
    let shape = prepared.resolved.shape();
    let work = prepared.work_budget(&context.options, array, &found)?;
    let fingerprint = found.fingerprint;
    let source = ReadContext::new(array.clone(), snapshot, context.clone(), &prepared, (&found, work))?;
    Ok(Some(ArrayRead { source: Arc::new(source), prepared, shape, fingerprint, parts: None }))
}
