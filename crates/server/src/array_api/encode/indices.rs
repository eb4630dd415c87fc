//! The indices by which rows and columns are called.

use zarrd_array::ArrayResult;
use zarrd_meta::selection::{DimensionSelection, ResolvedSelection};

/// The indices along a dimension of a result.
#[derive(Clone, Debug)]
pub(in crate::array_api) struct Indices {
    /// The indices in storage, before subtracting `offset`.
    stored: DimensionSelection,
    /// The view offset of the dimension.
    offset: u64,
}

impl Indices {
    /// Indices in storage, from which `offset` is subtracted.
    pub(super) fn new(stored: DimensionSelection, offset: u64) -> Self {
        Self { stored, offset }
    }

    /// The indices along a dimension of a result: those of the array, if each element is one of the array's. Others, and
    /// those of a stacked selection, are numbered.
    pub(super) fn along(result: &ArrayResult, dimension: usize) -> Self {
        let len = result.shape().get(dimension).copied().unwrap_or(0);
        let counted = Self::new(DimensionSelection::Range { start: 0, step: 1, len }, 0);
        let Some(ResolvedSelection::Region(region)) = result.resolved() else { return counted };
        let dimensions = region.dimensions.iter().zip(&result.model().view_offset);
        let mut visible = dimensions.filter(|(dimension, _)| dimension.extent().is_some());
        visible.nth(dimension).map_or(counted, |(stored, &offset)| Self::new(stored.clone(), offset))
    }

    /// The number of indices.
    pub(super) fn len(&self) -> u64 {
        self.stored.len()
    }

    /// An index by its position.
    pub(super) fn get(&self, position: u64) -> u64 {
        let stored = match &self.stored {
            DimensionSelection::Index(index) => *index,
            DimensionSelection::Range { start, step, .. } => {
                let distance = i128::from(*step).saturating_mul(i128::from(position));
                u64::try_from(i128::from(*start).saturating_add(distance)).unwrap_or(0)
            }
            DimensionSelection::List(indices) => {
                usize::try_from(position).ok().and_then(|position| indices.get(position).copied()).unwrap_or(0)
            }
        };
        stored.saturating_sub(self.offset)
    }
}
