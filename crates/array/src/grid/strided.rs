//! Elements that are in two places, as runs: of a chunk and of an answer, or of what is written.

use super::dimension::DimIndexer;

/// How far apart, in elements, neighbours along each axis are in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strides(pub(crate) Vec<u64>);

/// Where picked elements are in both places.
#[derive(Clone, Debug)]
pub(crate) struct StridedCopies {
    /// From the outside in.
    outer: Vec<Axis>,
    inner: Axis,
}

/// Elements at equal distances in both places, counted in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StridedCopy {
    /// Where the first is by its indices.
    pub(crate) from: u64,
    /// The distance to the next.
    pub(crate) step: i64,
    /// Where the first is by its place.
    pub(crate) out: u64,
    /// The distance to the next.
    pub(crate) out_step: u64,
    /// How many there are.
    pub(crate) len: u64,
}

/// One axis with its distances, counted in elements.
#[derive(Clone, Debug)]
enum Axis {
    Strided(StridedCopy),
    /// Pairs of offsets.
    Listed(Vec<(u64, u64)>),
}

impl Strides {
    /// Those of something of this shape.
    pub(crate) fn of(shape: &[u64]) -> Self {
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

    /// Those of one element that is everywhere.
    pub(crate) fn broadcast(rank: usize) -> Self {
        Self(vec![0; rank])
    }
}

impl StridedCopies {
    /// The runs of all combinations of indices; `from` has the strides of what the indices are in, `out` those of what the places are in. Axes that lie
    /// together in both are one.
    pub(crate) fn new(axes: &[DimIndexer], from: &Strides, out: &Strides) -> Self {
        let mut all: Vec<Axis> = Vec::new();
        for ((axis, &stride), &out_stride) in axes.iter().zip(&from.0).zip(&out.0) {
            let axis = Axis::new(axis, stride, out_stride);
            match all.last_mut().and_then(|outer| outer.merge_inner(&axis)) {
                Some(joined) => {
                    all.pop();
                    all.push(joined);
                }
                None => all.push(axis),
            }
        }
        let inner = all.pop().unwrap_or(Axis::Strided(StridedCopy { from: 0, step: 1, out: 0, out_step: 1, len: 1 }));
        Self { outer: all, inner }
    }

    /// The only run, where there is only one.
    pub(crate) fn single(&self) -> Option<StridedCopy> {
        match (self.outer.as_slice(), &self.inner) {
            ([], Axis::Strided(run)) => Some(*run),
            _ => None,
        }
    }

    /// Visits all runs, in the order of the indices' axes.
    pub(crate) fn visit<E>(&self, mut visitor: impl FnMut(StridedCopy) -> Result<(), E>) -> Result<(), E> {
        visit(&self.outer, &self.inner, [0, 0], &mut visitor)
    }
}

impl Axis {
    fn new(axis: &DimIndexer, stride: u64, out_stride: u64) -> Self {
        match axis {
            DimIndexer::Strided { first, step, len, out } => Self::Strided(StridedCopy {
                from: first * stride,
                // A stride is less than the chunk's elements and a step less than the array's extent, or there is only one index.
                step: if *len == 1 { 0 } else { step.saturating_mul(i64::try_from(stride).unwrap_or(i64::MAX)) },
                out: out * out_stride,
                out_step: out_stride,
                len: *len,
            }),
            DimIndexer::Listed(pairs) => {
                Self::Listed(pairs.iter().map(|(index, out)| (index * stride, out * out_stride)).collect())
            }
        }
    }

    /// This axis and the next inner one as one, where one step of this is as far as all of that.
    fn merge_inner(&self, inner: &Self) -> Option<Self> {
        let (Self::Strided(outer), Self::Strided(inner)) = (self, inner) else { return None };
        let (from, out) = (outer.from + inner.from, outer.out + inner.out);
        if outer.len == 1 {
            return Some(Self::Strided(StridedCopy { from, out, ..*inner }));
        }
        if inner.len == 1 {
            return Some(Self::Strided(StridedCopy { from, out, ..*outer }));
        }
        let together = i64::try_from(inner.len).ok()?.checked_mul(inner.step) == Some(outer.step)
            && inner.len.checked_mul(inner.out_step) == Some(outer.out_step);
        together.then(|| Self::Strided(StridedCopy { from, out, len: outer.len * inner.len, ..*inner }))
    }
}

fn visit<E>(
    outer: &[Axis],
    inner: &Axis,
    [from, out]: [u64; 2],
    visitor: &mut impl FnMut(StridedCopy) -> Result<(), E>,
) -> Result<(), E> {
    match outer.split_first() {
        None => match inner {
            Axis::Strided(run) => visitor(StridedCopy { from: from + run.from, out: out + run.out, ..*run }),
            Axis::Listed(pairs) => pairs.iter().try_for_each(|(index, place)| {
                visitor(StridedCopy { from: from + index, step: 1, out: out + place, out_step: 1, len: 1 })
            }),
        },
        Some((Axis::Strided(run), rest)) => {
            let (mut from, mut out) = (from + run.from, out + run.out);
            for _ in 0..run.len {
                visit(rest, inner, [from, out], visitor)?;
                from = from.wrapping_add_signed(run.step);
                out += run.out_step;
            }
            Ok(())
        }
        Some((Axis::Listed(pairs), rest)) => {
            pairs.iter().try_for_each(|(index, place)| visit(rest, inner, [from + index, out + place], visitor))
        }
    }
}
