//! How long a client that is slow is waited for.

use std::{num::NonZeroU64, time::Duration};

use crate::settings::Limits;

/// The patience that is left with one client that is waited for, be it for what it sends or until it takes what it is sent.
///
/// Waiting uses patience up. Each byte that goes gives back as much as it may take at the least rate, up to the whole of it. So a client may pause
/// for as long as the patience is, and on average has to be as quick as that rate; whoever is quicker never runs out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProgressTimeout {
    budget: Duration,
    remaining: Duration,
    /// Bytes a second; `None` where any byte gives all patience back.
    min_rate: Option<NonZeroU64>,
}

impl ProgressTimeout {
    /// The patience with whoever sends a body.
    pub(crate) fn for_uploads(limits: &Limits) -> Self {
        Self::new(limits.upload_timeout, limits.min_rate)
    }

    /// The patience with whoever is sent an answer.
    pub(crate) fn for_downloads(limits: &Limits) -> Self {
        Self::new(limits.download_timeout, limits.min_rate)
    }

    fn new(budget: Duration, min_rate: Option<NonZeroU64>) -> Self {
        Self { budget, remaining: budget, min_rate }
    }

    /// How long may still be waited.
    pub(crate) fn remaining(&self) -> Duration {
        self.remaining
    }

    /// So many bytes went after the client had been waited for.
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
    fn a_byte_now_and_then_is_too_slow() {
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
    fn who_keeps_the_rate_may_pause() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, NonZeroU64::new(1024));
        for _ in 0..1000 {
            timeout.record(50 * SECOND, 50 << 10);
            assert_eq!(timeout.remaining(), 60 * SECOND);
        }
    }

    #[test]
    fn what_came_quickly_earns_no_more_than_one_pause() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, NonZeroU64::new(1024));
        timeout.record(Duration::ZERO, u64::MAX);
        timeout.record(59 * SECOND, 0);
        assert_eq!(timeout.remaining(), SECOND);
    }

    #[test]
    fn without_a_rate_any_byte_will_do() {
        let mut timeout = ProgressTimeout::new(60 * SECOND, None);
        timeout.record(59 * SECOND, 1);
        assert_eq!(timeout.remaining(), 60 * SECOND);
        timeout.record(59 * SECOND, 0);
        assert_eq!(timeout.remaining(), SECOND);
    }
}
