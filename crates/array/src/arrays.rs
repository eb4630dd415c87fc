//! The arrays of a store: the entry to reading, writing and hierarchies.

use std::{sync::Arc, time::Instant};

use zarrd_executor::{Cost, Usage};
use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    ome::Image,
    selection::{ReadRequest, Region, ResolvedSelection, Selection},
};
use zarrd_store::{Precondition, ServedStore, Version, WaitTimes, not_before, until_unchanged};

use crate::{
    chunk_map::ChunkMap,
    context::Context,
    coordinates::{
        error::CoordinateError,
        find::locate,
        image::{image_above, image_at},
        read::CoordinateVersion,
        select::{
            DimensionCoordinate, LabelledDimension, NamedSelection, Selected, are_current, coordinate, labels_of,
            northward_rows, select,
        },
    },
    dataset::{append::DatasetAppend, error::DatasetError},
    datetimes::decode_times,
    error::ArrayError,
    hierarchy::hierarchies::Hierarchies,
    map::Decode,
    memory::claim::{Claim, MemoryBudget},
    metadata::copy_update::RemovedCopies,
    node::resolved::ResolvedArray,
    options::Options,
    purpose::{Purpose, VersionSource},
    read::{array_read::ArrayRead, consumer::ElementLimit, current::plan_read},
    reduce::{
        request::{ReduceConsumer, ReduceRequest},
        run::ReducedRead,
        statistics::{StatisticsOf, StatisticsRead},
    },
    result::ArrayResult,
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
    /// [`StoreError::Unsupported`](zarrd_store::StoreError::Unsupported) before it reads anything.
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

    /// The same arrays for a request that takes the versions of chunks from a source.
    #[must_use]
    pub fn with_versions(mut self, source: VersionSource) -> Self {
        Arc::make_mut(&mut self.0).versions = source;
        self
    }

    /// The same arrays for a request that takes note of the consolidated metadata that its changes remove.
    #[must_use]
    pub fn with_removed_copies(mut self, removed: RemovedCopies) -> Self {
        Arc::make_mut(&mut self.0).removed_copies = removed;
        self
    }

    /// The same arrays for a request with a purpose; [`Purpose::Elements`] unless it is set.
    #[must_use]
    pub fn with_purpose(mut self, purpose: Purpose) -> Self {
        Arc::make_mut(&mut self.0).purpose = purpose;
        self
    }

    /// The memory that all requests together may hold, including what other layers take from the same budget.
    pub fn memory(&self) -> &MemoryBudget {
        self.0.memory()
    }

    /// Runs a job where the [executor](zarrd_executor) decides, on behalf of the request.
    pub async fn run<T: Send + 'static>(
        &self,
        cost: Cost,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ArrayError> {
        self.0.run(cost, job).await
    }

    /// The number of decoding threads, how many are taken, and how many jobs wait for one.
    pub fn threads(&self) -> Usage {
        self.0.executor().usage()
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

    /// The size of the cached results of reductions, statistics and slices, in bytes of memory.
    pub fn result_cache_used(&self) -> u64 {
        self.0.results.used()
    }

    /// The capacity of the cache of results, in bytes.
    pub fn result_cache_capacity(&self) -> u64 {
        self.0.results.capacity()
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
        let read = plan_read(&context, (path, dialect), request, &ElementLimit(limit)).await?;
        read.source.metrics.planned(start.elapsed());
        Ok(read)
    }

    /// Plans a read like [`read`](Self::read), whose elements are decoded. [`Decode::Cf`] becomes [`Decode::CfTexts`] if
    /// times are selected that `datetime64[ns]` cannot represent; where there may be such, the elements are read once
    /// more to find out.
    pub async fn read_decoded(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        (request, decode): (&ReadRequest, Decode),
        limit: u64,
    ) -> Result<ArrayResult, ArrayError> {
        let read = self.read(path, dialect, request, limit).await?;
        let decode = match decode {
            Decode::Cf => Box::pin(decode_times(&self.0.for_operation(), (&read, dialect), request)).await?,
            Decode::Stored | Decode::CfTexts => decode,
        };
        ArrayResult::from(read).decoded(decode)
    }

    /// Plans a reduction of what `request` selects from the array at `path`; see [`read`](Self::read). The result may
    /// have at most `limit` bytes. Times are decoded as in [`read_decoded`](Self::read_decoded).
    pub async fn reduce(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        (request, reduce): (&ReadRequest, &ReduceRequest),
        limit: u64,
    ) -> Result<ArrayResult, ArrayError> {
        let start = Instant::now();
        let context = self.0.for_operation();
        let max_cached = context.results.max_size();
        let consumer = ReduceConsumer { request: reduce, options: &context.options, limit, max_cached };
        let read = plan_read(&context, (path, dialect), request, &consumer).await?;
        read.source.metrics.planned(start.elapsed());
        let decode = match reduce.decode {
            Some(Decode::Cf) => Some(Box::pin(decode_times(&context, (&read, dialect), request)).await?),
            decode => decode,
        };
        if decode == reduce.decode {
            return ReducedRead::new(read, reduce, limit).map(ArrayResult::from);
        }
        drop(read);
        let reduce = &ReduceRequest { decode, ..reduce.clone() };
        let consumer = ReduceConsumer { request: reduce, ..consumer };
        let read = plan_read(&context, (path, dialect), request, &consumer).await?;
        ReducedRead::new(read, reduce, limit).map(ArrayResult::from)
    }

    /// Plans statistics of what `request` selects from the array at `path`; see [`read`](Self::read).
    pub async fn statistics(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        (request, statistics): (&ReadRequest, &StatisticsOf),
    ) -> Result<StatisticsRead, ArrayError> {
        let start = Instant::now();
        let context = self.0.for_operation();
        let read = plan_read(&context, (path, dialect), request, statistics).await?;
        read.source.metrics.planned(start.elapsed());
        StatisticsRead::new(read, statistics)
    }
}

impl Arrays {
    /// Makes a selection from the array at `path` by the names of dimensions, and by labels of their coordinates, which
    /// are read as far as they are not cached.
    ///
    /// The coordinates and the array may change before the selection is read; see [`are_current`](Self::are_current).
    pub async fn select(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimensions: &[NamedSelection],
    ) -> Result<Selected, CoordinateError> {
        let context = self.0.for_operation();
        let (model, _) = self.model(path, dialect).await?;
        select(&context, (path, &model), dimensions).await
    }

    /// The coordinate of a dimension of the array at `path`, given the name or number of the dimension, or the name of
    /// another one-dimensional array over it.
    pub async fn coordinate(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        name: &str,
    ) -> Result<DimensionCoordinate, CoordinateError> {
        let context = self.0.for_operation();
        let (model, _) = self.model(path, dialect).await?;
        coordinate(&context, (path, &model), name).await
    }

    /// The labels of a result along all dimensions that have a name, and the versions of the coordinates that have
    /// them; none for points and stacks. Fails if those of the selected elements have more than `limit` bytes.
    pub async fn labels_of(
        &self,
        result: &ArrayResult,
        limit: u64,
    ) -> Result<(Vec<LabelledDimension>, Vec<CoordinateVersion>), CoordinateError> {
        let Some(region) = region_in_view(result) else { return Ok(Default::default()) };
        let selected = (&region, result.reduction());
        labels_of(&self.0.for_operation(), (result.path(), result.model()), selected, limit).await
    }

    /// The name of the first dimension of a result if its labels are latitudes, of which the first is the least: as a
    /// picture, the result has the south at the top.
    pub async fn northward_rows(&self, result: &ArrayResult) -> Result<Option<String>, CoordinateError> {
        let Some(region) = region_in_view(result) else { return Ok(None) };
        let selected = (&region, result.reduction());
        northward_rows(&self.0.for_operation(), (result.path(), result.model()), selected).await
    }

    /// The dimension of a name, as [`coordinate`](Self::coordinate) takes it, and the path of its coordinate.
    pub async fn locate_coordinate(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        name: &str,
    ) -> Result<(usize, NodePath), CoordinateError> {
        let (model, _) = self.model(path, dialect).await?;
        let located = locate(&self.0.for_operation(), path, &model, name).await?;
        Ok((located.dimension, located.coordinate))
    }

    /// True if coordinates are still as they were used. A read that was planned before then has the elements of the
    /// labels, as of one commit.
    pub async fn are_current(&self, coordinates: &[CoordinateVersion]) -> Result<bool, CoordinateError> {
        are_current(&self.0.for_operation(), coordinates).await
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
        self.plan_write(path, dialect, ReadRequest::Select(selection.clone()), condition).await
    }

    /// Plans a write of single elements, given their coordinates, which are negative from the end. Of several elements
    /// for one place, the last is stored.
    ///
    /// `condition` is checked as by [`write`](Self::write).
    pub async fn write_points(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        points: Vec<Vec<i64>>,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        self.plan_write(path, dialect, ReadRequest::Points(points), condition).await
    }

    async fn plan_write(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: ReadRequest,
        condition: Precondition,
    ) -> Result<RegionWrite, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        context.writes()?;
        let mut resolved = place.resolve(&context).await?;
        let in_view = |resolved: &ResolvedArray| request.resolve(&resolved.array.model().view_shape());
        let mut selected = in_view(&resolved).map_err(ArrayError::from)?;
        // Nothing would be compared with what is stored, where another process may have made the array larger.
        if selected.elements() == Some(0) && context.is_keyed_at(path) {
            resolved = not_before(Some(tokio::time::Instant::now()), place.resolve(&context)).await?;
            selected = in_view(&resolved).map_err(ArrayError::from)?;
        }
        let (in_view, model) = (selected, resolved.array.model());
        if let ResolvedSelection::Region(region) = &in_view {
            check_lists(region)?;
        }
        let shape = in_view.shape();
        let selection = Arc::new(in_view.shifted(&model.view_offset));
        match &*selection {
            ResolvedSelection::Region(region) => check_chunks(&resolved.array, region)?,
            // The chunks of points are counted when they are sorted.
            ResolvedSelection::Points(_) | ResolvedSelection::Stack(_) => {
                resolved.array.check_keys(&Region::full(&model.shape))?;
            }
        }
        Ok(RegionWrite { context, target: place, resolved, request, selection, shape, coordinates: Vec::new() })
    }

    /// Plans an append along a dimension, given its name, or else its number, which counts from the end if negative.
    pub async fn append(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: &str,
        condition: Precondition,
    ) -> Result<Append, WriteError> {
        let place = WriteTarget { path: path.clone(), dialect, condition };
        let context = self.0.for_operation();
        context.check_append(path)?;
        let resolved = place.resolve(&context).await?;
        Append::new(context, place, resolved, dimension)
    }

    /// Plans an append to all arrays directly in the group at `path` that have a dimension of a name.
    pub async fn append_dataset(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        dimension: &str,
    ) -> Result<DatasetAppend, DatasetError> {
        DatasetAppend::plan(self.0.for_operation(), path, dialect, dimension).await
    }

    /// The chunks that a selection of the array at a path touches. No chunk is looked up yet.
    pub async fn chunk_map(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        selection: &Selection,
    ) -> Result<ChunkMap, ArrayError> {
        let place = WriteTarget { path: path.clone(), dialect, condition: Precondition::none() };
        let context = self.0.for_operation();
        let resolved = until_unchanged(|| place.resolve_current(&context)).await?;
        ChunkMap::new(context, &resolved, selection)
    }

    /// The image that the attributes of the group at a path describe; `None` for an array, and for other groups.
    pub async fn image(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Image>, ArrayError> {
        image_at(&self.0, path, dialect).await
    }

    /// The image of which the array at a path is a level, if the caller may read its group.
    pub async fn image_above(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Option<Image>, ArrayError> {
        Ok(image_above(&self.0, path, dialect).await?.map(|(image, _)| image))
    }

    /// The model and version of the array at a path.
    pub async fn model(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<(ArrayModel, Version), ArrayError> {
        let place = WriteTarget { path: path.clone(), dialect, condition: Precondition::none() };
        let resolved = until_unchanged(|| place.resolve_current(&self.0)).await?;
        Ok((resolved.array.model().clone(), resolved.version()))
    }
}

/// The region of a result, in the coordinates of its view, as labels are; `None` for points and stacks.
fn region_in_view(result: &ArrayResult) -> Option<Region> {
    let ResolvedSelection::Region(region) = result.input() else { return None };
    Some(region.unshifted(&result.model().view_offset))
}
