//! Expiries on the command line.

use std::{
    str::FromStr,
    time::{Duration, SystemTime},
};

/// An expiry: after a time such as `90d`, or at a time such as `2027-01-01` or `2027-01-01T12:00:00Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// A time after now.
    After(Duration),
    /// A point in time.
    At(SystemTime),
}

/// The text is not an [`Expiry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "write a duration such as 90d or 12h, a date such as 2027-01-01, or a time in UTC such as 2027-01-01T12:00:00Z"
)]
pub(crate) struct ExpiryError;

impl Expiry {
    /// The point in time; `None` if it is too far away to be represented.
    pub(crate) fn resolve(self, now: SystemTime) -> Option<SystemTime> {
        match self {
            Self::After(duration) => now.checked_add(duration),
            Self::At(time) => Some(time),
        }
    }
}

impl FromStr for Expiry {
    type Err = ExpiryError;

    fn from_str(text: &str) -> Result<Self, ExpiryError> {
        if let Ok(duration) = humantime::parse_duration(text) {
            return Ok(Self::After(duration));
        }
        // A date is its beginning.
        let time = humantime::parse_rfc3339(text).or_else(|_| humantime::parse_rfc3339(&format!("{text}T00:00:00Z")));
        time.map(Self::At).map_err(|_| ExpiryError)
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn expiries_are_parsed() {
        let new_year = UNIX_EPOCH + Duration::from_secs(1_798_761_600);
        for (text, expiry) in [
            ("90d", Expiry::After(Duration::from_secs(90 * 86_400))),
            ("1h 30m", Expiry::After(Duration::from_secs(5400))),
            ("2027-01-01", Expiry::At(new_year)),
            ("2027-01-01T00:00:01Z", Expiry::At(new_year + Duration::from_secs(1))),
        ] {
            assert_eq!(text.parse(), Ok(expiry), "{text}");
        }
        for text in ["", "90", "-1d", "tomorrow", "2027-13-01", "2027-01-01T00:00:00", "2027-01-01T00:00:00+01:00"] {
            assert_eq!(text.parse::<Expiry>(), Err(ExpiryError), "{text}");
        }
        assert_eq!(
            Expiry::After(Duration::from_secs(5)).resolve(UNIX_EPOCH),
            Some(UNIX_EPOCH + Duration::from_secs(5))
        );
        assert_eq!(Expiry::After(Duration::MAX).resolve(UNIX_EPOCH), None);
    }
}
