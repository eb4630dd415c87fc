//! Groups: the map from positions of a selection to results.

/// The windows of one dimension: position `p` belongs to the group `p / window`.
///
/// A dimension that is not reduced has windows of 1, and one that is reduced as a whole has a window as large as itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The number of positions.
    pub extent: u64,
    /// The positions of a window, at least 1; the last window may have fewer.
    pub window: u64,
}

/// The groups of a selection: every combination of those of its dimensions, in C order.
#[derive(Clone, Debug)]
pub struct GroupGrid {
    pub(crate) dimensions: Vec<GridDimension>,
    groups: usize,
}

/// A dimension of a [`GroupGrid`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GridDimension {
    pub(crate) windows: Windows,
    /// The distance between consecutive windows, in groups.
    pub(crate) stride: usize,
    /// The distance between consecutive positions within a group, in the C order of its elements; 0 for windows of 1.
    pub(crate) order: u64,
}

/// The indices of a chunk along one dimension, each with its position in the selection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AxisPositions {
    /// The indices `first`, `first + step`, … at the positions `out`, `out + 1`, …
    Strided {
        /// The first index in the chunk.
        first: u64,
        /// The distance to the next index.
        step: i64,
        /// The number of indices.
        len: u64,
        /// The position of the first.
        out: u64,
    },
    /// Pairs of an index and its position, by increasing position.
    Listed(Vec<(u64, u64)>),
}

impl Windows {
    /// A dimension that is not reduced.
    pub fn kept(extent: u64) -> Self {
        Self { extent, window: 1 }
    }

    /// A dimension that is reduced as a whole. If it is empty, it has one window all the same, without elements.
    pub fn whole(extent: u64) -> Self {
        Self { extent, window: if extent == 0 { 2 } else { extent } }
    }

    /// The number of windows.
    pub fn count(self) -> u64 {
        self.extent.div_ceil(self.window.max(1))
    }

    /// True if all positions belong to one group.
    pub(crate) fn is_single(self) -> bool {
        self.window >= self.extent
    }
}

impl GroupGrid {
    /// The groups of a selection with these windows; `None` if there are more than memory could have.
    pub fn new(windows: &[Windows]) -> Option<Self> {
        let (mut stride, mut order) = (1_u64, 1_u64);
        let mut dimensions = Vec::with_capacity(windows.len());
        for &windows in windows.iter().rev() {
            let is_reduced = windows.window > 1;
            let own_stride = usize::try_from(stride).ok()?;
            dimensions.push(GridDimension { windows, stride: own_stride, order: if is_reduced { order } else { 0 } });
            stride = stride.checked_mul(if windows.extent == 0 && is_reduced { 1 } else { windows.count() })?;
            if is_reduced {
                order = order.saturating_mul(windows.extent.max(1));
            }
        }
        dimensions.reverse();
        Some(Self { dimensions, groups: usize::try_from(stride).ok()? })
    }

    /// The window of each dimension.
    pub fn windows(&self) -> impl Iterator<Item = u64> {
        self.dimensions.iter().map(|dimension| dimension.windows.window)
    }

    /// The number of groups.
    pub fn groups(&self) -> usize {
        self.groups
    }
}

impl AxisPositions {
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Strided { len, .. } => *len,
            Self::Listed(pairs) => pairs.len() as u64,
        }
    }

    /// The index and position of an entry.
    pub(crate) fn get(&self, entry: u64) -> Option<(u64, u64)> {
        match self {
            Self::Strided { first, step, len, out } => {
                let distance = i64::try_from(entry).ok()?.wrapping_mul(*step);
                (entry < *len).then(|| (first.wrapping_add_signed(distance), out.saturating_add(entry)))
            }
            Self::Listed(pairs) => pairs.get(usize::try_from(entry).ok()?).copied(),
        }
    }

    /// The windows that the positions belong to.
    pub(crate) fn windows(&self, window: u64) -> AxisWindows {
        let window = window.max(1);
        match self {
            Self::Strided { out, len, .. } => {
                AxisWindows::Consecutive { start: *out, end: out.saturating_add(*len), window }
            }
            Self::Listed(pairs) => {
                let mut found: Vec<(u64, u64, u64)> = Vec::new();
                for &(_, position) in pairs {
                    match found.last_mut().filter(|last| last.0 == position / window) {
                        Some(last) => last.2 += 1,
                        None => found.push((position / window, position, 1)),
                    }
                }
                AxisWindows::Listed(found)
            }
        }
    }
}

/// The windows that positions belong to. Those of consecutive positions take no memory, however many they are.
#[derive(Clone, Debug)]
pub(crate) enum AxisWindows {
    /// Those of the positions from `start` to `end`.
    Consecutive { start: u64, end: u64, window: u64 },
    /// Each one, as [`get`](AxisWindows::get) returns it.
    Listed(Vec<(u64, u64, u64)>),
}

impl AxisWindows {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Consecutive { start, end, .. } if start >= end => 0,
            Self::Consecutive { start, end, window } => {
                let count = (end - 1) / window - start / window;
                usize::try_from(count).map_or(usize::MAX, |count| count.saturating_add(1))
            }
            Self::Listed(windows) => windows.len(),
        }
    }

    /// The number of a window, its first position, and the count of positions.
    pub(crate) fn get(&self, at: usize) -> Option<(u64, u64, u64)> {
        match self {
            Self::Consecutive { start, end, window } => {
                let number = (start / window).checked_add(at as u64)?;
                let first = number.checked_mul(*window)?;
                let (first, until) = (first.max(*start), first.saturating_add(*window).min(*end));
                Some((number, first, until.checked_sub(first).filter(|&count| count > 0)?))
            }
            Self::Listed(windows) => windows.get(at).copied(),
        }
    }
}
