//! Errors of changes whose outcome is not known.

use zarrd_store::StoreError;

use crate::{error::ArrayError, metadata::error::NodeError};

/// An error of a change.
pub(crate) trait MayBeUnknown {
    /// True if it is not known whether the change was made, so that it may still be.
    fn is_outcome_unknown(&self) -> bool;
}

impl MayBeUnknown for StoreError {
    fn is_outcome_unknown(&self) -> bool {
        matches!(self.of_change(), Self::OutcomeUnknown { .. })
    }
}

impl MayBeUnknown for ArrayError {
    fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_outcome_unknown())
    }
}

impl MayBeUnknown for NodeError {
    fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Array(error) => error.is_outcome_unknown(),
            Self::Store(error) => error.is_outcome_unknown(),
            _ => false,
        }
    }
}
