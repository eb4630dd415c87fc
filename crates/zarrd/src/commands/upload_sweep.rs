//! Removing abandoned uploads while a server runs.

use std::{convert::Infallible, sync::Arc, time::Duration};

use zarrd_store::{TransactionalStore, UPLOAD_RETENTION, UploadStore};

/// The time between two sweeps.
const INTERVAL: Duration = Duration::from_secs(3600);

/// Sweeps now and then, as long as it is polled.
pub(super) async fn sweep_uploads(store: Arc<dyn TransactionalStore>) -> Infallible {
    loop {
        match store.sweep_uploads(UPLOAD_RETENTION).await {
            Ok(0) => {}
            Ok(ended) => tracing::info!(ended, "removed abandoned uploads"),
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "could not remove abandoned uploads")
            }
        }
        tokio::time::sleep(INTERVAL).await;
    }
}
