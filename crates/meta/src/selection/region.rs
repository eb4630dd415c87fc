//! Regions made smaller, moved, and written down again.

use std::sync::Arc;

use super::{DimensionSelection, Item, Points, Region, ResolvedSelection, Selection, Slice};

impl Region {
    /// The leading part of the region that has at most `max_elements`: as many as fit along the first dimension; if not
    /// even one does, one there and as many as fit along the next, and so on. The region itself if it fits. `None` if
    /// nothing fits.
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

    /// The region of a view, as one of the array that the view begins within at `offset`: every index grows by that of its dimension.
    #[must_use]
    pub fn shifted(mut self, offset: &[u64]) -> Self {
        self.dimensions.iter_mut().zip(offset).for_each(|(dimension, &offset)| dimension.shift(offset));
        self
    }

    /// The selection that gives this region when it is applied to the shape again.
    pub fn to_selection(&self) -> Selection {
        Selection { items: self.dimensions.iter().map(DimensionSelection::to_item).collect() }
    }
}

impl ResolvedSelection {
    /// The region of a view, in the coordinates of the array in which the view starts at `offset`: every index grows by
    /// that of its dimension.
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
    /// Counts the indices from another offset. What has none stays as it is, with its start at 0.
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

    /// Keeps the first `max_len` indices, which are at least one.
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
                    // Before index 0 there is none: -1 would count from the end.
                    start.saturating_sub(span).checked_sub(1)
                };
                let step = (step != 1).then_some(step);
                Item::Slice(Slice { start: Some(signed(start)), stop: stop.map(signed), step })
            }
            Self::List(ref indices) => Item::List(indices.iter().copied().map(signed).collect()),
        }
    }
}

/// An index, which an extent's bound keeps within an `i64`.
fn signed(index: u64) -> i64 {
    i64::try_from(index).unwrap_or(i64::MAX)
}
