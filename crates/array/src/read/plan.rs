//! From a request to the chunks that it touches.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use codec::{CodecChain, PartialAccess};
use meta::{
    grid::ChunkGrid,
    selection::{ReadRequest, Region, ResolvedSelection, Selection},
};
use store::{Key, Snapshot, StoreError};
use xxhash_rust::xxh3::Xxh3;

use super::{
    memory::ReadMemory,
    needs::{MAX_PARTIAL_FETCH, MemoryNeeds},
};
use crate::{
    context::Context,
    error::ArrayError,
    grid::projection::{EdgePolicy, ElementSelection, IndexedPoint},
    node::array::Array,
    options::Options,
    work::{NOMINAL_ELEMENT_SIZE, STEPS_PER_INNER_CHUNK, STEPS_PER_KEY, WorkBudget, index_work, largest_fitting_part},
};

/// The most chunks whose versions are hashed into a fingerprint.
const MAX_FINGERPRINTED_CHUNKS: usize = 100_000;

/// The memory of a planned chunk in addition to its key's prefix, in bytes: the rest of the key, and its entry in the
/// snapshot. A point takes as much: its coordinates in the request, in the plan, and in that of its chunk.
const CHUNK_PLAN_SIZE: u64 = 512;

/// The memory of one coordinate of a chunk or point in all of these, in bytes.
const COORDINATE_PLAN_SIZE: u64 = 48;

/// The number of chunks or points up to which a plan is made on the request's own thread, without a reservation of
/// memory.
const INLINE_PLAN_LIMIT: u64 = 1024;

/// A request resolved against an array.
#[derive(Debug)]
pub(crate) struct ReadPlan {
    /// The selection in stored coordinates: those of a view are shifted by its offset.
    pub(crate) resolved: Arc<ResolvedSelection>,
    /// The keys of the chunks, each once.
    pub(crate) keys: Vec<Key>,
    /// The memory of the plan, and of the read that follows.
    pub(crate) memory: ReadMemory,
}

impl ReadPlan {
    /// Resolves a request against an array. Fails if it exceeds a limit.
    pub(crate) async fn new(
        context: &Context,
        array: &Array,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<Self, ArrayError> {
        let in_view = request.resolve(&array.model().view_shape())?;
        check_size(array, &in_view, limit)?;
        let resolved = Arc::new(in_view.shifted(&array.model().view_offset));
        let most = max_chunks(array.grid(), &resolved);
        // The plan may take only a part of the memory, so that some is left for the read.
        let options = &context.options;
        let per_chunk =
            array.key_prefix_len() + CHUNK_PLAN_SIZE + COORDINATE_PLAN_SIZE * array.grid().dimensions().len() as u64;
        let planned = options.max_plan_memory() / per_chunk;
        let allowed = match &*resolved {
            // Many points may lie in one chunk, which is known only after planning.
            ResolvedSelection::Points(_) => planned,
            ResolvedSelection::Region(_) | ResolvedSelection::Stack(_) => planned.min(options.max_chunks),
        };
        let Some(chunks) = u64::try_from(most).ok().filter(|&chunks| chunks <= allowed) else {
            return Err(ArrayError::TooManyChunks { chunks: most, limit: allowed });
        };
        let needs = MemoryNeeds::of(array, options, &resolved, chunks)?;
        let mut memory = ReadMemory { account: context.account(), plan: 0, needs };
        if chunks <= INLINE_PLAN_LIMIT {
            let keys = keys(array, &resolved);
            return Ok(Self { resolved, keys, memory });
        }
        memory.plan = chunks.saturating_mul(per_chunk);
        // In one step, so that no request that has a plan waits for another that has one.
        memory.account.reserve(memory.min_bytes(options)).await?;
        let (array, selected) = (array.clone(), resolved.clone());
        let steps = chunks.saturating_mul(STEPS_PER_INNER_CHUNK);
        let keys = context.run_blocking(steps, move || Ok::<_, ArrayError>(keys(&array, &selected))).await?;
        if keys.len() as u64 > options.max_chunks {
            return Err(ArrayError::TooManyChunks { chunks: keys.len() as u128, limit: options.max_chunks });
        }
        Ok(Self { resolved, keys, memory })
    }

    /// The work budget of the read. Fails if decoding all chunks that are stored could exceed it. If none is stored,
    /// the memory for decoding is dropped.
    pub(crate) fn work_budget(
        &mut self,
        options: &Options,
        array: &Array,
        snapshot: &dyn Snapshot,
    ) -> Result<WorkBudget, ArrayError> {
        let elements = self.resolved.elements().unwrap_or(u64::MAX);
        let allowance = WorkBudget::new(elements, array.model().data_type.fixed_size(), options.max_work);
        let Some(chain) = array.largest_chain()? else { return Ok(allowance) };
        let visited = (self.keys.len() as u64).saturating_mul(STEPS_PER_KEY);
        let mut existing = 0_u64;
        let mut stored = 0_u64;
        for key in &self.keys {
            if let Some(info) = snapshot.head(key)? {
                existing += 1;
                stored = stored.saturating_add(info.size);
            }
        }
        if existing == 0 {
            self.memory.needs.expect_no_chunks();
        }
        let decoded = max_decode_work(&chain, &self.resolved, existing, stored);
        match (allowance.check(visited.saturating_add(decoded)), &*self.resolved) {
            (Err(ArrayError::WorkTooLarge { work, limit, .. }), ResolvedSelection::Region(region)) => {
                let fits = |part: &Region| {
                    let part = ResolvedSelection::Region(part.clone());
                    let chunks = u64::try_from(max_chunks(array.grid(), &part)).unwrap_or(u64::MAX);
                    let free = WorkBudget::new(
                        part.elements().unwrap_or(u64::MAX),
                        array.model().data_type.fixed_size(),
                        limit,
                    );
                    let work = max_decode_work(&chain, &part, chunks, stored)
                        .saturating_add(chunks.saturating_mul(STEPS_PER_KEY));
                    free.check(work).is_ok()
                };
                // A client can select a part only in the coordinates of the array's own shape.
                let selectable = |selection: Selection| {
                    (array.model().view_offset.iter().all(|&origin| origin == 0)).then_some(selection)
                };
                Err(ArrayError::WorkTooLarge {
                    work,
                    limit,
                    smaller: largest_fitting_part(region, fits).and_then(selectable),
                })
            }
            (checked, _) => checked.map(|()| allowance),
        }
    }

    /// The bytes that are decoded at most; for shards, those of the inner chunks that are touched.
    pub(crate) fn decoded_len(&self, array: &Array) -> Result<u128, ArrayError> {
        let Some(chain) = array.largest_chain()? else { return Ok(0) };
        let (chunks, chunk) = match chain.partial_access() {
            PartialAccess::Shard(sharding) => {
                let pieces = sharding.inner_grid().map_or(u128::MAX, |grid| max_chunks(&grid, &self.resolved));
                (pieces, sharding.inner_chain().representation().fixed_size())
            }
            PartialAccess::Full | PartialAccess::Elements(_) => {
                (self.keys.len() as u128, chain.representation().fixed_size())
            }
        };
        Ok(chunks.saturating_mul(u128::from(chunk.unwrap_or(0))))
    }

    /// A hash that differs whenever the metadata, the selection or any chunk does; `None` for too many chunks.
    pub(crate) fn fingerprint(&self, array: &Array, snapshot: &dyn Snapshot) -> Result<Option<u128>, StoreError> {
        if self.keys.len() > MAX_FINGERPRINTED_CHUNKS {
            return Ok(None);
        }
        let mut hash = Fingerprint(Xxh3::new());
        array.metadata_hash().hash(&mut hash);
        self.resolved.hash(&mut hash);
        for key in &self.keys {
            // The keys themselves follow from the selection and the metadata.
            snapshot.head(key)?.map(|info| info.version).hash(&mut hash);
        }
        Ok(Some(hash.0.digest128()))
    }
}

fn check_size(array: &Array, resolved: &ResolvedSelection, limit: u64) -> Result<(), ArrayError> {
    let extents = resolved.shape();
    let empty = extents.contains(&0);
    let elements = extents.into_iter().fold(1_u128, |product, extent| product.saturating_mul(u128::from(extent)));
    let per_element =
        array.model().data_type.fixed_size().filter(|&size| size > 0).map_or(NOMINAL_ELEMENT_SIZE, |size| size as u64);
    let size = elements.saturating_mul(u128::from(per_element));
    if empty || size <= u128::from(limit) {
        return Ok(());
    }
    let fits = limit / per_element;
    let smaller = match resolved {
        ResolvedSelection::Region(region) => region.shrunk_to(fits).map(|region| region.to_selection()),
        ResolvedSelection::Points(_) | ResolvedSelection::Stack(_) => None,
    };
    Err(ArrayError::SelectionTooLarge { size, limit, smaller })
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

fn max_chunks(grid: &ChunkGrid, resolved: &ResolvedSelection) -> u128 {
    let most = |region: &Region| ElementSelection::of(region).map_or(0, |selection| selection.max_chunks(grid));
    match resolved {
        ResolvedSelection::Region(region) => most(region),
        ResolvedSelection::Stack(regions) => regions.iter().map(most).fold(0, u128::saturating_add),
        ResolvedSelection::Points(points) => points.len as u128,
    }
}

fn keys(array: &Array, resolved: &ResolvedSelection) -> Vec<Key> {
    let selection = match resolved {
        ResolvedSelection::Region(region) => ElementSelection::of(region),
        ResolvedSelection::Stack(regions) => ElementSelection::of_stack(regions),
        ResolvedSelection::Points(points) => Some(ElementSelection::Points(IndexedPoint::all(points))),
    };
    // The elements of several points or entries in one chunk are one projection.
    let pieces = selection.iter().flat_map(|selection| selection.project(array.grid(), EdgePolicy::Full));
    pieces.flat_map(|piece| array.chunk_keys(&piece.index).collect::<Vec<_>>()).collect()
}

/// A hasher whose results are the same in every process.
struct Fingerprint(Xxh3);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0.digest()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
