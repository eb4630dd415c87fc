//! Reads that are repeated if another program changes a value while it is read.

use crate::StoreError;

/// The number of attempts to read values that other programs change.
pub const MAX_READ_ATTEMPTS: usize = 16;

/// An error of reading that another program may have caused by changing a value.
pub trait ReadError {
    /// True if a value changed while it was read ([`StoreError::Changed`]).
    fn is_changed(&self) -> bool;
}

impl ReadError for StoreError {
    fn is_changed(&self) -> bool {
        matches!(self, Self::Changed { .. })
    }
}

/// Runs attempts to read until no value changes meanwhile. After [`MAX_READ_ATTEMPTS`], the error is that of the last
/// one.
///
/// Values that only this program changes need one attempt. Attempts must not be nested, since their numbers multiply.
pub async fn until_unchanged<T, E: ReadError, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    for _ in 1..MAX_READ_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_changed() => {}
            result => return result,
        }
    }
    attempt().await
}
