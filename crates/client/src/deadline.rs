//! Time limits of an operation.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::{error::TransportError, options::Timeouts};

/// Factor by which the idle timeout is extended for requests to which the server responds only after long work.
const LONG_WORK_FACTOR: u32 = 10;

/// The time limits of one operation that has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    idle: Duration,
    total: Option<TotalTimeout>,
}

/// The limit for all attempts of an operation together.
#[derive(Clone, Copy, Debug)]
struct TotalTimeout {
    duration: Duration,
    end: Instant,
}

impl Deadline {
    /// The limits of an operation that begins now.
    pub(crate) fn start(timeouts: &Timeouts) -> Self {
        let total = |duration| Some(TotalTimeout { duration, end: Instant::now().checked_add(duration)? });
        Self { idle: timeouts.idle, total: timeouts.total.and_then(total) }
    }

    /// The same limits with a longer idle timeout, for requests whose response time grows with the amount of work.
    pub(crate) fn for_long_work(self) -> Self {
        Self { idle: self.idle.saturating_mul(LONG_WORK_FACTOR), ..self }
    }

    /// The end of the operation, if it is limited.
    pub(crate) fn end(self) -> Option<Instant> {
        self.total.map(|total| total.end)
    }

    /// Waits for the server, at most for the idle timeout.
    pub(crate) async fn wait_for_server<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        let idle = Instant::now().checked_add(self.idle);
        match (idle, self.total) {
            (Some(idle), Some(total)) if total.end < idle => total.wait(step).await,
            (Some(idle), _) => timeout_at(idle, step).await.map_err(|_| TransportError::Idle(self.idle)),
            (None, Some(total)) => total.wait(step).await,
            (None, None) => Ok(step.await),
        }
    }

    /// Waits for the caller, to whom only the limit of the operation applies.
    pub(crate) async fn wait_for_caller<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        match self.total {
            Some(total) => total.wait(step).await,
            None => Ok(step.await),
        }
    }
}

impl TotalTimeout {
    async fn wait<F: Future>(self, step: F) -> Result<F::Output, TransportError> {
        timeout_at(self.end, step).await.map_err(|_| TransportError::Total(self.duration))
    }
}
