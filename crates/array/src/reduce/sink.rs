//! The sink of a reduction: partial results to which jobs add the elements of chunks.

use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};
use zarrd_codec::Elements;
use zarrd_compute::{AxisPositions, ComputeError, GroupGrid, Partial, SPILL_MEMORY};

use crate::{
    error::ArrayError,
    grid::{dimension::DimIndexer, projection::ElementSelection},
    map::ElementMap,
    read::{context::ReadContext, sink::ElementSink},
};

/// The bytes that are copied in the time in which an element is added.
const WORK_PER_ELEMENT: u64 = 16;

/// A maker of empty partial results.
pub(crate) type MakePartial = dyn Fn() -> Result<Partial, ComputeError> + Send + Sync;

/// Partial results, of which each job takes one.
pub(crate) struct ReductionSink {
    pool: Mutex<Pool>,
    returned: Condvar,
    make: Box<MakePartial>,
    decode: Option<Arc<dyn ElementMap>>,
    fill: Elements,
    /// The fill value, decoded when it is first needed: if no element has it, it may be a time out of range.
    decoded_fill: OnceLock<Elements>,
    grid: Arc<GroupGrid>,
    most: usize,
}

struct Pool {
    free: Vec<Partial>,
    made: usize,
}

impl ReductionSink {
    /// A sink of at most `most` partial results.
    pub(crate) fn new(
        make: Box<MakePartial>,
        decode: Option<Arc<dyn ElementMap>>,
        fill: &[u8],
        (grid, most): (Arc<GroupGrid>, usize),
    ) -> Self {
        let fill = Elements::Fixed(bytes::Bytes::copy_from_slice(fill));
        let (pool, decoded_fill) = (Mutex::new(Pool { free: Vec::new(), made: 0 }), OnceLock::new());
        Self { pool, returned: Condvar::new(), make, decode, fill, decoded_fill, grid, most: most.max(1) }
    }

    fn decoded_fill(&self) -> Result<&Elements, ArrayError> {
        if let Some(fill) = self.decoded_fill.get() {
            return Ok(fill);
        }
        let fill = match &self.decode {
            Some(decode) => decode.map(&self.fill)?,
            None => self.fill.clone(),
        };
        Ok(self.decoded_fill.get_or_init(|| fill))
    }

    /// The work of merging, in steps.
    pub(crate) fn merge_work(&self) -> u64 {
        /// The steps of merging the state of a group.
        const STEPS_PER_GROUP: u64 = 32;
        let made = self.pool.lock().made.max(1) as u64;
        (self.grid.groups() as u64).saturating_mul(STEPS_PER_GROUP).saturating_mul(made)
    }

    /// The merged result. Nothing may be added at the same time.
    pub(crate) fn merged(&self) -> Result<Partial, ArrayError> {
        let free = std::mem::take(&mut self.pool.lock().free);
        let mut free = free.into_iter();
        let mut all = match free.next() {
            Some(first) => first,
            None => (self.make)()?,
        };
        free.for_each(|partial| all.merge(partial));
        self.check(all.is_exceeded())?;
        Ok(all)
    }

    /// Runs a function on a partial result that nobody else uses. Those who have one wait for nothing.
    fn with_partial(&self, add: impl FnOnce(&mut Partial) -> Result<(), ComputeError>) -> Result<(), ArrayError> {
        let mut partial = self.take()?;
        let added = add(&mut partial);
        let is_exceeded = partial.is_exceeded();
        self.pool.lock().free.push(partial);
        self.returned.notify_one();
        added?;
        self.check(is_exceeded)
    }

    /// Fails if a partial result takes more memory than was estimated.
    fn check(&self, is_exceeded: bool) -> Result<(), ArrayError> {
        match is_exceeded {
            false => Ok(()),
            true => {
                let groups = self.grid.groups() as u64;
                Err(ComputeError::SumsTooWide { groups, limit: SPILL_MEMORY }.into())
            }
        }
    }

    fn take(&self) -> Result<Partial, ArrayError> {
        let mut pool = self.pool.lock();
        loop {
            if let Some(partial) = pool.free.pop() {
                return Ok(partial);
            }
            if pool.made < self.most {
                pool.made += 1;
                drop(pool);
                return Ok((self.make)()?);
            }
            self.returned.wait(&mut pool);
        }
    }
}

impl ElementSink for ReductionSink {
    fn write(
        &self,
        _source: &ReadContext,
        shape: &[u64],
        selection: &ElementSelection,
        elements: &Elements,
    ) -> Result<(), ArrayError> {
        let axes = positions(selection)?;
        let decoded = self.decode.as_ref().map(|decode| decode.map(elements)).transpose()?;
        self.with_partial(|partial| partial.add(shape, &axes, decoded.as_ref().unwrap_or(elements)))
    }

    fn write_fill_value(&self, _source: &ReadContext, selection: &ElementSelection) -> Result<(), ArrayError> {
        let axes = positions(selection)?;
        let fill = match self.decoded_fill()? {
            Elements::Fixed(bytes) => bytes,
            Elements::Variable(_) => &bytes::Bytes::new(),
        };
        self.with_partial(|partial| partial.add_repeated(&axes, fill))
    }

    fn write_work(&self, _source: &ReadContext, selection: &ElementSelection) -> u64 {
        // If there are fewer partial results than jobs, a job may wait for another one.
        if self.most == 1 { u64::MAX } else { selection.len().saturating_mul(WORK_PER_ELEMENT) }
    }

    fn most_writers(&self) -> usize {
        self.most
    }

    fn fill_work(&self, _source: &ReadContext, selection: &ElementSelection) -> u64 {
        if self.most == 1 {
            return u64::MAX;
        }
        let windows = self.grid.windows();
        let ElementSelection::Orthogonal(axes) = selection else { return u64::MAX };
        let touched = |(axis, window): (&DimIndexer, u64)| (axis.len() / window.max(1)).saturating_add(1);
        axes.iter().zip(windows).map(touched).fold(WORK_PER_ELEMENT, u64::saturating_mul)
    }
}

impl std::fmt::Debug for ReductionSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReductionSink").field("grid", &self.grid).finish_non_exhaustive()
    }
}

/// The positions of a projection onto a chunk.
fn positions(selection: &ElementSelection) -> Result<Vec<AxisPositions>, ArrayError> {
    let ElementSelection::Orthogonal(axes) = selection else { return Err(ArrayError::ReducesPoints) };
    let positions = |axis: &DimIndexer| match axis {
        &DimIndexer::Strided { first, step, len, out } => AxisPositions::Strided { first, step, len, out },
        DimIndexer::Listed(pairs) => AxisPositions::Listed(pairs.clone()),
    };
    Ok(axes.iter().map(positions).collect())
}
