//! Timeouts for slow clients.

use std::{num::NonZeroU64, time::Duration};

use crate::settings::Limits;

/// The time left to wait for one client, either to send data or to accept it.
///
/// Waiting consumes the time. Each transferred byte returns the time that it may take at the minimum rate, up to the
/// full timeout. A client may thus pause for the full timeout, but has to reach the minimum rate on average.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressTimeout {
    budget: Duration,
    remaining: Duration,
    /// Bytes per second; if `None`, any byte restores the full timeout.
    min_rate: Option<NonZeroU64>,
}

impl ProgressTimeout {
    /// The timeout for a client that sends a body.
    pub(crate) fn for_uploads(limits: &Limits) -> Self {
        Self::new(limits.upload_timeout, limits.min_rate)
    }

    /// The timeout for a client that receives a response.
    pub(crate) fn for_downloads(limits: &Limits) -> Self {
        Self::new(limits.download_timeout, limits.min_rate)
    }

    fn new(budget: Duration, min_rate: Option<NonZeroU64>) -> Self {
        Self { budget, remaining: budget, min_rate }
    }

    /// The time left to wait.
    pub(crate) fn remaining(&self) -> Duration {
        self.remaining
    }

    /// Records a transfer of `bytes` after a wait.
    pub(crate) fn record(&mut self, waited: Duration, bytes: u64) {
        let refund = match self.min_rate {
            Some(min_rate) => {
                let nanos = u128::from(bytes).saturating_mul(1_000_000_000) / u128::from(min_rate.get());
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            None if bytes > 0 => self.budget,
            None => Duration::ZERO,
        };
        self.remaining = self.remaining.saturating_sub(waited).saturating_add(refund).min(self.budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn trickling_bytes_exhaust_the_timeout() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, NonZeroU64::new(1024));
        for _ in 0..2 {
            assert!(timeout.remaining() > 20 * SECOND);
            timeout.record(20 * SECOND, 1);
        }
        assert!(timeout.remaining() < 21 * SECOND);
        timeout.record(20 * SECOND, 1);
        assert!(timeout.remaining() < SECOND / 100);
    }

    #[test]
    fn minimum_rate_restores_the_full_timeout() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, NonZeroU64::new(1024));
        for _ in 0..1000 {
            timeout.record(50 * SECOND, 50 << 10);
            assert_eq!(timeout.remaining(), 60 * SECOND);
        }
    }

    #[test]
    fn fast_transfer_restores_at_most_the_timeout() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, NonZeroU64::new(1024));
        timeout.record(Duration::ZERO, u64::MAX);
        timeout.record(59 * SECOND, 0);
        assert_eq!(timeout.remaining(), SECOND);
    }

    #[test]
    fn any_byte_restores_the_timeout_without_a_rate() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, None);
        timeout.record(59 * SECOND, 1);
        assert_eq!(timeout.remaining(), 60 * SECOND);
        timeout.record(59 * SECOND, 0);
        assert_eq!(timeout.remaining(), SECOND);
    }
}
