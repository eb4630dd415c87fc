//! The disk cache of distant stores on the command line.

use std::{fmt, path::PathBuf, str::FromStr};

use bytesize::ByteSize;

/// A directory for cached pieces of distant stores, and its size: `DIR:SIZE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DiskCacheLocation {
    /// The directory.
    pub(crate) directory: PathBuf,
    /// The size that its files may have.
    pub(crate) size: ByteSize,
}

/// The text is not a [`DiskCacheLocation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write DIR:SIZE, such as /var/cache/zarrd:50GiB")]
pub(crate) struct DiskCacheLocationError;

impl FromStr for DiskCacheLocation {
    type Err = DiskCacheLocationError;

    fn from_str(text: &str) -> Result<Self, DiskCacheLocationError> {
        // The directory may have colons.
        let (directory, size) = text.rsplit_once(':').ok_or(DiskCacheLocationError)?;
        let size = size.parse().map_err(|_| DiskCacheLocationError)?;
        if directory.is_empty() { Err(DiskCacheLocationError) } else { Ok(Self { directory: directory.into(), size }) }
    }
}

impl fmt::Display for DiskCacheLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.directory.display(), self.size)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_cache_has_a_directory_and_a_size() {
        for (text, directory, bytes) in
            [("/var/cache/z:50GiB", "/var/cache/z", 50 << 30), ("a:b:512MiB", "a:b", 512 << 20), ("c:1", "c", 1)]
        {
            let expected = DiskCacheLocation { directory: directory.into(), size: ByteSize(bytes) };
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in ["", "/var/cache/z", ":1GiB", "/a:", "/a:large", "/a:-1"] {
            assert_eq!(text.parse::<DiskCacheLocation>(), Err(DiskCacheLocationError), "{text}");
        }
    }
}
