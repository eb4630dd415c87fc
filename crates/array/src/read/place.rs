//! From the elements of a chunk, or of a part of one, to their places in a slab.

use codec::Elements;

use super::lanes::{Brush, Canvas, PlaceError, Strided};
use crate::plan::{AxisIndices, PickedPoint, Picks};

/// Runs from this length on are not copied if they make up whole lanes.
const WORTH_KEEPING: usize = 32 << 10;

/// How far apart, in elements, neighbours along each axis are in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Strides(Vec<u64>);

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
    /// Those of something of this shape.
    pub(super) fn of(shape: &[u64]) -> Self {
        let mut strides: Vec<u64> = shape
            .iter()
            .rev()
            .scan(1_u64, |after, &extent| {
                let stride = *after;
                *after = after.saturating_mul(extent);
                Some(stride)
            })
            .collect();
        strides.reverse();
        Self(strides)
    }

    /// The first place of picks in what has these strides.
    pub(super) fn first(&self, picks: &Picks) -> u64 {
        match picks {
            Picks::Product(axes) => axes.iter().zip(&self.0).map(|(axis, stride)| axis.first_place() * stride).sum(),
            Picks::Points(points) => points.iter().map(|point| point.out).min().unwrap_or(0),
        }
    }

    fn offset(&self, position: &[u64]) -> u64 {
        self.0.iter().zip(position).map(|(stride, position)| stride * position).sum()
    }
}

/// Puts the picked elements of `source` into their places; `strides` are those of the slab.
pub(super) fn place(canvas: &Canvas, strides: &Strides, picks: &Picks, source: Source<'_>) -> Result<(), PlaceError> {
    let mut writer = Writer { brush: canvas.brush(), size: canvas.size(), source, filled: Vec::new() };
    match picks {
        Picks::Points(points) => place_points(&mut writer, points),
        Picks::Product(axes) => {
            let (inner, outer) = Axis::all(axes, strides, source);
            place_product(&mut writer, &outer, &inner, [0, 0])
        }
    }
}

/// One axis with its distances, counted in elements.
#[derive(Clone, Debug)]
enum Axis {
    /// `from` and the places `out` advance by these steps, `len` times.
    Strided { first: u64, out: u64, step: i64, out_step: u64, len: u64 },
    /// Pairs of offsets.
    Listed(Vec<(u64, u64)>),
}

struct Writer<'a> {
    brush: Brush<'a>,
    size: Option<usize>,
    source: Source<'a>,
    /// Some fill values one after the other.
    filled: Vec<u8>,
}

impl Axis {
    /// The innermost axis, and the others from the outside in. Axes that lie together in both are one.
    fn all(axes: &[AxisIndices], strides: &Strides, source: Source<'_>) -> (Self, Vec<Self>) {
        let own = match source {
            Source::Elements { shape, .. } => Strides::of(shape),
            Source::Fill(_) => Strides(vec![0; axes.len()]),
        };
        let mut all: Vec<Self> = Vec::new();
        for ((axis, &stride), &out_stride) in axes.iter().zip(&own.0).zip(&strides.0) {
            let axis = Self::new(axis, stride, out_stride);
            match all.last_mut().and_then(|outer| outer.joined(&axis)) {
                Some(joined) => {
                    all.pop();
                    all.push(joined);
                }
                None => all.push(axis),
            }
        }
        let inner = all.pop().unwrap_or(Self::Strided { first: 0, out: 0, step: 1, out_step: 1, len: 1 });
        (inner, all)
    }

    fn new(axis: &AxisIndices, stride: u64, out_stride: u64) -> Self {
        match axis {
            AxisIndices::Strided { first, step, len, out } => Self::Strided {
                first: first * stride,
                out: out * out_stride,
                // A stride is less than the chunk's elements and a step less than the array's extent, or there is only one index.
                step: if *len == 1 { 0 } else { step.saturating_mul(i64::try_from(stride).unwrap_or(i64::MAX)) },
                out_step: out_stride,
                len: *len,
            },
            AxisIndices::Listed(pairs) => {
                Self::Listed(pairs.iter().map(|(index, out)| (index * stride, out * out_stride)).collect())
            }
        }
    }

    /// This axis and the next inner one as one, where one step of this is as far as all of that.
    fn joined(&self, inner: &Self) -> Option<Self> {
        let (
            Self::Strided { first, out, step, out_step, len },
            Self::Strided { first: f, out: o, step: s, out_step: os, len: l },
        ) = (self, inner)
        else {
            return None;
        };
        if *len == 1 {
            return Some(Self::Strided { first: first + f, out: out + o, step: *s, out_step: *os, len: *l });
        }
        if *l == 1 {
            return Some(Self::Strided { first: first + f, out: out + o, step: *step, out_step: *out_step, len: *len });
        }
        let together = i64::try_from(*l).ok()?.checked_mul(*s) == Some(*step) && l.checked_mul(*os) == Some(*out_step);
        together.then(|| Self::Strided { first: first + f, out: out + o, step: *s, out_step: *os, len: len * l })
    }
}

fn place_product(
    writer: &mut Writer<'_>,
    outer: &[Axis],
    inner: &Axis,
    [from, out]: [u64; 2],
) -> Result<(), PlaceError> {
    let Some((axis, rest)) = outer.split_first() else { return writer.write_axis(inner, [from, out]) };
    match axis {
        Axis::Strided { first, out: first_out, step, out_step, len } => {
            let (mut from, mut out) = (from + first, out + first_out);
            for _ in 0..*len {
                place_product(writer, rest, inner, [from, out])?;
                from = from.wrapping_add_signed(*step);
                out += out_step;
            }
            Ok(())
        }
        Axis::Listed(pairs) => {
            pairs.iter().try_for_each(|(index, place)| place_product(writer, rest, inner, [from + index, out + place]))
        }
    }
}

fn place_points(writer: &mut Writer<'_>, points: &[PickedPoint]) -> Result<(), PlaceError> {
    let strides = match writer.source {
        Source::Elements { shape, .. } => Strides::of(shape),
        Source::Fill(_) => Strides(Vec::new()),
    };
    points.iter().try_for_each(|point| writer.write_run(strides.offset(&point.at), point.out, [1, 1]))
}

impl Writer<'_> {
    /// Writes along the innermost axis.
    fn write_axis(&mut self, axis: &Axis, [from, out]: [u64; 2]) -> Result<(), PlaceError> {
        match axis {
            Axis::Strided { first, out: first_out, step, out_step: 1, len } => {
                self.write_run(from + first, out + first_out, [*step, i64::try_from(*len).unwrap_or(i64::MAX)])
            }
            Axis::Strided { first, out: first_out, step, out_step, len } => {
                let (mut from, mut out) = (from + first, out + first_out);
                for _ in 0..*len {
                    self.write_run(from, out, [1, 1])?;
                    from = from.wrapping_add_signed(*step);
                    out += out_step;
                }
                Ok(())
            }
            Axis::Listed(pairs) => {
                pairs.iter().try_for_each(|(index, place)| self.write_run(from + index, out + place, [1, 1]))
            }
        }
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
