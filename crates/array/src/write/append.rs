//! Appending: elements are buffered first, since their number, and so the new shape, is known only at the end.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use zarrd_codec::VariableElements;
use zarrd_meta::{
    ArrayModel,
    documents::{ElementImpact, NodePatch},
    selection::{DimensionSelection, Region},
};
use zarrd_operations::WriteReport;
use zarrd_store::{ByteStream, Key, Payload, Staged, StoreError, TransactionalStore};

use super::{
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
    memory::claim::Permit,
    metadata::array_update::ArrayMetadataUpdate,
    node::resolved::ResolvedArray,
    retry::{MAX_ATTEMPTS, OPTIMISTIC_ATTEMPTS},
};

/// The memory that is reserved at a time for buffered elements, in bytes.
const BUFFER_STEP: u64 = 1 << 20;

/// A planned append.
#[derive(Debug)]
pub struct Append {
    context: Arc<Context>,
    target: WriteTarget,
    resolved: Arc<ResolvedArray>,
    dimension: usize,
}

/// Elements that can be read repeatedly, once for each attempt.
enum BufferedElements {
    Fixed(BufferedBytes),
    Variable(VariableElements),
    Scalar(Vec<u8>),
}

/// Buffered bytes: those that exceeded memory are spilled to the store, and come first.
#[derive(Default)]
struct BufferedBytes {
    spilled: Vec<Staged>,
    pieces: Vec<Bytes>,
    permits: Vec<Permit>,
    /// The bytes in memory, and those that are reserved for them.
    buffered: u64,
    permitted: u64,
    len: u64,
}

impl Append {
    pub(crate) fn new(
        context: Arc<Context>,
        place: WriteTarget,
        resolved: Arc<ResolvedArray>,
        dimension: i64,
    ) -> Result<Self, WriteError> {
        let rank = resolved.array.model().shape.len();
        let counted = if dimension < 0 { dimension.checked_add_unsigned(rank as u64) } else { Some(dimension) };
        let counted =
            counted.and_then(|dimension| usize::try_from(dimension).ok()).filter(|&dimension| dimension < rank);
        let dimension = counted.ok_or(WriteError::Dimension { dimension, rank })?;
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
    pub async fn execute(self, count: Option<u64>, elements: ElementSource) -> Result<WriteReport, WriteError> {
        let mut buffered = match elements {
            ElementSource::Fixed(stream) => {
                BufferedElements::Fixed(BufferedBytes::gather(&self.context, &self.spill_key()?, stream).await?)
            }
            ElementSource::Variable(elements) => BufferedElements::Variable(elements),
            ElementSource::Scalar(element) => BufferedElements::Scalar(element),
        };
        let document = self.spill_key()?;
        for attempt in 0..MAX_ATTEMPTS {
            let alone = match attempt >= OPTIMISTIC_ATTEMPTS {
                true => self.context.document_locks.lock_exclusive([self.lock_name()], []).await,
                false => Vec::new(),
            };
            let _no_waiting = if alone.is_empty() { None } else { self.context.no_waiting() };
            let resolved = self.target.resolve(&self.context).await?;
            // The documents are those after the shrink by now, or the commit will fail.
            self.context.wait_until_shrunk(&self.target.path).await?;
            let lock = alone.is_empty().then(|| self.lock_name());
            let done = self.attempt(&resolved, count, &buffered, lock).await;
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
        lock: Option<&[u8]>,
    ) -> Result<WriteReport, WriteError> {
        let model = resolved.array.model();
        let view = model.view_shape();
        let Some(&extent) = view.get(self.dimension).filter(|_| view.len() == self.model().shape.len()) else {
            let dimension = i64::try_from(self.dimension).unwrap_or(i64::MAX);
            return Err(WriteError::Dimension { dimension, rank: view.len() });
        };
        let count = self.count(model, &view, count, buffered)?;
        if count == 0 {
            return Ok(commit::empty_report(resolved));
        }
        let mut grown = view.clone();
        grown.get_mut(self.dimension).into_iter().for_each(|extent| *extent = extent.saturating_add(count));
        let changes =
            NodePatch { shape: Some(grown.clone()), element_impact: ElementImpact::Changed, ..NodePatch::default() };
        // Check that the array can grow to this shape before planning any chunks.
        let documents = ArrayMetadataUpdate::of_array(&self.context, &self.target.path, resolved, &changes).await?;
        let stored =
            grown.iter().zip(&model.view_offset).map(|(extent, origin)| extent.saturating_add(*origin)).collect();
        let array = resolved.array.reshaped(stored);
        let mut region = Region::full(&grown);
        if let Some(dimension) = region.dimensions.get_mut(self.dimension) {
            *dimension = DimensionSelection::Range { start: extent, step: 1, len: count };
        }
        let region = region.shifted(&model.view_offset);
        check_chunks(&array, &region)?;
        let kind = WriteKind::Append { documents: &documents, shape: &grown };
        let Some(layout) = ChunkedRegion::new(&region, array.model()) else {
            return commit::documents_only(&self.context, &self.target, resolved, &kind).await;
        };
        let target = Arc::new(WriteContext::new(self.context.clone(), array, resolved, layout)?);
        let received = receive(&target, self.context.account(), buffered.source(&self.context)?).await?;
        let together = match lock {
            Some(name) => self.context.document_locks.lock_shared([name]).await,
            None => Vec::new(),
        };
        let committed = commit::commit(&target, &self.target, resolved.clone(), &kind, received).await;
        drop(together);
        committed
    }

    /// The number of indices to append.
    fn count(
        &self,
        model: &ArrayModel,
        view: &[u64],
        count: Option<u64>,
        buffered: &BufferedElements,
    ) -> Result<u64, WriteError> {
        let others = view.iter().enumerate().filter(|(axis, _)| *axis != self.dimension);
        let elements = others.fold(1_u64, |product, (_, extent)| product.saturating_mul(*extent));
        let (step, found) = match buffered {
            BufferedElements::Fixed(pieces) => {
                (elements.saturating_mul(model.data_type.fixed_size().unwrap_or(0) as u64), pieces.len)
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
            (None, _) => Err(WriteError::AppendLength { dimension: self.dimension, step, found }),
        }
    }

    /// The name of the lock on the array's documents.
    fn lock_name(&self) -> &[u8] {
        self.target.path.relative().as_bytes()
    }

    /// A key for staged values that are never committed.
    fn spill_key(&self) -> Result<Key, WriteError> {
        let key = self.resolved.read_set.keys().next().cloned();
        key.ok_or_else(|| ArrayError::NoSuchNode { path: self.target.path.clone() }.into())
    }
}

impl BufferedElements {
    /// True if it has memory reserved.
    fn has_memory(&self) -> bool {
        matches!(self, Self::Fixed(pieces) if !pieces.permits.is_empty())
    }

    /// Spills buffered bytes to the store, as a staged value that is never committed.
    async fn spill(&mut self, context: &Context, key: &Key) -> Result<(), StoreError> {
        match self {
            Self::Fixed(pieces) => pieces.spill(context, key).await,
            Self::Variable(_) | Self::Scalar(_) => Ok(()),
        }
    }

    /// The elements, from the first.
    fn source(&self, context: &Context) -> Result<ElementSource, StoreError> {
        Ok(match self {
            Self::Fixed(pieces) => ElementSource::Fixed(pieces.stream(context.writes()?.clone())),
            Self::Variable(elements) => ElementSource::Variable(elements.clone()),
            Self::Scalar(element) => ElementSource::Scalar(element.clone()),
        })
    }
}

impl BufferedBytes {
    /// Buffers all bytes of a stream.
    async fn gather(context: &Context, key: &Key, mut stream: ByteStream) -> Result<Self, WriteError> {
        let most = context.options.slab_memory / 2;
        let mut all = Self::default();
        while let Some(piece) = stream.try_next().await? {
            all.len = all.len.saturating_add(piece.len() as u64);
            all.buffered = all.buffered.saturating_add(piece.len() as u64);
            all.pieces.push(piece);
            if all.buffered > all.permitted && !all.permit(context, most) {
                all.spill(context, key).await?;
            }
        }
        Ok(all)
    }

    /// Reserves memory for the buffered bytes; false if they have to be spilled.
    fn permit(&mut self, context: &Context, most: u64) -> bool {
        let more = (self.buffered - self.permitted).max(BUFFER_STEP);
        if self.buffered > most {
            return false;
        }
        match context.try_reserve_memory(more) {
            Some(permit) => {
                self.permits.push(permit);
                self.permitted = self.permitted.saturating_add(more);
                true
            }
            None => false,
        }
    }

    async fn spill(&mut self, context: &Context, key: &Key) -> Result<(), StoreError> {
        let pieces = std::mem::take(&mut self.pieces);
        let content = Payload { size: Some(self.buffered), stream: stream::iter(pieces.into_iter().map(Ok)).boxed() };
        self.spilled.push(context.writes()?.stage(key, content).await?);
        self.permits.clear();
        (self.buffered, self.permitted) = (0, 0);
        Ok(())
    }

    fn stream(&self, store: Arc<dyn TransactionalStore>) -> ByteStream {
        let spilled =
            stream::iter(self.spilled.clone()).then(move |staged| read_staged(store.clone(), staged)).try_flatten();
        spilled.chain(stream::iter(self.pieces.clone()).map(Ok)).boxed()
    }
}

async fn read_staged(
    store: Arc<dyn TransactionalStore>,
    staged: Staged,
) -> Result<impl Stream<Item = Result<Bytes, StoreError>>, StoreError> {
    store.read_staged(&staged, None).await
}
