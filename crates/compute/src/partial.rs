//! Partial results: accumulators fed with the elements of chunks.

use std::sync::Arc;

use zarrd_codec::Elements;

use crate::{
    accumulate::{Accumulator, Orders},
    error::ComputeError,
    grid::{AxisPositions, AxisWindows, GroupGrid, Windows},
    rows::Rows,
};

/// The elements at equal distances that are gathered at a time.
const GATHERED: usize = 4096;

/// The bytes that all accumulators add before the next ones, so that they read them from the processor's first cache.
const BLOCK: usize = 16 << 10;

/// The state of a reduction for some of its elements. Several are computed side by side, and merged.
pub struct Partial {
    pub(crate) accumulators: Vec<Box<dyn Accumulator>>,
    grid: Arc<GroupGrid>,
    /// The size of an element in bytes; `None` for variable length.
    size: Option<usize>,
    /// True if an accumulator distinguishes the positions of elements.
    needs_order: bool,
    gathered: Vec<u8>,
}

/// Neighbouring dimensions of a chunk that are traversed as one.
#[derive(Clone, Copy, Debug)]
struct Run {
    len: u64,
    /// The index of the first element, and the distance to the next.
    first: u64,
    step: i64,
    /// The position of the first element.
    out: u64,
    window: u64,
    /// The distance between positions in the order of a group.
    order: u64,
}

/// The place of the next elements: in the chunk, among groups, and in the order of a group.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    from: u64,
    group: usize,
    order: u64,
}

impl Partial {
    pub(crate) fn new(
        accumulators: Vec<Box<dyn Accumulator>>,
        grid: Arc<GroupGrid>,
        size: Option<usize>,
        needs_order: bool,
    ) -> Self {
        Self { accumulators, grid, size, needs_order, gathered: Vec::new() }
    }

    /// Adds elements of a chunk of this shape: those at the combinations of the indices of `axes`.
    pub fn add(&mut self, shape: &[u64], axes: &[AxisPositions], elements: &Elements) -> Result<(), ComputeError> {
        let Elements::Fixed(bytes) = elements else { return self.add_repeated(axes, &[]) };
        let strides = strides(shape);
        let (run, outer) = self.innermost(shape, axes);
        let Some(run) = run else {
            let mut place = Place::default();
            return self.add_listed(axes, &strides, 0, &mut place, bytes);
        };
        let outer = axes.get(..outer).unwrap_or_default();
        let rows = self.rows_axis(run, outer.len());
        self.add_runs((outer, rows), &strides, 0, Place::default(), (run, bytes))
    }

    /// The outer dimension whose runs are added together, since they belong to the same groups.
    fn rows_axis(&self, run: Run, outer: usize) -> Option<usize> {
        let is_reduced = |axis: usize| self.grid.dimensions.get(axis).is_some_and(|grid| grid.windows.window > 1);
        match run.window {
            _ if run.step != 1 => None,
            ..=1 => (0..outer).rev().find(|&axis| is_reduced(axis)),
            _ => outer.checked_sub(1),
        }
    }

    /// Adds one element for each combination of positions, in time proportional to the number of groups.
    pub fn add_repeated(&mut self, axes: &[AxisPositions], element: &[u8]) -> Result<(), ComputeError> {
        let windows: Vec<_> =
            axes.iter().zip(&self.grid.dimensions).map(|(axis, grid)| axis.windows(grid.windows.window)).collect();
        if windows.iter().any(|windows| windows.len() == 0) {
            return Ok(());
        }
        let mut next = vec![0_usize; windows.len()];
        loop {
            let (mut group, mut order, mut count) = (0_usize, 0_u64, 1_u64);
            for ((windows, &at), grid) in windows.iter().zip(&next).zip(&self.grid.dimensions) {
                let (number, first, positions) = windows.get(at).ok_or(ComputeError::Internal)?;
                let number = usize::try_from(number).map_err(|_| ComputeError::Internal)?;
                group = group.saturating_add(number.saturating_mul(grid.stride));
                order = order.saturating_add(first.saturating_mul(grid.order));
                count = count.saturating_mul(positions);
            }
            self.accumulators.iter_mut().for_each(|one| one.add_repeated(group, element, count, order));
            if !advance(&mut next, |axis| windows.get(axis).map_or(0, AxisWindows::len)) {
                return Ok(());
            }
        }
    }

    /// Adds the elements of another partial result of the same reduction.
    pub fn merge(&mut self, other: Self) {
        for (one, other) in self.accumulators.iter_mut().zip(other.accumulators) {
            one.merge(other);
        }
    }

    /// True if it would take more than [`SPILL_MEMORY`](crate::SPILL_MEMORY) beyond its estimate. It is then not valid.
    pub fn is_exceeded(&self) -> bool {
        self.accumulators.iter().any(|one| one.is_exceeded())
    }

    /// The last dimensions that can be traversed as one, and the number of those before them; none if the last one is
    /// a list.
    fn innermost(&self, shape: &[u64], axes: &[AxisPositions]) -> (Option<Run>, usize) {
        let one = Run { len: 1, first: 0, step: 1, out: 0, window: 1, order: 0 };
        let Some(mut outer) = axes.len().checked_sub(1) else { return (Some(one), 0) };
        let dimension = |axis: usize| Some((axes.get(axis)?, self.grid.dimensions.get(axis)?, *shape.get(axis)?));
        let Some((AxisPositions::Strided { first, step, len, out }, grid, _)) = dimension(outer) else {
            return (None, 0);
        };
        let mut run =
            Run { len: *len, first: *first, step: *step, out: *out, window: grid.windows.window, order: grid.order };
        // True if all positions belong to one group, and if the positions are all that there are.
        let covers = |len: u64, out: u64, windows: Windows| len == windows.extent && out == 0;
        let (mut is_single, mut is_covered) = (grid.windows.is_single(), covers(*len, *out, grid.windows));
        let mut chunk_extent = shape.get(outer).copied().unwrap_or(0);
        while let Some(axis) = outer.checked_sub(1) {
            let Some((AxisPositions::Strided { first, step: 1, len, out }, grid, extent)) = dimension(axis) else {
                break;
            };
            // The inner elements have to be all of the chunk's, so that those of the next index follow.
            if run.step != 1 || run.first != 0 || run.len != chunk_extent {
                break;
            }
            let (window, order) = match grid.windows.window {
                window if is_single && !self.needs_order => (window.saturating_mul(run.len), 0),
                window if is_single && is_covered && grid.windows.is_single() && window > 1 => {
                    (window.saturating_mul(run.len), run.order.max(1))
                }
                // None of the positions share a group.
                1 if run.window == 1 && is_covered => (1, 0),
                _ => break,
            };
            is_single &= grid.windows.is_single();
            is_covered &= covers(*len, *out, grid.windows);
            let inner = run.len;
            run = Run {
                len: inner.saturating_mul(*len),
                first: inner.saturating_mul(*first),
                step: 1,
                out: inner.saturating_mul(*out),
                window,
                order,
            };
            chunk_extent = chunk_extent.saturating_mul(extent);
            outer = axis;
        }
        (Some(run), outer)
    }

    /// Adds the runs at all combinations of the indices of the outer dimensions, those along one of them together.
    fn add_runs(
        &mut self,
        (outer, rows): (&[AxisPositions], Option<usize>),
        strides: &[u64],
        axis: usize,
        place: Place,
        (run, bytes): (Run, &[u8]),
    ) -> Result<(), ComputeError> {
        let Some(positions) = outer.get(axis) else {
            let rows = rows.and_then(|rows| Some((rows, outer.get(rows)?)));
            return match rows {
                Some((axis, positions)) => self.add_rows(positions, strides, axis, place, (run, bytes)),
                None => self.add_run(place, run, bytes),
            };
        };
        if rows == Some(axis) {
            return self.add_runs((outer, rows), strides, axis + 1, place, (run, bytes));
        }
        for entry in 0..positions.len() {
            let place = self.moved(place, positions, strides, axis, entry)?;
            self.add_runs((outer, rows), strides, axis + 1, place, (run, bytes))?;
        }
        Ok(())
    }

    /// Adds the runs at all indices of an outer dimension. Those that belong to the same groups are added together.
    fn add_rows(
        &mut self,
        positions: &AxisPositions,
        strides: &[u64],
        axis: usize,
        place: Place,
        (run, bytes): (Run, &[u8]),
    ) -> Result<(), ComputeError> {
        let grid = *self.grid.dimensions.get(axis).ok_or(ComputeError::Internal)?;
        let size = self.size.unwrap_or(0);
        let at = |elements: u64| usize::try_from(elements).ok()?.checked_mul(size);
        let apart = strides.get(axis).and_then(|&stride| at(stride)).ok_or(ComputeError::Internal)?;
        let width = at(run.len).ok_or(ComputeError::Internal)?;
        let mut entry = 0;
        while entry < positions.len() {
            let (_, position) = positions.get(entry).ok_or(ComputeError::Internal)?;
            let window = grid.windows.window.max(1);
            let count = match positions {
                AxisPositions::Strided { step: 1, len, .. } => (window - position % window).min(len - entry),
                _ => 1,
            };
            let place = self.moved(place, positions, strides, axis, entry)?;
            let start = at(place.from.saturating_add(run.first)).and_then(|start| bytes.get(start..));
            let rows = start
                .zip(usize::try_from(count).ok())
                .and_then(|(bytes, count)| Rows::new(bytes, width, (apart, count)));
            self.add_windows(place, run, rows.ok_or(ComputeError::Internal)?, grid.order);
            entry += count;
        }
        Ok(())
    }

    /// Adds elements one by one.
    fn add_listed(
        &mut self,
        axes: &[AxisPositions],
        strides: &[u64],
        axis: usize,
        place: &mut Place,
        bytes: &[u8],
    ) -> Result<(), ComputeError> {
        let Some(positions) = axes.get(axis) else {
            return self.add_run(*place, Run { len: 1, first: 0, step: 1, out: 0, window: 1, order: 0 }, bytes);
        };
        for entry in 0..positions.len() {
            let mut next = self.moved(*place, positions, strides, axis, entry)?;
            self.add_listed(axes, strides, axis + 1, &mut next, bytes)?;
        }
        Ok(())
    }

    /// The place after an entry of a dimension was chosen.
    fn moved(
        &self,
        place: Place,
        positions: &AxisPositions,
        strides: &[u64],
        axis: usize,
        entry: u64,
    ) -> Result<Place, ComputeError> {
        let (index, position) = positions.get(entry).ok_or(ComputeError::Internal)?;
        let grid = self.grid.dimensions.get(axis).ok_or(ComputeError::Internal)?;
        let stride = strides.get(axis).ok_or(ComputeError::Internal)?;
        let number = usize::try_from(position / grid.windows.window.max(1)).map_err(|_| ComputeError::Internal)?;
        Ok(Place {
            from: place.from.saturating_add(index.saturating_mul(*stride)),
            group: place.group.saturating_add(number.saturating_mul(grid.stride)),
            order: place.order.saturating_add(position.saturating_mul(grid.order)),
        })
    }

    /// Adds elements of the innermost dimensions.
    fn add_run(&mut self, place: Place, run: Run, bytes: &[u8]) -> Result<(), ComputeError> {
        let size = self.size.unwrap_or(0);
        let at = |element: u64| usize::try_from(element).ok().and_then(|element| element.checked_mul(size));
        let first = place.from.saturating_add(run.first);
        if run.step == 1 {
            let range = at(first).zip(at(first.saturating_add(run.len)));
            let values = range.and_then(|(start, end)| bytes.get(start..end)).ok_or(ComputeError::Internal)?;
            self.add_values(place, run, values);
            return Ok(());
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let (mut index, mut part) = (first, run);
        while part.len > 0 {
            gathered.clear();
            let count = part.len.min(GATHERED as u64);
            for _ in 0..count {
                let start = at(index).ok_or(ComputeError::Internal)?;
                let element = start.checked_add(size).and_then(|end| bytes.get(start..end));
                gathered.extend_from_slice(element.ok_or(ComputeError::Internal)?);
                index = index.wrapping_add_signed(run.step);
            }
            self.add_values(place, Run { len: count, ..part }, &gathered);
            part = Run { len: part.len - count, out: part.out.saturating_add(count), ..part };
        }
        self.gathered = gathered;
        Ok(())
    }

    /// Adds consecutive elements at consecutive positions.
    fn add_values(&mut self, place: Place, run: Run, values: &[u8]) {
        if run.window > 1 {
            if self.accumulators.len() == 1 {
                return self.add_windows(place, run, Rows::one(values), 0);
            }
            let block = BLOCK.next_multiple_of(self.size.unwrap_or(0).max(1));
            let mut run = run;
            for values in values.chunks(block) {
                self.add_windows(place, run, Rows::one(values), 0);
                run.out = run.out.saturating_add((values.len() / self.size.unwrap_or(0).max(1)) as u64);
            }
            return;
        }
        self.add_windows(place, run, Rows::one(values), 0);
    }

    /// Adds rows of consecutive elements at consecutive positions, whose groups are the same.
    fn add_windows(&mut self, place: Place, run: Run, rows: Rows<'_>, of_rows: u64) {
        let size = self.size.unwrap_or(0).max(1);
        let window = usize::try_from(run.window).unwrap_or(usize::MAX).max(1);
        let group =
            |position: u64| place.group.saturating_add(usize::try_from(position).unwrap_or(usize::MAX) / window);
        let order = |position: u64| place.order.saturating_add(position.saturating_mul(run.order));
        if run.window <= 1 {
            let (first, order) = (group(run.out), order(run.out));
            return self.accumulators.iter_mut().for_each(|one| one.add_rows_to_each(first, rows, order, of_rows));
        }
        // A part of a window, then whole ones, then a part of one.
        let position = usize::try_from(run.out % run.window.max(1)).unwrap_or(0);
        let head = if position == 0 { 0 } else { (window - position).saturating_mul(size).min(rows.width()) };
        let whole = rows.width() - (rows.width() - head) % window.saturating_mul(size);
        let after_head = run.out.saturating_add((head / size) as u64);
        let after_whole = run.out.saturating_add((whole / size) as u64);
        for one in &mut self.accumulators {
            let mut add_part = |start: usize, end: usize, position: u64| {
                let part = rows.part(start, end);
                if part.width() > 0 {
                    let orders = Orders { first: order(position), step: run.order, apart: 0, of_rows };
                    one.add_rows(group(position), part, part.width(), orders);
                }
            };
            add_part(0, head, run.out);
            add_part(whole, rows.width(), after_whole);
            if head < whole {
                let apart = run.window.saturating_mul(run.order);
                let orders = Orders { first: order(after_head), step: run.order, apart, of_rows };
                one.add_rows(group(after_head), rows.part(head, whole), window.saturating_mul(size), orders);
            }
        }
    }
}

/// The strides of a C-ordered shape, in elements.
fn strides(shape: &[u64]) -> Vec<u64> {
    let mut strides = Vec::with_capacity(shape.len());
    let mut stride = 1_u64;
    for &extent in shape.iter().rev() {
        strides.push(stride);
        stride = stride.saturating_mul(extent);
    }
    strides.reverse();
    strides
}

/// Advances to the next combination, in C order; false after the last one.
fn advance(next: &mut [usize], extent: impl Fn(usize) -> usize) -> bool {
    for (axis, at) in next.iter_mut().enumerate().rev() {
        *at += 1;
        if *at < extent(axis) {
            return true;
        }
        *at = 0;
    }
    false
}
