//! The file `incomplete`, which marks a store that is being filled.

use std::{
    fs::{self, File},
    io,
};

use crate::{OpenError, Purpose, durable::sync_dir, paths::Paths};

/// Rejects a store that was not filled completely, and marks one that is to be filled, durably. Called with the lock
/// held, before a store is created.
pub(super) fn check_purpose(paths: &Paths, purpose: Purpose) -> Result<(), OpenError> {
    let mark = paths.incomplete_marker();
    if mark.try_exists().map_err(OpenError::io("find", &mark))? {
        return Err(OpenError::Incomplete { dir: paths.dir.clone() });
    }
    match purpose {
        Purpose::Use => Ok(()),
        Purpose::Fill if paths.identity().exists() => Err(OpenError::AlreadyExists { dir: paths.dir.clone() }),
        Purpose::Fill => {
            File::create_new(&mark).and_then(|file| file.sync_all()).map_err(OpenError::io("create", &mark))?;
            sync_dir(&paths.dir)
        }
    }
}

/// Removes the marker, durably.
pub(super) fn remove(paths: &Paths) -> io::Result<()> {
    match fs::remove_file(paths.incomplete_marker()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::open(&paths.dir)?.sync_all(),
    }
}
