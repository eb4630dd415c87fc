//! How long a client that is slow is waited for.

use std::{num::NonZeroU64, time::Duration};

use crate::settings::Limits;

/// The patience that is left with one client that is waited for, be it for what it sends or until it takes what it is sent.
///
/// Waiting uses patience up. Each byte that goes gives back as much as it may take at the least rate, up to the whole of it. So a client may pause
/// for as long as the patience is, and on average has to be as quick as that rate; whoever is quicker never runs out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    most: Duration,
    left: Duration,
    /// Bytes a second; `None` where any byte gives all patience back.
    rate: Option<NonZeroU64>,
}

impl Pace {
    /// The patience with whoever sends a body.
    pub(crate) fn of_uploads(limits: &Limits) -> Self {
        Self::new(limits.upload_timeout, limits.rate)
    }

    /// The patience with whoever is sent an answer.
    pub(crate) fn of_downloads(limits: &Limits) -> Self {
        Self::new(limits.download_timeout, limits.rate)
    }

    fn new(most: Duration, rate: Option<NonZeroU64>) -> Self {
        Self { most, left: most, rate }
    }

    /// How long may still be waited.
    pub(crate) fn left(&self) -> Duration {
        self.left
    }

    /// So many bytes went after the client had been waited for.
    pub(crate) fn went(&mut self, waited: Duration, bytes: u64) {
        let earned = match self.rate {
            Some(rate) => {
                let nanos = u128::from(bytes).saturating_mul(1_000_000_000) / u128::from(rate.get());
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            None if bytes > 0 => self.most,
            None => Duration::ZERO,
        };
        self.left = self.left.saturating_sub(waited).saturating_add(earned).min(self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_byte_now_and_then_is_too_slow() {
        let mut pace = Pace::new(60 * SECOND, NonZeroU64::new(1024));
        for _ in 0..2 {
            assert!(pace.left() > 20 * SECOND);
            pace.went(20 * SECOND, 1);
        }
        assert!(pace.left() < 21 * SECOND);
        pace.went(20 * SECOND, 1);
        assert!(pace.left() < SECOND / 100);
    }

    #[test]
    fn who_keeps_the_rate_may_pause() {
        let mut pace = Pace::new(60 * SECOND, NonZeroU64::new(1024));
        for _ in 0..1000 {
            pace.went(50 * SECOND, 50 << 10);
            assert_eq!(pace.left(), 60 * SECOND);
        }
    }

    #[test]
    fn what_came_quickly_earns_no_more_than_one_pause() {
        let mut pace = Pace::new(60 * SECOND, NonZeroU64::new(1024));
        pace.went(Duration::ZERO, u64::MAX);
        pace.went(59 * SECOND, 0);
        assert_eq!(pace.left(), SECOND);
    }

    #[test]
    fn without_a_rate_any_byte_will_do() {
        let mut pace = Pace::new(60 * SECOND, None);
        pace.went(59 * SECOND, 1);
        assert_eq!(pace.left(), 60 * SECOND);
        pace.went(59 * SECOND, 0);
        assert_eq!(pace.left(), SECOND);
    }
}
