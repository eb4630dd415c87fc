//! Timeouts and retries.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

/// Time limits of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit for establishing a connection, including TLS. Ten seconds by default.
    pub connect: Duration,
    /// Limit for the server to send or accept the next bytes: the response head once the request was sent, and each
    /// part of a body. The time that the caller takes to produce the content of a value, or to ask for its next part,
    /// does not count. Operations during which a server is silent for long, such as erasing a prefix, have ten times
    /// this limit. One minute by default.
    pub idle: Duration,
    /// Limit for a whole operation, including its retries and the value that it returns. Unlimited by default, since
    /// values can have any size.
    pub total: Option<Duration>,
}

/// Retries of failed requests.
///
/// The delay doubles with each retry, and a random part is added so that clients do not return all at once. A
/// `Retry-After` of the server is honoured, unless it is longer than [`max_retry_after`](Self::max_retry_after): then
/// the request fails immediately.
///
/// Only idempotent operations are retried unconditionally: reads, listings, and `set` (of content in memory), `erase`
/// and `erase_prefix` without a precondition. Their results are those of the last attempt: an `erase` whose first
/// response was lost may report that the key had no value.
///
/// An operation with a precondition is retried only if it is known not to have been executed: no connection could be
/// established, or the server responded that it is busy. If merely the response was lost, the change may have been made
/// and would make its own precondition false, which would look like a conflict with another client.
///
/// [`NodeClient`](crate::NodeClient) and [`ArrayClient`](crate::ArrayClient) document which of their operations are
/// idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Maximum number of retries of a request, and of resumptions of an interrupted value. Four by default.
    pub max_retries: usize,
    /// Delay before the first retry. 100 milliseconds by default.
    pub initial_delay: Duration,
    /// Maximum delay, without its random part. Five seconds by default.
    pub max_delay: Duration,
    /// Maximum `Retry-After` that is honoured. 30 seconds by default.
    pub max_retry_after: Duration,
}

impl Retries {
    /// Disables retries.
    pub fn none() -> Self {
        Self { max_retries: 0, ..Self::default() }
    }

    pub(crate) fn delays(&self) -> ExponentialBackoff {
        ExponentialBuilder::new()
            .with_min_delay(self.initial_delay)
            .with_max_delay(self.max_delay)
            .with_max_times(self.max_retries)
            .with_jitter()
            .build()
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), idle: Duration::from_secs(60), total: None }
    }
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            max_retries: 4,
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            max_retry_after: Duration::from_secs(30),
        }
    }
}
