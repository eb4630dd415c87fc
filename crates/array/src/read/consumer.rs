//! Consumers of the elements that a read selects, as far as its plan has to know them.

use zarrd_meta::selection::ResolvedSelection;

use crate::{error::ArrayError, node::array::Array, work::NOMINAL_ELEMENT_SIZE};

/// A use of the elements that a read selects.
pub(crate) trait Consumer: Sync {
    /// The consumption of a selection of an array. Fails if it exceeds a limit, or makes no sense.
    fn plan(&self, array: &Array, selection: ResolvedSelection) -> Result<Consumption, ArrayError>;
}

/// The consumption of selected elements.
#[derive(Clone, Debug)]
pub(crate) struct Consumption {
    /// The elements that are read, in the coordinates of the view.
    pub(crate) selection: ResolvedSelection,
    pub(crate) cost: ConsumptionCost,
}

/// The cost of a consumption.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConsumptionCost {
    /// The elements are the response.
    Elements,
    /// The elements become a smaller result.
    Result(ResultCost),
    /// All elements are needed, but not returned: each takes so many steps, stored or not.
    Kept {
        /// The steps.
        work_per_element: u64,
    },
}

/// The cost of a result that is made of elements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResultCost {
    /// The size of the result in bytes.
    pub(crate) size: u64,
    /// The memory of the state from which it is made, and of the part of the result that is made at a time, in bytes.
    pub(crate) state: u64,
    /// The memory beside a chunk that a job takes, in bytes for each byte of the chunk: for decoded elements.
    pub(crate) decoded_per_byte: u64,
    /// The number of times that the elements are read.
    pub(crate) passes: u64,
    /// The work for each element that is stored, in steps.
    pub(crate) work_per_element: u64,
    /// The work for a chunk that is not stored, in steps, at most: for each group that it touches.
    pub(crate) work_per_missing_chunk: u64,
}

/// Elements that are returned, of at most `limit` bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElementLimit(pub(crate) u64);

impl Consumer for ElementLimit {
    fn plan(&self, array: &Array, selection: ResolvedSelection) -> Result<Consumption, ArrayError> {
        check_size(array, &selection, self.0)?;
        Ok(Consumption { selection, cost: ConsumptionCost::Elements })
    }
}

/// Fails if the selected elements have more than `limit` bytes.
pub(crate) fn check_size(array: &Array, resolved: &ResolvedSelection, limit: u64) -> Result<(), ArrayError> {
    let extents = resolved.shape();
    let empty = extents.contains(&0);
    let elements = extents.into_iter().fold(1_u128, |product, extent| product.saturating_mul(u128::from(extent)));
    let per_element =
        array.model().data_type.fixed_size().filter(|&size| size > 0).map_or(NOMINAL_ELEMENT_SIZE, |size| size as u64);
    let size = elements.saturating_mul(u128::from(per_element));
    if empty || size <= u128::from(limit) {
        return Ok(());
    }
    let fits = limit / per_element;
    let smaller = match resolved {
        ResolvedSelection::Region(region) => region.shrunk_to(fits).map(|region| region.to_selection()),
        ResolvedSelection::Points(_) | ResolvedSelection::Stack(_) => None,
    };
    Err(ArrayError::SelectionTooLarge { size, limit, smaller })
}
