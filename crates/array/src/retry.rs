//! The numbers of attempts of optimistic operations.
//!
//! Reads and changes are planned without locks, on documents and chunks whose versions are checked by a snapshot or a
//! commit. If one of them changed meanwhile, the operation is planned anew.

use store::StoreError;

use crate::{error::ArrayError, metadata::error::NodeError};

/// The number of attempts after which an operation fails with
/// [`TooManyConflicts`](crate::ArrayError::TooManyConflicts).
pub(crate) const MAX_ATTEMPTS: usize = 16;

/// The number of attempts after which a writer locks what it changes, so that it is not overtaken for ever.
pub(crate) const OPTIMISTIC_ATTEMPTS: usize = 3;

/// Runs attempts of an operation that reads, until no other program changes a value while it is read; after
/// [`MAX_ATTEMPTS`], its error is that of the last one. Values that only this program changes need one attempt.
pub(crate) async fn until_unchanged<T, E: WhileReading, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    for _ in 1..MAX_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_changed() => {}
            result => return result,
        }
    }
    attempt().await
}

/// An error of reading.
pub(crate) trait WhileReading {
    /// True if another program changed a value while it was read ([`StoreError::Changed`]).
    fn is_changed(&self) -> bool;
}

impl WhileReading for ArrayError {
    fn is_changed(&self) -> bool {
        matches!(self, Self::Store(StoreError::Changed { .. }))
    }
}

impl WhileReading for NodeError {
    fn is_changed(&self) -> bool {
        match self {
            Self::Store(error) => matches!(error, StoreError::Changed { .. }),
            Self::Array(error) => error.is_changed(),
            _ => false,
        }
    }
}
