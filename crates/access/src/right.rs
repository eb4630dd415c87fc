//! Rights.

use std::{fmt, str::FromStr};

/// A right. Each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Right {
    /// Reading values, listings, nodes and elements.
    Read,
    /// Changing them.
    Write,
    /// Creating, listing and revoking the tokens and share links of a prefix.
    Admin,
}

/// The text is not a [`Right`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the right must be `read`, `write` or `admin`")]
pub struct UnknownRight;

impl Right {
    /// All rights, in order.
    pub const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Admin];

    /// The right's name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }

    /// True if who has this right has the other one too.
    pub fn includes(self, other: Self) -> bool {
        self >= other
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Right {
    type Err = UnknownRight;

    fn from_str(text: &str) -> Result<Self, UnknownRight> {
        Self::ALL.into_iter().find(|right| right.as_str() == text).ok_or(UnknownRight)
    }
}
