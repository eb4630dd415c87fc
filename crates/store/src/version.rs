//! Versions and preconditions.

use std::fmt;

/// The version of a key's value: opaque, and usable as a strong entity tag.
///
/// Every set assigns a version that no key of the store has had before, and values keep their versions across restarts.
/// Equal versions of one key therefore mean equal bytes. The text form is 32 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(u128);

/// The text is not a [`Version`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a version is 32 hexadecimal digits in lower case")]
pub struct VersionError;

/// The versions that a condition accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    /// Any version: the key has a value.
    Any,
    /// One of these versions.
    OneOf(Vec<Version>),
}

/// A condition on the current version of a key, checked atomically with a change.
///
/// The members have the meaning of `If-Match` and `If-None-Match` in RFC 9110, sections 13.1.1 and 13.1.2. Without
/// both, the change is unconditional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Precondition {
    /// The key must have a value with a matching version.
    pub if_match: Option<VersionMatch>,
    /// The key must have no value, or one without a matching version.
    pub if_none_match: Option<VersionMatch>,
}

impl Version {
    /// The version with this number. Stores call this.
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// The version as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }
}

impl VersionMatch {
    /// True if the version of a key matches; `None` (no value) never does.
    pub fn matches(&self, current: Option<Version>) -> bool {
        match (self, current) {
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::OneOf(versions), Some(current)) => versions.contains(&current),
        }
    }
}

impl Precondition {
    /// No condition.
    pub fn none() -> Self {
        Self::default()
    }

    /// The key has no value.
    pub fn absent() -> Self {
        Self { if_match: None, if_none_match: Some(VersionMatch::Any) }
    }

    /// The key has a value, of any version.
    pub fn present() -> Self {
        Self { if_match: Some(VersionMatch::Any), if_none_match: None }
    }

    /// The key is at `version`.
    pub fn at(version: Version) -> Self {
        Self { if_match: Some(VersionMatch::OneOf(vec![version])), if_none_match: None }
    }

    /// The key is unchanged since it was read: at this version, or still without a value.
    pub fn unchanged(current: Option<Version>) -> Self {
        current.map_or_else(Self::absent, Self::at)
    }

    /// True if the condition holds for a key at version `current`.
    pub fn is_met_by(&self, current: Option<Version>) -> bool {
        self.if_match.as_ref().is_none_or(|wanted| wanted.matches(current))
            && self.if_none_match.as_ref().is_none_or(|unwanted| !unwanted.matches(current))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Version({self})")
    }
}

impl std::str::FromStr for Version {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        if text.len() != 32 || !text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(VersionError);
        }
        u128::from_str_radix(text, 16).map(Self).map_err(|_| VersionError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_round_trip_as_text() {
        let version = Version::from_u128(0xab << 64);
        assert_eq!(version.to_string(), "00000000000000ab0000000000000000");
        assert_eq!(version.to_string().parse(), Ok(version));
        for bad in ["", "ab", "+0000000000000ab0000000000000000", "00000000000000AB0000000000000000"] {
            assert_eq!(bad.parse::<Version>(), Err(VersionError), "{bad}");
        }
    }

    #[test]
    fn preconditions_compare_versions() {
        let (one, two) = (Version::from_u128(1), Version::from_u128(2));
        for (precondition, when_absent, at_one, at_two) in [
            (Precondition::none(), true, true, true),
            (Precondition::absent(), true, false, false),
            (Precondition::present(), false, true, true),
            (Precondition::at(one), false, true, false),
            (Precondition { if_match: None, if_none_match: Some(VersionMatch::OneOf(vec![one])) }, true, false, true),
        ] {
            assert_eq!(precondition.is_met_by(None), when_absent, "{precondition:?}");
            assert_eq!(precondition.is_met_by(Some(one)), at_one, "{precondition:?}");
            assert_eq!(precondition.is_met_by(Some(two)), at_two, "{precondition:?}");
        }
    }
}
