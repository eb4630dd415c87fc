//! Appends where other servers may append at the same time, key by key: under the [claim](crate::growth) of the array.
//!
//! ```text
//!   claim ──► documents, edge chunk: read ──► claim: renewed ──► chunks ──► document ──► claim: free
//!               ▲                                                  │          │
//!               └────────────── a condition does not hold ─────────┴──────────┘
//! ```
//!
//! Every change has a condition on what was read before the renewal. So a process that pauses, and goes on after its claim was
//! taken over, changes nothing that the new holder has changed.

use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use tokio::time::Instant;
use zarrd_operations::WriteReport;
use zarrd_store::{Batch, Key, StoreError, Version, not_before};

use super::{
    commit::{self, CONCURRENT, StoredChunks, WriteKind, WriteTarget, documents, unless_changed},
    encode::{StagedChunk, WriteContext},
    error::WriteError,
    merge::{self, MergedChunks},
    pending::PendingParts,
    receive::ReceivedChunks,
};
use crate::{
    context::Context, error::ArrayError, growth::claim::GrowthClaim, metadata::keyed_commit,
    node::resolved::ResolvedArray, retry::MAX_ATTEMPTS,
};

/// The chunks of an append.
struct GrownChunks {
    /// The chunks outside of the present shape.
    made: Vec<StagedChunk>,
    /// The edge chunks.
    merged: MergedChunks,
    pending: PendingParts,
}

/// Makes an append whose elements were received.
pub(super) async fn append(
    target: &Arc<WriteContext>,
    place: &WriteTarget,
    resolved: &Arc<ResolvedArray>,
    (kind, claim): (&WriteKind<'_>, &GrowthClaim),
    received: ReceivedChunks,
) -> Result<WriteReport, WriteError> {
    let context = &target.context;
    let ReceivedChunks { chunks: mut made, pending, memory } = received;
    let merged = match merge::merge_partial_chunks(target, &pending, memory).await {
        Ok(merged) => merged,
        Err(error) => return Err(unless_changed(context, place, resolved, error).await),
    };
    // A chunk that is there already is of an append that was cut, or of a larger shape.
    made.iter_mut().for_each(StagedChunk::expect_absent);
    let mut chunks = GrownChunks { made, merged, pending };
    let documents = documents(context, place, resolved, kind).await?;
    let (mut stored, mut repeated) = (StoredChunks::default(), 0);
    for _ in 0..MAX_ATTEMPTS {
        claim.verify(resolved).await?;
        let batch = Batch {
            documents: documents.changes.clone(),
            chunks: chunks.all().flat_map(StagedChunk::changes).collect(),
        };
        match keyed_commit::apply(context, batch, documents.consolidated()).await {
            Ok(outcomes) => {
                stored.count(chunks.all());
                return Ok(stored.with_counts(documents.report(resolved, kind, &outcomes), repeated));
            }
            Err(StoreError::PartlyApplied { conflicts, source, .. }) => match *source {
                StoreError::PreconditionFailed { .. } if !conflicts.is_empty() => {
                    stored.count(chunks.all().filter(|chunk| !chunk.is_among(&conflicts)));
                    chunks.retain(&conflicts);
                }
                // A document changed after the chunks.
                StoreError::PreconditionFailed { .. } => {
                    return Err(WriteError::ShapeChanged { path: place.path.clone() });
                }
                error => return Err(error.into()),
            },
            Err(StoreError::PreconditionFailed { key, .. }) if documents.are_of_append_with(&key) => {
                return Err(WriteError::ShapeChanged { path: place.path.clone() });
            }
            Err(StoreError::PreconditionFailed { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        repeated += match chunks.read_again(target).await {
            Ok(repeated) => repeated,
            Err(error) => return Err(unless_changed(context, place, resolved, error).await),
        };
    }
    Err(ArrayError::TooManyConflicts { path: place.path.clone() }.into())
}

/// Makes an append that changes no chunk.
pub(super) async fn append_nothing(
    context: &Context,
    place: &WriteTarget,
    resolved: &ResolvedArray,
    (kind, claim): (&WriteKind<'_>, &GrowthClaim),
) -> Result<WriteReport, WriteError> {
    claim.verify(resolved).await?;
    commit::documents_only(context, place, resolved, kind).await
}

impl GrownChunks {
    fn all(&self) -> impl Iterator<Item = &StagedChunk> {
        self.made.iter().chain(&self.merged.chunks)
    }

    /// Leaves the chunks that were not stored, since their conditions did not hold.
    fn retain(&mut self, conflicts: &[Key]) {
        self.made.retain(|chunk| chunk.is_among(conflicts));
        self.merged.chunks.retain(|chunk| chunk.is_among(conflicts));
    }

    /// Reads the versions of all chunks again, and merges those that changed; returns their number.
    async fn read_again(&mut self, target: &Arc<WriteContext>) -> Result<u64, WriteError> {
        let context = &target.context;
        not_before(Some(Instant::now()), async {
            let found = self.made.iter().map(|chunk| versions(context, chunk));
            let found: Vec<_> = found.collect();
            let found: Vec<Vec<Option<Version>>> = stream::iter(found).buffered(CONCURRENT).try_collect().await?;
            let mut changed = 0_u64;
            for (chunk, current) in self.made.iter_mut().zip(found) {
                if !chunk.is_based_on(&current) {
                    changed += 1;
                    chunk.expect(current);
                }
            }
            let merged = merge::retry_conflicting(target, &self.pending, &mut self.merged).await?;
            Ok(changed.saturating_add(merged))
        })
        .await
    }
}

/// The versions of a chunk's keys.
async fn versions(context: &Context, chunk: &StagedChunk) -> Result<Vec<Option<Version>>, StoreError> {
    let mut versions = Vec::with_capacity(chunk.keys().len());
    for key in chunk.keys() {
        versions.push(context.store.head(key).await?.map(|meta| meta.version));
    }
    Ok(versions)
}
