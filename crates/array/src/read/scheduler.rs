//! The scheduler: which ranges of which values have to be fetched and decoded for a slab.

use std::{ops::Range, sync::Arc};

use codec::{CodecChain, CodecError, EncodedSizeBound, PartialAccess, ShardIndex, ShardingCodec};
use meta::grid::ChunkGrid;

use super::{
    context::ReadContext,
    encoded_chunk::EncodedChunk,
    job::{DecodeKind, DecodeUnit, Job},
};
use crate::{
    cache::{CacheKind, Cached},
    error::ArrayError,
    grid::{
        projection::{ChunkProjection, ChunkProjections, EdgePolicy, ElementSelection},
        strided::Strides,
    },
};

/// The largest gap between two ranges that are fetched together: reading the gap costs less than another fetch.
const MAX_COALESCE_GAP: u64 = 64 << 10;

/// The most bytes fetched together.
const MAX_COALESCED_FETCH: u64 = 1 << 20;

/// The longest range that is fetched together with others. A longer one is worth a fetch of its own, and is in place
/// sooner that way.
const MAX_COALESCED_PART: u64 = 256 << 10;

/// The bytes that one job decodes, unless a single unit has more.
const MAX_DECODED_PER_JOB: u64 = 4 << 20;

/// The most parts of one value that are coalesced together, and their bytes.
const MAX_BATCH_PARTS: usize = 512;
const MAX_BATCH_BYTES: u64 = 8 << 20;

/// The fewest bytes of an uncompressed chunk that are fetched: the store verifies blocks of that size anyway.
const TILE_BYTES: u64 = 128 << 10;

/// The size up to which an uncompressed chunk is fetched in full if half of it is selected.
const MAX_FULL_FETCH: u64 = 4 << 20;

/// The number of shards that are traversed in turns, so that elements that are neighbours in the output are read
/// together.
const INTERLEAVED_SHARDS: usize = 4;

/// Schedules the jobs of one slab, roughly in the order of the output.
#[derive(Debug)]
pub(crate) struct ChunkScheduler {
    source: Arc<ReadContext>,
    strides: Strides,
    /// The groups of containers being traversed, the innermost last. Members of a group take turns.
    stack: Vec<Vec<TraversalFrame>>,
    /// Jobs found, each with its first position in the output.
    jobs: Vec<(u64, Job)>,
}

/// The traversal state of one container.
#[derive(Debug)]
struct TraversalFrame {
    container: Container,
    projections: ChunkProjections,
}

/// A container being traversed.
#[derive(Debug)]
enum Container {
    /// The array, into chunks.
    Array,
    /// A shard, into inner chunks.
    Shard { part: EncodedChunk, chain: Arc<CodecChain>, index: Arc<ShardIndex> },
    /// An uncompressed chunk, into tiles of consecutive elements.
    Elements { part: EncodedChunk, chain: Arc<CodecChain> },
}

impl ChunkScheduler {
    /// The jobs that write these elements of the array into a slab with these strides.
    pub(crate) fn new(source: Arc<ReadContext>, selection: &ElementSelection, strides: Strides) -> Self {
        let projections = selection.project(&source.array.model().grid, EdgePolicy::Full);
        Self {
            source,
            strides,
            stack: vec![vec![TraversalFrame { container: Container::Array, projections }]],
            jobs: Vec::new(),
        }
    }

    /// The next jobs; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<Job>>, ArrayError> {
        while let Some(group) = self.stack.pop() {
            let (mut left, mut inner) = (Vec::with_capacity(group.len()), Vec::new());
            for mut frame in group {
                let step = match &frame.container {
                    Container::Array => self.next_chunks(&mut frame.projections).await?,
                    Container::Shard { part, chain, index } => {
                        self.next_inner(&mut frame.projections, part, chain, index).await?
                    }
                    Container::Elements { part, chain } => self.next_runs(&mut frame.projections, part, chain)?,
                };
                match step {
                    Progress::Done => {}
                    Progress::More => left.push(frame),
                    Progress::Descend(frames) => {
                        left.push(frame);
                        inner.push(frames);
                    }
                }
            }
            self.stack.extend([left].into_iter().chain(inner).filter(|group| !group.is_empty()));
            if !self.jobs.is_empty() {
                let mut found = std::mem::take(&mut self.jobs);
                found.sort_by_key(|(place, _)| *place);
                return Ok(Some(found.into_iter().map(|(_, job)| job).collect()));
            }
        }
        Ok(None)
    }

    /// Visits the next chunk; if it is a container, some of the next as well.
    async fn next_chunks(&mut self, cut: &mut ChunkProjections) -> Result<Progress, ArrayError> {
        let mut inner = Vec::new();
        while inner.len() < INTERLEAVED_SHARDS && self.jobs.len() < MAX_BATCH_PARTS {
            let Some(piece) = cut.next() else {
                return Ok(if inner.is_empty() { Progress::Done } else { Progress::Descend(inner) });
            };
            let place = self.strides.first(&piece.selection);
            let Some(part) = self.source.locate_chunk(&piece.index).await? else {
                self.jobs.push((place, Job::Fill(piece.selection)));
                continue;
            };
            let chain = self.source.array.chain(&piece.shape)?;
            match self.visit(&part, &chain, piece).await? {
                Visit::Inner(frame) => inner.push(frame),
                Visit::Leaf(leaf) => {
                    self.jobs.push((place, Job::Decode { part, units: vec![leaf] }));
                    break;
                }
            }
        }
        Ok(if inner.is_empty() { Progress::More } else { Progress::Descend(inner) })
    }

    async fn next_inner(
        &mut self,
        cut: &mut ChunkProjections,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
        index: &Arc<ShardIndex>,
    ) -> Result<Progress, ArrayError> {
        let PartialAccess::Shard(sharding) = chain.partial_access() else { return Ok(Progress::Done) };
        let mut window = FetchBatch::default();
        while !window.is_full() && self.jobs.len() < MAX_BATCH_PARTS {
            let Some(piece) = cut.next() else {
                self.jobs.extend(window.jobs(part));
                return Ok(Progress::Done);
            };
            let Some(range) = self.locate(part, sharding, index, &piece)? else {
                self.jobs.push((self.strides.first(&piece.selection), Job::Fill(piece.selection)));
                continue;
            };
            let place = self.strides.first(&piece.selection);
            let inner = EncodedChunk { range, ..part.clone() };
            match self.visit(&inner, sharding.inner_chain(), piece).await? {
                Visit::Leaf(leaf) => window.push(place, leaf),
                Visit::Inner(frame) => {
                    self.jobs.extend(window.jobs(part));
                    return Ok(Progress::Descend(vec![frame]));
                }
            }
        }
        self.jobs.extend(window.jobs(part));
        Ok(Progress::More)
    }

    fn next_runs(
        &mut self,
        cut: &mut ChunkProjections,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
    ) -> Result<Progress, ArrayError> {
        let size = chain.representation().data_type().fixed_size().unwrap_or(0) as u64;
        let shape = chain.representation().shape();
        let tile = tile_shape(shape, size);
        let mut window = FetchBatch::default();
        while !window.is_full() {
            let Some(piece) = cut.next() else {
                self.jobs.extend(window.jobs(part));
                return Ok(Progress::Done);
            };
            let place = self.strides.first(&piece.selection);
            let origin = piece.index.iter().zip(&tile).zip(shape);
            let start = origin.fold(0, |offset, ((&index, &tile), &extent)| offset * extent + index * tile) * size;
            let len = piece.shape.iter().product::<u64>() * size;
            let start = part.range.start + start;
            let leaf = DecodeUnit {
                kind: DecodeKind::Elements(chain.clone()),
                range: start..start + len,
                shape: piece.shape,
                selection: piece.selection,
            };
            window.push(place, leaf);
        }
        self.jobs.extend(window.jobs(part));
        Ok(Progress::More)
    }

    /// Visits an encoded chunk: a decode unit, or a container of more chunks.
    async fn visit(
        &self,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
        piece: ChunkProjection,
    ) -> Result<Visit, ArrayError> {
        let len = part.range.end - part.range.start;
        match chain.partial_access() {
            PartialAccess::Shard(sharding) => {
                let index = self.index(part, chain).await?;
                let grid = sharding.inner_grid().ok_or_else(|| self.source.chunk_error(part, no_grid()))?;
                let cut = piece.selection.project(&grid, EdgePolicy::Full);
                let shard = Container::Shard { part: part.clone(), chain: chain.clone(), index };
                return Ok(Visit::Inner(TraversalFrame { container: shard, projections: cut }));
            }
            PartialAccess::Elements(_) => {
                let expected = chain.representation().fixed_size().unwrap_or(len);
                if len != expected {
                    let error = CodecError::LengthMismatch { codec: "bytes", expected, found: len };
                    return Err(self.source.chunk_error(part, error));
                }
                let wanted = piece.selection.len().saturating_mul(2);
                let fetched_whole =
                    len <= TILE_BYTES || (len <= MAX_FULL_FETCH && wanted >= chain.representation().num_elements());
                if !fetched_whole && let Some(grid) = ChunkGrid::regular(&tile_shape_of(chain)) {
                    let cut = piece.selection.project(&grid, EdgePolicy::Clip(chain.representation().shape()));
                    let chunk = Container::Elements { part: part.clone(), chain: chain.clone() };
                    return Ok(Visit::Inner(TraversalFrame { container: chunk, projections: cut }));
                }
            }
            PartialAccess::Full => {}
        }
        if let Some(limit) = chain.encoded_size().map(EncodedSizeBound::max).filter(|&limit| len > limit) {
            return Err(self.source.chunk_error(part, CodecError::OutputTooLong { codec: "the stored chunk", limit }));
        }
        self.source.check_chunk_size(chain, len)?;
        Ok(Visit::Leaf(DecodeUnit {
            kind: DecodeKind::Chunk(chain.clone()),
            range: part.range.clone(),
            shape: piece.shape,
            selection: piece.selection,
        }))
    }

    fn locate(
        &self,
        part: &EncodedChunk,
        sharding: &ShardingCodec,
        index: &ShardIndex,
        piece: &ChunkProjection,
    ) -> Result<Option<Range<u64>>, ArrayError> {
        let position = sharding.index_position(&piece.index).ok_or_else(|| self.source.chunk_error(part, no_grid()))?;
        let range = index.locate(position).map_err(|error| self.source.chunk_error(part, error))?;
        // The index was validated against the shard's length, so the sums stay within the value.
        Ok(range.map(|range| part.range.start + range.start..part.range.start + range.end))
    }

    async fn index(&self, part: &EncodedChunk, chain: &Arc<CodecChain>) -> Result<Arc<ShardIndex>, ArrayError> {
        let PartialAccess::Shard(sharding) = chain.partial_access() else {
            return Err(self.source.chunk_error(part, no_grid()));
        };
        let len = part.range.end - part.range.start;
        let range = sharding.index_range(len).map_err(|error| self.source.chunk_error(part, error))?;
        self.source.check_index_size(sharding)?;
        let range = part.range.start + range.start..part.range.start + range.end;
        let key = self.source.cache_key(part, range.start, CacheKind::Index);
        let (source, part, chain) = (self.source.clone(), part.clone(), chain.clone());
        let read = async move {
            let encoded = source.fetch(&part.key, range).await?;
            let index = match chain.partial_access() {
                PartialAccess::Shard(sharding) => sharding.read_index(encoded, len),
                PartialAccess::Full | PartialAccess::Elements(_) => Err(no_grid()),
            };
            index.map(|index| Cached::Index(Arc::new(index))).map_err(|error| source.chunk_error(&part, error))
        };
        match self.source.cached(key, read).await? {
            Cached::Index(index) => Ok(index),
            Cached::Chunk(_) => Err(ArrayError::ShuttingDown),
        }
    }
}

/// The progress of one step of a traversal.
enum Progress {
    Done,
    More,
    Descend(Vec<TraversalFrame>),
}

enum Visit {
    Leaf(DecodeUnit),
    Inner(TraversalFrame),
}

/// Parts of one value that are scheduled together, so that small neighbours are fetched together.
#[derive(Default)]
struct FetchBatch {
    /// The parts, each with its first position in the output.
    leaves: Vec<(u64, DecodeUnit)>,
    bytes: u64,
}

/// Neighbouring parts, and their first position in the output.
struct CoalescedRange {
    place: u64,
    range: Range<u64>,
    decoded: u64,
    leaves: Vec<DecodeUnit>,
}

impl FetchBatch {
    fn push(&mut self, place: u64, leaf: DecodeUnit) {
        self.bytes = self.bytes.saturating_add(leaf.range.end - leaf.range.start);
        self.leaves.push((place, leaf));
    }

    fn is_full(&self) -> bool {
        self.leaves.len() >= MAX_BATCH_PARTS || self.bytes >= MAX_BATCH_BYTES
    }

    /// One job for each coalesced range.
    fn jobs(mut self, part: &EncodedChunk) -> impl Iterator<Item = (u64, Job)> {
        self.leaves.sort_by_key(|(_, leaf)| leaf.range.start);
        let mut runs: Vec<CoalescedRange> = Vec::new();
        for (place, leaf) in self.leaves {
            match runs.last_mut() {
                Some(run) if run.can_coalesce(&leaf) => run.push(place, leaf),
                _ => {
                    let (range, decoded) = (leaf.range.clone(), leaf.decoded_len());
                    runs.push(CoalescedRange { place, range, decoded, leaves: vec![leaf] });
                }
            }
        }
        let job = |run: CoalescedRange| {
            (run.place, Job::Decode { part: EncodedChunk { range: run.range, ..part.clone() }, units: run.leaves })
        };
        runs.into_iter().map(job)
    }
}

impl CoalescedRange {
    fn can_coalesce(&self, leaf: &DecodeUnit) -> bool {
        let small = leaf.range.end - leaf.range.start <= MAX_COALESCED_PART;
        let near = leaf.range.start <= self.range.end.saturating_add(MAX_COALESCE_GAP);
        let together = self.range.end.max(leaf.range.end) - self.range.start <= MAX_COALESCED_FETCH;
        small && near && together && self.decoded.saturating_add(leaf.decoded_len()) <= MAX_DECODED_PER_JOB
    }

    fn push(&mut self, place: u64, leaf: DecodeUnit) {
        self.place = self.place.min(place);
        self.range.end = self.range.end.max(leaf.range.end);
        self.decoded = self.decoded.saturating_add(leaf.decoded_len());
        self.leaves.push(leaf);
    }
}

fn tile_shape_of(chain: &CodecChain) -> Vec<u64> {
    tile_shape(chain.representation().shape(), chain.representation().data_type().fixed_size().unwrap_or(0) as u64)
}

/// The shape of the tiles into which an uncompressed chunk is split: consecutive bytes, about [`TILE_BYTES`] of them.
fn tile_shape(shape: &[u64], size: u64) -> Vec<u64> {
    let mut elements = (TILE_BYTES / size.max(1)).max(1);
    let mut tile = vec![1; shape.len()];
    for (tile, &extent) in tile.iter_mut().zip(shape).rev() {
        *tile = extent.min(elements);
        if *tile < extent {
            break;
        }
        elements /= extent.max(1);
    }
    tile
}

fn no_grid() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "the shard has no such inner chunk" }
}
