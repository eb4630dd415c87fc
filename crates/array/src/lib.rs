//! Arrays over a store: the way from a path and a selection to elements.
//!
//! [`Arrays::read`] does it all: it finds the node in whatever dialect it has ([`Arrays::open`]), applies the selection to its shape, plans
//! which chunks are concerned, and answers with a [`Reading`], for which nothing has been decoded yet. Its [`pieces`](Reading::pieces) are the
//! elements in C order.
//!
//! - A reading sees one commit: metadata and chunks are those of one snapshot.
//! - Its memory is bounded, however large the selection is: it is assembled and yielded slab by slab.
//! - A chunk is decoded once wherever that memory allows; of uncompressed chunks and of shards only the parts are fetched that are asked for.
//! - Decoding runs on the blocking pool, several chunks at a time, and ends when the reading is dropped.

mod array;
mod cache;
mod error;
mod find;
mod options;
mod plan;
mod read;
mod shared;

pub use array::Array;
pub use error::ArrayError;
pub use options::Options;
pub use read::{Meter, Reading, Work};

use std::{
    collections::HashSet,
    hash::{Hash, Hasher},
    sync::Arc,
    time::Instant,
};

use meta::{
    Dialect, NodePath,
    selection::{ReadRequest, Region, Resolved},
};
use store::{Key, Snapshot, TransactionalStore};
use xxhash_rust::xxh3::Xxh3;

use crate::{
    find::Sighting,
    plan::{Edge, PickedPoint, Picks},
    read::Source,
    shared::Shared,
};

/// How often a reading begins anew because the metadata changed while it was planned.
const ATTEMPTS: usize = 8;

/// The most chunks whose versions go into a fingerprint.
const FINGERPRINTED: usize = 100_000;

/// What an element of variable length counts in the size of a selection.
const NOMINAL: u128 = 16;

/// The arrays of a store. Clones share its caches.
#[derive(Clone, Debug)]
pub struct Arrays(Arc<Shared>);

impl Arrays {
    /// The arrays of `store`.
    pub fn new(store: Arc<dyn TransactionalStore>, options: Options) -> Self {
        Self(Arc::new(Shared::new(store, options)))
    }

    /// The array at `path`; in `dialect` if only that is meant, else in the one that is preferred of those in which the path answers.
    pub async fn open(&self, path: &NodePath, dialect: Option<Dialect>) -> Result<Array, ArrayError> {
        Ok(self.0.found.look(&*self.0.store, path, dialect).await?.array.clone())
    }

    /// Makes ready to read what `request` selects of the array at `path`, at most `limit` bytes of elements. What is selected of variable
    /// length counts 16 bytes each, and is bounded again when it is read. Nothing is decoded, and nothing but metadata is read.
    pub async fn read(
        &self,
        path: &NodePath,
        dialect: Option<Dialect>,
        request: &ReadRequest,
        limit: u64,
    ) -> Result<Reading, ArrayError> {
        let start = Instant::now();
        let mut sighting = match self.0.found.remembered(path, dialect) {
            Some(sighting) => sighting,
            None => self.0.found.look(&*self.0.store, path, dialect).await?,
        };
        for _ in 0..ATTEMPTS {
            let array = sighting.array.clone();
            let resolved = request.resolve(&array.model().shape);
            // Where what is remembered is no longer true, the new shape may be one that the selection fits.
            let planned = resolved.map_err(ArrayError::from).and_then(|resolved| {
                let keys = self.plan(&array, &resolved, limit)?;
                Ok((resolved, keys))
            });
            let chunks = planned.as_ref().map(|(_, keys)| keys.as_slice()).unwrap_or_default();
            let keys: Vec<Key> = sighting.documents.keys().chain(chunks).cloned().collect();
            let snapshot = self.0.store.snapshot(&keys).await?;
            if sighting.documents.are_in(&*snapshot)? {
                let (resolved, keys) = planned?;
                let reading = self.reading(&sighting, resolved, &keys, snapshot)?;
                reading.meter().planned(start.elapsed());
                return Ok(reading);
            }
            sighting = self.0.found.look(&*self.0.store, path, dialect).await?;
        }
        Err(ArrayError::Unsettled { path: path.clone() })
    }

    /// The keys of the chunks concerned, each once. Fails where there is more to read than may be.
    fn plan(&self, array: &Array, resolved: &Resolved, limit: u64) -> Result<Vec<Key>, ArrayError> {
        check_size(array, resolved, limit)?;
        let all: Vec<Picks> = match resolved {
            Resolved::Region(region) => Picks::of(region).into_iter().collect(),
            Resolved::Stack(regions) => regions.iter().filter_map(Picks::of).collect(),
            Resolved::Points(points) => vec![Picks::Points(PickedPoint::all(points))],
        };
        let grid = array.grid();
        let chunks = all.iter().fold(0_u128, |sum, picks| sum.saturating_add(picks.most_pieces(grid)));
        if chunks > u128::from(self.0.options.chunks) {
            return Err(ArrayError::TooManyChunks { chunks, limit: self.0.options.chunks });
        }
        let mut seen = HashSet::new();
        let repeats = matches!(resolved, Resolved::Stack(_));
        let mut keys = Vec::new();
        for piece in all.iter().flat_map(|picks| picks.cut(grid, Edge::Whole)) {
            if repeats && !seen.insert(piece.position.clone()) {
                continue;
            }
            keys.extend(array.chunk_keys(&piece.position));
        }
        Ok(keys)
    }

    fn reading(
        &self,
        sighting: &Sighting,
        resolved: Resolved,
        keys: &[Key],
        snapshot: Box<dyn Snapshot>,
    ) -> Result<Reading, ArrayError> {
        let array = sighting.array.clone();
        let fingerprint = fingerprint(&array, &resolved, keys, &*snapshot)?;
        let shape = shape_of(&resolved);
        let decoded = array.largest_chain()?.and_then(|chain| chain.array().fixed_len()).unwrap_or(0);
        let caching = decoded.saturating_mul(keys.len() as u64) <= self.0.cache.capacity() / 4;
        let source = Source::new(array, snapshot, self.0.clone(), (keys.len() as u64, caching));
        Ok(Reading { source: Arc::new(source), resolved: Arc::new(resolved), shape, fingerprint })
    }
}

fn shape_of(resolved: &Resolved) -> Vec<u64> {
    match resolved {
        Resolved::Region(region) => region.shape(),
        Resolved::Points(points) => vec![points.len as u64],
        Resolved::Stack(regions) => {
            let inner = regions.first().map(Region::shape).unwrap_or_default();
            [regions.len() as u64].into_iter().chain(inner).collect()
        }
    }
}

fn check_size(array: &Array, resolved: &Resolved, limit: u64) -> Result<(), ArrayError> {
    let elements =
        shape_of(resolved).into_iter().fold(1_u128, |product, extent| product.saturating_mul(u128::from(extent)));
    let per_element = array.model().data_type.fixed_size().map_or(NOMINAL, |size| size as u128);
    let size = elements.saturating_mul(per_element);
    // Elements of no size still are counted one by one.
    if size <= u128::from(limit) && elements <= u128::from(limit) {
        return Ok(());
    }
    let fits = u64::try_from(u128::from(limit) / per_element.max(1)).unwrap_or(u64::MAX);
    let smaller = match resolved {
        Resolved::Region(region) => region.shrunk_to(fits).map(|region| region.to_selection()),
        Resolved::Points(_) | Resolved::Stack(_) => None,
    };
    Err(ArrayError::SelectionTooLarge { size, limit, smaller })
}

fn fingerprint(
    array: &Array,
    resolved: &Resolved,
    keys: &[Key],
    snapshot: &dyn Snapshot,
) -> Result<Option<u128>, ArrayError> {
    if keys.len() > FINGERPRINTED {
        return Ok(None);
    }
    let mut hash = Fingerprint(Xxh3::new());
    array.stamp().hash(&mut hash);
    resolved.hash(&mut hash);
    for key in keys {
        // Which keys these are follows from the selection and the metadata.
        snapshot.head(key)?.map(|info| info.version).hash(&mut hash);
    }
    Ok(Some(hash.0.digest128()))
}

/// Feeds what is hashed to a hash that is the same on every machine and in every run.
struct Fingerprint(Xxh3);

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.0.digest()
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}
