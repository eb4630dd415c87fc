//! Work that would keep other requests waiting.

use wire::problem::ProblemType;

use crate::error::Refusal;

/// Runs what takes a while on a thread that may be kept.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|error| Refusal::because(ProblemType::Internal, error))
}
