//! Reads that are repeated if another program changes a value while it is read.

use std::time::Duration;

use tokio::time::Instant;

use crate::StoreError;

/// The number of attempts to read values that other programs change.
pub const MAX_READ_ATTEMPTS: usize = 16;

/// The time after which no further attempt is begun: a store may wait for seconds in each until a value is quiet.
pub const MAX_READ_TIME: Duration = Duration::from_secs(10);

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

/// Runs attempts to read until no value changes meanwhile. After [`MAX_READ_ATTEMPTS`] or [`MAX_READ_TIME`], the error is
/// that of the last one.
///
/// Values that only this program changes need one attempt. Attempts must not be nested, since their numbers multiply.
pub async fn until_unchanged<T, E: ReadError, F: Future<Output = Result<T, E>>>(
    attempt: impl Fn() -> F,
) -> Result<T, E> {
    let begun = Instant::now();
    for _ in 1..MAX_READ_ATTEMPTS {
        match attempt().await {
            Err(error) if error.is_changed() && begun.elapsed() < MAX_READ_TIME => {}
            result => return result,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::Key;

    async fn attempts(each: Duration) -> usize {
        let attempts = AtomicUsize::new(0);
        let attempt = || async {
            attempts.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(each).await;
            Err::<(), _>(StoreError::Changed { key: Key::parse("a").unwrap() })
        };
        assert!(until_unchanged(attempt).await.unwrap_err().is_changed());
        attempts.into_inner()
    }

    #[tokio::test(start_paused = true)]
    async fn values_that_never_stay_are_given_up_after_some_attempts_or_some_time() {
        assert_eq!(attempts(Duration::ZERO).await, MAX_READ_ATTEMPTS);
        assert_eq!(attempts(Duration::from_secs(4)).await, 3);
        assert_eq!(attempts(Duration::from_secs(60)).await, 1);
    }

    #[tokio::test]
    async fn other_errors_are_final() {
        let failed = || async { Err::<(), _>(StoreError::Closed) };
        assert!(matches!(until_unchanged(failed).await, Err(StoreError::Closed)));
    }
}
