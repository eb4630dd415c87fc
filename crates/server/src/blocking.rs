//! CPU-bound work on the blocking pool.

use wire::problem::ProblemType;

use crate::error::ApiError;

/// Runs CPU-bound work on the blocking pool.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::with_cause(ProblemType::Internal, error))
}
