//! What has to be fetched and decoded for a slab, found chunk by chunk.

use std::{ops::Range, sync::Arc};

use codec::{Access, Chain, CodecError, EncodedLen, ShardIndex, Sharding};
use meta::grid::ChunkGrid;
use store::{Key, Version};

use super::{
    Source,
    job::{Job, Leaf, LeafKind},
};
use crate::{
    ArrayError,
    cache::{Cached, Kind},
    plan::{Cut, Edge, Picks, Piece, Strides},
};

/// How far apart two parts of a value may be that are fetched together: reading what lies between costs less than a fetch of its own.
const GAP: u64 = 64 << 10;

/// How many bytes of a value are fetched together.
const TOGETHER: u64 = 1 << 20;

/// How long a part may be that is fetched together with others. A longer one is worth a fetch of its own, and is sooner in place that way.
const SMALL: u64 = 256 << 10;

/// How many bytes one job decodes, if it does not have to be more.
const DECODED: u64 = 4 << 20;

/// How many parts of one value are looked at together, and how many bytes they have.
const WINDOW: usize = 512;
const WINDOW_BYTES: u64 = 8 << 20;

/// How many bytes of an uncompressed chunk are fetched at the least: the store checks as many anyhow.
const TILE: u64 = 128 << 10;

/// An uncompressed chunk up to this length is fetched whole if half of it is wanted.
const WHOLE: u64 = 4 << 20;

/// How many chunks of parts are walked over together, so that neighbours in the answer come together.
const ABREAST: usize = 4;

/// Finds the jobs of one slab, in the order of the answer as far as the chunks have it.
#[derive(Debug)]
pub(super) struct Feed {
    source: Arc<Source>,
    strides: Strides,
    /// What is walked over, the innermost last. Those of one group take turns.
    groups: Vec<Vec<Frame>>,
    /// Jobs, each with its first place in the answer.
    found: Vec<(u64, Job)>,
}

/// Something that is cut into parts, and how far that got.
#[derive(Debug)]
struct Frame {
    whole: Whole,
    cut: Cut,
}

/// What is cut.
#[derive(Debug)]
enum Whole {
    /// The array, into chunks.
    Array,
    /// A shard, into inner chunks.
    Shard { part: Part, chain: Arc<Chain>, index: Arc<ShardIndex> },
    /// An uncompressed chunk, into runs of its elements.
    Elements { part: Part, chain: Arc<Chain> },
}

/// An encoded chunk: a value, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) key: Key,
    pub(super) version: Version,
    pub(super) range: Range<u64>,
}

impl Feed {
    /// The jobs for these elements of the array, which go into a slab with these strides.
    pub(super) fn new(source: Arc<Source>, picks: &Picks, strides: Strides) -> Self {
        let cut = picks.cut(&source.array.model().grid, Edge::Whole);
        Self { source, strides, groups: vec![vec![Frame { whole: Whole::Array, cut }]], found: Vec::new() }
    }

    /// The next jobs; `None` after the last.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<Job>>, ArrayError> {
        while let Some(group) = self.groups.pop() {
            let (mut left, mut inner) = (Vec::with_capacity(group.len()), Vec::new());
            for mut frame in group {
                let step = match &frame.whole {
                    Whole::Array => self.next_chunks(&mut frame.cut).await?,
                    Whole::Shard { part, chain, index } => self.next_inner(&mut frame.cut, part, chain, index).await?,
                    Whole::Elements { part, chain } => self.next_runs(&mut frame.cut, part, chain)?,
                };
                match step {
                    Step::Done => {}
                    Step::More => left.push(frame),
                    Step::Into(frames) => {
                        left.push(frame);
                        inner.push(frames);
                    }
                }
            }
            self.groups.extend([left].into_iter().chain(inner).filter(|group| !group.is_empty()));
            if !self.found.is_empty() {
                let mut found = std::mem::take(&mut self.found);
                found.sort_by_key(|(place, _)| *place);
                return Ok(Some(found.into_iter().map(|(_, job)| job).collect()));
            }
        }
        Ok(None)
    }

    /// The next chunk; where it has parts, some of those that follow as well.
    async fn next_chunks(&mut self, cut: &mut Cut) -> Result<Step, ArrayError> {
        let mut inner = Vec::new();
        while inner.len() < ABREAST && self.found.len() < WINDOW {
            let Some(piece) = cut.next() else {
                return Ok(if inner.is_empty() { Step::Done } else { Step::Into(inner) });
            };
            let place = self.strides.first(&piece.picks);
            let Some(part) = self.source.chunk(&piece.position)? else {
                self.found.push((place, Job::Fill(piece.picks)));
                continue;
            };
            let chain = self.source.array.chain(&piece.shape)?;
            match self.enter(&part, &chain, piece).await? {
                Entered::Inner(frame) => inner.push(frame),
                Entered::Leaf(leaf) => {
                    self.found.push((place, Job::Decode { part, leaves: vec![leaf] }));
                    break;
                }
            }
        }
        Ok(if inner.is_empty() { Step::More } else { Step::Into(inner) })
    }

    async fn next_inner(
        &mut self,
        cut: &mut Cut,
        part: &Part,
        chain: &Arc<Chain>,
        index: &Arc<ShardIndex>,
    ) -> Result<Step, ArrayError> {
        let Access::Shard(sharding) = chain.access() else { return Ok(Step::Done) };
        let mut window = Window::default();
        while !window.is_full() && self.found.len() < WINDOW {
            let Some(piece) = cut.next() else {
                self.found.extend(window.jobs(part));
                return Ok(Step::Done);
            };
            let Some(range) = self.locate(part, sharding, index, &piece)? else {
                self.found.push((self.strides.first(&piece.picks), Job::Fill(piece.picks)));
                continue;
            };
            let place = self.strides.first(&piece.picks);
            let inner = Part { range, ..part.clone() };
            match self.enter(&inner, sharding.inner(), piece).await? {
                Entered::Leaf(leaf) => window.push(place, leaf),
                Entered::Inner(frame) => {
                    self.found.extend(window.jobs(part));
                    return Ok(Step::Into(vec![frame]));
                }
            }
        }
        self.found.extend(window.jobs(part));
        Ok(Step::More)
    }

    fn next_runs(&mut self, cut: &mut Cut, part: &Part, chain: &Arc<Chain>) -> Result<Step, ArrayError> {
        let size = chain.array().data_type().fixed_size().unwrap_or(0) as u64;
        let shape = chain.array().shape();
        let tile = tile_shape(shape, size);
        let mut window = Window::default();
        while !window.is_full() {
            let Some(piece) = cut.next() else {
                self.found.extend(window.jobs(part));
                return Ok(Step::Done);
            };
            let place = self.strides.first(&piece.picks);
            let origin = piece.position.iter().zip(&tile).zip(shape);
            let start = origin.fold(0, |offset, ((&index, &tile), &extent)| offset * extent + index * tile) * size;
            let len = piece.shape.iter().product::<u64>() * size;
            let start = part.range.start + start;
            let leaf = Leaf {
                kind: LeafKind::Elements(chain.clone()),
                range: start..start + len,
                shape: piece.shape,
                picks: piece.picks,
            };
            window.push(place, leaf);
        }
        self.found.extend(window.jobs(part));
        Ok(Step::More)
    }

    /// Looks at an encoded chunk: it is decoded as one, or cut further.
    async fn enter(&self, part: &Part, chain: &Arc<Chain>, piece: Piece) -> Result<Entered, ArrayError> {
        let len = part.range.end - part.range.start;
        match chain.access() {
            Access::Shard(sharding) => {
                let index = self.index(part, chain).await?;
                let grid = sharding.inner_grid().ok_or_else(|| self.source.undecodable(part, no_grid()))?;
                let cut = piece.picks.cut(&grid, Edge::Whole);
                let whole = Whole::Shard { part: part.clone(), chain: chain.clone(), index };
                return Ok(Entered::Inner(Frame { whole, cut }));
            }
            Access::Elements(_) => {
                let expected = chain.array().fixed_len().unwrap_or(len);
                if len != expected {
                    let error = CodecError::Length { codec: "bytes", expected, found: len };
                    return Err(self.source.undecodable(part, error));
                }
                let wanted = piece.picks.len().saturating_mul(2);
                let fetched_whole = len <= TILE || (len <= WHOLE && wanted >= chain.array().elements());
                if !fetched_whole && let Some(grid) = ChunkGrid::regular(&tile_shape_of(chain)) {
                    let cut = piece.picks.cut(&grid, Edge::Cut(chain.array().shape()));
                    let whole = Whole::Elements { part: part.clone(), chain: chain.clone() };
                    return Ok(Entered::Inner(Frame { whole, cut }));
                }
            }
            Access::Whole => {}
        }
        if let Some(limit) = chain.encoded_len().map(EncodedLen::max).filter(|&limit| len > limit) {
            return Err(self.source.undecodable(part, CodecError::TooLong { codec: "the stored chunk", limit }));
        }
        self.source.fits(chain, len)?;
        Ok(Entered::Leaf(Leaf {
            kind: LeafKind::Chunk(chain.clone()),
            range: part.range.clone(),
            shape: piece.shape,
            picks: piece.picks,
        }))
    }

    fn locate(
        &self,
        part: &Part,
        sharding: &Sharding,
        index: &ShardIndex,
        piece: &Piece,
    ) -> Result<Option<Range<u64>>, ArrayError> {
        let position = sharding.position(&piece.position).ok_or_else(|| self.source.undecodable(part, no_grid()))?;
        let range = index.locate(position).map_err(|error| self.source.undecodable(part, error))?;
        // The index was checked to stay within the shard, so the sums stay within the value.
        Ok(range.map(|range| part.range.start + range.start..part.range.start + range.end))
    }

    async fn index(&self, part: &Part, chain: &Arc<Chain>) -> Result<Arc<ShardIndex>, ArrayError> {
        let Access::Shard(sharding) = chain.access() else { return Err(self.source.undecodable(part, no_grid())) };
        let len = part.range.end - part.range.start;
        let range = sharding.index_range(len).map_err(|error| self.source.undecodable(part, error))?;
        self.source.index_fits(sharding)?;
        let range = part.range.start + range.start..part.range.start + range.end;
        let key = self.source.cache_key(part, range.start, Kind::Index);
        let (source, part, chain) = (self.source.clone(), part.clone(), chain.clone());
        let read = async move {
            let encoded = source.fetch(&part.key, range).await?;
            let index = match chain.access() {
                Access::Shard(sharding) => sharding.read_index(encoded, len),
                Access::Whole | Access::Elements(_) => Err(no_grid()),
            };
            index.map(|index| Cached::Index(Arc::new(index))).map_err(|error| source.undecodable(&part, error))
        };
        match self.source.cached(key, read).await? {
            Cached::Index(index) => Ok(index),
            Cached::Chunk(_) => Err(ArrayError::Stopped),
        }
    }
}

/// What became of one step into a frame.
enum Step {
    Done,
    More,
    Into(Vec<Frame>),
}

enum Entered {
    Leaf(Leaf),
    Inner(Frame),
}

/// Parts of one value that are looked at together, so that small ones that lie together are fetched together.
#[derive(Default)]
struct Window {
    /// Each with its first place in the answer.
    leaves: Vec<(u64, Leaf)>,
    bytes: u64,
}

/// Some of a window's parts, and the first place in the answer of any.
struct Run {
    place: u64,
    range: Range<u64>,
    decoded: u64,
    leaves: Vec<Leaf>,
}

impl Window {
    fn push(&mut self, place: u64, leaf: Leaf) {
        self.bytes = self.bytes.saturating_add(leaf.range.end - leaf.range.start);
        self.leaves.push((place, leaf));
    }

    fn is_full(&self) -> bool {
        self.leaves.len() >= WINDOW || self.bytes >= WINDOW_BYTES
    }

    /// One job for each run of parts that lie together.
    fn jobs(mut self, part: &Part) -> impl Iterator<Item = (u64, Job)> {
        self.leaves.sort_by_key(|(_, leaf)| leaf.range.start);
        let mut runs: Vec<Run> = Vec::new();
        for (place, leaf) in self.leaves {
            match runs.last_mut() {
                Some(run) if run.takes(&leaf) => run.push(place, leaf),
                _ => {
                    let (range, decoded) = (leaf.range.clone(), leaf.decoded_len());
                    runs.push(Run { place, range, decoded, leaves: vec![leaf] });
                }
            }
        }
        let job =
            |run: Run| (run.place, Job::Decode { part: Part { range: run.range, ..part.clone() }, leaves: run.leaves });
        runs.into_iter().map(job)
    }
}

impl Run {
    fn takes(&self, leaf: &Leaf) -> bool {
        let small = leaf.range.end - leaf.range.start <= SMALL;
        let near = leaf.range.start <= self.range.end.saturating_add(GAP);
        let together = self.range.end.max(leaf.range.end) - self.range.start <= TOGETHER;
        small && near && together && self.decoded.saturating_add(leaf.decoded_len()) <= DECODED
    }

    fn push(&mut self, place: u64, leaf: Leaf) {
        self.place = self.place.min(place);
        self.range.end = self.range.end.max(leaf.range.end);
        self.decoded = self.decoded.saturating_add(leaf.decoded_len());
        self.leaves.push(leaf);
    }
}

fn tile_shape_of(chain: &Chain) -> Vec<u64> {
    tile_shape(chain.array().shape(), chain.array().data_type().fixed_size().unwrap_or(0) as u64)
}

/// The shape of the parts into which an uncompressed chunk is cut: each is one run of its bytes, of about [`TILE`].
fn tile_shape(shape: &[u64], size: u64) -> Vec<u64> {
    let mut room = (TILE / size.max(1)).max(1);
    let mut tile = vec![1; shape.len()];
    for (tile, &extent) in tile.iter_mut().zip(shape).rev() {
        *tile = extent.min(room);
        if *tile < extent {
            break;
        }
        room /= extent.max(1);
    }
    tile
}

fn no_grid() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "the shard has no such inner chunk" }
}
