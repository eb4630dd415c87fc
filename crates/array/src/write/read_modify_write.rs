//! Read–modify–write of a chunk: of a shard, only the inner chunks that are touched are decoded and encoded.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use zarrd_codec::{CodecChain, CodecError, Elements, PartialAccess, ShardIndex, ShardingCodec};
use zarrd_meta::grid::ChunkGrid;

use super::{
    gather::{ChunkBase, Patch, assemble},
    layout::elements,
    segments::InternalError,
};
use crate::{
    buffer_pool::BufferPool,
    grid::{
        dimension::DimIndexer,
        points::number_within,
        projection::{EdgePolicy, ElementSelection},
    },
    options::EmptyChunks,
};

/// The stored content of a chunk.
pub(crate) enum StoredContent {
    /// Missing, or irrelevant.
    Nothing,
    /// The encoded chunk.
    Encoded(Bytes),
    /// The decoded elements.
    Decoded(Elements),
}

/// The reason why a chunk cannot be rewritten.
#[derive(Debug)]
pub(crate) enum RewriteError {
    /// A bug in this crate.
    Misplaced,
    /// The stored chunk cannot be decoded.
    Decode(CodecError),
    /// The new chunk cannot be encoded.
    Encode(CodecError),
    /// The new chunk would be too large to be read.
    TooLarge {
        /// The memory that reading it would take, in bytes.
        size: u64,
    },
    /// The new chunk's elements of variable length would be too large to be read.
    OverBudget,
}

/// A stored chunk that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Undecodable {
    /// It is an error, since elements of it are needed.
    Error,
    /// It counts as missing, since the patches have all of its elements that are within the array.
    Missing,
}

/// The limits of a chunk that can be read, the treatment of a stored one that cannot, and the buffers of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RewriteContext<'a> {
    /// The bytes of elements of variable length.
    pub(crate) budget: u64,
    /// The memory for decoding, in bytes.
    pub(crate) memory: u64,
    /// The treatment of a stored chunk that cannot be decoded.
    pub(crate) undecodable: Undecodable,
    /// The buffers in which the elements of chunks are assembled.
    pub(crate) buffers: &'a Arc<BufferPool>,
}

impl From<InternalError> for RewriteError {
    fn from(_: InternalError) -> Self {
        Self::Misplaced
    }
}

/// Applies patches to a chunk and encodes it; `None` if it is not stored, since every element is the fill value.
pub(crate) fn rewrite(
    chain: &CodecChain,
    before: StoredContent,
    patches: Vec<Patch>,
    empty: EmptyChunks,
    context: RewriteContext<'_>,
) -> Result<Option<Bytes>, RewriteError> {
    let array = chain.representation();
    let patched = patches.iter().fold(0, |sum: u64, patch| sum.saturating_add(elements(&patch.selection)));
    // No element is written twice, so this number covers the chunk.
    let before = if patched == array.num_elements() { None } else { Some(before) };
    if let (PartialAccess::Shard(sharding), None | Some(StoredContent::Nothing | StoredContent::Encoded(_))) =
        (chain.partial_access(), &before)
    {
        let before = before.unwrap_or(StoredContent::Nothing);
        return rewrite_shard((sharding, array.shape()), before, patches, empty, context);
    }
    let base = match before {
        None => ChunkBase::Overwritten,
        Some(StoredContent::Nothing) => ChunkBase::Missing,
        Some(StoredContent::Decoded(elements)) => ChunkBase::Stored(elements),
        Some(StoredContent::Encoded(bytes)) => match (chain.decode(bytes, context.budget), context.undecodable) {
            (Ok(elements), _) => ChunkBase::Stored(elements),
            (Err(_), Undecodable::Missing) => ChunkBase::Missing,
            (Err(error), Undecodable::Error) => return Err(RewriteError::Decode(error)),
        },
    };
    let elements = assemble(array, base, &patches, context.buffers)?;
    // The source elements are not needed during encoding.
    drop(patches);
    if empty == EmptyChunks::Omit && elements.all_equal(array.fill_value()) {
        return Ok(None);
    }
    if matches!(elements, Elements::Variable(_)) && elements.memory_size() > context.budget {
        return Err(RewriteError::OverBudget);
    }
    let encoded = chain.encode(elements).map_err(RewriteError::Encode)?;
    let size = chain.working_memory().unwrap_or(0).saturating_add(encoded.len() as u64);
    match chain.partial_access() {
        PartialAccess::Full if size > context.memory => Err(RewriteError::TooLarge { size }),
        _ => Ok(Some(encoded)),
    }
}

fn rewrite_shard(
    (sharding, shape): (&ShardingCodec, &[u64]),
    before: StoredContent,
    patches: Vec<Patch>,
    empty: EmptyChunks,
    context: RewriteContext<'_>,
) -> Result<Option<Bytes>, RewriteError> {
    let before = match before {
        StoredContent::Encoded(bytes) => match (read_index(sharding, &bytes), context.undecodable) {
            (Ok(index), _) => Some((bytes, index)),
            (Err(_), Undecodable::Missing) => None,
            (Err(error), Undecodable::Error) => return Err(RewriteError::Decode(error)),
        },
        StoredContent::Nothing | StoredContent::Decoded(_) => None,
    };
    let before = before.as_ref().map(|(bytes, index)| (bytes, index));
    let mut changed = BTreeMap::new();
    for (position, patches) in inner_patches(sharding, shape, patches)? {
        let inner = match before {
            Some((bytes, index)) => match (inner_chunk(bytes, index, position), context.undecodable) {
                (Ok(inner), _) => inner,
                (Err(_), Undecodable::Missing) => StoredContent::Nothing,
                (Err(error), Undecodable::Error) => return Err(RewriteError::Decode(error)),
            },
            None => StoredContent::Nothing,
        };
        changed.insert(position, rewrite(sharding.inner_chain(), inner, patches, empty, context)?);
    }
    if empty == EmptyChunks::Omit && changed.values().all(Option::is_none) && !has_others(before, &changed)? {
        return Ok(None);
    }
    sharding.assemble(before, &changed).map(Some).map_err(RewriteError::Encode)
}

fn read_index(sharding: &ShardingCodec, shard: &Bytes) -> Result<ShardIndex, CodecError> {
    let len = shard.len() as u64;
    let range = sharding.index_range(len)?;
    sharding.read_index(slice(shard, range)?, len)
}

/// The stored content of an inner chunk.
fn inner_chunk(shard: &Bytes, index: &ShardIndex, position: u64) -> Result<StoredContent, CodecError> {
    match index.locate(position)? {
        Some(range) => slice(shard, range).map(StoredContent::Encoded),
        None => Ok(StoredContent::Nothing),
    }
}

/// True if the shard has inner chunks other than those that change.
fn has_others(
    before: Option<(&Bytes, &ShardIndex)>,
    changed: &BTreeMap<u64, Option<Bytes>>,
) -> Result<bool, RewriteError> {
    let Some((_, index)) = before else { return Ok(false) };
    for position in (0..index.len()).filter(|position| !changed.contains_key(position)) {
        if index.locate(position).map_err(RewriteError::Decode)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The patches of each inner chunk, by position.
fn inner_patches(
    sharding: &ShardingCodec,
    shape: &[u64],
    patches: Vec<Patch>,
) -> Result<BTreeMap<u64, Vec<Patch>>, RewriteError> {
    let grid = sharding.inner_grid().ok_or(RewriteError::Misplaced)?;
    let mut inner: BTreeMap<u64, Vec<Patch>> = BTreeMap::new();
    for patch in patches {
        if let Some(points) = patch.points(shape.len()) {
            for (position, pairs) in inner_points(sharding, (shape, &grid), points)? {
                let selection = vec![DimIndexer::Listed(pairs)];
                inner.entry(position).or_default().push(Patch { selection, source: patch.source.clone() });
            }
            continue;
        }
        let Patch { selection, source } = patch;
        for piece in ElementSelection::Orthogonal(selection).project(&grid, EdgePolicy::Full) {
            let position = sharding.index_position(&piece.index).ok_or(RewriteError::Misplaced)?;
            let ElementSelection::Orthogonal(selection) = piece.selection else { return Err(RewriteError::Misplaced) };
            inner.entry(position).or_default().push(Patch { selection, source: source.clone() });
        }
    }
    Ok(inner)
}

/// The points of each inner chunk of a shard of this shape, by position.
fn inner_points(
    sharding: &ShardingCodec,
    (shape, grid): (&[u64], &ChunkGrid),
    points: &[(u64, u64)],
) -> Result<BTreeMap<u64, Vec<(u64, u64)>>, RewriteError> {
    let mut inner: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for &(index, out) in points {
        let at = unravel(index, shape);
        let axes = || at.iter().zip(grid.dimensions());
        let chunk: Vec<u64> =
            axes().map(|(&at, grid)| grid.chunk_index(at)).collect::<Option<_>>().ok_or(RewriteError::Misplaced)?;
        let bounds = axes().zip(&chunk).map(|((_, grid), &chunk)| grid.chunk_bounds(chunk));
        let bounds: Vec<_> = bounds.collect::<Option<_>>().ok_or(RewriteError::Misplaced)?;
        let position = sharding.index_position(&chunk).ok_or(RewriteError::Misplaced)?;
        inner.entry(position).or_default().push((number_within(at.iter().copied(), &bounds), out));
    }
    Ok(inner)
}

/// The indices of an element from its number in C order.
fn unravel(number: u64, shape: &[u64]) -> Vec<u64> {
    let mut left = number;
    let mut at: Vec<u64> = Vec::with_capacity(shape.len());
    for &extent in shape.iter().rev() {
        at.push(left.checked_rem(extent).unwrap_or(0));
        left = left.checked_div(extent).unwrap_or(0);
    }
    at.reverse();
    at
}

fn slice(shard: &Bytes, range: std::ops::Range<u64>) -> Result<Bytes, CodecError> {
    let outside =
        || CodecError::Malformed { codec: "sharding_indexed", reason: "an inner chunk lies outside its shard" };
    let bound = |bound| usize::try_from(bound).ok().filter(|&bound| bound <= shard.len()).ok_or_else(outside);
    let (start, end) = (bound(range.start)?, bound(range.end)?);
    if start > end { Err(outside()) } else { Ok(shard.slice(start..end)) }
}
