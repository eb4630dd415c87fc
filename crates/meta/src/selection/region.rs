//! Shrinking, shifting and formatting of regions.

use std::sync::Arc;

use super::{DimensionSelection, Item, Points, Region, ResolvedSelection, Selection, Slice};

impl Region {
    /// The leading part of the region with at most `max_elements` elements: as many indices as fit along the first
    /// dimension, or one index there and as many as fit along the next one, and so on. `None` if `max_elements` is 0
    /// and the region is not empty.
    pub fn shrunk_to(&self, max_elements: u64) -> Option<Self> {
        if self.elements().is_some_and(|elements| elements <= max_elements) {
            return Some(self.clone());
        }
        if max_elements == 0 {
            return None;
        }
        // The number of elements for one index of each dimension; `None` if it exceeds a `u64`.
        let mut inner: Vec<Option<u64>> = self
            .dimensions
            .iter()
            .rev()
            .scan(Some(1_u64), |inner, dimension| {
                let of_this = *inner;
                *inner = of_this.and_then(|inner| inner.checked_mul(dimension.len()));
                Some(of_this)
            })
            .collect();
        inner.reverse();
        let mut dimensions = self.dimensions.clone();
        for (dimension, inner) in dimensions.iter_mut().zip(inner) {
            let fit = inner.and_then(|inner| max_elements.checked_div(inner)).unwrap_or(0);
            dimension.truncate(fit.max(1));
            if fit > 0 {
                break;
            }
        }
        Some(Self { dimensions })
    }

    /// Shifts the region of a view to the array in which the view starts at `offset`.
    #[must_use]
    pub fn shifted(mut self, offset: &[u64]) -> Self {
        self.dimensions.iter_mut().zip(offset).for_each(|(dimension, &offset)| dimension.shift(offset));
        self
    }

    /// The region in the view that starts at `offset`; inverts [`shifted`](Self::shifted).
    #[must_use]
    pub fn unshifted(&self, offset: &[u64]) -> Self {
        let unshifted = |(dimension, &offset): (&DimensionSelection, &u64)| match dimension {
            DimensionSelection::Index(index) => DimensionSelection::Index(index.saturating_sub(offset)),
            DimensionSelection::Range { start, step, len } => {
                DimensionSelection::Range { start: start.saturating_sub(offset), step: *step, len: *len }
            }
            DimensionSelection::List(indices) => {
                DimensionSelection::List(indices.iter().map(|index| index.saturating_sub(offset)).collect())
            }
        };
        Self { dimensions: self.dimensions.iter().zip(offset).map(unshifted).collect() }
    }

    /// The selection that resolves to this region in the same shape.
    pub fn to_selection(&self) -> Selection {
        Selection { items: self.dimensions.iter().map(DimensionSelection::to_item).collect() }
    }
}

impl ResolvedSelection {
    /// Shifts the selection of a view to the array in which the view starts at `offset`.
    #[must_use]
    pub fn shifted(self, offset: &[u64]) -> Self {
        if offset.iter().all(|&offset| offset == 0) {
            return self;
        }
        match self {
            Self::Region(region) => Self::Region(region.shifted(offset)),
            Self::Points(points) => Self::Points(points.shifted(offset)),
            Self::Stack(regions) => Self::Stack(regions.into_iter().map(|region| region.shifted(offset)).collect()),
        }
    }
}

impl Points {
    fn shifted(mut self, offset: &[u64]) -> Self {
        self.coordinates
            .iter_mut()
            .zip(offset.iter().cycle())
            .for_each(|(at, &offset)| *at = at.saturating_add(offset));
        self
    }
}

impl DimensionSelection {
    /// Adds an offset to the indices; an empty range keeps its start of 0.
    fn shift(&mut self, offset: u64) {
        match self {
            Self::Range { len: 0, .. } => {}
            Self::Index(index) | Self::Range { start: index, .. } => *index = index.saturating_add(offset),
            Self::List(indices) if offset > 0 => {
                *indices = indices.iter().map(|index| index.saturating_add(offset)).collect();
            }
            Self::List(_) => {}
        }
    }

    /// Truncates the selection to its first `max_len` indices, at least 1.
    fn truncate(&mut self, max_len: u64) {
        match self {
            Self::Index(_) => {}
            Self::Range { step, len, .. } => {
                *len = (*len).min(max_len);
                if *len == 1 {
                    *step = 1;
                }
            }
            Self::List(indices) => {
                let head = usize::try_from(max_len).ok().and_then(|len| indices.get(..len)).map(Arc::from);
                if let Some(head) = head {
                    *indices = head;
                }
            }
        }
    }

    fn to_item(&self) -> Item {
        match *self {
            Self::Index(index) => Item::Index(signed(index)),
            Self::Range { len: 0, .. } => Item::Slice(Slice { start: Some(0), stop: Some(0), step: None }),
            Self::Range { start, step, len } => {
                let span = step.unsigned_abs().saturating_mul(len - 1);
                let stop = if step > 0 {
                    Some(start.saturating_add(span).saturating_add(1))
                } else {
                    // An end before index 0 is omitted: -1 would count from the end.
                    start.saturating_sub(span).checked_sub(1)
                };
                let step = (step != 1).then_some(step);
                Item::Slice(Slice { start: Some(signed(start)), stop: stop.map(signed), step })
            }
            Self::List(ref indices) => Item::List(indices.iter().copied().map(signed).collect()),
        }
    }
}

/// An index as an `i64`, which every extent fits.
fn signed(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
