//! Work that waits for a disk.

use std::panic::resume_unwind;

use tokio::task::{JoinError, JoinHandle};

/// Runs work that waits for a disk on the runtime's pool of threads for work that blocks. A panic of the work continues in
/// the caller; an error means that the runtime is shutting down. What takes processor time runs by
/// [`Executor::run`](crate::Executor::run) instead, in turn with the work of other requests.
pub async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, JoinError> {
    match spawn_blocking(work).await.map_err(JoinError::try_into_panic) {
        Ok(output) => Ok(output),
        Err(Ok(panic)) => resume_unwind(panic),
        Err(Err(shutting_down)) => Err(shutting_down),
    }
}

/// Starts work that waits for a disk, as [`run_blocking`] runs it.
#[allow(clippy::disallowed_methods, reason = "the one place")]
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    tokio::task::spawn_blocking(work)
}
