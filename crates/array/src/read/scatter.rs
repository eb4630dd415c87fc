//! Scattering: from the elements of a chunk to their positions in a slab.

use zarrd_codec::Elements;

use super::{
    runs::{ElementRows, StridedElements},
    slab_buffer::{ScatterError, SlabBuffer, SlabCursor},
};
use crate::grid::{
    dimension::DimIndexer,
    points::IndexedPoints,
    projection::{ElementSelection, StackEntry},
    strided::{StridedCopies, StridedCopy, StridedRows, Strides},
};

/// The length in bytes from which a run is shared instead of copied, if it fills whole segments.
const MIN_SHARED_RUN: usize = 32 << 10;

/// The source of a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CopySource<'a> {
    /// The elements of a chunk.
    Elements {
        /// The elements in C order.
        elements: &'a Elements,
        /// The chunk's shape.
        shape: &'a [u64],
    },
    /// One element for every position.
    Fill(&'a [u8]),
}

impl Strides {
    /// The first position of a selection.
    pub(crate) fn first(&self, selection: &ElementSelection) -> u64 {
        match selection {
            ElementSelection::Orthogonal(axes) => self.first_of(axes),
            ElementSelection::Points(points) => points.first_position(),
            // Entries come by increasing position.
            ElementSelection::Stacked(entries) => {
                entries.first().map_or(0, |entry| entry.out + self.first_of(&entry.axes))
            }
        }
    }

    fn first_of(&self, axes: &[DimIndexer]) -> u64 {
        axes.iter().zip(&self.0).map(|(axis, stride)| axis.out_start() * stride).sum()
    }

    fn offset(&self, position: &[u64]) -> u64 {
        self.0.iter().zip(position).map(|(stride, position)| stride * position).sum()
    }
}

/// Copies the selected elements of `source` to their positions in the slab, which has these strides.
pub(crate) fn scatter(
    buffer: &SlabBuffer,
    strides: &Strides,
    selection: &ElementSelection,
    source: CopySource<'_>,
) -> Result<(), ScatterError> {
    let mut writer = Scatter { cursor: buffer.cursor(), size: buffer.size(), source, filled: Vec::new() };
    let own = |rank| match source {
        CopySource::Elements { shape, .. } => Strides::of(shape),
        CopySource::Fill(_) => Strides::broadcast(rank),
    };
    match selection {
        ElementSelection::Points(points) => scatter_points(&mut writer, points),
        ElementSelection::Orthogonal(axes) => {
            StridedCopies::new(axes, &own(axes.len()), strides).visit_rows(|rows| writer.write_rows(rows))
        }
        ElementSelection::Stacked(entries) => {
            let own = own(entries.first().map_or(0, |entry| entry.axes.len()));
            entries.iter().try_for_each(|StackEntry { axes, out }| {
                let moved = |row: StridedCopy| StridedCopy { out: row.out.saturating_add(*out), ..row };
                StridedCopies::new(axes, &own, strides)
                    .visit_rows(|rows| writer.write_rows(StridedRows { row: moved(rows.row), ..rows }))
            })
        }
    }
}

struct Scatter<'a> {
    cursor: SlabCursor<'a>,
    size: Option<usize>,
    source: CopySource<'a>,
    /// Repeated fill values, copied many at a time.
    filled: Vec<u8>,
}

fn scatter_points(writer: &mut Scatter<'_>, points: &IndexedPoints) -> Result<(), ScatterError> {
    let strides = match writer.source {
        CopySource::Elements { shape, .. } => Strides::of(shape),
        CopySource::Fill(_) => Strides::broadcast(0),
    };
    points.iter().try_for_each(|(at, out)| writer.write_run(strides.offset(at), out, [1, 1]))
}

impl Scatter<'_> {
    fn write_rows(&mut self, all: StridedRows) -> Result<(), ScatterError> {
        let StridedRows { mut row, step, out_step, rows } = all;
        let is_run = row.out_step == 1 && (row.step == 1 || row.len == 1);
        if let (true, CopySource::Elements { elements: Elements::Fixed(bytes), .. }, Some(size)) =
            (is_run && rows > 1, self.source, self.size)
            && (1..MIN_SHARED_RUN as u64).contains(&row.len.saturating_mul(size as u64))
        {
            let all = ElementRows { bytes, first: row.from, len: row.len, step, rows };
            return self.cursor.write_rows(row.out, out_step, all);
        }
        for _ in 0..rows {
            self.write(row)?;
            row = StridedCopy { from: row.from.wrapping_add_signed(step), out: row.out.wrapping_add(out_step), ..row };
        }
        Ok(())
    }

    #[inline]
    fn write(&mut self, run: StridedCopy) -> Result<(), ScatterError> {
        let StridedCopy { mut from, step, mut out, out_step, len } = run;
        if out_step == 1 {
            return self.write_run(from, out, [step, i64::try_from(len).unwrap_or(i64::MAX)]);
        }
        for _ in 0..len {
            self.write_run(from, out, [1, 1])?;
            from = from.wrapping_add_signed(step);
            out += out_step;
        }
        Ok(())
    }

    /// Copies elements from `from` on, `step` apart, to consecutive positions from `out` on.
    #[inline]
    fn write_run(&mut self, from: u64, out: u64, [step, len]: [i64; 2]) -> Result<(), ScatterError> {
        let count = len.unsigned_abs();
        match (self.source, self.size) {
            (_, Some(0)) => self.cursor.write_empty(out, count),
            (CopySource::Fill(fill), Some(size)) => self.fill(out, fill, [count, size as u64]),
            (CopySource::Elements { elements: Elements::Fixed(bytes), .. }, Some(size)) if step == 1 || count == 1 => {
                let start = usize::try_from(from).ok().and_then(|from| from.checked_mul(size));
                let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
                let end = start.zip(len).and_then(|(start, len)| start.checked_add(len));
                let (start, end) = start.zip(end).ok_or(ScatterError::Internal)?;
                let run = bytes.get(start..end).ok_or(ScatterError::Internal)?;
                // Share the chunk's memory only if the run is most of it, or a small run would retain all of it.
                match run.len() >= MIN_SHARED_RUN && run.len() >= bytes.len() / 2 {
                    true => self.cursor.install(out, &bytes.slice(start..end)),
                    false => self.cursor.write(out, run),
                }
            }
            (CopySource::Elements { elements: Elements::Fixed(bytes), .. }, Some(_)) => {
                self.cursor.write_strided(out, StridedElements { bytes, first: from, step, count })
            }
            (CopySource::Elements { elements: Elements::Variable(elements), .. }, None) => {
                let mut from = from;
                (out..out.saturating_add(count)).try_for_each(|out| {
                    let element = usize::try_from(from).ok().and_then(|from| elements.get(from));
                    from = from.wrapping_add_signed(step);
                    self.cursor.write_variable(out, element.ok_or(ScatterError::Internal)?)
                })
            }
            (CopySource::Fill(fill), None) => {
                (out..out.saturating_add(count)).try_for_each(|out| self.cursor.write_variable(out, fill))
            }
            (CopySource::Elements { .. }, _) => Err(ScatterError::Internal),
        }
    }

    fn fill(&mut self, out: u64, fill: &[u8], [count, size]: [u64; 2]) -> Result<(), ScatterError> {
        /// The bytes of repeated fill values.
        const PATTERN: u64 = 16 << 10;
        let at_a_time = (PATTERN / size.max(1)).clamp(1, count.max(1));
        let needed = usize::try_from(at_a_time * size).map_err(|_| ScatterError::Internal)?;
        if self.filled.len() < needed {
            self.filled = fill.iter().copied().cycle().take(needed).collect();
        }
        let (mut out, mut left) = (out, count);
        while left > 0 {
            let now = left.min(at_a_time);
            let bytes = usize::try_from(now * size).ok().and_then(|len| self.filled.get(..len));
            self.cursor.write(out, bytes.ok_or(ScatterError::Internal)?)?;
            out += now;
            left -= now;
        }
        Ok(())
    }
}
