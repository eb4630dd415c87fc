//! The mounted stores that failed lately, which trees across stores do not wait for again.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use tokio::time::Instant;
use zarrd_store::{MountFailure, Prefix, StoreError};

/// The time for which a mount that failed is not asked again for trees across stores.
const UNAVAILABLE_TIME: Duration = Duration::from_secs(10);

/// The mounted stores that failed lately. For speed only: whoever asks one of them by its own path reaches it.
#[derive(Debug, Default)]
pub(crate) struct UnavailableMounts(Mutex<BTreeMap<Prefix, Failure>>);

#[derive(Debug)]
struct Failure {
    at: Instant,
    reason: String,
}

impl UnavailableMounts {
    /// The mounts that failed lately, each with the reason.
    pub(crate) fn current(&self) -> BTreeMap<Prefix, String> {
        let mut failed = self.0.lock();
        failed.retain(|_, failure| failure.at.elapsed() < UNAVAILABLE_TIME);
        failed.iter().map(|(prefix, failure)| (prefix.clone(), failure.reason.clone())).collect()
    }

    /// Records the failure of a mount; does nothing for other errors.
    pub(crate) fn record(&self, error: &StoreError) {
        let Some(failure) = error.backend_source::<MountFailure>() else { return };
        let failed = Failure { at: Instant::now(), reason: format!("unavailable: {error}") };
        if self.0.lock().insert(failure.prefix().clone(), failed).is_none() {
            tracing::warn!(mount = %failure.prefix(), error = %failure.cause(), "a mounted store is left out of trees");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_forgotten_after_a_while() {
        let mounts = UnavailableMounts::default();
        let prefix = Prefix::parse("far/").unwrap();
        mounts.record(&StoreError::Closed);
        assert!(mounts.current().is_empty());
        let failed = MountFailure::in_time::<()>(&prefix, std::future::pending()).await;
        mounts.record(&failed.unwrap_err());
        tokio::time::advance(UNAVAILABLE_TIME / 2).await;
        let current = mounts.current();
        assert_eq!(current.get(&prefix).map(String::as_str), Some("unavailable: the store did not answer in time"));
        tokio::time::advance(UNAVAILABLE_TIME).await;
        assert!(mounts.current().is_empty());
    }
}
