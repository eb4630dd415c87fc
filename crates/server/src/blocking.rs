//! Work that waits for a disk, on the blocking pool.

use zarrd_wire::problem::ProblemType;

use crate::error::ApiError;

/// Runs work that waits for a disk on the blocking pool. What takes processor time runs in turn with the work of other
/// requests instead, by [`Arrays::run`](zarrd_array::Arrays::run).
pub(crate) async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, ApiError> {
    let done = zarrd_executor::spawn_blocking(work).await;
    done.map_err(|error| ApiError::with_cause(ProblemType::Internal, error))
}
