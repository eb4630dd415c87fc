//! From the elements of a chunk, or of a part of one, to their places in a slab.

use codec::Elements;

use super::lanes::{Brush, Canvas, PlaceError, Strided};
use crate::plan::{AxisIndices, Entry, PickedPoint, Picks, Run, Runs, Strides};

/// Runs from this length on are not copied if they make up whole lanes.
const WORTH_KEEPING: usize = 32 << 10;

/// What is put into the places.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// The elements of something of this shape.
    Elements {
        /// In C order.
        elements: &'a Elements,
        /// As many as it has elements.
        shape: &'a [u64],
    },
    /// One element for every place.
    Fill(&'a [u8]),
}

impl Strides {
    /// The first place of picks in what has these strides.
    pub(super) fn first(&self, picks: &Picks) -> u64 {
        match picks {
            Picks::Product(axes) => self.first_of(axes),
            Picks::Points(points) => points.iter().map(|point| point.out).min().unwrap_or(0),
            // By increasing place.
            Picks::Stack(entries) => entries.first().map_or(0, |entry| entry.out + self.first_of(&entry.axes)),
        }
    }

    fn first_of(&self, axes: &[AxisIndices]) -> u64 {
        axes.iter().zip(&self.0).map(|(axis, stride)| axis.first_place() * stride).sum()
    }

    fn offset(&self, position: &[u64]) -> u64 {
        self.0.iter().zip(position).map(|(stride, position)| stride * position).sum()
    }
}

/// Puts the picked elements of `source` into their places; `strides` are those of the slab.
pub(super) fn place(canvas: &Canvas, strides: &Strides, picks: &Picks, source: Source<'_>) -> Result<(), PlaceError> {
    let mut writer = Writer { brush: canvas.brush(), size: canvas.size(), source, filled: Vec::new() };
    let own = |rank| match source {
        Source::Elements { shape, .. } => Strides::of(shape),
        Source::Fill(_) => Strides::nowhere(rank),
    };
    match picks {
        Picks::Points(points) => place_points(&mut writer, points),
        Picks::Product(axes) => Runs::new(axes, &own(axes.len()), strides).visit(|run| writer.write(run)),
        Picks::Stack(entries) => {
            let own = own(entries.first().map_or(0, |entry| entry.axes.len()));
            entries.iter().try_for_each(|Entry { axes, out }| {
                let moved = |run: Run| Run { out: run.out.saturating_add(*out), ..run };
                Runs::new(axes, &own, strides).visit(|run| writer.write(moved(run)))
            })
        }
    }
}

struct Writer<'a> {
    brush: Brush<'a>,
    size: Option<usize>,
    source: Source<'a>,
    /// Some fill values one after the other.
    filled: Vec<u8>,
}

fn place_points(writer: &mut Writer<'_>, points: &[PickedPoint]) -> Result<(), PlaceError> {
    let strides = match writer.source {
        Source::Elements { shape, .. } => Strides::of(shape),
        Source::Fill(_) => Strides::nowhere(0),
    };
    points.iter().try_for_each(|point| writer.write_run(strides.offset(&point.at), point.out, [1, 1]))
}

impl Writer<'_> {
    #[inline]
    fn write(&mut self, run: Run) -> Result<(), PlaceError> {
        let Run { mut from, step, mut out, out_step, len } = run;
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

    /// Writes elements from `from` on, `step` apart, to `out` and the places that follow.
    #[inline]
    fn write_run(&mut self, from: u64, out: u64, [step, len]: [i64; 2]) -> Result<(), PlaceError> {
        let count = len.unsigned_abs();
        match (self.source, self.size) {
            (_, Some(0)) => self.brush.write_empty(out, count),
            (Source::Fill(fill), Some(size)) => self.fill(out, fill, [count, size as u64]),
            (Source::Elements { elements: Elements::Fixed(bytes), .. }, Some(size)) if step == 1 || count == 1 => {
                let start = usize::try_from(from).ok().and_then(|from| from.checked_mul(size));
                let len = usize::try_from(count).ok().and_then(|count| count.checked_mul(size));
                let end = start.zip(len).and_then(|(start, len)| start.checked_add(len));
                let (start, end) = start.zip(end).ok_or(PlaceError::Misplaced)?;
                let run = bytes.get(start..end).ok_or(PlaceError::Misplaced)?;
                // What is most of its chunk may keep the chunk's memory; a small part of it must not.
                match run.len() >= WORTH_KEEPING && run.len() >= bytes.len() / 2 {
                    true => self.brush.give(out, &bytes.slice(start..end)),
                    false => self.brush.write(out, run),
                }
            }
            (Source::Elements { elements: Elements::Fixed(bytes), .. }, Some(_)) => {
                self.brush.write_strided(out, Strided { bytes, first: from, step, count })
            }
            (Source::Elements { elements: Elements::Variable(elements), .. }, None) => {
                let mut from = from;
                (out..out.saturating_add(count)).try_for_each(|out| {
                    let element = usize::try_from(from).ok().and_then(|from| elements.get(from));
                    from = from.wrapping_add_signed(step);
                    self.brush.write_variable(out, element.ok_or(PlaceError::Misplaced)?)
                })
            }
            (Source::Fill(fill), None) => {
                (out..out.saturating_add(count)).try_for_each(|out| self.brush.write_variable(out, fill))
            }
            (Source::Elements { .. }, _) => Err(PlaceError::Misplaced),
        }
    }

    fn fill(&mut self, out: u64, fill: &[u8], [count, size]: [u64; 2]) -> Result<(), PlaceError> {
        /// How many bytes of fill values are kept to be copied at a time.
        const PATTERN: u64 = 16 << 10;
        let at_a_time = (PATTERN / size.max(1)).clamp(1, count.max(1));
        let needed = usize::try_from(at_a_time * size).map_err(|_| PlaceError::Misplaced)?;
        if self.filled.len() < needed {
            self.filled = fill.iter().copied().cycle().take(needed).collect();
        }
        let (mut out, mut left) = (out, count);
        while left > 0 {
            let now = left.min(at_a_time);
            let bytes = usize::try_from(now * size).ok().and_then(|len| self.filled.get(..len));
            self.brush.write(out, bytes.ok_or(PlaceError::Misplaced)?)?;
            out += now;
            left -= now;
        }
        Ok(())
    }
}
