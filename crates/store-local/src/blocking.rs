//! Work that blocks.

use zarrd_store::StoreError;

/// Runs work on the thread pool for work that blocks.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    zarrd_executor::run_blocking(work).await.unwrap_or(Err(StoreError::Closed))
}
