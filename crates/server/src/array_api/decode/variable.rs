//! Elements of variable length.

use zarrd_codec::{BudgetExceeded, VariableBuilder, VariableElements};
use zarrd_meta::data_type::DataType;

use super::{DecodeError, ExpectedElements, indices};

/// Collects elements of variable length and validates each against the data type.
pub(super) struct VariableCollector {
    data_type: DataType,
    builder: VariableBuilder,
    limit: u64,
    count: u64,
}

impl VariableCollector {
    /// Accepts elements of up to `limit` bytes in total, and as much again for their offsets.
    pub(super) fn new(data_type: &DataType, limit: u64) -> Self {
        Self { data_type: data_type.clone(), builder: VariableBuilder::new(limit.saturating_mul(2)), limit, count: 0 }
    }

    pub(super) fn push(&mut self, element: &[u8], extents: &[Option<u64>]) -> Result<(), DecodeError> {
        if let Some(flaw) = self.data_type.invalid_reason(element) {
            return Err(DecodeError::Element { at: indices(extents, self.count), flaw });
        }
        self.count = self.count.saturating_add(1);
        self.builder.push(element).map_err(|BudgetExceeded| DecodeError::TooLarge { limit: self.limit })
    }

    pub(super) fn finish(self) -> VariableElements {
        self.builder.finish()
    }
}

/// Returns the number of steps that `found` elements are, if the shape is open.
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
