//! The costs of jobs.

use crate::{
    limits::{LargeJob, SMALL_JOB_STEPS, Work},
    pool::RequestSize,
};

/// The cost of a job: a kind of work, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    work: Work,
    amount: u64,
    steps: u64,
}

impl Cost {
    /// The cost of `amount` units of a kind of work.
    #[inline]
    pub const fn of(work: Work, amount: u64) -> Self {
        Self { work, amount, steps: amount.saturating_mul(work.limits().steps) }
    }

    /// The cost of decoding, encoding or ordering elements, which is estimated in steps.
    #[inline]
    pub const fn codec(steps: u64) -> Self {
        Self::of(Work::Codec, steps)
    }

    /// The same amount, with steps that are estimated otherwise than by the table.
    #[inline]
    #[must_use]
    pub const fn with_steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// The cost of a job of the same kind that is too large to run at once, if it would.
    #[must_use]
    pub const fn not_at_once(self) -> Self {
        match self.work.limits().at_once {
            Some(limit) if self.amount <= limit => Self::of(self.work, limit.saturating_add(1)),
            _ => self,
        }
    }

    /// True if the job takes less than a switch to another thread is worth, so that it runs at once.
    #[inline]
    pub const fn is_at_once(self) -> bool {
        match self.work.limits().at_once {
            Some(limit) => self.amount <= limit,
            None => false,
        }
    }

    /// The size of a job: some threads are for small ones, and large ones have a low priority.
    #[inline]
    pub const fn size(self) -> RequestSize {
        if self.steps <= SMALL_JOB_STEPS { RequestSize::Small } else { RequestSize::Large }
    }

    /// True if the request moves to the background before the job runs.
    #[inline]
    pub(crate) const fn moves_request(self) -> bool {
        matches!((self.work.limits().large, self.size()), (LargeJob::WithItsRequest, RequestSize::Large))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_has_a_row_with_a_reason_and_a_measurement_for_each_kind() {
        for work in Work::ALL {
            let limits = work.limits();
            assert_eq!(limits.work, work);
            assert!(!limits.reason.is_empty() && limits.measured.contains(|letter: char| letter.is_ascii_digit()));
            let Some(most) = limits.at_once else { continue };
            assert!(!Cost::of(work, 0).not_at_once().is_at_once());
            assert!(Cost::of(work, most).is_at_once() && !Cost::of(work, most + 1).is_at_once(), "{work:?}");
        }
    }

    #[test]
    fn what_runs_at_once_is_no_large_job() {
        for work in Work::ALL.into_iter().filter(|work| *work != Work::OnlyCopy) {
            let most = work.limits().at_once.unwrap_or(0);
            assert_eq!(Cost::of(work, most).size(), RequestSize::Small, "{work:?}");
        }
    }

    #[test]
    fn steps_of_a_job_do_not_overflow() {
        assert_eq!(Cost::of(Work::Documents, u64::MAX).size(), RequestSize::Large);
    }
}
