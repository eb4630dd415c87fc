//! Dialects of Zarr metadata.

use std::{fmt, str::FromStr};

/// The layout of a hierarchy in keys and documents.
///
/// The order is that of preference if a path has nodes of several dialects: v3, then v2, then the draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// One `zarr.json` per node.
    V3,
    /// `.zarray`, `.zgroup` and `.zattrs`.
    V2,
    /// The 2020 draft of the v3 core protocol: one entry point `zarr.json` per hierarchy, metadata under `meta/root`, chunks under
    /// `data/root`.
    Draft,
}

/// A text is not the name of a [`Dialect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a dialect is v2, v3 or draft")]
pub struct DialectError;

impl Dialect {
    /// All dialects, the preferred one first.
    pub const ALL: [Self; 3] = [Self::V3, Self::V2, Self::Draft];

    /// Its name: `v2`, `v3` or `draft`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "v3",
            Self::V2 => "v2",
            Self::Draft => "draft",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Dialect {
    type Err = DialectError;

    fn from_str(text: &str) -> Result<Self, DialectError> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == text).ok_or(DialectError)
    }
}
