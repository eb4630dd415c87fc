//! Appending: what comes is gathered first, since only then is it known how much it is, and where it goes.

use std::sync::Arc;

use bytes::Bytes;
use codec::VariableElements;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use meta::{
    ArrayModel,
    documents::{Changes, ElementsChange},
    selection::{DimensionSelection, Region},
};
use store::{ByteStream, Content, Key, Staged, StoreError, TransactionalStore};

use super::{
    Incoming, WriteError, WriteReport, check_chunks,
    commit::{self, Ground, OPTIMISTIC, Place},
    layout::Layout,
    receive::receive,
    target::Target,
};
use crate::{ArrayError, find::Sighting, hierarchy::documents::DocumentChanges, share::Permit, shared::Shared};

/// How often an append is planned anew.
const ATTEMPTS: usize = 16;

/// How many bytes are reserved at a time for what comes.
const STEP: u64 = 1 << 20;

/// Elements that are about to be appended to an array.
#[derive(Debug)]
pub struct Append {
    shared: Arc<Shared>,
    place: Place,
    sighting: Arc<Sighting>,
    dimension: usize,
}

/// Elements that can be gone through again and again.
enum Gathered {
    Fixed(Pieces),
    Variable(VariableElements),
    Scalar(Vec<u8>),
}

/// Bytes in memory, and before them what was too much for it.
#[derive(Default)]
struct Pieces {
    spooled: Vec<Staged>,
    pieces: Vec<Bytes>,
    permits: Vec<Permit>,
    /// How many bytes the pieces have, and how many there is a permit for.
    held: u64,
    permitted: u64,
    len: u64,
}

impl Append {
    pub(super) fn new(
        shared: Arc<Shared>,
        place: Place,
        sighting: Arc<Sighting>,
        dimension: i64,
    ) -> Result<Self, WriteError> {
        let rank = sighting.array.model().shape.len();
        let counted = if dimension < 0 { dimension.checked_add_unsigned(rank as u64) } else { Some(dimension) };
        let counted =
            counted.and_then(|dimension| usize::try_from(dimension).ok()).filter(|&dimension| dimension < rank);
        let dimension = counted.ok_or(WriteError::Dimension { dimension, rank })?;
        Ok(Self { shared, place, sighting, dimension })
    }

    /// The array.
    pub fn model(&self) -> &ArrayModel {
        self.sighting.array.model()
    }

    /// The dimension that grows.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// Grows the array by `count` along the dimension and writes the elements, in one commit. `None` counts them by how many bytes come; with [`Incoming::Scalar`] it is one.
    pub async fn run(self, count: Option<u64>, elements: Incoming) -> Result<WriteReport, WriteError> {
        let mut gathered = match elements {
            Incoming::Fixed(stream) => Gathered::Fixed(Pieces::gather(&self.shared, &self.spool_key()?, stream).await?),
            Incoming::Variable(elements) => Gathered::Variable(elements),
            Incoming::Scalar(element) => Gathered::Scalar(element),
        };
        let document = self.spool_key()?;
        for attempt in 0..ATTEMPTS {
            let alone = match attempt >= OPTIMISTIC {
                true => self.shared.appends.hold_alone([document.as_bytes()], []).await,
                false => Vec::new(),
            };
            let _no_waiting = if alone.is_empty() { None } else { self.shared.no_waiting() };
            let sighting = self.place.find(&self.shared).await?;
            // The documents are those of the shrink by now, or the commit will find others.
            self.shared.wait_until_shrunk(&self.place.path).await?;
            let done = self.attempt(&sighting, count, &gathered, alone.is_empty().then_some(&document)).await;
            match done {
                // The array is another one than what this was planned for.
                Err(WriteError::ShapeChanged { .. }) => {}
                // Whoever holds memory does not wait for more: what was gathered goes to the store, and then it may.
                Err(WriteError::Array(ArrayError::Memory(_))) if gathered.holds_memory() => {
                    gathered.spool(&self.shared, &document).await?;
                }
                Ok(report) => {
                    return Ok(WriteReport { repeated: report.repeated.saturating_add(attempt as u64), ..report });
                }
                Err(error) => return Err(error),
            }
        }
        Err(ArrayError::TooManyConflicts { path: self.place.path.clone() }.into())
    }

    async fn attempt(
        &self,
        sighting: &Arc<Sighting>,
        count: Option<u64>,
        gathered: &Gathered,
        lock: Option<&Key>,
    ) -> Result<WriteReport, WriteError> {
        let model = sighting.array.model();
        let view = model.view_shape();
        let Some(&extent) = view.get(self.dimension).filter(|_| view.len() == self.model().shape.len()) else {
            let dimension = i64::try_from(self.dimension).unwrap_or(i64::MAX);
            return Err(WriteError::Dimension { dimension, rank: view.len() });
        };
        let count = self.count(model, &view, count, gathered)?;
        if count == 0 {
            return Ok(commit::nothing(sighting));
        }
        let mut grown = view.clone();
        grown.get_mut(self.dimension).into_iter().for_each(|extent| *extent = extent.saturating_add(count));
        let changes = Changes { shape: Some(grown.clone()), elements: ElementsChange::Some, ..Changes::default() };
        // Whether the array can grow so is said here, before anything is planned for the new shape.
        let documents = DocumentChanges::of_array(&self.shared, &self.place.path, sighting, &changes).await?;
        let stored = grown.iter().zip(&model.origin).map(|(extent, origin)| extent.saturating_add(*origin)).collect();
        let array = sighting.array.reshaped(stored);
        let mut region = Region::whole(&grown);
        if let Some(dimension) = region.dimensions.get_mut(self.dimension) {
            *dimension = DimensionSelection::Range { start: extent, step: 1, len: count };
        }
        let region = region.shifted(&model.origin);
        check_chunks(&array, &region)?;
        let ground = Ground::Append { documents: &documents, shape: &grown };
        let Some(layout) = Layout::new(&region, array.model()) else {
            return commit::documents_only(&self.shared, &self.place, sighting, &ground).await;
        };
        let target = Arc::new(Target::new(self.shared.clone(), array, layout)?);
        let received = receive(&target, self.shared.account(), gathered.incoming(&self.shared)).await?;
        let together = match lock {
            Some(document) => self.shared.appends.share([document.as_bytes()]).await,
            None => Vec::new(),
        };
        let committed = commit::commit(&target, &self.place, sighting.clone(), &ground, received).await;
        drop(together);
        committed
    }

    /// How many steps come.
    fn count(
        &self,
        model: &ArrayModel,
        view: &[u64],
        count: Option<u64>,
        gathered: &Gathered,
    ) -> Result<u64, WriteError> {
        let others = view.iter().enumerate().filter(|(axis, _)| *axis != self.dimension);
        let elements = others.fold(1_u64, |product, (_, extent)| product.saturating_mul(*extent));
        let (step, found) = match gathered {
            Gathered::Fixed(pieces) => {
                (elements.saturating_mul(model.data_type.fixed_size().unwrap_or(0) as u64), pieces.len)
            }
            Gathered::Variable(variable) => (elements, variable.len() as u64),
            Gathered::Scalar(_) => return Ok(count.unwrap_or(1)),
        };
        let expected = |count: u64| step.saturating_mul(count);
        match (count, found.checked_div(step)) {
            (Some(count), _) if expected(count) == found => Ok(count),
            (Some(count), _) => Err(match gathered {
                Gathered::Variable(_) => WriteError::Count { expected: expected(count), found },
                _ => WriteError::Length { expected: expected(count), found },
            }),
            (None, Some(count)) if expected(count) == found => Ok(count),
            (None, None) if found == 0 => Ok(0),
            (None, _) => Err(WriteError::AppendLength { dimension: self.dimension, step, found }),
        }
    }

    /// A key that values can be staged for which are never committed.
    fn spool_key(&self) -> Result<Key, WriteError> {
        let key = self.sighting.documents.keys().next().cloned();
        key.ok_or_else(|| ArrayError::NoSuchNode { path: self.place.path.clone() }.into())
    }
}

impl Gathered {
    /// Whether it has a reservation of memory.
    fn holds_memory(&self) -> bool {
        matches!(self, Self::Fixed(pieces) if !pieces.permits.is_empty())
    }

    /// Puts what is in memory into the store, where no one commits it.
    async fn spool(&mut self, shared: &Shared, key: &Key) -> Result<(), StoreError> {
        match self {
            Self::Fixed(pieces) => pieces.spool(shared, key).await,
            Self::Variable(_) | Self::Scalar(_) => Ok(()),
        }
    }

    /// The elements, from the beginning.
    fn incoming(&self, shared: &Shared) -> Incoming {
        match self {
            Self::Fixed(pieces) => Incoming::Fixed(pieces.stream(shared.store.clone())),
            Self::Variable(elements) => Incoming::Variable(elements.clone()),
            Self::Scalar(element) => Incoming::Scalar(element.clone()),
        }
    }
}

impl Pieces {
    /// Takes in all that comes.
    async fn gather(shared: &Shared, key: &Key, mut stream: ByteStream) -> Result<Self, WriteError> {
        let most = shared.options.assembly / 2;
        let mut all = Self::default();
        while let Some(piece) = stream.try_next().await? {
            all.len = all.len.saturating_add(piece.len() as u64);
            all.held = all.held.saturating_add(piece.len() as u64);
            all.pieces.push(piece);
            if all.held > all.permitted && !all.permit(shared, most) {
                all.spool(shared, key).await?;
            }
        }
        Ok(all)
    }

    /// Whether what is held may be.
    fn permit(&mut self, shared: &Shared, most: u64) -> bool {
        let more = (self.held - self.permitted).max(STEP);
        if self.held > most {
            return false;
        }
        match shared.try_admit(more) {
            Some(permit) => {
                self.permits.push(permit);
                self.permitted = self.permitted.saturating_add(more);
                true
            }
            None => false,
        }
    }

    async fn spool(&mut self, shared: &Shared, key: &Key) -> Result<(), StoreError> {
        let pieces = std::mem::take(&mut self.pieces);
        let content = Content { size: Some(self.held), stream: stream::iter(pieces.into_iter().map(Ok)).boxed() };
        self.spooled.push(shared.store.stage(key, content).await?);
        self.permits.clear();
        (self.held, self.permitted) = (0, 0);
        Ok(())
    }

    fn stream(&self, store: Arc<dyn TransactionalStore>) -> ByteStream {
        let spooled = stream::iter(self.spooled.clone()).then(move |staged| read(store.clone(), staged)).try_flatten();
        spooled.chain(stream::iter(self.pieces.clone()).map(Ok)).boxed()
    }
}

async fn read(
    store: Arc<dyn TransactionalStore>,
    staged: Staged,
) -> Result<impl Stream<Item = Result<Bytes, StoreError>>, StoreError> {
    store.read_staged(&staged, None).await
}
