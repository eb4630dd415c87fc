//! Stores that are mounted below names.

use std::{fmt, str::FromStr};

use zarrd_store::{MountName, MountNameError};

use super::{Location, location::LocationError};

/// A store that is mounted below a name: `NAME=STORE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    /// The name.
    pub(crate) name: MountName,
    /// The store, which is only read unless its URL says otherwise.
    pub(crate) store: Location,
}

/// Errors of parsing a [`Mount`].
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    /// There is no equals sign.
    #[error("write NAME=STORE, such as lab=s3://bucket/lab")]
    NoName,
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] MountNameError),
    /// The location of the store is invalid.
    #[error(transparent)]
    Location(#[from] LocationError),
    /// The store is in memory.
    #[error("a mounted store is only read, and memory: has nothing to read")]
    Memory,
}

impl FromStr for Mount {
    type Err = MountError;

    fn from_str(text: &str) -> Result<Self, MountError> {
        let (name, store) = text.split_once('=').ok_or(MountError::NoName)?;
        let mount = Self { name: name.parse()?, store: store.parse()? };
        match mount.store {
            Location::Memory => Err(MountError::Memory),
            _ => Ok(mount),
        }
    }
}

impl fmt::Display for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.store)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_have_a_name_and_a_store() {
        for text in ["lab=s3://b/x/?absent=403", "a b=dir:/data=1", "x=sled:/data", "w=http://h/"] {
            assert_eq!(text.parse::<Mount>().unwrap().to_string(), text);
        }
        for (text, part) in [
            ("s3://b", "NAME=STORE"),
            ("=dir:/data", "at least one character"),
            ("a/b=dir:/data", "without `/`"),
            ("..=dir:/data", "`.` or `..`"),
            (".x=dir:/data", "begin with a dot"),
            ("a=", "directory is missing"),
            ("a=memory:", "nothing to read"),
        ] {
            let error = text.parse::<Mount>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
