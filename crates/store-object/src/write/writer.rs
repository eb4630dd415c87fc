//! Whether and how a bucket may be written, which is probed.

use tokio::{sync::Mutex, time::Instant};
use zarrd_store::{Conditions, StoreError};

use super::probe::{Probed, probe};
use crate::{error::RequestError, failure::Failure, inner::Inner, options::WriteMode};

/// The action that fails if a bucket cannot be probed.
pub(crate) const PROBE: &str = "probe the writes of";

/// The writes of a store.
#[derive(Debug)]
pub(crate) struct Writer {
    mode: WriteMode,
    probes: Mutex<Probes>,
}

/// What the probes of a bucket found.
#[derive(Debug, Default)]
struct Probes {
    probed: Option<Probed>,
    /// The last failure, with its time.
    failed: Option<(Instant, Failure)>,
}

impl Writer {
    /// The writes of a bucket that was not probed.
    pub(crate) fn new(mode: WriteMode) -> Self {
        Self { mode, probes: Mutex::default() }
    }

    /// Probes the bucket, unless it was probed or the store only reads. Fails if the bucket cannot be reached.
    pub(crate) async fn probe(&self, inner: &Inner) -> Result<Option<Probed>, Failure> {
        if self.mode == WriteMode::ReadOnly {
            return Ok(None);
        }
        let requested = Instant::now();
        let mut probes = self.probes.lock().await;
        if probes.probed.is_some() {
            return Ok(probes.probed);
        }
        // Of callers that waited for a probe which failed, none waits for another one.
        if let Some((_, failure)) = probes.failed.as_ref().filter(|(at, _)| *at >= requested) {
            return Err(failure.clone());
        }
        match probe(inner).await {
            Ok(found) => {
                self.report(inner, found);
                probes.probed = Some(found);
                Ok(Some(found))
            }
            Err(failure) => {
                probes.failed = Some((Instant::now(), failure.clone()));
                Err(failure)
            }
        }
    }

    /// The conditions of writes. Fails if there are no writes.
    pub(crate) async fn conditions(&self, inner: &Inner) -> Result<Conditions, StoreError> {
        let failed =
            |failure| StoreError::from(RequestError { action: PROBE, target: inner.location.to_string(), failure });
        let probed = self.probe(inner).await.map_err(failed)?;
        match self.declare(probed) {
            Declared::Writes(conditions) => Ok(conditions),
            Declared::ReadOnly(reason) => Err(StoreError::Unsupported { what: reason.unwrap_or("changes") }),
        }
    }

    /// The writes that a store has after a probe. One that could not be probed yet is taken to be as it was opened.
    pub(crate) fn declare(&self, probed: Option<Probed>) -> Declared {
        match (self.mode, probed) {
            (WriteMode::ReadOnly, _) => Declared::ReadOnly(None),
            (_, Some(Probed::ReadOnly(reason))) | (WriteMode::Conditional, Some(Probed::Inexact(reason))) => {
                Declared::ReadOnly(Some(reason))
            }
            (_, Some(Probed::Exact)) | (WriteMode::Conditional, None) => Declared::Writes(Conditions::Atomic),
            (WriteMode::LastWins, Some(Probed::Inexact(_)) | None) => Declared::Writes(Conditions::None),
        }
    }

    fn report(&self, inner: &Inner, probed: Probed) {
        let bucket = &inner.location;
        match (self.declare(Some(probed)), probed) {
            (Declared::ReadOnly(_), Probed::Inexact(reason) | Probed::ReadOnly(reason)) => {
                tracing::warn!(%bucket, reason, "a bucket stays read-only");
            }
            (_, Probed::Inexact(reason)) => {
                tracing::warn!(%bucket, reason, "a bucket is written without conditions: the last write wins");
            }
            _ => tracing::info!(%bucket, "a bucket is written with conditions"),
        }
    }
}

/// The writes that a store declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Declared {
    /// There are none, for this reason if they were wanted.
    ReadOnly(Option<&'static str>),
    /// Each key changes by itself, on these conditions.
    Writes(Conditions),
}
