//! From a request to the chunks that it touches.

use std::sync::Arc;

use futures::future::{try_join, try_join_all};
use zarrd_codec::{CodecChain, PartialAccess};
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    grid::ChunkGrid,
    selection::{DimensionSelection, ReadRequest, Region, ResolvedSelection},
};
use zarrd_store::{CachedMeta, Key, KeySource, Prefetch, Snapshot, StoreError, Writes};

use super::{
    chunk_keys::{AllKeys, ChunkKeys, StoredChunks},
    chunk_versions::{HEADS_PER_PAGE, fetch_versions},
    consumer::{Consumer, Consumption, ConsumptionCost},
    limits::MAX_PARTIAL_FETCH,
    memory::ReadMemory,
    needs::MemoryNeeds,
};
use crate::{
    context::Context,
    error::ArrayError,
    grid::projection::ElementSelection,
    node::array::Array,
    options::Options,
    purpose::Purpose,
    work::{STEPS_PER_INNER_CHUNK, STEPS_PER_KEY, WorkBudget, index_work, largest_fitting_part},
};

/// The maximum number of chunks whose metadata a plan requests. A plan of more chunks assumes that
/// all are stored, and has no fingerprint.
const MAX_FETCHED_VERSIONS: u64 = 64;

/// The same for a request that compares the fingerprint with one that it has.
const MAX_COMPARED_CHUNKS: u64 = 10_000;

/// The memory of a key that is looked up in addition to its text, in bytes.
const KEY_SIZE: u64 = 64;

/// The memory of a planned chunk, in bytes: the end of its key, and its entry in the snapshot. A point takes as much:
/// its coordinates in the request, in the plan, and in that of its chunk.
const CHUNK_PLAN_SIZE: u64 = 512;

/// The memory of one coordinate of a chunk or point in all of these, in bytes.
const COORDINATE_PLAN_SIZE: u64 = 48;

/// The steps of gathering an element that is listed by itself, beyond those of a neighbour.
const STEPS_PER_GATHERED: u64 = 32;

/// A request resolved against an array.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    /// The selection in stored coordinates: those of a view are shifted by its offset.
    pub(crate) resolved: Arc<ResolvedSelection>,
    /// The keys of the chunks.
    keys: ChunkKeys,
    /// The memory of the plan, and of the read that follows.
    pub(crate) memory: ReadMemory,
    /// The cost of what becomes of the elements.
    cost: ConsumptionCost,
}

impl ReadPlan {
    /// Resolves a request against an array. Fails if it exceeds a limit.
    pub(crate) async fn new(
        context: &Context,
        array: &Array,
        request: &ReadRequest,
        consumer: &dyn Consumer,
    ) -> Result<Self, ArrayError> {
        let in_view = request.resolve(&array.model().view_shape())?;
        let Consumption { selection, cost } = consumer.plan(array, in_view)?;
        let resolved = Arc::new(selection.shifted(&array.model().view_offset));
        let most = max_chunks(array.grid(), &resolved);
        // The plan may take only a part of the memory, so that some is left for the read.
        let options = &context.options;
        let per_chunk = CHUNK_PLAN_SIZE + COORDINATE_PLAN_SIZE * array.grid().dimensions().len() as u64;
        let planned = options.max_plan_memory() / per_chunk;
        let allowed = match &*resolved {
            // Many points may lie in one chunk, which is known only after planning.
            ResolvedSelection::Points(_) => planned,
            ResolvedSelection::Region(_) | ResolvedSelection::Stack(_) => planned.min(options.max_chunks),
        };
        let Some(chunks) = u64::try_from(most).ok().filter(|&chunks| chunks <= allowed) else {
            return Err(ArrayError::TooManyChunks { chunks: most, limit: allowed });
        };
        if context.guarantees_at(array.path()).writes != Writes::Commit {
            // Other programs may have written what zarrd has no key for, so that it is not absent.
            check_keys(array, &resolved)?;
        }
        let mut needs = MemoryNeeds::of(array, context, &resolved, chunks)?;
        if let ConsumptionCost::Result(cost) = &cost {
            needs.reduce_to(cost, options);
        }
        let mut memory = ReadMemory { account: context.account(), plan: 0, needs };
        let keys = ChunkKeys::new(array.clone(), resolved.clone(), chunks);
        let work = Cost::of(Work::Plan, chunks);
        if work.is_at_once() {
            // So little memory that none is reserved.
            return Ok(Self { resolved, keys, memory, cost });
        }
        let texts =
            if chunks <= max_fetched_versions(context, array) { array.key_prefix().len() as u64 + KEY_SIZE } else { 0 };
        memory.plan = chunks.saturating_mul(per_chunk.saturating_add(texts));
        // In one step, so that no request that has a plan waits for another that has one.
        memory.account.reserve(memory.min_bytes(options)).await?;
        if let ResolvedSelection::Points(_) = &*resolved {
            let keys = keys.clone();
            let chunks = context.run(work, move || keys.count()).await?;
            if chunks > options.max_chunks {
                return Err(ArrayError::TooManyChunks { chunks: chunks.into(), limit: options.max_chunks });
            }
        }
        Ok(Self { resolved, keys, memory, cost })
    }

    /// The number of chunks, as far as their keys are listed; the largest number if they are not, since they are many.
    pub(crate) fn listed_chunks(&self) -> u64 {
        self.keys.listed.as_ref().map_or(u64::MAX, |keys| keys.len() as u64)
    }

    /// A snapshot of documents, and of the chunks of a plan.
    pub(crate) async fn snapshot(
        context: &Context,
        documents: Vec<Key>,
        plan: Option<&Self>,
    ) -> Result<Box<dyn Snapshot>, StoreError> {
        let chunks = plan.map(|plan| plan.keys.clone());
        context.store.snapshot_of(Arc::new(AllKeys { documents, chunks })).await
    }

    /// Looks up the chunks of the plan in its snapshot, which is returned.
    pub(crate) async fn stored_chunks(
        &self,
        context: &Context,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<(Box<dyn Snapshot>, StoredChunks), ArrayError> {
        let (snapshot, found) = if self.memory.plan == 0 {
            let found = self.keys.stored(&*snapshot)?;
            (snapshot, found)
        } else {
            let keys = self.keys.clone();
            let steps = self.memory.plan / CHUNK_PLAN_SIZE * STEPS_PER_INNER_CHUNK;
            let look_up = move || {
                snapshot.load_cached(&keys)?;
                let found = keys.stored(&*snapshot)?;
                Ok::<_, ArrayError>((snapshot, found))
            };
            context.run(Cost::codec(steps), look_up).await??
        };
        if found.unknown == 0 || found.touched > max_fetched_versions(context, &self.keys.array) {
            return Ok((snapshot, found));
        }
        self.fetch_versions(context, &*snapshot, self.unknown_keys(&*snapshot)).await?;
        let found = self.keys.stored(&*snapshot)?;
        Ok((snapshot, found))
    }

    /// Loads the cached metadata of the chunks if they are neither few nor enough to be looked up off the async
    /// threads.
    pub(crate) fn load_cached(&self, snapshot: &dyn Snapshot) -> Result<(), StoreError> {
        let few = Cost::of(Work::RequestChunks, self.listed_chunks()).is_at_once();
        if !few && self.memory.plan == 0 { snapshot.load_cached(&self.keys) } else { Ok(()) }
    }

    /// Fetches the versions of the chunks into the snapshot if they are few, concurrently with the documents of a distant
    /// store. Chunks that will be read are prefetched.
    pub(crate) async fn fetch_few_versions(
        &self,
        context: &Context,
        snapshot: &dyn Snapshot,
    ) -> Result<(), StoreError> {
        let few = self.keys.listed.as_ref().map(|keys| keys.len() as u64);
        if few.is_none_or(|few| few > max_fetched_versions(context, &self.keys.array)) {
            return Ok(());
        }
        let unknown = self.unknown_keys(snapshot);
        let most = if unknown.len() < HEADS_PER_PAGE && self.prefetches(context) { self.memory.needs.jobs } else { 0 };
        let is_cached = |key: &Key| context.cache.has_latest(key, self.keys.array.metadata_hash());
        let (mut heads, mut prefetched): (Vec<_>, Vec<_>) =
            unknown.into_iter().partition(|key| most == 0 || is_cached(key));
        heads.extend(prefetched.drain(prefetched.len().min(usize::try_from(most).unwrap_or(usize::MAX))..));
        let prefetch = try_join_all(prefetched.iter().map(|key| snapshot.stat(key, Prefetch::Value)));
        try_join(prefetch, self.fetch_versions(context, snapshot, heads)).await.map(drop)
    }

    /// True if the chunks are distant, decoded in full, and read unless they are cached.
    fn prefetches(&self, context: &Context) -> bool {
        let array = &self.keys.array;
        context.purpose == Purpose::Elements
            && matches!(self.cost, ConsumptionCost::Elements)
            && !context.guarantees_at(array.path()).near
            && array.largest_chain().ok().flatten().is_some_and(|chain| is_decoded_in_full(&chain))
    }

    /// The keys of the chunks whose versions are not in the snapshot.
    fn unknown_keys(&self, snapshot: &dyn Snapshot) -> Vec<Key> {
        let mut keys = Vec::new();
        KeySource::for_each(&self.keys, &mut |key| {
            if matches!(snapshot.cached(&key), Ok(CachedMeta::Unknown)) {
                keys.push(key);
            }
        });
        keys
    }

    /// Fetches the versions of chunks into the snapshot.
    async fn fetch_versions(
        &self,
        context: &Context,
        snapshot: &dyn Snapshot,
        keys: Vec<Key>,
    ) -> Result<(), StoreError> {
        if keys.is_empty() { Ok(()) } else { fetch_versions(context, snapshot, &self.keys.array, keys).await }
    }

    /// The work budget of the read. Fails if decoding all chunks that are stored could exceed it. If none is stored,
    /// the memory for decoding is dropped.
    pub(crate) fn work_budget(
        &mut self,
        options: &Options,
        array: &Array,
        chunks: &StoredChunks,
    ) -> Result<WorkBudget, ArrayError> {
        let model = array.model();
        let budget = |selection: &ResolvedSelection| match &self.cost {
            ConsumptionCost::Elements => {
                let elements = selection.elements().unwrap_or(u64::MAX);
                WorkBudget::new(elements, model.data_type.fixed_size(), options.max_work)
            }
            ConsumptionCost::Result(cost) => WorkBudget::new(cost.size, Some(1), options.max_work),
            ConsumptionCost::Kept { .. } => WorkBudget::new(0, Some(1), options.max_work),
        };
        let allowance = budget(&self.resolved);
        let Some(chain) = array.largest_chain()? else { return Ok(allowance) };
        let StoredChunks { touched, stored: existing, bytes: stored, .. } = *chunks;
        if existing == 0 {
            self.memory.needs.expect_no_chunks();
        }
        let (ResolvedSelection::Region(region), Err(error)) =
            (&*self.resolved, allowance.check(self.work(&chain, &self.resolved, [touched, existing, stored])))
        else {
            allowance.check(self.work(&chain, &self.resolved, [touched, existing, stored]))?;
            return Ok(allowance);
        };
        let ArrayError::WorkTooLarge { work, limit, .. } = error else { return Err(error) };
        let fits = |part: &Region| {
            let part = ResolvedSelection::Region(part.clone());
            let chunks = u64::try_from(max_chunks(array.grid(), &part)).unwrap_or(u64::MAX);
            budget(&part).check(self.work(&chain, &part, [chunks, chunks, stored])).is_ok()
        };
        // A client can select a part only in the coordinates of the array's own shape.
        let is_selectable = model.view_offset.iter().all(|&origin| origin == 0);
        let is_selected = !matches!(self.cost, ConsumptionCost::Kept { .. });
        let smaller = if is_selectable && is_selected { largest_fitting_part(region, fits) } else { None };
        Err(ArrayError::WorkTooLarge { work, limit, smaller })
    }

    /// The work of reading a selection, at most, in steps: of `touched` chunks, of which `existing` are stored, with
    /// `stored` bytes.
    fn work(&self, chain: &CodecChain, selection: &ResolvedSelection, [touched, existing, stored]: [u64; 3]) -> u64 {
        let decoded = max_decode_work(chain, selection, existing, stored);
        let read = decoded.saturating_add(touched.saturating_mul(STEPS_PER_KEY));
        let cost = match &self.cost {
            ConsumptionCost::Elements => return read,
            ConsumptionCost::Kept { work_per_element } => {
                let elements = selection.elements().unwrap_or(u64::MAX);
                return read.saturating_add(elements.saturating_mul(*work_per_element));
            }
            ConsumptionCost::Result(cost) => cost,
        };
        let in_chunks = existing.saturating_mul(chain.representation().num_elements());
        let selected = selection.elements().unwrap_or(u64::MAX);
        let (elements, gathered) = match (selection, in_chunks) {
            (_, 0) => (0, 0),
            // An index may be listed many times.
            (ResolvedSelection::Region(region), _) if has_lists(region) => {
                (selected, if ends_in_list(region) { STEPS_PER_GATHERED } else { 0 })
            }
            _ => (selected.min(in_chunks), 0),
        };
        let missing = touched.saturating_sub(existing).saturating_mul(cost.work_per_missing_chunk);
        let per_element = cost.work_per_element.saturating_add(gathered);
        let consumed = elements.saturating_mul(per_element).saturating_add(missing);
        read.saturating_add(consumed).saturating_mul(cost.passes)
    }

    /// True if the elements are retained by their reader.
    pub(crate) fn keeps_elements(&self) -> bool {
        matches!(self.cost, ConsumptionCost::Kept { .. })
    }

    /// True if the elements are the response, and are decoded by codecs instead of only copied.
    pub(crate) fn is_decoded_for_response(&self, array: &Array) -> bool {
        let is_decoded = |chain: &CodecChain| match chain.partial_access() {
            PartialAccess::Full => true,
            PartialAccess::Shard(sharding) => {
                !matches!(sharding.inner_chain().partial_access(), PartialAccess::Elements(_))
            }
            PartialAccess::Elements(_) => false,
        };
        matches!(self.cost, ConsumptionCost::Elements)
            && array.largest_chain().ok().flatten().is_some_and(|chain| is_decoded(&chain))
    }

    /// The bytes that are decoded at most; for shards, those of the inner chunks that are touched. Of variable length, the
    /// bytes that are stored.
    pub(crate) fn decoded_len(&self, array: &Array, chunks: &StoredChunks) -> Result<u128, ArrayError> {
        let Some(chain) = array.largest_chain()? else { return Ok(0) };
        let stored = u128::from(chunks.bytes);
        let (chunks, chunk) = match chain.partial_access() {
            PartialAccess::Shard(sharding) => {
                let pieces = sharding.inner_grid().map_or(u128::MAX, |grid| max_chunks(&grid, &self.resolved));
                (pieces, sharding.inner_chain().representation().fixed_size())
            }
            PartialAccess::Full | PartialAccess::Elements(_) => {
                (u128::from(chunks.touched), chain.representation().fixed_size())
            }
        };
        Ok(chunk.map_or(stored, |chunk| chunks.saturating_mul(u128::from(chunk))))
    }
}

fn is_decoded_in_full(chain: &CodecChain) -> bool {
    match chain.partial_access() {
        PartialAccess::Full => true,
        PartialAccess::Shard(_) | PartialAccess::Elements(_) => false,
    }
}

/// The maximum number of chunks whose versions a plan fetches; a snapshot as of one commit has them.
fn max_fetched_versions(context: &Context, array: &Array) -> u64 {
    match context.is_distant_at(array.path()) {
        true if context.purpose == Purpose::Comparison => MAX_COMPARED_CHUNKS,
        true => MAX_FETCHED_VERSIONS,
        false => 0,
    }
}

/// The most work of decoding `chunks` chunks that have `stored` bytes, as far as they are touched, in steps.
fn max_decode_work(chain: &CodecChain, resolved: &ResolvedSelection, chunks: u64, stored: u64) -> u64 {
    match chain.partial_access() {
        PartialAccess::Shard(sharding) => {
            let pieces = sharding.inner_grid().map_or(u128::MAX, |grid| max_chunks(&grid, resolved));
            let pieces = u64::try_from(pieces).unwrap_or(u64::MAX);
            let inner = max_decode_work(sharding.inner_chain(), resolved, pieces, stored);
            let inner = inner.saturating_add(pieces.saturating_mul(STEPS_PER_INNER_CHUNK));
            inner.saturating_add(index_work(sharding).saturating_mul(chunks))
        }
        // Only selected elements are fetched, tile by tile.
        PartialAccess::Elements(_) => {
            chain.representation().fixed_size().unwrap_or(0).min(MAX_PARTIAL_FETCH).saturating_mul(chunks)
        }
        // Variable lengths are known only once they are decoded.
        PartialAccess::Full => match chain.representation().fixed_size() {
            Some(_) => chain.decode_work(0).saturating_mul(chunks),
            None => chain.decode_work(stored),
        },
    }
}

fn has_lists(region: &Region) -> bool {
    region.dimensions.iter().any(|dimension| matches!(dimension, DimensionSelection::List(_)))
}

/// True if neighbours in a selection are listed one by one.
fn ends_in_list(region: &Region) -> bool {
    let last = region.dimensions.iter().rev().find(|dimension| dimension.len() > 1);
    matches!(last, Some(DimensionSelection::List(_)))
}

/// Fails if the key of a chunk would be too long: of one that is touched, or for points of any.
fn check_keys(array: &Array, resolved: &ResolvedSelection) -> Result<(), ArrayError> {
    match resolved {
        ResolvedSelection::Region(region) => array.check_keys(region),
        ResolvedSelection::Stack(regions) => regions.iter().try_for_each(|region| array.check_keys(region)),
        ResolvedSelection::Points(_) => array.check_keys(&Region::full(&array.model().shape)),
    }
}

fn max_chunks(grid: &ChunkGrid, resolved: &ResolvedSelection) -> u128 {
    let most = |region: &Region| ElementSelection::of(region).map_or(0, |selection| selection.max_chunks(grid));
    match resolved {
        ResolvedSelection::Region(region) => most(region),
        ResolvedSelection::Stack(regions) => regions.iter().map(most).fold(0, u128::saturating_add),
        ResolvedSelection::Points(points) => points.len as u128,
    }
}
