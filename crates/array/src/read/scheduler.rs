//! The scheduler: which ranges of which values have to be fetched and decoded for a slab.

use std::{ops::Range, sync::Arc};

use zarrd_codec::{CodecChain, CodecError, PartialAccess, ShardIndex, ShardingCodec};
use zarrd_meta::grid::ChunkGrid;
use zarrd_store::{Guarantees, Reads};

use super::{
    coalesce::{CoalesceLimits, FetchBatch, MAX_BATCH_PARTS},
    context::ReadContext,
    encoded_chunk::{EncodedChunk, LocatedChunk},
    job::Job,
    lookahead::{Lookahead, PendingShard, Piece},
    shard_index::{self, IndexedShard},
    unit::{DecodeKind, DecodeUnit},
};
use crate::{
    error::ArrayError,
    grid::{
        projection::{ChunkProjection, ChunkProjections, EdgePolicy, ElementSelection, VisitOrder},
        strided::Strides,
    },
};

/// The fewest bytes of an uncompressed chunk that are fetched: the store verifies blocks of that size anyway, or they
/// cost little beside the request.
const TILE_BYTES: u64 = 128 << 10;

/// The same in a store that is near and verifies nothing: so many for each element that is selected of a chunk, and at
/// least a page of memory.
const TILE_BYTES_PER_ELEMENT: u64 = 256;
const MIN_TILE_BYTES: u64 = 4 << 10;

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
    /// The next chunks of the array.
    lookahead: Lookahead,
    /// Jobs found, each with its first position in the output.
    jobs: Vec<(u64, Job)>,
    /// The number of chunks before those that the read will read again; `None` if it reads none again.
    before_reread: Option<u64>,
}

/// The order of a pass over elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct PassOrder {
    /// The order of the chunks.
    pub(crate) visits: VisitOrder,
    /// True if there is another pass in the opposite order.
    pub(crate) is_repeated: bool,
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
    Elements { part: EncodedChunk, chain: Arc<CodecChain>, tile: Vec<u64> },
}

impl ChunkScheduler {
    /// The jobs that write these elements of the array into a slab with these strides, of which `jobs` run at a time.
    pub(crate) fn new(source: Arc<ReadContext>, selection: &ElementSelection, strides: Strides, jobs: usize) -> Self {
        let projections = selection.project(&source.array.model().grid, EdgePolicy::Full);
        Self::of_chunks(source, projections, strides, jobs)
    }

    /// The jobs that pass these elements of the array to a sink that takes them in any order. If `is_repeated`, the last
    /// chunks are cached, as many as may be, for the next pass, which begins with them.
    pub(crate) fn in_order(
        source: Arc<ReadContext>,
        (selection, strides): (&ElementSelection, Strides),
        jobs: usize,
        PassOrder { visits, is_repeated }: &PassOrder,
    ) -> Self {
        let projections = selection.project(&source.array.model().grid, EdgePolicy::Full).in_order(visits);
        let before = projections.known_len().map(|count| count.saturating_sub(source.cacheable_chunks()));
        let before_reread = before.filter(|_| *is_repeated);
        Self { before_reread, ..Self::of_chunks(source, projections, strides, jobs) }
    }

    fn of_chunks(source: Arc<ReadContext>, projections: ChunkProjections, strides: Strides, jobs: usize) -> Self {
        source.set_rereads(false);
        Self {
            lookahead: Lookahead::new(source.clone(), jobs),
            source,
            strides,
            stack: vec![vec![TraversalFrame { container: Container::Array, projections }]],
            jobs: Vec::new(),
            before_reread: None,
        }
    }

    /// Records that a chunk comes next.
    fn reach(&mut self, chunk: &[u64]) {
        self.source.reach(chunk);
        if let Some(before) = &mut self.before_reread {
            match before.checked_sub(1) {
                Some(left) => *before = left,
                None => self.source.set_rereads(true),
            }
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
                    Container::Elements { part, chain, tile } => {
                        self.next_runs(&mut frame.projections, part, chain, tile)?
                    }
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
            let Some(Piece { projection: piece, shard }) = self.lookahead.next(cut) else {
                return Ok(if inner.is_empty() { Progress::Done } else { Progress::Descend(inner) });
            };
            self.reach(&piece.index);
            let place = self.strides.first(&piece.selection);
            let part = match self.find_chunk(&piece, shard).await? {
                FoundChunk::Missing => {
                    self.jobs.push((place, Job::Fill(piece.selection)));
                    continue;
                }
                FoundChunk::Shard(shard) => {
                    let chain = self.source.array.chain(&piece.shape)?;
                    inner.push(self.open_shard(shard, &chain, &piece)?);
                    continue;
                }
                FoundChunk::Chunk(part) => part,
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

    /// Looks up a chunk, unless it is a shard whose index is being read.
    async fn find_chunk(&self, piece: &ChunkProjection, shard: Option<PendingShard>) -> Result<FoundChunk, ArrayError> {
        if let Some(shard) = shard {
            let shard = shard.await.unwrap_or(Err(ArrayError::ShuttingDown))?;
            return Ok(shard.map_or(FoundChunk::Missing, FoundChunk::Shard));
        }
        let key = match self.source.locate_chunk(&piece.index).await? {
            LocatedChunk::Missing => return Ok(FoundChunk::Missing),
            LocatedChunk::Stored(part) => return Ok(FoundChunk::Chunk(part)),
            LocatedChunk::Unknown(key) => key,
        };
        let chain = self.source.array.chain(&piece.shape)?;
        // Only the size of a chunk that is not encoded follows from its shape.
        let size = match chain.partial_access() {
            PartialAccess::Shard(_) => {
                let shard = shard_index::find(self.source.clone(), piece.index.clone(), chain).await?;
                return Ok(shard.map_or(FoundChunk::Missing, FoundChunk::Shard));
            }
            PartialAccess::Elements(_) => chain.representation().fixed_size().unwrap_or(0),
            PartialAccess::Full => 0,
        };
        Ok(FoundChunk::Chunk(EncodedChunk { key, version: None, range: 0..size }))
    }

    async fn next_inner(
        &mut self,
        cut: &mut ChunkProjections,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
        index: &Arc<ShardIndex>,
    ) -> Result<Progress, ArrayError> {
        let PartialAccess::Shard(sharding) = chain.partial_access() else { return Ok(Progress::Done) };
        let limits = CoalesceLimits::of_shards(&self.source);
        let mut window = FetchBatch::default();
        while !window.is_full(limits) && self.jobs.len() < MAX_BATCH_PARTS {
            let Some(piece) = cut.next() else {
                self.jobs.extend(window.jobs(part, limits));
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
                    self.jobs.extend(window.jobs(part, limits));
                    return Ok(Progress::Descend(vec![frame]));
                }
            }
        }
        self.jobs.extend(window.jobs(part, limits));
        Ok(Progress::More)
    }

    fn next_runs(
        &mut self,
        cut: &mut ChunkProjections,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
        tile: &[u64],
    ) -> Result<Progress, ArrayError> {
        let size = chain.representation().data_type().fixed_size().unwrap_or(0) as u64;
        let shape = chain.representation().shape();
        let limits = CoalesceLimits::of_elements(&self.source);
        let mut window = FetchBatch::default();
        while !window.is_full(limits) {
            let Some(piece) = cut.next() else {
                self.jobs.extend(window.jobs(part, limits));
                return Ok(Progress::Done);
            };
            let place = self.strides.first(&piece.selection);
            let origin = piece.index.iter().zip(tile).zip(shape);
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
        self.jobs.extend(window.jobs(part, limits));
        Ok(Progress::More)
    }

    /// Visits an encoded chunk: a decode unit, or a container of more chunks.
    async fn visit(
        &self,
        part: &EncodedChunk,
        chain: &Arc<CodecChain>,
        piece: ChunkProjection,
    ) -> Result<Visit, ArrayError> {
        let len = part.len();
        match chain.partial_access() {
            PartialAccess::Shard(_) => {
                let index = shard_index::read(&self.source, part, chain).await?;
                return self.open_shard(IndexedShard { part: part.clone(), index }, chain, &piece).map(Visit::Inner);
            }
            PartialAccess::Elements(_) => {
                self.source.check_uncompressed_size(part, chain)?;
                let wanted = piece.selection.len().saturating_mul(2);
                let fetched_whole =
                    len <= TILE_BYTES || (len <= MAX_FULL_FETCH && wanted >= chain.representation().num_elements());
                let tile = self.tile_shape(chain, piece.selection.len());
                if !fetched_whole && let Some(grid) = ChunkGrid::regular(&tile) {
                    let cut = piece.selection.project(&grid, EdgePolicy::Clip(chain.representation().shape()));
                    let chunk = Container::Elements { part: part.clone(), chain: chain.clone(), tile };
                    return Ok(Visit::Inner(TraversalFrame { container: chunk, projections: cut }));
                }
            }
            PartialAccess::Full => {}
        }
        if part.version.is_some() {
            self.source.check_chunk_size(part, chain)?;
        }
        Ok(Visit::Leaf(DecodeUnit {
            kind: DecodeKind::Chunk(chain.clone()),
            range: part.range.clone(),
            shape: piece.shape,
            selection: piece.selection,
        }))
    }

    /// The shape of the tiles of an uncompressed chunk, of which `elements` elements are selected.
    fn tile_shape(&self, chain: &CodecChain, elements: u64) -> Vec<u64> {
        let Guarantees { reads, near, .. } = self.source.store;
        let bytes = match near && reads == Reads::Key {
            true => elements.saturating_mul(TILE_BYTES_PER_ELEMENT).clamp(MIN_TILE_BYTES, TILE_BYTES),
            false => TILE_BYTES,
        };
        let representation = chain.representation();
        tile_shape(representation.shape(), representation.data_type().fixed_size().unwrap_or(0) as u64, bytes)
    }

    /// The traversal of a shard.
    fn open_shard(
        &self,
        IndexedShard { part, index }: IndexedShard,
        chain: &Arc<CodecChain>,
        piece: &ChunkProjection,
    ) -> Result<TraversalFrame, ArrayError> {
        let PartialAccess::Shard(sharding) = chain.partial_access() else {
            return Err(self.source.chunk_error(&part, no_grid()));
        };
        let grid = sharding.inner_grid().ok_or_else(|| self.source.chunk_error(&part, no_grid()))?;
        let projections = piece.selection.project(&grid, EdgePolicy::Full);
        Ok(TraversalFrame { container: Container::Shard { part, chain: chain.clone(), index }, projections })
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
}

/// The progress of one step of a traversal.
enum Progress {
    Done,
    More,
    Descend(Vec<TraversalFrame>),
}

/// The chunk at a position of the grid.
enum FoundChunk {
    Missing,
    Shard(IndexedShard),
    /// A chunk, which is no shard unless it was looked up before.
    Chunk(EncodedChunk),
}

enum Visit {
    Leaf(DecodeUnit),
    Inner(TraversalFrame),
}

/// The shape of tiles into which an uncompressed chunk is split: consecutive bytes, about `bytes` of them.
fn tile_shape(shape: &[u64], size: u64, bytes: u64) -> Vec<u64> {
    let mut elements = (bytes / size.max(1)).max(1);
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
