//! Requests, and their repetition after failures that pass.

use std::{error::Error, time::Duration};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout, timeout_at},
};

/// The maximum number of requests that wait for their answer at a time.
const MAX_REQUESTS: usize = 64;

/// The failure of one request.
pub trait Failed: Error + Send + Sync + 'static {
    /// True if the same request may succeed later.
    fn is_transient(&self) -> bool;

    /// The time after which the service asks to retry.
    fn retry_after(&self) -> Option<Duration>;

    /// The failure that no answer arrived within this time.
    fn late(limit: Duration) -> Self;

    /// The failure that a body ended so many bytes too early.
    fn short(missing: u64) -> Self;

    /// The failure that a body has more bytes than announced.
    fn long() -> Self;
}

/// The delays between the attempts of one operation, and its end.
#[derive(Debug)]
pub struct Attempts {
    delays: ExponentialBackoff,
    deadline: Instant,
    limit: Duration,
}

/// The requests of one store: at most 64 wait for their answer at a time.
///
/// Bodies do not count, since they are read at their readers' pace.
#[derive(Debug)]
pub struct Requests {
    permits: Semaphore,
    limit: Duration,
    retries: usize,
}

impl Attempts {
    /// The attempts of an operation that begins now and has to be done within `limit`.
    pub fn new(limit: Duration, retries: usize) -> Self {
        let delays = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(5))
            .with_max_times(retries)
            .with_jitter()
            .build();
        Self { delays, deadline: Instant::now() + limit, limit }
    }

    /// Waits until the next attempt; returns the failure if there is none.
    pub async fn wait<F: Failed>(&mut self, failure: F) -> Result<(), F> {
        if !failure.is_transient() {
            return Err(failure);
        }
        let Some(delay) = self.delays.next() else { return Err(failure) };
        // Never earlier than the service asks for; the random part spreads the clients that it asked.
        let delay = failure.retry_after().unwrap_or_default().saturating_add(delay);
        if Instant::now().checked_add(delay).is_none_or(|at| at >= self.deadline) {
            return Err(failure);
        }
        tracing::debug!(%failure, ?delay, "retrying a request to another server");
        sleep(delay).await;
        Ok(())
    }
}

impl Requests {
    /// Requests that are answered within `limit`, including so many retries and the wait for their turn.
    pub fn new(limit: Duration, retries: usize) -> Self {
        Self { permits: Semaphore::new(MAX_REQUESTS), limit, retries }
    }

    /// The attempts of an operation that begins now.
    pub fn attempts(&self) -> Attempts {
        Attempts::new(self.limit, self.retries)
    }

    /// Makes a request once, within a limit of its own, which includes the wait for its turn.
    pub async fn make_once<T, F: Failed>(
        &self,
        limit: Duration,
        request: impl Future<Output = Result<T, F>>,
    ) -> Result<T, F> {
        let attempt = async {
            // The semaphore is never closed.
            let _permit = self.permits.acquire().await.ok();
            request.await
        };
        timeout(limit, attempt).await.unwrap_or_else(|_| Err(F::late(limit)))
    }

    /// Makes a request, and repeats it after a failure that may pass.
    pub async fn make<T, F: Failed, R>(&self, request: impl Fn() -> R) -> Result<T, F>
    where
        R: Future<Output = Result<T, F>>,
    {
        let mut attempts = self.attempts();
        loop {
            let attempt = async {
                // The semaphore is never closed.
                let _permit = self.permits.acquire().await.ok();
                request().await
            };
            let failure = match timeout_at(attempts.deadline, attempt).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => failure,
                Err(_) => F::late(attempts.limit),
            };
            attempts.wait(failure).await?;
        }
    }
}
