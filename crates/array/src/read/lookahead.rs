//! The next chunks of an array, of which the indexes of shards are read ahead.

use std::{collections::VecDeque, fmt, sync::Arc};

use tokio_util::task::AbortOnDropHandle;
use zarrd_codec::PartialAccess;

use super::{
    context::ReadContext,
    limits::LOOKAHEAD_MEMORY,
    shard_index::{self, IndexedShard},
};
use crate::{
    error::ArrayError,
    grid::projection::{ChunkProjection, ChunkProjections},
};

/// A shard whose index is being read; `None` if it is not stored.
pub(crate) type PendingShard = AbortOnDropHandle<Result<Option<IndexedShard>, ArrayError>>;

/// A chunk that is touched.
pub(crate) struct Piece {
    pub(crate) projection: ChunkProjection,
    /// The shard with its index, which is being read; `None` if the chunk was not looked up yet.
    pub(crate) shard: Option<PendingShard>,
}

/// The next chunks of an array. In a distant store the indexes of as many shards are read at a time as there are jobs,
/// if [`LOOKAHEAD_MEMORY`] suffices for them; otherwise nothing is read ahead.
pub(crate) struct Lookahead {
    source: Arc<ReadContext>,
    most: usize,
    pieces: VecDeque<Piece>,
}

impl Lookahead {
    pub(crate) fn new(source: Arc<ReadContext>, jobs: usize) -> Self {
        let most = if source.store.near { 0 } else { max_pieces(&source, jobs) };
        Self { source, most, pieces: VecDeque::new() }
    }

    /// The next chunk; `None` after the last.
    pub(crate) fn next(&mut self, projections: &mut ChunkProjections) -> Option<Piece> {
        while self.pieces.len() < self.most {
            let Some(projection) = projections.next() else { break };
            let shard = self.read_ahead(&projection);
            self.pieces.push_back(Piece { projection, shard });
        }
        let next = self.pieces.pop_front();
        next.or_else(|| projections.next().map(|projection| Piece { projection, shard: None }))
    }

    /// Begins to read the index of a shard. A chunk whose codecs are wrong is an error only if it is stored.
    fn read_ahead(&self, projection: &ChunkProjection) -> Option<PendingShard> {
        let chain = self.source.array.chain(&projection.shape).ok()?;
        let PartialAccess::Shard(_) = chain.partial_access() else { return None };
        let find = shard_index::find(self.source.clone(), projection.index.clone(), chain);
        Some(AbortOnDropHandle::new(tokio::spawn(find)))
    }
}

/// The number of shards whose indexes are read ahead; 0 for an array without shards.
fn max_pieces(source: &ReadContext, jobs: usize) -> usize {
    let Ok(Some(chain)) = source.array.largest_chain() else { return 0 };
    let PartialAccess::Shard(sharding) = chain.partial_access() else { return 0 };
    // Encoded and decoded.
    let index = sharding.index_size().saturating_mul(2).max(1);
    usize::try_from(LOOKAHEAD_MEMORY / index).unwrap_or(usize::MAX).clamp(1, jobs.max(1))
}

impl fmt::Debug for Lookahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookahead").field("most", &self.most).field("pieces", &self.pieces.len()).finish()
    }
}
