//! Elements of variable length.

use codec::{OverBudget, VariableBuilder, VariableElements};
use meta::data_type::DataType;

use super::{DecodeError, ExpectedElements, indices};

/// Collects elements of variable length, each of which has to be one of the data type.
pub(super) struct VariableCollector {
    data_type: DataType,
    builder: VariableBuilder,
    limit: u64,
    count: u64,
}

impl VariableCollector {
    /// Takes elements of up to `limit` bytes, and as much again for where each ends.
    pub(super) fn new(data_type: &DataType, limit: u64) -> Self {
        Self { data_type: data_type.clone(), builder: VariableBuilder::new(limit.saturating_mul(2)), limit, count: 0 }
    }

    pub(super) fn push(&mut self, element: &[u8], extents: &[Option<u64>]) -> Result<(), DecodeError> {
        if let Some(flaw) = self.data_type.flaw(element) {
            return Err(DecodeError::Element { at: indices(extents, self.count), flaw });
        }
        self.count = self.count.saturating_add(1);
        self.builder.push(element).map_err(|OverBudget| DecodeError::TooLarge { limit: self.limit })
    }

    pub(super) fn finish(self) -> VariableElements {
        self.builder.finish()
    }
}

/// How many steps so many elements are, where the shape is open.
pub(super) fn count_steps(expected: &ExpectedElements, found: u64) -> Result<Option<u64>, DecodeError> {
    let step = expected.extents.elements().unwrap_or(u64::MAX);
    match (expected.extents.is_open(), found.checked_rem(step)) {
        (false, _) if found == step => Ok(None),
        (false, _) => Err(DecodeError::Count { expected: step, found }),
        (true, Some(0)) => Ok(found.checked_div(step)),
        (true, None) if found == 0 => Ok(Some(0)),
        (true, _) => Err(DecodeError::CountOfSteps { step, found }),
    }
}
