//! Elements of variable length, and texts that become times.

use std::sync::Arc;

use zarrd_array::ElementSource;
use zarrd_cf::Encoding;
use zarrd_codec::{BudgetExceeded, VariableBuilder, VariableElements};
use zarrd_meta::data_type::DataType;

use super::{DecodeError, ExpectedElements, indices, ready_stream};

/// Collects elements of variable length: as they are, or as the times that their texts denote.
pub(super) enum Collector {
    Elements(VariableCollector),
    Times(TimeCollector),
}

/// Collects texts of times as the numbers that an array has in their place.
pub(super) struct TimeCollector {
    encoding: Arc<Encoding>,
    elements: Vec<u8>,
    limit: u64,
    count: u64,
}

impl Collector {
    /// Accepts elements of up to `limit` bytes in total; texts of times if there is an encoding.
    pub(super) fn new(data_type: &DataType, times: Option<&Arc<Encoding>>, limit: u64) -> Self {
        match times {
            Some(encoding) => Self::Times(TimeCollector::new(encoding, limit)),
            None => Self::Elements(VariableCollector::new(data_type, limit)),
        }
    }

    pub(super) fn push(&mut self, element: &[u8], extents: &[Option<u64>]) -> Result<(), DecodeError> {
        match self {
            Self::Elements(elements) => elements.push(element, extents),
            Self::Times(times) => times.push(element, extents),
        }
    }

    pub(super) fn finish(self) -> ElementSource {
        match self {
            Self::Elements(elements) => ElementSource::Variable(elements.finish()),
            Self::Times(times) => ElementSource::Fixed(ready_stream(times.finish())),
        }
    }
}

impl TimeCollector {
    /// Accepts times of up to `limit` bytes in total.
    pub(super) fn new(encoding: &Arc<Encoding>, limit: u64) -> Self {
        Self { encoding: encoding.clone(), elements: Vec::new(), limit, count: 0 }
    }

    pub(super) fn push(&mut self, text: &[u8], extents: &[Option<u64>]) -> Result<(), DecodeError> {
        let at = || indices(extents, self.count);
        let Ok(text) = std::str::from_utf8(text) else {
            return Err(DecodeError::Element { at: at(), flaw: "it is not UTF-8" });
        };
        let encoded = self.encoding.encode_text(text, &mut self.elements);
        encoded.map_err(|error| DecodeError::Unrepresentable { at: at(), reason: error.to_string() })?;
        self.count = self.count.saturating_add(1);
        match self.elements.len() as u64 > self.limit {
            true => Err(DecodeError::TooLarge { limit: self.limit }),
            false => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.elements
    }
}

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
