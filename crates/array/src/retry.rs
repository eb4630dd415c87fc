//! The numbers of attempts of optimistic operations.
//!
//! Reads and changes are planned without locks, on documents and chunks whose versions are checked by a snapshot or a
//! commit. If one of them changed meanwhile, the operation is planned anew.

use zarrd_store::ReadError;

use crate::{error::ArrayError, metadata::error::NodeError};

/// The number of attempts after which an operation fails with
/// [`TooManyConflicts`](crate::ArrayError::TooManyConflicts).
pub(crate) const MAX_ATTEMPTS: usize = 16;

/// The number of attempts after which a writer locks what it changes, so that it is not overtaken for ever.
pub(crate) const OPTIMISTIC_ATTEMPTS: usize = 3;

impl ReadError for ArrayError {
    fn is_changed(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_changed())
    }
}

impl ReadError for NodeError {
    fn is_changed(&self) -> bool {
        match self {
            Self::Store(error) => error.is_changed(),
            Self::Array(error) => error.is_changed(),
            _ => false,
        }
    }
}
