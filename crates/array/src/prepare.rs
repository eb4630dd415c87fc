//! From a request to the chunks that it concerns.

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::Arc,
};

use codec::Access;
use meta::{
    grid::ChunkGrid,
    selection::{ReadRequest, Region, Resolved},
};
use store::{Key, Snapshot, StoreError};
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    ArrayError,
    array::Array,
    plan::{Edge, PickedPoint, Picks},
    shared::Shared,
};

/// The most chunks whose versions go into a fingerprint.
const FINGERPRINTED: usize = 100_000;

/// What an element of variable length, or of no size, counts in the size of a selection.
const NOMINAL: u128 = 16;

/// What a chunk takes while its array is read: its key, several times, and its place in the snapshot. A point takes as much: its
/// coordinates, in the request, in the plan, and in that of its chunk.
const PER_CHUNK: u64 = 512;

/// Up to so many chunks or points are planned where the request is, without a reservation of memory.
const LIGHT: u64 = 1024;

/// A request that was applied to an array.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// What is read, by where it is stored: of a view, counted from what the view is one of.
    pub(crate) resolved: Arc<Resolved>,
    /// The keys of the chunks concerned, each once.
    pub(crate) keys: Vec<Key>,
    /// For what the plan takes.
    pub(crate) memory: Option<OwnedSemaphorePermit>,
}

impl Prepared {
    /// Applies a request. Fails where there is more to read than may be.
    pub(crate) async fn new(
        shared: &Shared,
        array: &Array,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<Self, ArrayError> {
        let seen = request.resolve(&array.model().view_shape())?;
        check_size(array, &seen, limit)?;
        let resolved = Arc::new(seen.shifted(&array.model().origin));
        let most = most_pieces(array.grid(), &resolved);
        // A plan takes a part of the memory at the most, so that there is some left to read what it plans.
        let planned = shared.options.plan_memory() / PER_CHUNK;
        let allowed = match &*resolved {
            // Many points may be in one chunk, which is known only when they are planned.
            Resolved::Points(_) => planned,
            Resolved::Region(_) | Resolved::Stack(_) => planned.min(shared.options.chunks),
        };
        let Some(chunks) = u64::try_from(most).ok().filter(|&chunks| chunks <= allowed) else {
            return Err(ArrayError::TooManyChunks { chunks: most, limit: allowed });
        };
        if chunks <= LIGHT {
            let keys = keys(array, &resolved);
            return Ok(Self { resolved, keys, memory: None });
        }
        let memory = shared.admit(chunks.saturating_mul(PER_CHUNK)).await?;
        let (array, selected) = (array.clone(), resolved.clone());
        let keys = spawn_blocking(move || keys(&array, &selected)).await.map_err(|_| ArrayError::Stopped)?;
        if keys.len() as u64 > shared.options.chunks {
            return Err(ArrayError::TooManyChunks { chunks: keys.len() as u128, limit: shared.options.chunks });
        }
        Ok(Self { resolved, keys, memory: Some(memory) })
    }

    /// At most how many bytes are decoded, of shards only what their inner chunks have that are concerned.
    pub(crate) fn decoded_len(&self, array: &Array) -> Result<u128, ArrayError> {
        let Some(chain) = array.largest_chain()? else { return Ok(0) };
        let (chunks, chunk) = match chain.access() {
            Access::Shard(sharding) => {
                let pieces = sharding.inner_grid().map_or(u128::MAX, |grid| most_pieces(&grid, &self.resolved));
                (pieces, sharding.inner().array().fixed_len())
            }
            Access::Whole | Access::Elements(_) => (self.keys.len() as u128, chain.array().fixed_len()),
        };
        Ok(chunks.saturating_mul(u128::from(chunk.unwrap_or(0))))
    }

    /// A number that is another one whenever the metadata, the selection or any chunk concerned is another; `None` where there are too many.
    pub(crate) fn fingerprint(&self, array: &Array, snapshot: &dyn Snapshot) -> Result<Option<u128>, StoreError> {
        if self.keys.len() > FINGERPRINTED {
            return Ok(None);
        }
        let mut hash = Fingerprint(Xxh3::new());
        array.stamp().hash(&mut hash);
        self.resolved.hash(&mut hash);
        for key in &self.keys {
            // Which keys these are follows from the selection and the metadata.
            snapshot.head(key)?.map(|info| info.version).hash(&mut hash);
        }
        Ok(Some(hash.0.digest128()))
    }
}

fn check_size(array: &Array, resolved: &Resolved, limit: u64) -> Result<(), ArrayError> {
    let extents = resolved.shape();
    let empty = extents.contains(&0);
    let elements = extents.into_iter().fold(1_u128, |product, extent| product.saturating_mul(u128::from(extent)));
    let per_element =
        array.model().data_type.fixed_size().filter(|&size| size > 0).map_or(NOMINAL, |size| size as u128);
    let size = elements.saturating_mul(per_element);
    if empty || size <= u128::from(limit) {
        return Ok(());
    }
    let fits = u64::try_from(u128::from(limit) / per_element).unwrap_or(u64::MAX);
    let smaller = match resolved {
        Resolved::Region(region) => region.shrunk_to(fits).map(|region| region.to_selection()),
        Resolved::Points(_) | Resolved::Stack(_) => None,
    };
    Err(ArrayError::SelectionTooLarge { size, limit, smaller })
}

fn most_pieces(grid: &ChunkGrid, resolved: &Resolved) -> u128 {
    let most = |region: &Region| Picks::of(region).map_or(0, |picks| picks.most_pieces(grid));
    match resolved {
        Resolved::Region(region) => most(region),
        Resolved::Stack(regions) => regions.iter().map(most).fold(0, u128::saturating_add),
        Resolved::Points(points) => points.len as u128,
    }
}

fn keys(array: &Array, resolved: &Resolved) -> Vec<Key> {
    let picks: Vec<Picks> = match resolved {
        Resolved::Region(region) => Picks::of(region).into_iter().collect(),
        Resolved::Stack(regions) => regions.iter().filter_map(Picks::of).collect(),
        Resolved::Points(points) => vec![Picks::Points(PickedPoint::all(points))],
    };
    let mut seen = HashSet::new();
    let mut first = |position: &Vec<u64>| !matches!(resolved, Resolved::Stack(_)) || seen.insert(position.clone());
    let pieces = picks.iter().flat_map(|picks| picks.cut(array.grid(), Edge::Whole));
    let positions = pieces.map(|piece| piece.position).filter(|position| first(position));
    positions.flat_map(|position| array.chunk_keys(&position).collect::<Vec<_>>()).collect()
}

/// Feeds what is hashed to a hash that is the same in every run.
struct Fingerprint(Xxh3);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0.digest()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
