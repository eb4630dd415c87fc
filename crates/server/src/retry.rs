//! Reads that are repeated if another program changes a value while it is read.

use std::future::Future;

use wire::problem::ProblemType;

use crate::error::ApiError;

/// The number of attempts after which the error is answered.
const MAX_ATTEMPTS: usize = 16;

/// Runs attempts to begin an answer, until no other program changes a value that it reads. Once its first byte is sent,
/// a change resets the connection instead.
pub(crate) async fn until_unchanged<T, F: Future<Output = Result<T, ApiError>>>(
    attempt: impl Fn() -> F,
) -> Result<T, ApiError> {
    for _ in 1..MAX_ATTEMPTS {
        match attempt().await {
            Err(error) if error.problem_type() == ProblemType::ValueChanged => {}
            result => return result,
        }
    }
    attempt().await
}
