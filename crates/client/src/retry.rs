//! Retries of failed requests.

use std::{fmt, time::Duration};

use backon::ExponentialBackoff;
use tokio::time::{Instant, sleep};

use crate::{
    error::{RequestError, TransportError},
    options::Retries,
};

/// The error of one attempt, with what a retry has to know about it.
#[derive(Debug)]
pub(crate) struct FailedAttempt<E> {
    pub(crate) error: E,
    pub(crate) execution: Execution,
    /// The delay that the server asks for in `Retry-After`.
    pub(crate) retry_after: Option<Duration>,
}

/// Execution state of a failed request on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    /// The server did not execute the request; a retry may succeed.
    NotExecuted,
    /// The response was lost, or was sent by an intermediary such as a gateway.
    Unknown,
    /// The server responded; a retry would get the same response.
    Final,
}

/// Idempotency of an operation, which decides when it may be retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Idempotency {
    /// Executing the operation twice has the effect of executing it once.
    Idempotent,
    /// The operation is retried only if it was not executed.
    NotIdempotent,
}

/// The delays between the attempts of one operation.
pub(crate) struct Backoff {
    delays: ExponentialBackoff,
    /// The longest `Retry-After` that is honoured.
    max_retry_after: Duration,
    deadline: Option<Instant>,
}

impl<E> FailedAttempt<E> {
    /// An error that a retry would not change.
    pub(crate) fn terminal(error: E) -> Self {
        Self { error, execution: Execution::Final, retry_after: None }
    }
}

impl<E: From<RequestError>> From<RequestError> for FailedAttempt<E> {
    fn from(error: RequestError) -> Self {
        Self { execution: execution(&error), error: error.into(), retry_after: None }
    }
}

impl<E: From<RequestError>> From<TransportError> for FailedAttempt<E> {
    fn from(error: TransportError) -> Self {
        RequestError::from(error).into()
    }
}

impl Backoff {
    pub(crate) fn new(retries: &Retries, deadline: Option<Instant>) -> Self {
        Self { delays: retries.delays(), max_retry_after: retries.max_retry_after, deadline }
    }

    /// Makes attempts until one succeeds or fails with an error that must not be retried.
    pub(crate) async fn retry<T, E, F>(&mut self, idempotency: Idempotency, attempt: impl Fn() -> F) -> Result<T, E>
    where
        E: fmt::Display,
        F: Future<Output = Result<T, FailedAttempt<E>>>,
    {
        loop {
            match attempt().await {
                Ok(value) => return Ok(value),
                Err(failed) => self.wait(failed, idempotency).await?,
            }
        }
    }

    /// Waits until the request may be retried; returns its error if it must not be.
    pub(crate) async fn wait<E: fmt::Display>(
        &mut self,
        failed: FailedAttempt<E>,
        idempotency: Idempotency,
    ) -> Result<(), E> {
        let FailedAttempt { error, execution, retry_after } = failed;
        let may_retry = match idempotency {
            Idempotency::Idempotent => execution != Execution::Final,
            Idempotency::NotIdempotent => execution == Execution::NotExecuted,
        };
        if !may_retry {
            return Err(error);
        }
        let Some(delay) = self.next_delay(retry_after.unwrap_or_default()) else { return Err(error) };
        tracing::debug!(%error, ?delay, "retrying a failed request");
        sleep(delay).await;
        Ok(())
    }

    fn next_delay(&mut self, retry_after: Duration) -> Option<Duration> {
        let backoff = self.delays.next()?;
        // Never earlier than requested; the random part of the backoff spreads clients that got the same `Retry-After`.
        let delay = if retry_after.is_zero() { backoff } else { retry_after.saturating_add(backoff.min(retry_after)) };
        let in_time =
            self.deadline.is_none_or(|deadline| Instant::now().checked_add(delay).is_some_and(|end| end < deadline));
        (retry_after <= self.max_retry_after && in_time).then_some(delay)
    }
}

fn execution(error: &RequestError) -> Execution {
    let error = match error {
        RequestError::Transport(error) => error,
        RequestError::Protocol { .. } => return Execution::Final,
    };
    match error {
        TransportError::Http(http) if http.is_connect() => Execution::NotExecuted,
        TransportError::Http(http) if http.is_builder() => Execution::Final,
        TransportError::Http(_) | TransportError::Idle(_) | TransportError::Truncated { .. } => Execution::Unknown,
        TransportError::Total(_) | TransportError::Replaced => Execution::Final,
    }
}
