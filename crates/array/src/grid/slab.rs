//! Slabs: the parts of an output that are assembled one at a time.

use std::{collections::VecDeque, ops::Range, sync::Arc};

use zarrd_meta::{
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Points, Region, ResolvedSelection},
};

use super::{dimension::DimIndexer, points::IndexedPoints, projection::ElementSelection, strided::Strides};

/// A part of an output: elements that are consecutive in its C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slab {
    /// Its extent along each dimension of the array, 1 for an index; for points, their number. A stack has a first
    /// dimension more: the number of entries.
    pub(crate) extents: Vec<u64>,
    /// Its elements, with their positions in it.
    pub(crate) selection: ElementSelection,
}

impl Slab {
    /// The strides of positions along the dimensions of the array.
    pub(crate) fn strides(&self) -> Strides {
        match &self.selection {
            ElementSelection::Stacked(_) => Strides::of(self.extents.get(1..).unwrap_or_default()),
            ElementSelection::Orthogonal(_) | ElementSelection::Points(_) => Strides::of(&self.extents),
        }
    }

    /// The number of dimensions before those of the array: 1 for a stack.
    pub(crate) fn stack_axes(&self) -> usize {
        usize::from(matches!(self.selection, ElementSelection::Stacked(_)))
    }
}

/// Splits an output into slabs, in C order.
#[derive(Debug)]
pub(crate) struct Slabs {
    resolved: Arc<ResolvedSelection>,
    /// The index of the next point, or of the next region of a stack.
    next: usize,
    /// The parts that remain of the region before it, in order.
    parts: VecDeque<Region>,
    grid: Arc<ChunkGrid>,
    max_elements: u64,
}

impl Slabs {
    /// Slabs of at most `most` elements, which end at chunk boundaries if possible.
    pub(crate) fn new(resolved: Arc<ResolvedSelection>, grid: Arc<ChunkGrid>, most: u64) -> Self {
        Self { resolved, next: 0, parts: VecDeque::new(), grid, max_elements: most.max(1) }
    }

    /// The slabs of these regions, one after the other.
    pub(crate) fn of_parts(parts: Vec<Region>, grid: Arc<ChunkGrid>, max_elements: u64) -> Self {
        let resolved = Arc::new(ResolvedSelection::Stack(Vec::new()));
        Self { parts: parts.into(), ..Self::new(resolved, grid, max_elements) }
    }

    fn next_points(&mut self, points: &Points) -> Option<Slab> {
        let start = self.next;
        let end = start.saturating_add(usize::try_from(self.max_elements).unwrap_or(usize::MAX)).min(points.len);
        self.next = end;
        (start < end).then(|| Slab {
            extents: vec![(end - start) as u64],
            selection: ElementSelection::Points(Arc::new(IndexedPoints::in_range(points, start..end))),
        })
    }

    /// The next entries of a stack, as many as fit, so that the elements they have of a chunk are decoded together; or
    /// a part of an entry that is too large by itself.
    fn next_entries(&mut self, regions: &[Region]) -> Option<Slab> {
        if !self.parts.is_empty() {
            return self.next_part(regions);
        }
        let elements = regions.first()?.elements().unwrap_or(u64::MAX);
        let fit = self.max_elements.checked_div(elements).unwrap_or(u64::MAX);
        if fit == 0 {
            return self.next_part(regions);
        }
        let start = self.next;
        let end = start.saturating_add(usize::try_from(fit).unwrap_or(usize::MAX)).min(regions.len());
        let some = regions.get(start..end).filter(|some| !some.is_empty())?;
        self.next = end;
        // A stack of empty regions has no slab.
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
            // Both come before the parts that an earlier split left.
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
            ResolvedSelection::Points(points) => self.next_points(points),
            ResolvedSelection::Region(region) => self.next_part(std::slice::from_ref(region)),
            ResolvedSelection::Stack(regions) => self.next_entries(regions),
        }
    }
}

/// Splits off the first part, in C order, of a region with more than `most` elements; returns it and the rest.
///
/// The first dimension with more than one index is split: after as many full chunks as fit; else after as many indices
/// as fit; else after the first index, and the next dimensions are split in turn.
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

/// The number of indices, at most `fits`, that end at the end of a chunk; `None` if the first chunk has more.
fn full_chunks(dimension: &DimensionSelection, grid: &DimensionGrid, fits: u64) -> Option<u64> {
    // Project only as many indices as can fit, so that the cost is proportional to the result.
    let window = slice_dimension(dimension, 0..fits.saturating_add(1).min(dimension.len()))?;
    let DimIndexer::Strided { len, .. } = DimIndexer::of(&window)? else { return None };
    let pieces = DimIndexer::of(&window)?.project(grid, u64::MAX);
    let last = pieces.last()?.indexer.len();
    if len <= fits { Some(len) } else { len.checked_sub(last).filter(|&count| count > 0) }
}

/// A range of a dimension's indices, in the order of the selection.
pub(crate) fn slice_dimension(dimension: &DimensionSelection, range: Range<u64>) -> Option<DimensionSelection> {
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
