//! Transposition of elements in memory.

use bytes::Bytes;

use crate::filled;

/// A dimension of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) extent: usize,
    /// The distance between consecutive elements in the input.
    pub(super) stride: usize,
}

/// The input position of each element of the output. Both arrays are dense and of the same size.
#[derive(Clone, Debug)]
pub(super) struct Permutation {
    /// The dimensions of the output, outermost first, without those of extent 1 and with adjacent ones merged.
    axes: Vec<Axis>,
    /// The size of an element in bytes; 0 for variable length.
    size: usize,
}

/// Two dimensions that are swapped, in elements.
#[derive(Clone, Copy)]
struct Matrix {
    rows: usize,
    columns: usize,
    /// The distance between rows in the input.
    row_stride: usize,
    /// The distance between columns in the output, where they are rows.
    column_stride: usize,
}

impl Permutation {
    /// The permutation whose output dimension `i` is input dimension `order[i]`. `None` if there are too many elements
    /// to address, or if the order names a dimension that does not exist.
    pub(super) fn new(shape: &[u64], order: &[usize]) -> Option<Self> {
        if shape.contains(&0) {
            return Some(Self { axes: vec![Axis { extent: 0, stride: 1 }], size: 0 });
        }
        let mut strides = vec![0; shape.len()];
        let mut len = 1_usize;
        for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
            *stride = len;
            len = len.checked_mul(usize::try_from(extent).ok()?)?;
        }
        let axis = |&axis: &usize| {
            Some(Axis { extent: usize::try_from(*shape.get(axis)?).ok()?, stride: *strides.get(axis)? })
        };
        Some(Self::from_axes(order.iter().map(axis).collect::<Option<_>>()?))
    }

    /// The permutation with these output dimensions.
    pub(super) fn from_axes(axes: Vec<Axis>) -> Self {
        let mut merged: Vec<Axis> = Vec::new();
        for axis in axes.into_iter().filter(|axis| axis.extent != 1) {
            match merged.last_mut() {
                // The two dimensions have the same layout in input and output.
                Some(outer) if Some(outer.stride) == axis.stride.checked_mul(axis.extent) => {
                    *outer = Axis { extent: outer.extent * axis.extent, stride: axis.stride };
                }
                _ => merged.push(axis),
            }
        }
        Self { axes: merged, size: 0 }
    }

    /// Sets the size of an element in bytes; `None` for variable length.
    pub(super) fn with_element_size(self, size: Option<usize>) -> Self {
        Self { size: size.unwrap_or(0), ..self }
    }

    /// The maximum work per byte, in steps. Longer runs are cheaper.
    pub(super) fn steps_per_byte(&self) -> u64 {
        /// The overhead of one copy in bytes: computing the position, and a cache miss.
        const MOVE_OVERHEAD: usize = 32;
        let run = self.axes.last().filter(|axis| axis.stride == 1).map_or(1, |axis| axis.extent);
        let moves = self.axes.len().saturating_sub(usize::from(run > 1));
        if moves == 0 {
            return 0;
        }
        // Elements of variable length are copied one by one.
        let unit = self.size.max(1).saturating_mul(run);
        1 + (MOVE_OVERHEAD / unit.min(MOVE_OVERHEAD)) as u64
    }

    /// Calls `visit` with the input position of each element, in output order.
    pub(super) fn for_each_source<E>(&self, mut visit: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        if self.axes.iter().any(|axis| axis.extent == 0) {
            return Ok(());
        }
        for_each_index(&self.axes, &vec![0; self.axes.len()], |from, _| visit(from))
    }

    /// Transposes elements.
    pub(super) fn apply(&self, bytes: Bytes) -> Bytes {
        let mut axes = self.axes.clone();
        let mut unit = self.size;
        // Elements that are contiguous in both arrays are copied together.
        if let Some(run) = axes.pop_if(|axis| axis.stride == 1) {
            unit = unit.saturating_mul(run.extent);
            axes.iter_mut().for_each(|axis| axis.stride /= run.extent.max(1));
        }
        if axes.is_empty() || unit == 0 || bytes.is_empty() {
            return bytes;
        }
        let mut out = filled(0, bytes.len());
        match unit {
            1 => transpose_words::<1>(&axes, &bytes, &mut out),
            2 => transpose_words::<2>(&axes, &bytes, &mut out),
            4 => transpose_words::<4>(&axes, &bytes, &mut out),
            8 => transpose_words::<8>(&axes, &bytes, &mut out),
            16 => transpose_words::<16>(&axes, &bytes, &mut out),
            _ => copy_units(&axes, unit, &bytes, &mut out),
        }
        out.into()
    }
}

/// Calls `visit` with the input and output position of each index of some dimensions.
fn for_each_index<E>(
    axes: &[Axis],
    strides_out: &[usize],
    mut visit: impl FnMut(usize, usize) -> Result<(), E>,
) -> Result<(), E> {
    let mut index = vec![0; axes.len()];
    let (mut from, mut to) = (0, 0);
    loop {
        visit(from, to)?;
        let mut advanced = false;
        for ((position, axis), &stride_out) in index.iter_mut().zip(axes).zip(strides_out).rev() {
            *position += 1;
            if *position < axis.extent {
                from += axis.stride;
                to += stride_out;
                advanced = true;
                break;
            }
            *position = 0;
            from -= axis.stride * (axis.extent - 1);
            to -= stride_out * (axis.extent - 1);
        }
        if !advanced {
            return Ok(());
        }
    }
}

/// Splits the dimensions into the innermost ones of input and output, and the others with their output strides.
fn split_innermost(axes: &[Axis]) -> Option<(Matrix, Vec<Axis>, Vec<usize>)> {
    let mut strides_out = vec![1; axes.len()];
    let mut len = 1;
    for (stride, axis) in strides_out.iter_mut().zip(axes).rev() {
        *stride = len;
        len *= axis.extent;
    }
    let (last, outer) = axes.split_last()?;
    let column = outer.iter().position(|axis| axis.stride == 1)?;
    let matrix = Matrix {
        rows: last.extent,
        columns: outer.get(column)?.extent,
        row_stride: last.stride,
        column_stride: *strides_out.get(column)?,
    };
    let mut outer = outer.to_vec();
    outer.remove(column);
    strides_out.remove(column);
    Some((matrix, outer, strides_out))
}

fn copy_units(axes: &[Axis], unit: usize, from: &[u8], to: &mut [u8]) {
    let mut slots = to.chunks_exact_mut(unit);
    let strides_out = vec![0; axes.len()];
    let copied = for_each_index(axes, &strides_out, |position, _| {
        let source = from.get(position * unit..).and_then(|rest| rest.get(..unit)).ok_or(())?;
        slots.next().ok_or(())?.copy_from_slice(source);
        Ok::<_, ()>(())
    });
    debug_assert!(copied.is_ok(), "the axes are those of the elements");
}

fn transpose_words<const N: usize>(axes: &[Axis], from: &[u8], to: &mut [u8]) {
    let Some((matrix, outer, strides_out)) = split_innermost(axes) else {
        return copy_units(axes, N, from, to);
    };
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    let copied = for_each_index(&outer, &strides_out, |source, target| {
        let (source, target) = (from.get(source..).ok_or(())?, to.get_mut(target..).ok_or(())?);
        match (matrix.rows, matrix.columns) {
            (0..4, _) => matrix.transpose::<N, 2, 16>(source, target),
            (4..8, _) => matrix.transpose::<N, 4, 16>(source, target),
            (_, 0..4) => matrix.transpose::<N, 16, 2>(source, target),
            (_, 4..8) => matrix.transpose::<N, 16, 4>(source, target),
            (8..16, _) => matrix.transpose::<N, 8, 16>(source, target),
            (_, 8..16) => matrix.transpose::<N, 16, 8>(source, target),
            _ if N == 2 => matrix.transpose::<N, 16, 16>(source, target),
            _ => matrix.transpose::<N, 8, 8>(source, target),
        }
        Ok::<_, ()>(())
    });
    debug_assert!(copied.is_ok(), "the axes are those of the elements");
}

impl Matrix {
    /// Transposes tile by tile, so that the cache lines of a tile's rows and columns are used completely.
    fn transpose<const N: usize, const ROWS: usize, const COLUMNS: usize>(self, from: &[[u8; N]], to: &mut [[u8; N]]) {
        for row in (0..self.rows).step_by(ROWS) {
            for column in (0..self.columns).step_by(COLUMNS) {
                if row + ROWS > self.rows || column + COLUMNS > self.columns {
                    self.transpose_edge(
                        from,
                        to,
                        row..self.rows.min(row + ROWS),
                        column..self.columns.min(column + COLUMNS),
                    );
                    continue;
                }
                let tile: [[[u8; N]; COLUMNS]; ROWS] = std::array::from_fn(|i| {
                    let row = from.get((row + i) * self.row_stride + column..);
                    row.and_then(|row| row.first_chunk()).copied().unwrap_or([[0; N]; COLUMNS])
                });
                for j in 0..COLUMNS {
                    let target = to.get_mut((column + j) * self.column_stride + row..);
                    if let Some(target) = target.and_then(|target| target.first_chunk_mut::<ROWS>()) {
                        *target = tile.each_ref().map(|row| row.get(j).copied().unwrap_or([0; N]));
                    }
                }
            }
        }
    }

    /// Transposes an incomplete tile at the end of the matrix.
    fn transpose_edge<const N: usize>(
        self,
        from: &[[u8; N]],
        to: &mut [[u8; N]],
        rows: std::ops::Range<usize>,
        columns: std::ops::Range<usize>,
    ) {
        for column in columns {
            let for_each_source = from.get(column..).unwrap_or_default();
            let targets = to.get_mut(column * self.column_stride..).unwrap_or_default();
            for row in rows.clone() {
                if let Some((target, source)) = targets.get_mut(row).zip(for_each_source.get(row * self.row_stride)) {
                    *target = *source;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Transposes element by element, as a reference.
    fn naive(shape: &[u64], order: &[usize], size: usize, bytes: &[u8]) -> Vec<u8> {
        let out: Vec<u64> = order.iter().map(|&axis| shape.get(axis).copied().unwrap()).collect();
        let mut copied = Vec::new();
        for position in 0..out.iter().product::<u64>() {
            let mut index = vec![0; shape.len()];
            let mut rest = position;
            for (&axis, &extent) in order.iter().zip(&out).rev() {
                *index.get_mut(axis).unwrap() = rest % extent;
                rest /= extent;
            }
            let from = shape.iter().zip(&index).fold(0, |offset, (&extent, &index)| offset * extent + index) as usize;
            copied.extend_from_slice(bytes.get(from * size..(from + 1) * size).unwrap());
        }
        copied
    }

    fn cases() -> impl Strategy<Value = (Vec<u64>, Vec<usize>, usize)> {
        let small = proptest::collection::vec(prop_oneof![4 => 1_u64..5, 1 => 0_u64..40], 0..6);
        let large = proptest::collection::vec(1_u64..50, 2..=2);
        (prop_oneof![small, large], prop_oneof![Just(1_usize), Just(2), Just(4), Just(8), Just(16), 0_usize..20])
            .prop_filter("few elements", |(shape, _)| shape.iter().product::<u64>() < 10_000)
            .prop_flat_map(|(shape, size)| {
                let order = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
                (Just(shape), order, Just(size))
            })
    }

    proptest! {
        #[test]
        fn transposition_matches_the_reference((shape, order, size) in cases()) {
            let len = shape.iter().product::<u64>() as usize;
            let bytes: Vec<u8> = (0..len * size).map(|byte| (byte % 251) as u8).collect();
            let permutation = Permutation::new(&shape, &order).unwrap().with_element_size(Some(size));
            let expected = naive(&shape, &order, size, &bytes);
            prop_assert_eq!(permutation.apply(bytes.into()), expected);
            let mut for_each_source = Vec::new();
            permutation.for_each_source(|from| { for_each_source.extend_from_slice(&from.to_le_bytes()); Ok::<_, ()>(()) }).unwrap();
            let positions: Vec<u8> = (0..len).flat_map(usize::to_le_bytes).collect();
            prop_assert!(for_each_source == naive(&shape, &order, 8, &positions));
        }
    }
}
