//! Slabs: the parts of an answer that are assembled at a time.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use meta::{
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Points, Region, Resolved},
};

use super::{
    dimension::DimIndexer,
    projection::{ElementSelection, IndexedPoint},
    strided::Strides,
};

/// A part of an answer: elements that follow each other in its C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    /// Its extent along each axis of the array, 1 where one index is selected; along the only axis of points, how many. Of a stack there is one more before these: how many entries.
    pub(crate) extents: Vec<u64>,
    /// Its elements, with their places in it.
    pub(crate) selection: ElementSelection,
}

impl Slab {
    /// The strides by which places along the axes of the picks are counted.
    pub(crate) fn strides(&self) -> Strides {
        match &self.selection {
            ElementSelection::Stacked(_) => Strides::of(self.extents.get(1..).unwrap_or_default()),
            ElementSelection::Orthogonal(_) | ElementSelection::Points(_) => Strides::of(&self.extents),
        }
    }

    /// How many axes come before those of the array.
    pub(crate) fn stack_axes(&self) -> usize {
        usize::from(matches!(self.selection, ElementSelection::Stacked(_)))
    }
}

/// Cuts an answer into slabs, in its C order.
#[derive(Debug)]
pub(crate) struct Slabs {
    resolved: Arc<Resolved>,
    /// Which of the points, or of the stacked regions, comes next.
    next: usize,
    /// What is left of the region before, the next part first.
    parts: VecDeque<Region>,
    grid: Arc<ChunkGrid>,
    max_elements: u64,
}

impl Slabs {
    /// Slabs of at most `most` elements, which end where chunks end if that is possible.
    pub(crate) fn new(resolved: Arc<Resolved>, grid: Arc<ChunkGrid>, most: u64) -> Self {
        Self { resolved, next: 0, parts: VecDeque::new(), grid, max_elements: most.max(1) }
    }

    fn next_points(&mut self, points: &Points) -> Option<Slab> {
        let start = self.next;
        let end = start.saturating_add(usize::try_from(self.max_elements).unwrap_or(usize::MAX)).min(points.len);
        self.next = end;
        let selection = ElementSelection::Points(IndexedPoint::in_range(points, start..end));
        (start < end).then(|| Slab { extents: vec![(end - start) as u64], selection })
    }

    /// As many entries of a stack as fit, so that what they have of one chunk is decoded together; of an entry that is too large by itself, a part.
    fn next_entries(&mut self, regions: &[Region]) -> Option<Slab> {
        let elements = regions.first()?.elements().unwrap_or(u64::MAX);
        let fit = self.max_elements.checked_div(elements).unwrap_or(u64::MAX);
        if !self.parts.is_empty() || fit == 0 {
            return self.next_part(regions);
        }
        let start = self.next;
        let end = start.saturating_add(usize::try_from(fit).unwrap_or(usize::MAX)).min(regions.len());
        let some = regions.get(start..end).filter(|some| !some.is_empty())?;
        self.next = end;
        // Without elements there is no slab.
        let selection = ElementSelection::of_stack(some)?;
        let of_each = some.first()?.dimensions.iter().map(DimensionSelection::len);
        let entries = std::iter::once(some.len() as u64);
        let extents = match selection {
            ElementSelection::Points(_) => entries.collect(),
            ElementSelection::Orthogonal(_) | ElementSelection::Stacked(_) => entries.chain(of_each).collect(),
        };
        Some(Slab { extents, selection })
    }

    fn next_part(&mut self, regions: &[Region]) -> Option<Slab> {
        loop {
            let region = match self.parts.pop_front() {
                Some(part) => part,
                None => {
                    let region = regions.get(self.next)?;
                    self.next += 1;
                    region.clone()
                }
            };
            let Some(selection) = ElementSelection::of(&region) else { continue };
            if selection.len() <= self.max_elements {
                let extents = region.dimensions.iter().map(DimensionSelection::len).collect();
                return Some(Slab { extents, selection });
            }
            let (first, rest) = split(&region, &self.grid, self.max_elements)?;
            // Both come before what an earlier cut has left.
            rest.into_iter().for_each(|rest| self.parts.push_front(rest));
            self.parts.push_front(first);
        }
    }
}

impl Iterator for Slabs {
    type Item = Slab;

    fn next(&mut self) -> Option<Slab> {
        let resolved = self.resolved.clone();
        match &*resolved {
            Resolved::Points(points) => self.next_points(points),
            Resolved::Region(region) => self.next_part(std::slice::from_ref(region)),
            Resolved::Stack(regions) => self.next_entries(regions),
        }
    }
}

/// Takes from a region that has more than `most` elements a part with which its C order begins, and the rest.
///
/// The first axis with more than one index is cut: after as many whole chunks as fit; where not one does, after as many indices as fit; where not one
/// does, after the first, whose other axes will be cut in turn.
fn split(region: &Region, grid: &ChunkGrid, most: u64) -> Option<(Region, Option<Region>)> {
    let axis = region.dimensions.iter().position(|dimension| dimension.len() > 1)?;
    let after = region
        .dimensions
        .iter()
        .skip(axis + 1)
        .fold(1_u64, |product, dimension| product.saturating_mul(dimension.len()));
    let dimension = region.dimensions.get(axis)?;
    let fits = (most / after.max(1)).clamp(1, dimension.len());
    let count = full_chunks(dimension, grid.dimensions().get(axis)?, fits).unwrap_or(fits);
    let part = |range| {
        let mut part = region.clone();
        *part.dimensions.get_mut(axis)? = slice_dimension(dimension, range)?;
        Some(part)
    };
    let rest = if count < dimension.len() { Some(part(count..dimension.len())?) } else { None };
    Some((part(0..count)?, rest))
}

/// How many indices of a dimension end where a piece of the grid ends, at most `fits`; `None` where the first piece has more.
fn full_chunks(dimension: &DimensionSelection, grid: &DimensionGrid, fits: u64) -> Option<u64> {
    // Only as much is cut as can fit, so that this costs no more than what comes of it.
    let window = slice_dimension(dimension, 0..fits.saturating_add(1).min(dimension.len()))?;
    let DimIndexer::Strided { len, .. } = DimIndexer::of(&window)? else { return None };
    let pieces = DimIndexer::of(&window)?.project(grid, u64::MAX);
    let last = pieces.last()?.indexer.len();
    if len <= fits { Some(len) } else { len.checked_sub(last).filter(|&count| count > 0) }
}

/// The indices in a range of a dimension's, counted in the order in which they are selected.
fn slice_dimension(dimension: &DimensionSelection, range: Range<u64>) -> Option<DimensionSelection> {
    Some(match dimension {
        DimensionSelection::Index(index) => DimensionSelection::Index(*index),
        DimensionSelection::Range { start, step, .. } => {
            let distance = i128::from(*step).checked_mul(i128::from(range.start))?;
            let start = u64::try_from(i128::from(*start).checked_add(distance)?).ok()?;
            let len = range.end - range.start;
            DimensionSelection::Range { start, step: if len < 2 { 1 } else { *step }, len }
        }
        DimensionSelection::List(indices) => {
            let range = usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?;
            DimensionSelection::List(indices.get(range)?.into())
        }
    })
}
