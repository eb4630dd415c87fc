//! Durable changes of directories.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use crate::OpenError;

/// Replaces a file atomically. Its bytes are durable afterwards; its directory entry is not.
pub(crate) fn write_durably(path: &Path, text: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(new, path)
}

/// Makes the entries of a directory durable.
pub(crate) fn sync_dir(dir: &Path) -> Result<(), OpenError> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(OpenError::io("sync", dir))
}

/// Removes a file if it exists, and makes that durable.
pub(crate) fn remove_durably(path: &Path, dir: &Path) -> Result<(), OpenError> {
    match fs::remove_file(path) {
        Ok(()) => sync_dir(dir),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OpenError::io("remove", path)(error)),
    }
}
