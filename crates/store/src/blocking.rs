//! Work that blocks.

use std::panic::resume_unwind;

use tokio::task::{JoinError, spawn_blocking};

/// Runs work on the runtime's pool of threads for work that blocks. A panic of the work continues in the caller; an
/// error means that the runtime is shutting down.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(output) => Ok(output),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(shutting_down)) => Err(shutting_down),
    }
}
