//! The keys of the chunks that a request touches, and what a snapshot has of them.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use xxhash_rust::xxh3::Xxh3;
use zarrd_meta::selection::ResolvedSelection;
use zarrd_store::{CachedMeta, Key, KeySource, Snapshot, StoreError};

use super::cost::{ReadCost, StoredCost};
use crate::{
    grid::{
        points::PointsByChunk,
        projection::{EdgePolicy, ElementSelection},
    },
    node::array::Array,
};

/// The most chunks whose versions are hashed into a fingerprint.
const MAX_FINGERPRINTED_CHUNKS: u64 = 100_000;

/// The most chunks whose keys a plan has as a list, instead of listing them each time.
const MAX_LISTED_KEYS: u64 = 64;

/// The keys of the chunks that a selection touches. Many are listed when they are needed: with long paths, they would
/// take most of a plan's memory.
#[derive(Clone, Debug)]
pub(super) struct ChunkKeys {
    pub(super) array: Array,
    resolved: Arc<ResolvedSelection>,
    /// The keys, if they are few.
    pub(super) listed: Option<Arc<[Key]>>,
}

/// The keys of documents and chunks.
pub(super) struct AllKeys {
    pub(super) documents: Vec<Key>,
    pub(super) chunks: Option<ChunkKeys>,
}

/// The stored chunks of a plan.
pub(crate) struct StoredChunks {
    /// The number of chunks that the plan touches.
    pub(crate) touched: u64,
    /// The number of these that may be stored.
    pub(super) stored: u64,
    /// The number of these whose metadata are not known.
    pub(super) unknown: u64,
    /// The encoded size of those that are known, in bytes.
    pub(super) bytes: u64,
    /// A hash that differs whenever the metadata, the selection or any chunk does; `None` for too many chunks, or if
    /// the metadata of some are not known.
    pub(crate) fingerprint: Option<u128>,
}

impl StoredChunks {
    /// The part of what all chunks take that is stored.
    pub(crate) fn stored_part(&self, of_all: u128) -> u128 {
        of_all.saturating_mul(self.stored.into()) / u128::from(self.touched.max(1))
    }

    /// The values that are read.
    pub(crate) fn cost(&self) -> ReadCost {
        let stored = StoredCost { chunks: self.stored, bytes: self.bytes };
        ReadCost { chunks: self.touched, stored: (self.unknown == 0).then_some(stored) }
    }
}

impl ChunkKeys {
    /// The keys of at most `chunks` chunks.
    pub(super) fn new(array: Array, resolved: Arc<ResolvedSelection>, chunks: u64) -> Self {
        let mut keys = Self { array, resolved, listed: None };
        if chunks <= MAX_LISTED_KEYS {
            let mut listed = Vec::new();
            keys.for_each(&mut |key| listed.push(key));
            keys.listed = Some(listed.into());
        }
        keys
    }

    /// The number of chunks.
    pub(super) fn count(&self) -> u64 {
        let mut count = 0_u64;
        self.for_each_position(&mut |_| count = count.saturating_add(1));
        count
    }

    /// The chunks that a snapshot has.
    pub(super) fn stored(&self, snapshot: &dyn Snapshot) -> Result<StoredChunks, StoreError> {
        let mut found = StoredChunks { touched: 0, stored: 0, unknown: 0, bytes: 0, fingerprint: None };
        let mut hash = Fingerprint(Xxh3::new());
        self.array.metadata_hash().hash(&mut hash);
        self.resolved.hash(&mut hash);
        let mut failure = None;
        KeySource::for_each(self, &mut |key| match snapshot.cached(&key) {
            Ok(CachedMeta::Unknown) => {
                found.touched = found.touched.saturating_add(1);
                found.stored = found.stored.saturating_add(1);
                found.unknown = found.unknown.saturating_add(1);
            }
            Ok(CachedMeta::Known(info)) => {
                // The keys themselves follow from the selection and the metadata.
                info.as_ref().map(|info| info.version).hash(&mut hash);
                found.touched = found.touched.saturating_add(1);
                found.stored = found.stored.saturating_add(u64::from(info.is_some()));
                found.bytes = found.bytes.saturating_add(info.map_or(0, |info| info.size));
            }
            Err(error) => failure = Some(error),
        });
        let is_known = found.unknown == 0 && found.touched <= MAX_FINGERPRINTED_CHUNKS;
        found.fingerprint = is_known.then(|| hash.0.digest128());
        failure.map_or(Ok(found), Err)
    }

    /// Calls a function with the position of each chunk, each once.
    fn for_each_position(&self, visit: &mut dyn FnMut(&[u64])) {
        let grid = self.array.grid();
        let selection = match &*self.resolved {
            ResolvedSelection::Region(region) => ElementSelection::of(region),
            ResolvedSelection::Stack(regions) => ElementSelection::of_stack(regions),
            ResolvedSelection::Points(points) => {
                let by_chunk = PointsByChunk::new((points.rank, points.len), &points.coordinates, grid);
                return by_chunk.for_each_chunk(visit);
            }
        };
        // The elements of several entries in one chunk are one projection.
        let pieces = selection.iter().flat_map(|selection| selection.project(grid, EdgePolicy::Full));
        pieces.for_each(|piece| visit(&piece.index));
    }
}

impl KeySource for ChunkKeys {
    fn common_prefix(&self) -> &str {
        self.array.key_prefix()
    }

    fn max_len(&self) -> Option<usize> {
        self.listed.as_ref().map(|keys| keys.len())
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        match &self.listed {
            Some(keys) => keys.iter().cloned().for_each(visit),
            None => self.for_each_position(&mut |position| self.array.chunk_keys(position).for_each(&mut *visit)),
        }
    }
}

impl KeySource for AllKeys {
    fn common_prefix(&self) -> &str {
        self.chunks.as_ref().map_or("", KeySource::common_prefix)
    }

    fn max_len(&self) -> Option<usize> {
        let chunks = self.chunks.as_ref().map_or(Some(0), KeySource::max_len)?;
        self.documents.len().checked_add(chunks)
    }

    fn for_each(&self, visit: &mut dyn FnMut(Key)) {
        self.documents.iter().cloned().for_each(&mut *visit);
        if let Some(chunks) = &self.chunks {
            chunks.for_each(visit);
        }
    }
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
