//! Slabs of a reduction: parts of its result that are made one at a time.

use std::sync::Arc;

use zarrd_compute::Windows;
use zarrd_meta::{
    grid::{ChunkGrid, DimensionGrid},
    selection::{DimensionSelection, Region},
};

use crate::grid::{projection::ElementSelection, slab::slice_dimension};

/// The most slabs whose chunks are counted one by one.
const MAX_COUNTED: usize = 1 << 12;

/// Splits the result of a reduction into slabs, in C order.
#[derive(Clone, Debug)]
pub(crate) struct Slabs {
    /// The parts that remain, the next one last.
    parts: Vec<ReductionSlab>,
    grid: Arc<ChunkGrid>,
    max_groups: u64,
}

/// Groups that are consecutive in the result, and their elements.
#[derive(Clone, Debug)]
pub(crate) struct ReductionSlab {
    pub(crate) region: Region,
    pub(crate) windows: Vec<Windows>,
}

impl Slabs {
    /// Slabs of at most `max_groups` groups, which end at chunk boundaries if possible.
    pub(crate) fn new(region: Region, windows: Vec<Windows>, grid: Arc<ChunkGrid>, max_groups: u64) -> Self {
        Self { parts: vec![ReductionSlab { region, windows }], grid, max_groups: max_groups.max(1) }
    }

    /// The number of times that a chunk is read, rounded up: those at the edge of slabs are read for each.
    pub(crate) fn passes(&self) -> u64 {
        let all = self.parts.first().map_or(0, |part| chunks(&part.region, &self.grid)).max(1);
        let (mut read, mut counted) = (0_u128, 0_u64);
        for slab in self.clone().take(MAX_COUNTED) {
            read = read.saturating_add(chunks(&slab.region, &self.grid));
            counted += 1;
        }
        let groups = self.parts.first().map_or(0, ReductionSlab::groups);
        let estimated = (groups / self.max_groups).max(counted).max(1);
        let read = read.saturating_mul(u128::from(estimated)) / u128::from(counted.max(1));
        u64::try_from(read.div_ceil(all)).unwrap_or(u64::MAX).max(1)
    }
}

impl Iterator for Slabs {
    type Item = ReductionSlab;

    fn next(&mut self) -> Option<ReductionSlab> {
        loop {
            let part = self.parts.pop()?;
            if part.groups() <= self.max_groups {
                return Some(part);
            }
            let (first, rest) = part.split(&self.grid, self.max_groups)?;
            self.parts.extend(rest);
            self.parts.push(first);
        }
    }
}

impl ReductionSlab {
    fn groups(&self) -> u64 {
        self.windows.iter().fold(1, |groups, windows| groups.saturating_mul(windows.count().max(1)))
    }

    /// Splits off the first part, in C order, along the first dimension with several groups: as many as fit, or one.
    fn split(&self, grid: &ChunkGrid, most: u64) -> Option<(Self, Option<Self>)> {
        let axis = self.windows.iter().position(|windows| windows.count() > 1)?;
        let after = self.windows.iter().skip(axis + 1).fold(1_u64, |all, windows| all.saturating_mul(windows.count()));
        let windows = *self.windows.get(axis)?;
        let dimension = self.region.dimensions.get(axis)?;
        let fits = (most / after.max(1)).clamp(1, windows.count());
        let aligned = aligned_groups(dimension, grid.dimensions().get(axis)?, windows.window, fits);
        let at = aligned.saturating_mul(windows.window).min(windows.extent);
        let part = |range: std::ops::Range<u64>| {
            let mut part = self.clone();
            *part.windows.get_mut(axis)? = Windows { extent: range.end - range.start, window: windows.window };
            *part.region.dimensions.get_mut(axis)? = slice_dimension(dimension, range)?;
            Some(part)
        };
        let rest = if at < windows.extent { Some(part(at..windows.extent)?) } else { None };
        Some((part(0..at)?, rest))
    }
}

/// The number of groups, at most `fits`, that end where a chunk does, if there is such a number.
fn aligned_groups(dimension: &DimensionSelection, grid: &DimensionGrid, window: u64, fits: u64) -> u64 {
    let (DimensionSelection::Range { start, step: 1, .. }, DimensionGrid::Regular { length }) = (dimension, grid)
    else {
        return fits;
    };
    // The ends of windows after `start` that are multiples of the chunk's length.
    let end = start.saturating_add(fits.saturating_mul(window));
    let boundary = end - end % length.max(&1);
    match boundary.checked_sub(*start).filter(|&len| len > 0 && len % window.max(1) == 0) {
        Some(len) => len / window.max(1),
        None => fits,
    }
}

fn chunks(region: &Region, grid: &ChunkGrid) -> u128 {
    ElementSelection::of(region).map_or(0, |selection| selection.max_chunks(grid))
}
