//! Fetching, decoding, and putting into place.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use codec::{Access, Chain, CodecError, Elements};

use super::{
    Source,
    feed::Part,
    lanes::{Canvas, PlaceError},
    place,
};
use crate::{
    ArrayError,
    cache::{Cached, Kind},
    plan::{Picks, Strides},
};

/// How many bytes are put into place on the async thread: what takes less time than the way to another thread.
const INLINE: u64 = 64 << 10;

/// How many uncompressed bytes are put into place there, where they are all that is asked for.
const ALONE: u64 = 2 << 20;

/// One thing to do for a slab.
#[derive(Debug)]
pub(super) enum Job {
    /// Put the fill value into the places of a chunk that is not there.
    Fill(Picks),
    /// Fetch a part of a value, decode what is in it and put it into place.
    Decode {
        /// What is fetched.
        part: Part,
        /// What is in it, by its place there.
        leaves: Vec<Leaf>,
    },
}

/// Something that is decoded as one.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) kind: LeafKind,
    /// Where it is in the value.
    pub(super) range: Range<u64>,
    pub(super) shape: Vec<u64>,
    pub(super) picks: Picks,
}

#[derive(Debug)]
pub(super) enum LeafKind {
    /// A chunk, decoded by its chain.
    Chunk(Arc<Chain>),
    /// A run of elements of an uncompressed chunk.
    Elements(Arc<Chain>),
}

/// The slab that is painted, and how places in it are counted.
#[derive(Debug)]
pub(super) struct Painting {
    pub(super) canvas: Canvas,
    pub(super) strides: Strides,
}

impl Leaf {
    /// How many bytes it has when it is decoded; of variable length, what is stored.
    pub(super) fn decoded_len(&self) -> u64 {
        let stored = self.range.end - self.range.start;
        match &self.kind {
            LeafKind::Chunk(chain) => chain.array().fixed_len().unwrap_or(stored),
            LeafKind::Elements(_) => stored,
        }
    }

    /// How many steps it takes at the most to decode it.
    fn steps(&self) -> u64 {
        match &self.kind {
            LeafKind::Chunk(chain) => chain.decode_work(self.range.end - self.range.start),
            LeafKind::Elements(_) => self.range.end - self.range.start,
        }
    }

    fn chain(&self) -> &Arc<Chain> {
        match &self.kind {
            LeafKind::Chunk(chain) | LeafKind::Elements(chain) => chain,
        }
    }

    /// What is kept of it.
    fn cached(&self, source: &Source, part: &Part) -> Option<Elements> {
        match (&self.kind, source.cache().get(&source.cache_key(part, self.range.start, Kind::Chunk))?) {
            (LeafKind::Chunk(_), Cached::Chunk(elements)) => Some(elements),
            _ => None,
        }
    }

    fn is_kept(&self, source: &Source) -> bool {
        source.caching && matches!(&self.kind, LeafKind::Chunk(_))
    }

    fn decode(&self, encoded: Bytes, budget: u64) -> Result<Elements, CodecError> {
        match &self.kind {
            LeafKind::Chunk(chain) => chain.decode(encoded, budget),
            LeafKind::Elements(chain) => chain.decode_elements(encoded).map(Elements::Fixed),
        }
    }
}

impl Job {
    /// Does it at once, where it is small and nothing has to be waited for.
    pub(super) fn now(&self, source: &Source, painting: &Painting) -> Option<Result<(), ArrayError>> {
        match self {
            Self::Fill(picks) => (source.bytes_of(picks) <= INLINE).then(|| painting.fill(source, picks)),
            Self::Decode { part, leaves } => {
                let [leaf] = leaves.as_slice() else { return None };
                if source.bytes_of(&leaf.picks) > INLINE {
                    return None;
                }
                let elements = leaf.cached(source, part)?;
                source.meter.cached();
                Some(painting.place(source, leaf, &elements))
            }
        }
    }

    /// Whether it waits for nothing that others wait for too, and takes little. Anything else needs a task of its own: while this answer's reader
    /// is slow, it would keep a thread's permit or a place in the cache from those who are not.
    pub(super) fn is_light(&self, source: &Source) -> bool {
        match self {
            Self::Fill(_) => false,
            Self::Decode { leaves, .. } => is_light(source, leaves),
        }
    }

    /// Does it.
    pub(super) async fn run(self, source: Arc<Source>, painting: Arc<Painting>) -> Result<(), ArrayError> {
        match self {
            Self::Fill(picks) => {
                let work = source.clone();
                source.shared.on_blocking_pool(source.bytes_of(&picks), move || painting.fill(&work, &picks)).await
            }
            Self::Decode { part, leaves } => match <[Leaf; 1]>::try_from(leaves) {
                Ok([leaf]) if leaf.is_kept(&source) => decode_kept(source, painting, part, leaf).await,
                Ok(one) => decode_all(source, painting, part, one.into()).await,
                Err(leaves) => decode_all(source, painting, part, leaves).await,
            },
        }
    }
}

/// Whether all are elements that only have to be copied, and few; where there is nothing to do beside, more of them.
fn is_light(source: &Source, leaves: &[Leaf]) -> bool {
    let bytes: u64 = leaves.iter().map(Leaf::decoded_len).sum();
    let few = if source.chunks <= 2 { ALONE } else { INLINE * 2 };
    bytes <= few && leaves.iter().all(|leaf| matches!(leaf.chain().access(), Access::Elements(_)))
}

/// Decodes one chunk and keeps it; where somebody else is doing that, waits for it.
async fn decode_kept(source: Arc<Source>, painting: Arc<Painting>, part: Part, leaf: Leaf) -> Result<(), ArrayError> {
    let key = source.cache_key(&part, leaf.range.start, Kind::Chunk);
    let chain = leaf.chain().clone();
    let steps = leaf.steps();
    let work = source.clone();
    let decoded = source.cached(key, async move {
        let encoded = work.fetch(&part.key, part.range.clone()).await?;
        let decoder = work.clone();
        let decode = move || {
            let elements = decoder.metered(|| chain.decode(encoded.clone(), decoder.budget()));
            let elements = elements.map_err(|error| decoder.undecodable(&part, error))?;
            decoder.spent(&chain, &elements)?;
            Ok(Cached::Chunk(alone(&elements, &encoded)))
        };
        work.shared.on_blocking_pool(steps, decode).await
    });
    let Cached::Chunk(elements) = decoded.await? else { return Err(ArrayError::Stopped) };
    if source.bytes_of(&leaf.picks) <= INLINE {
        return painting.place(&source, &leaf, &elements);
    }
    let work = source.clone();
    source.shared.on_blocking_pool(source.bytes_of(&leaf.picks), move || painting.place(&work, &leaf, &elements)).await
}

/// Decodes everything in a part of a value.
async fn decode_all(
    source: Arc<Source>,
    painting: Arc<Painting>,
    part: Part,
    leaves: Vec<Leaf>,
) -> Result<(), ArrayError> {
    let leaves = place_cached(&source, &painting, &part, leaves)?;
    let Some(range) = span(&leaves) else { return Ok(()) };
    let encoded = source.fetch(&part.key, range.clone()).await?;
    let light = is_light(&source, &leaves);
    let steps = leaves.iter().map(Leaf::steps).fold(0, u64::saturating_add);
    let work = source.clone();
    let all = move || {
        leaves.iter().try_for_each(|leaf| {
            let undecodable = |error| work.undecodable(&part, error);
            let stored = sliced(&encoded, &range, &leaf.range).ok_or_else(|| undecodable(outside()))?;
            let elements = work.metered(|| leaf.decode(stored, work.budget())).map_err(undecodable)?;
            work.spent(leaf.chain(), &elements)?;
            if leaf.is_kept(&work) {
                work.cache().insert(
                    work.cache_key(&part, leaf.range.start, Kind::Chunk),
                    Cached::Chunk(alone(&elements, &encoded)),
                );
            }
            painting.place(&work, leaf, &elements)
        })
    };
    if light { all() } else { source.shared.on_blocking_pool(steps, all).await }
}

/// Puts into place what is in the cache; the rest is left.
fn place_cached(source: &Source, painting: &Painting, part: &Part, leaves: Vec<Leaf>) -> Result<Vec<Leaf>, ArrayError> {
    let mut left = Vec::with_capacity(leaves.len());
    for leaf in leaves {
        match leaf.cached(source, part) {
            Some(elements) => {
                source.meter.cached();
                painting.place(source, &leaf, &elements)?;
            }
            None => left.push(leaf),
        }
    }
    Ok(left)
}

fn span(leaves: &[Leaf]) -> Option<Range<u64>> {
    let start = leaves.iter().map(|leaf| leaf.range.start).min()?;
    let end = leaves.iter().map(|leaf| leaf.range.end).max()?;
    Some(start..end)
}

fn sliced(encoded: &Bytes, whole: &Range<u64>, range: &Range<u64>) -> Option<Bytes> {
    let start = usize::try_from(range.start.checked_sub(whole.start)?).ok()?;
    let end = usize::try_from(range.end.checked_sub(whole.start)?).ok()?;
    (start <= end && end <= encoded.len()).then(|| encoded.slice(start..end))
}

/// The elements in memory of their own, where they would keep all that was fetched with them.
fn alone(elements: &Elements, fetched: &Bytes) -> Elements {
    match elements {
        Elements::Fixed(bytes) if fetched.as_ptr_range().contains(&bytes.as_ptr()) => {
            Elements::Fixed(Bytes::copy_from_slice(bytes))
        }
        _ => elements.clone(),
    }
}

fn outside() -> CodecError {
    CodecError::Malformed { codec: "sharding_indexed", reason: "a part lies outside what was fetched" }
}

impl Painting {
    fn place(&self, source: &Source, leaf: &Leaf, elements: &Elements) -> Result<(), ArrayError> {
        let from = place::Source::Elements { elements, shape: &leaf.shape };
        place::place(&self.canvas, &self.strides, &leaf.picks, from).map_err(|error| source.misplaced(error))
    }

    fn fill(&self, source: &Source, picks: &Picks) -> Result<(), ArrayError> {
        let fill = place::Source::Fill(&source.array.model().fill_value);
        place::place(&self.canvas, &self.strides, picks, fill).map_err(|error| source.misplaced(error))
    }
}

impl Source {
    /// Counts the work that was done to decode something; fails where that makes it too much, which an estimate cannot tell of elements of variable length, or where there is too
    /// little memory to decode everything once.
    fn spent(&self, chain: &Chain, elements: &Elements) -> Result<(), ArrayError> {
        match (chain.access(), elements) {
            (Access::Elements(_), Elements::Fixed(bytes)) => self.work.spend(bytes.len() as u64),
            _ => self.work.spend(chain.decode_work(elements.memory())),
        }
    }

    pub(super) fn misplaced(&self, error: PlaceError) -> ArrayError {
        match error {
            PlaceError::Misplaced => ArrayError::Misplaced { path: self.array.path().clone() },
            PlaceError::OverBudget => ArrayError::OverBudget { budget: self.budget() },
        }
    }
}
