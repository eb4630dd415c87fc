//! Names of mounts.

use std::{fmt, str::FromStr};

use crate::{KeyError, Prefix};

/// The name of a mount: one segment of a key. Names are ordered as the prefixes of their keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MountName(Prefix);

/// The reason why a text is not the name of a mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountNameError {
    /// The name has a slash.
    #[error("the name of a mount is one segment, without `/`")]
    Slash,
    /// The name hides a document of the root, or could.
    #[error("the name of a mount does not begin with a dot and is not zarr.json, which are documents of the root")]
    Reserved,
    /// The name is no segment of a key.
    #[error("the name of a mount is a segment of a key: {0}")]
    Segment(#[from] KeyError),
}

impl MountName {
    /// The prefix of the keys in the mount.
    pub(super) fn into_prefix(self) -> Prefix {
        self.0
    }
}

impl FromStr for MountName {
    type Err = MountNameError;

    fn from_str(text: &str) -> Result<Self, MountNameError> {
        if text.is_empty() {
            return Err(KeyError::Empty.into());
        }
        if text.contains('/') {
            return Err(MountNameError::Slash);
        }
        let prefix = Prefix::parse(&format!("{text}/"))?;
        if text.starts_with('.') || text == "zarr.json" {
            return Err(MountNameError::Reserved);
        }
        Ok(Self(prefix))
    }
}

impl fmt::Display for MountName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_one_segment_that_is_no_document() {
        for name in ["lab", "a b", "ä", "a.b", "zarr"] {
            assert_eq!(name.parse::<MountName>().unwrap().to_string(), name);
        }
        for (name, error) in [
            ("", KeyError::Empty.into()),
            ("a/b", MountNameError::Slash),
            ("a/", MountNameError::Slash),
            (".", KeyError::DotSegment { offset: 0 }.into()),
            ("..", KeyError::DotSegment { offset: 0 }.into()),
            (".zattrs", MountNameError::Reserved),
            ("zarr.json", MountNameError::Reserved),
            ("a\n", KeyError::ControlCharacter { offset: 1 }.into()),
        ] {
            assert_eq!(name.parse::<MountName>(), Err(error), "{name}");
        }
        assert!("x".repeat(1024).parse::<MountName>().is_err());
    }
}
