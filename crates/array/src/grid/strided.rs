//! Strided copies between the elements of a chunk and those of an output, or of a client's body.

use super::dimension::DimIndexer;

/// The distance, in elements, between neighbours along each dimension in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Strides(pub(crate) Vec<u64>);

/// The copies of an orthogonal selection.
#[derive(Clone, Debug)]
pub(crate) struct StridedCopies {
    /// The outer dimensions, the outermost first.
    outer: Vec<Axis>,
    inner: Axis,
}

/// Elements at equal distances in both source and destination. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StridedCopy {
    /// The source offset of the first.
    pub(crate) from: u64,
    /// The source distance to the next.
    pub(crate) step: i64,
    /// The destination offset of the first.
    pub(crate) out: u64,
    /// The destination distance to the next.
    pub(crate) out_step: u64,
    /// The number of elements.
    pub(crate) len: u64,
}

/// Copies at equal distances in both source and destination. All numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StridedRows {
    /// The first copy.
    pub(crate) row: StridedCopy,
    /// The source distance to the next.
    pub(crate) step: i64,
    /// The destination distance to the next.
    pub(crate) out_step: u64,
    /// The number of copies.
    pub(crate) rows: u64,
}

/// One dimension, with its offsets and distances in elements.
#[derive(Clone, Debug)]
enum Axis {
    Strided(StridedCopy),
    /// Pairs of a source and a destination offset.
    Listed(Vec<(u64, u64)>),
}

impl Strides {
    /// The strides of a C-ordered array of this shape.
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

    /// Zero strides: broadcasts a single element.
    pub(crate) fn broadcast(rank: usize) -> Self {
        Self(vec![0; rank])
    }

    /// True for the strides of a single element.
    pub(crate) fn is_broadcast(&self) -> bool {
        self.0.iter().all(|&stride| stride == 0)
    }
}

impl StridedCopies {
    /// The copies of all combinations of indices, for a source with strides `from` and a destination with strides
    /// `out`. Dimensions that are contiguous in both are merged.
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

    /// The copy, if there is only one.
    pub(crate) fn single(&self) -> Option<StridedCopy> {
        match (self.outer.as_slice(), &self.inner) {
            ([], Axis::Strided(run)) => Some(*run),
            _ => None,
        }
    }

    /// Visits all copies, in C order of the selection, as many rows at a time as are at equal distances.
    pub(crate) fn visit_rows<E>(&self, mut visitor: impl FnMut(StridedRows) -> Result<(), E>) -> Result<(), E> {
        let (Some((Axis::Strided(rows), outer)), Axis::Strided(_)) = (self.outer.split_last(), &self.inner) else {
            return self.visit(|row| visitor(StridedRows { row, step: 0, out_step: 0, rows: 1 }));
        };
        visit(outer, &self.inner, [rows.from, rows.out], &mut |row| {
            visitor(StridedRows { row, step: rows.step, out_step: rows.out_step, rows: rows.len })
        })
    }

    /// Visits all copies, in C order of the selection.
    pub(crate) fn visit<E>(&self, mut visitor: impl FnMut(StridedCopy) -> Result<(), E>) -> Result<(), E> {
        visit(&self.outer, &self.inner, [0, 0], &mut visitor)
    }
}

impl Axis {
    fn new(axis: &DimIndexer, stride: u64, out_stride: u64) -> Self {
        match axis {
            DimIndexer::Strided { first, step, len, out } => Self::Strided(StridedCopy {
                from: first * stride,
                // The product fits: a stride is smaller than the chunk's element count, and a step than the array's
                // extent, unless there is a single index.
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

    /// Merges this dimension with the next inner one, if one step of this is as far as all of that.
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
