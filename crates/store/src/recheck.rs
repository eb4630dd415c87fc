//! The time for which metadata and documents are cached.

use std::{fmt, str::FromStr, time::Duration};

/// The time after which cached metadata and documents of data that other programs write are revalidated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recheck {
    /// At once: nothing is cached.
    Always,
    /// After this time, which is not zero.
    After(Duration),
    /// Not at all: the data do not change.
    Never,
}

/// The text is not a time after which a store is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write a time such as `5s`, `500ms`, `2m` or `1h`, `0` to ask each time, or `never`")]
pub struct RecheckError;

/// The units of a time, with their milliseconds.
const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl Recheck {
    /// The time for a store whose answers take a round trip, unless another one is chosen: five seconds.
    pub const DISTANT: Self = Self::After(Duration::from_secs(5));

    /// The longest time until a change is seen because of it.
    pub fn staleness(self) -> Duration {
        match self {
            Self::Always => Duration::ZERO,
            Self::After(time) => time,
            Self::Never => Duration::MAX,
        }
    }
}

impl FromStr for Recheck {
    type Err = RecheckError;

    fn from_str(text: &str) -> Result<Self, RecheckError> {
        if text == "never" {
            return Ok(Self::Never);
        }
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at_checked(digits).ok_or(RecheckError)?;
        let number: u64 = number.parse().map_err(|_| RecheckError)?;
        if unit.is_empty() {
            return if number == 0 { Ok(Self::Always) } else { Err(RecheckError) };
        }
        let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or(RecheckError)?;
        Ok(match Duration::from_millis(number.checked_mul(factor).ok_or(RecheckError)?) {
            Duration::ZERO => Self::Always,
            time => Self::After(time),
        })
    }
}

impl fmt::Display for Recheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("0"),
            Self::Never => f.write_str("never"),
            Self::After(time) if time.subsec_millis() == 0 => write!(f, "{}s", time.as_secs()),
            Self::After(time) => write!(f, "{}ms", time.as_millis()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed_and_shown() {
        for (text, expected, shown) in [
            ("5s", Recheck::DISTANT, "5s"),
            ("0", Recheck::Always, "0"),
            ("0s", Recheck::Always, "0"),
            ("never", Recheck::Never, "never"),
            ("1500ms", Recheck::After(Duration::from_millis(1_500)), "1500ms"),
            ("2m", Recheck::After(Duration::from_secs(120)), "120s"),
            ("1h", Recheck::After(Duration::from_secs(3_600)), "3600s"),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
            assert_eq!(expected.to_string(), shown);
            assert_eq!(shown.parse(), Ok(expected), "{shown}");
        }
        for text in ["", "5", "s", "-1s", "5 s", "5d", "always", "99999999999999999999s", "18446744073709551615h", "é"]
        {
            assert_eq!(text.parse::<Recheck>(), Err(RecheckError), "{text}");
        }
    }
}
