//! Which chunks a selection touches, and which of them are stored.
//!
//! A selection may touch 10¹² chunks of a sparse array, so they are never listed as a whole: there are pages of them,
//! and counts over two dimensions.

mod bins;
mod touched;

use std::sync::Arc;

use zarrd_codec::PartialAccess;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{ArrayModel, NodePath, relation::DialectRelation, selection::Selection};
use zarrd_store::{Key, Listing, Prefix};

pub use self::bins::{BinAxis, ChunkBins, MAX_BINS};
use self::touched::TouchedChunks;
use crate::{
    context::Context,
    error::ArrayError,
    node::{array::Array, resolved::ResolvedArray},
    work::{STEPS_PER_KEY, WorkBudget},
};

/// The chunks that a selection touches, in C order.
#[derive(Debug)]
pub struct ChunkMap {
    context: Arc<Context>,
    array: Array,
    axes: Vec<TouchedChunks>,
    selected: Vec<u64>,
    relation: Option<DialectRelation>,
}

/// A chunk, or the shard that is stored as one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkEntry {
    /// Its index in the grid.
    pub index: Vec<u64>,
    /// The key under which it is stored, or would be; `None` if that would be too long.
    pub key: Option<Key>,
    /// Its stored size, in bytes; `None` if it is not stored.
    pub bytes: Option<u64>,
}

impl ChunkMap {
    pub(crate) fn new(
        context: Arc<Context>,
        resolved: &ResolvedArray,
        selection: &Selection,
    ) -> Result<Self, ArrayError> {
        let array = resolved.array.clone();
        let model = array.model();
        let region = selection.resolve(&model.view_shape())?.shifted(&model.view_offset);
        let dimensions = region.dimensions.iter().zip(array.grid().dimensions());
        let axes = dimensions.map(|(selection, grid)| TouchedChunks::of(selection, grid)).collect();
        let relation = resolved.relation();
        Ok(Self { context, array, axes, selected: region.shape(), relation })
    }

    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.array.model()
    }

    /// The path of the array.
    pub fn path(&self) -> &NodePath {
        self.array.path()
    }

    /// The relation of the documents that v2 and v3 have at the path; `None` if one of them has none, or if reading them would
    /// take a request.
    pub fn relation(&self) -> Option<DialectRelation> {
        self.relation
    }

    /// The shape of the selection.
    pub fn selected_shape(&self) -> &[u64] {
        &self.selected
    }

    /// The number of chunks along each dimension of the array.
    pub fn grid_shape(&self) -> Vec<u64> {
        let dimensions = self.array.grid().dimensions().iter().zip(&self.model().shape);
        dimensions.map(|(grid, &extent)| grid.num_chunks(extent)).collect()
    }

    /// The shape of the inner chunks, if the chunks are shards.
    pub fn inner_chunk_shape(&self) -> Result<Option<Vec<u64>>, ArrayError> {
        let chain = self.array.largest_chain()?;
        Ok(chain.and_then(|chain| match chain.partial_access() {
            PartialAccess::Shard(sharding) => Some(sharding.inner_chunk_shape().to_vec()),
            PartialAccess::Full | PartialAccess::Elements(_) => None,
        }))
    }

    /// The number of chunks that the selection touches; saturates.
    pub fn touched(&self) -> u64 {
        self.axes.iter().fold(1, |product: u64, axis| product.saturating_mul(axis.len()))
    }

    /// Some of the chunks: at most `limit`, from the one with the number `start` on.
    pub async fn page(&self, start: u64, limit: usize) -> Result<Vec<ChunkEntry>, ArrayError> {
        let end = start.saturating_add(limit as u64).min(self.touched());
        self.budget().spend(end.saturating_sub(start).saturating_mul(STEPS_PER_KEY))?;
        self.look_up(start..end).await
    }

    /// Looks up chunks by their numbers.
    async fn look_up(&self, numbers: std::ops::Range<u64>) -> Result<Vec<ChunkEntry>, ArrayError> {
        let indices: Vec<_> = numbers.map(|number| self.index(number)).collect();
        let keys: Vec<Vec<Key>> = indices.iter().map(|index| self.array.chunk_keys(index).collect()).collect();
        let all: Vec<Key> = keys.iter().flatten().cloned().collect();
        let metas = async {
            let snapshot = self.context.store.snapshot(&all).await?;
            snapshot.stat_many(&all).await?;
            let mut entries = Vec::with_capacity(indices.len());
            for (index, keys) in indices.into_iter().zip(keys) {
                let mut entry = ChunkEntry { index, key: keys.first().cloned(), bytes: None };
                for key in keys {
                    if let Some(meta) = snapshot.meta(&key).await? {
                        (entry.key, entry.bytes) = (Some(key), Some(meta.size));
                        break;
                    }
                }
                entries.push(entry);
            }
            Ok(entries)
        };
        self.context.run_future(Cost::of(Work::Lookups, all.len() as u64), metas).await?
    }

    /// The index of the chunk with a number, which is below the number of chunks.
    fn index(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut index: Vec<u64> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let rank = rest.checked_rem(axis.len()).unwrap_or_default();
                rest = rest.checked_div(axis.len()).unwrap_or_default();
                axis.at(rank)
            })
            .collect();
        index.reverse();
        index
    }

    /// True if the store can list the chunks.
    fn is_listed(&self, prefix: &Prefix) -> bool {
        self.context.store.guarantees_below(prefix).listing == Listing::Sorted
    }

    /// The prefix of all touched chunks; `None` if it would be too long, so that there can be none.
    fn prefix(&self) -> Option<Prefix> {
        let fixed = self.axes.iter().take_while(|axis| axis.len() == 1).map(|axis| axis.at(0)).collect::<Vec<_>>();
        let below = self.model().chunk_keys.prefix(&fixed, self.axes.len()).unwrap_or_default();
        Prefix::parse(&format!("{}{below}", self.array.key_prefix())).ok()
    }

    /// The work of one answer.
    fn budget(&self) -> WorkBudget {
        WorkBudget::new(0, None, self.context.options.max_work)
    }
}
