//! Work that would keep other requests waiting.

use wire::problem::ProblemType;

use crate::error::ApiError;

/// Runs what takes a while on a thread that may be kept.
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| ApiError::with_cause(ProblemType::Internal, error))
}
