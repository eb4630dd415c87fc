//! The interval of scrubs on the command line.

use std::{str::FromStr, time::Duration};

/// The time from one scrub to the next; `None` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrubInterval(pub(crate) Option<Duration>);

/// The text is not a [`ScrubInterval`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a duration such as 30d or 12h, or off")]
pub(crate) struct ScrubIntervalError;

impl Default for ScrubInterval {
    /// A month.
    fn default() -> Self {
        Self(Some(Duration::from_secs(30 * 86_400)))
    }
}

impl FromStr for ScrubInterval {
    type Err = ScrubIntervalError;

    fn from_str(text: &str) -> Result<Self, ScrubIntervalError> {
        if text == "off" {
            return Ok(Self(None));
        }
        let interval = humantime::parse_duration(text).map_err(|_| ScrubIntervalError)?;
        // One pass after the other without a pause would be of no use.
        if interval.is_zero() { Err(ScrubIntervalError) } else { Ok(Self(Some(interval))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_parsed() {
        assert_eq!("7d".parse(), Ok(ScrubInterval(Some(Duration::from_secs(7 * 86_400)))));
        assert_eq!("off".parse(), Ok(ScrubInterval(None)));
        for text in ["", "0s", "never", "-1d"] {
            assert_eq!(text.parse::<ScrubInterval>(), Err(ScrubIntervalError), "{text}");
        }
    }
}
