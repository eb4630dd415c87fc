//! A chunk, or an inner chunk of a shard, with patches on it: only what they touch is decoded and encoded.

use std::collections::BTreeMap;

use bytes::Bytes;
use codec::{Access, Chain, CodecError, Elements, ShardIndex, Sharding};

use super::{
    copy::{Base, Misplaced, Patch, assemble},
    layout::elements,
};
use crate::{
    EmptyChunks,
    plan::{Edge, Picks},
};

/// What a chunk was before.
pub(super) enum Before {
    /// It was not there, or it does not matter.
    Nothing,
    /// As it is stored.
    Encoded(Bytes),
    /// Its elements.
    Decoded(Elements),
}

/// Why a chunk is not written anew.
#[derive(Debug)]
pub(super) enum RewriteError {
    /// A mistake of this crate's.
    Misplaced,
    /// What is stored cannot be decoded.
    Decode(CodecError),
    /// What it becomes cannot be encoded.
    Encode(CodecError),
    /// What it becomes could not be read again: that would take so many bytes of memory.
    TooLarge {
        /// How many.
        size: u64,
    },
    /// Its elements of variable length are more than could be read again.
    OverBudget,
}

/// What a chunk may be, so that it can be read again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// How many bytes elements of variable length may take.
    pub(super) budget: u64,
    /// How much memory decoding may take.
    pub(super) memory: u64,
}

impl From<Misplaced> for RewriteError {
    fn from(_: Misplaced) -> Self {
        Self::Misplaced
    }
}

/// The chunk as it is stored afterwards; `None` where it is not, since every element is the fill value.
pub(super) fn rewrite(
    chain: &Chain,
    before: Before,
    patches: Vec<Patch>,
    empty: EmptyChunks,
    bounds: Bounds,
) -> Result<Option<Bytes>, RewriteError> {
    let array = chain.array();
    let patched = patches.iter().fold(0, |sum: u64, patch| sum.saturating_add(elements(&patch.picks)));
    // No element is written twice, so this many are all.
    let before = if patched == array.elements() { None } else { Some(before) };
    if let (Access::Shard(sharding), None | Some(Before::Nothing | Before::Encoded(_))) = (chain.access(), &before) {
        return rewrite_shard(sharding, before.unwrap_or(Before::Nothing), patches, empty, bounds);
    }
    let base = match before {
        None => Base::Overwritten,
        Some(Before::Nothing) => Base::Missing,
        Some(Before::Decoded(elements)) => Base::Stored(elements),
        Some(Before::Encoded(bytes)) => Base::Stored(chain.decode(bytes, bounds.budget).map_err(RewriteError::Decode)?),
    };
    let elements = assemble(array, base, &patches)?;
    // What they were copied from is not needed while they are encoded.
    drop(patches);
    if empty == EmptyChunks::Skip && elements.are_all(array.fill_value()) {
        return Ok(None);
    }
    if matches!(elements, Elements::Variable(_)) && elements.memory() > bounds.budget {
        return Err(RewriteError::OverBudget);
    }
    let encoded = chain.encode(elements).map_err(RewriteError::Encode)?;
    let size = chain.working_len().unwrap_or(0).saturating_add(encoded.len() as u64);
    match chain.access() {
        Access::Whole if size > bounds.memory => Err(RewriteError::TooLarge { size }),
        _ => Ok(Some(encoded)),
    }
}

fn rewrite_shard(
    sharding: &Sharding,
    before: Before,
    patches: Vec<Patch>,
    empty: EmptyChunks,
    bounds: Bounds,
) -> Result<Option<Bytes>, RewriteError> {
    let before = match before {
        Before::Encoded(bytes) => {
            let index = read_index(sharding, &bytes).map_err(RewriteError::Decode)?;
            Some((bytes, index))
        }
        Before::Nothing | Before::Decoded(_) => None,
    };
    let before = before.as_ref().map(|(bytes, index)| (bytes, index));
    let mut changed = BTreeMap::new();
    for (position, patches) in inner_patches(sharding, patches)? {
        let inner = match before {
            Some((bytes, index)) => inner_chunk(bytes, index, position).map_err(RewriteError::Decode)?,
            None => Before::Nothing,
        };
        changed.insert(position, rewrite(sharding.inner(), inner, patches, empty, bounds)?);
    }
    if empty == EmptyChunks::Skip && changed.values().all(Option::is_none) && !has_others(before, &changed)? {
        return Ok(None);
    }
    sharding.assemble(before, &changed).map(Some).map_err(RewriteError::Encode)
}

fn read_index(sharding: &Sharding, shard: &Bytes) -> Result<ShardIndex, CodecError> {
    let len = shard.len() as u64;
    let range = sharding.index_range(len)?;
    sharding.read_index(slice(shard, range)?, len)
}

/// What is stored of an inner chunk.
fn inner_chunk(shard: &Bytes, index: &ShardIndex, position: u64) -> Result<Before, CodecError> {
    match index.locate(position)? {
        Some(range) => slice(shard, range).map(Before::Encoded),
        None => Ok(Before::Nothing),
    }
}

/// Whether the shard has inner chunks beside those that change.
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

/// The patches of each inner chunk, by its position.
fn inner_patches(sharding: &Sharding, patches: Vec<Patch>) -> Result<BTreeMap<u64, Vec<Patch>>, RewriteError> {
    let grid = sharding.inner_grid().ok_or(RewriteError::Misplaced)?;
    let mut inner: BTreeMap<u64, Vec<Patch>> = BTreeMap::new();
    for Patch { picks, source } in patches {
        for piece in Picks::Product(picks).cut(&grid, Edge::Whole) {
            let position = sharding.position(&piece.position).ok_or(RewriteError::Misplaced)?;
            let Picks::Product(picks) = piece.picks else { return Err(RewriteError::Misplaced) };
            inner.entry(position).or_default().push(Patch { picks, source: source.clone() });
        }
    }
    Ok(inner)
}

fn slice(shard: &Bytes, range: std::ops::Range<u64>) -> Result<Bytes, CodecError> {
    let outside =
        || CodecError::Malformed { codec: "sharding_indexed", reason: "an inner chunk lies outside its shard" };
    let bound = |bound| usize::try_from(bound).ok().filter(|&bound| bound <= shard.len()).ok_or_else(outside);
    let (start, end) = (bound(range.start)?, bound(range.end)?);
    if start > end { Err(outside()) } else { Ok(shard.slice(start..end)) }
}
