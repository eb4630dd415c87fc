//! Grants: a right on a prefix.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use zarrd_store::{Key, KeyError, Prefix};

use crate::right::{Right, UnknownRight};

/// A right on everything below a prefix, such as `read:lab/`.
///
/// The prefix `lab/` covers the key `lab/x` and the prefixes `lab/` and `lab/exp1/`, but not the key `lab`, nor
/// `lab2/x`. `read:/`, or `read:` for short, is a right on everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Grant {
    /// The right.
    pub right: Right,
    /// The prefix on which it is granted.
    pub prefix: Prefix,
}

/// Errors of parsing a [`Grant`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// There is no `:` between right and prefix.
    #[error("a grant is a right and a prefix, such as `read:lab/`")]
    MissingColon,
    /// The right is unknown.
    #[error(transparent)]
    Right(#[from] UnknownRight),
    /// The prefix is invalid.
    #[error("the prefix of a grant must be like that of `read:lab/`, or `/` for everything")]
    Prefix(#[from] KeyError),
}

impl Grant {
    /// A right on a prefix.
    pub fn new(right: Right, prefix: Prefix) -> Self {
        Self { right, prefix }
    }

    /// Parses a prefix as in a grant: `/` is the root, as is the empty text.
    pub fn parse_prefix(text: &str) -> Result<Prefix, KeyError> {
        if text == "/" { Ok(Prefix::root()) } else { Prefix::parse(text) }
    }

    /// True if this grants a right on all of a prefix.
    pub fn allows(&self, right: Right, prefix: &Prefix) -> bool {
        self.right.includes(right) && prefix.as_str().starts_with(self.prefix.as_str())
    }

    /// True if this grants a right on a key.
    pub fn allows_key(&self, right: Right, key: &Key) -> bool {
        self.right.includes(right) && self.prefix.contains(key)
    }

    /// True if this grants everything that another one does.
    pub fn covers(&self, other: &Self) -> bool {
        self.allows(other.right, &other.prefix)
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { right, prefix } = self;
        if prefix.is_root() { write!(f, "{right}:/") } else { write!(f, "{right}:{prefix}") }
    }
}

impl FromStr for Grant {
    type Err = GrantError;

    fn from_str(text: &str) -> Result<Self, GrantError> {
        let (right, prefix) = text.split_once(':').ok_or(GrantError::MissingColon)?;
        let right = right.parse()?;
        Ok(Self { right, prefix: Self::parse_prefix(prefix)? })
    }
}

impl TryFrom<String> for Grant {
    type Error = GrantError;

    fn try_from(text: String) -> Result<Self, GrantError> {
        text.parse()
    }
}

impl From<Grant> for String {
    fn from(grant: Grant) -> Self {
        grant.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_read_and_shown() {
        for (text, shown) in [
            ("read:lab/", "read:lab/"),
            ("write:lab/exp1/", "write:lab/exp1/"),
            ("admin:/", "admin:/"),
            ("admin:", "admin:/"),
            ("read:a:b/", "read:a:b/"),
        ] {
            let grant: Grant = text.parse().unwrap();
            assert_eq!(grant.to_string(), shown);
            assert_eq!(shown.parse(), Ok(grant.clone()));
            let json = serde_json::to_string(&grant).unwrap();
            assert_eq!(json, format!("{shown:?}"));
            assert_eq!(serde_json::from_str::<Grant>(&json).unwrap(), grant);
        }
    }

    #[test]
    fn texts_that_are_no_grants_are_rejected() {
        for (text, error) in [
            ("", GrantError::MissingColon),
            ("read", GrantError::MissingColon),
            ("lab/", GrantError::MissingColon),
            (":lab/", GrantError::Right(UnknownRight)),
            ("Read:lab/", GrantError::Right(UnknownRight)),
            ("own:lab/", GrantError::Right(UnknownRight)),
            ("read:lab", GrantError::Prefix(KeyError::NoTrailingSlash)),
            ("read:/lab/", GrantError::Prefix(KeyError::EmptySegment { offset: 0 })),
            ("read://", GrantError::Prefix(KeyError::EmptySegment { offset: 0 })),
            ("read:lab//x/", GrantError::Prefix(KeyError::EmptySegment { offset: 4 })),
            ("read:../", GrantError::Prefix(KeyError::DotSegment { offset: 0 })),
            ("read:lab/../x/", GrantError::Prefix(KeyError::DotSegment { offset: 4 })),
            ("read:a\nb/", GrantError::Prefix(KeyError::ControlCharacter { offset: 1 })),
        ] {
            assert_eq!(text.parse::<Grant>(), Err(error), "{text}");
        }
    }

    #[test]
    fn prefix_covers_what_is_below_it() {
        let grant: Grant = "write:lab/".parse().unwrap();
        for (right, prefix, allowed) in [
            (Right::Read, "lab/", true),
            (Right::Write, "lab/exp1/", true),
            (Right::Admin, "lab/", false),
            (Right::Read, "", false),
            (Right::Read, "lab2/", false),
            (Right::Read, "la/", false),
        ] {
            assert_eq!(grant.allows(right, &Prefix::parse(prefix).unwrap()), allowed, "{right} {prefix}");
        }
        for (key, allowed) in [("lab/x", true), ("lab/exp1/c/0", true), ("lab", false), ("lab2/x", false), ("x", false)]
        {
            assert_eq!(grant.allows_key(Right::Write, &Key::parse(key).unwrap()), allowed, "{key}");
        }
    }
}
