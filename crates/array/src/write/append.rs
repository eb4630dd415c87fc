//! Appending: elements are [buffered](super::buffered) first, since their number, and so the new shape, is known only at
//! the end.

use std::sync::Arc;

use tokio::time::Instant;
use zarrd_meta::{
    ArrayModel,
    documents::{ElementImpact, NodePatch},
    selection::{DimensionSelection, Region},
};
use zarrd_operations::WriteReport;
use zarrd_store::{Key, not_before};

use super::{
    buffered::BufferedElements,
    claimed,
    commit::{self, WriteKind, WriteTarget},
    encode::WriteContext,
    error::WriteError,
    layout::ChunkedRegion,
    receive::receive,
    region::check_chunks,
    source::ElementSource,
};
use crate::{
    context::Context,
    error::ArrayError,
    growth::claim::GrowthClaim,
    metadata::array_update::ArrayMetadataUpdate,
    node::{array::Array, resolved::ResolvedArray},
    options::EmptyChunks,
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
};

/// A planned append.
#[derive(Debug)]
pub struct Append {
    context: Arc<Context>,
    target: WriteTarget,
    resolved: Arc<ResolvedArray>,
    dimension: usize,
}

/// The means by which an append does not meet others.
enum Turn {
    /// Its commit fails if another one comes first; after a few attempts others wait for it.
    Optimistic,
    /// It has the claim of the array, for which others wait.
    Claimed(GrowthClaim),
}

/// An array that grows along a dimension.
pub(crate) struct Growth {
    /// The array in its new shape.
    pub(crate) array: Array,
    /// The new shape of the view.
    pub(crate) shape: Vec<u64>,
    /// The new elements, in stored coordinates.
    pub(crate) region: Region,
}

impl Append {
    pub(crate) fn new(
        context: Arc<Context>,
        place: WriteTarget,
        resolved: Arc<ResolvedArray>,
        dimension: &str,
    ) -> Result<Self, WriteError> {
        let dimension = dimension_of(resolved.array.model(), dimension)?;
        Ok(Self { context, target: place, resolved, dimension })
    }

    /// The model of the array.
    pub fn model(&self) -> &ArrayModel {
        self.resolved.array.model()
    }

    /// The dimension that grows.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Grows the array by `count` along the dimension and writes the elements, in one commit. `None` derives the count
    /// from the number of elements; for [`ElementSource::Scalar`] it is 1.
    ///
    /// Where other servers may append at the same time, key by key, it is made to its end even if the caller leaves.
    pub async fn execute(self, count: Option<u64>, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let document = spill_key(&self.resolved)?;
        let mut buffered = BufferedElements::gather(&self.context, &document, elements).await?;
        if !self.context.needs_claim(&self.target.path) {
            return self.attempts(&Turn::Optimistic, count, &mut buffered).await;
        }
        let append = async move {
            let alone = self.context.document_locks.lock_exclusive([self.lock_name()], []).await;
            let _no_waiting = self.context.no_waiting();
            let claim = GrowthClaim::acquire(&self.context, &self.resolved).await?;
            let turn = Turn::Claimed(claim);
            let done = self.attempts(&turn, count, &mut buffered).await;
            if let Turn::Claimed(claim) = turn {
                claim.settle(&done).await;
            }
            drop(alone);
            done
        };
        let done = tokio::spawn(not_before(Some(Instant::now()), append));
        done.await.unwrap_or_else(|_| Err(ArrayError::ShuttingDown.into()))
    }

    async fn attempts(
        &self,
        turn: &Turn,
        count: Option<u64>,
        buffered: &mut BufferedElements,
    ) -> Result<WriteReport, WriteError> {
        let document = spill_key(&self.resolved)?;
        // Where only this process appends, key by key, the edge chunk and the document are changed one after the other, and no
        // other write comes between.
        let is_keyed = self.context.is_keyed_at(&self.target.path) && matches!(turn, Turn::Optimistic);
        for attempt in 0..MAX_ATTEMPTS {
            let is_alone = is_keyed || (attempt >= OPTIMISTIC_ATTEMPTS && matches!(turn, Turn::Optimistic));
            let alone = match is_alone {
                true => self.context.document_locks.lock_exclusive([self.lock_name()], []).await,
                false => Vec::new(),
            };
            let _fence = match is_keyed {
                true => self.context.array_locks.lock_exclusive([self.lock_name()], []).await,
                false => Vec::new(),
            };
            let _no_waiting = if alone.is_empty() { None } else { self.context.no_waiting() };
            let resolved = self.target.resolve(&self.context).await?;
            let lock = alone.is_empty().then(|| self.lock_name());
            let done = self.attempt(&resolved, count, buffered, (turn, lock)).await;
            match done {
                // The array has another shape than the one this attempt was planned for.
                Err(WriteError::ShapeChanged { .. }) => {}
                // An operation that holds memory does not wait for more: spill what is buffered, after which it may.
                Err(WriteError::Array(ArrayError::Memory(_))) if buffered.has_memory() => {
                    buffered.spill(&self.context, &document).await?;
                }
                Ok(report) => {
                    return Ok(WriteReport {
                        conflicts_retried: report.conflicts_retried.saturating_add(attempt as u64),
                        ..report
                    });
                }
                Err(error) => return Err(error),
            }
        }
        Err(ArrayError::TooManyConflicts { path: self.target.path.clone() }.into())
    }

    async fn attempt(
        &self,
        resolved: &Arc<ResolvedArray>,
        count: Option<u64>,
        buffered: &BufferedElements,
        (turn, lock): (&Turn, Option<&[u8]>),
    ) -> Result<WriteReport, WriteError> {
        let view = resolved.array.model().view_shape();
        if view.len() != self.model().shape.len() {
            return Err(no_dimension(self.dimension, view.len()));
        }
        let count = count_of(resolved, self.dimension, count, buffered)?;
        if count == 0 {
            return Ok(commit::empty_report(resolved));
        }
        let Growth { array, shape: grown, region } = Growth::new(resolved, self.dimension, count)?;
        let changes = growth_patch(&grown);
        // Check that the array can grow to this shape before planning any chunks.
        let documents = ArrayMetadataUpdate::of_array(&self.context, &self.target.path, resolved, &changes).await?;
        check_chunks(&array, &region)?;
        let kind = WriteKind::Append { documents: &documents, shape: &grown };
        let Some(layout) = ChunkedRegion::new(&region, array.model()) else {
            return match turn {
                Turn::Claimed(claim) => {
                    claimed::append_nothing(&self.context, &self.target, resolved, (&kind, claim)).await
                }
                Turn::Optimistic => commit::documents_only(&self.context, &self.target, resolved, &kind).await,
            };
        };
        let empty = match turn {
            // A former holder of the claim may still set a chunk that is missing.
            Turn::Claimed(_) => EmptyChunks::Store,
            Turn::Optimistic => resolved.empty_chunks(&self.context.options),
        };
        let target = Arc::new(WriteContext::new(self.context.clone(), array, empty, layout)?);
        let received = receive(&target, self.context.account(), buffered.source(&self.context)?).await?;
        if let Turn::Claimed(claim) = turn {
            return claimed::append(&target, &self.target, resolved, (&kind, claim), received).await;
        }
        let together = match lock {
            Some(name) => self.context.document_locks.lock_shared([name]).await,
            None => Vec::new(),
        };
        let committed = commit::commit(&target, &self.target, resolved.clone(), &kind, received).await;
        drop(together);
        committed
    }

    /// The name of the lock on the array's documents.
    fn lock_name(&self) -> &[u8] {
        self.target.path.relative().as_bytes()
    }
}

impl Growth {
    /// The growth of an array by `count` indices along a dimension.
    pub(crate) fn new(resolved: &ResolvedArray, dimension: usize, count: u64) -> Result<Self, WriteError> {
        let model = resolved.array.model();
        let mut shape = model.view_shape();
        let rank = shape.len();
        let Some(extent) = shape.get_mut(dimension) else { return Err(no_dimension(dimension, rank)) };
        let start = *extent;
        *extent = extent.saturating_add(count);
        let stored = shape.iter().zip(&model.view_offset).map(|(extent, origin)| extent.saturating_add(*origin));
        let array = resolved.array.reshaped(stored.collect());
        let mut region = Region::full(&shape);
        if let Some(dimension) = region.dimensions.get_mut(dimension) {
            *dimension = DimensionSelection::Range { start, step: 1, len: count };
        }
        let region = region.shifted(&model.view_offset);
        Ok(Self { array, shape, region })
    }
}

/// The change of an array's document that makes it grow to a shape.
pub(crate) fn growth_patch(shape: &[u64]) -> NodePatch {
    NodePatch { shape: Some(shape.to_vec()), element_impact: ElementImpact::Changed, ..NodePatch::default() }
}

/// The number of indices that buffered elements are along a dimension; fails unless it is `count`, if that is given.
pub(crate) fn count_of(
    resolved: &ResolvedArray,
    dimension: usize,
    count: Option<u64>,
    buffered: &BufferedElements,
) -> Result<u64, WriteError> {
    let model = resolved.array.model();
    let view = model.view_shape();
    let others = view.iter().enumerate().filter(|(axis, _)| *axis != dimension);
    let elements = others.fold(1_u64, |product, (_, extent)| product.saturating_mul(*extent));
    let (step, found) = match buffered {
        BufferedElements::Fixed(pieces) => {
            (elements.saturating_mul(model.data_type.fixed_size().unwrap_or(0) as u64), pieces.len())
        }
        BufferedElements::Variable(variable) => (elements, variable.len() as u64),
        BufferedElements::Scalar(_) => return Ok(count.unwrap_or(1)),
    };
    let expected = |count: u64| step.saturating_mul(count);
    match (count, found.checked_div(step)) {
        (Some(count), _) if expected(count) == found => Ok(count),
        (Some(count), _) => Err(match buffered {
            BufferedElements::Variable(_) => WriteError::Count { expected: expected(count), found },
            _ => WriteError::Length { expected: expected(count), found },
        }),
        (None, Some(count)) if expected(count) == found => Ok(count),
        (None, None) if found == 0 => Ok(0),
        (None, _) => Err(WriteError::AppendLength { dimension, step, found }),
    }
}

/// A key for staged values that are never committed.
pub(crate) fn spill_key(resolved: &ResolvedArray) -> Result<Key, WriteError> {
    let key = resolved.read_set.keys().next().cloned();
    key.ok_or_else(|| ArrayError::NoSuchNode { path: resolved.array.path().clone() }.into())
}

/// The number of a dimension, given its name, or else its number, which counts from the end if negative.
fn dimension_of(model: &ArrayModel, dimension: &str) -> Result<usize, WriteError> {
    let names = || model.dimension_names.iter();
    if let Some(named) = names().position(|name| name.as_deref() == Some(dimension)) {
        return Ok(named);
    }
    let rank = model.shape.len();
    let number = dimension.parse::<i64>().ok().filter(|_| !dimension.starts_with('+'));
    let Some(number) = number else {
        let known = names().flatten().cloned().collect();
        return Err(WriteError::UnknownDimension { name: dimension.chars().take(64).collect(), known });
    };
    let counted = if number < 0 { number.checked_add_unsigned(rank as u64) } else { Some(number) };
    let counted = counted.and_then(|dimension| usize::try_from(dimension).ok()).filter(|&dimension| dimension < rank);
    counted.ok_or(WriteError::Dimension { dimension: number, rank })
}

fn no_dimension(dimension: usize, rank: usize) -> WriteError {
    WriteError::Dimension { dimension: i64::try_from(dimension).unwrap_or(i64::MAX), rank }
}
