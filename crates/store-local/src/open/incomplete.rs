//! The file `incomplete`: stands in a store that is being filled, and is not to be used before all has come.

use std::{
    fs::{self, File},
    io,
};

use crate::{OpenError, Purpose, durable::sync_dir, paths::Paths};

/// Refuses a store that was not filled to its end, and marks one that is to be filled, durably. Called with the lock held and
/// before a store is made.
pub(super) fn judge(paths: &Paths, purpose: Purpose) -> Result<(), OpenError> {
    let mark = paths.incomplete();
    if mark.try_exists().map_err(OpenError::io("look for", &mark))? {
        return Err(OpenError::Incomplete { dir: paths.dir.clone() });
    }
    match purpose {
        Purpose::Use => Ok(()),
        Purpose::Fill if paths.identity().exists() => Err(OpenError::AlreadyExists { dir: paths.dir.clone() }),
        Purpose::Fill => {
            File::create_new(&mark).and_then(|file| file.sync_all()).map_err(OpenError::io("make", &mark))?;
            sync_dir(&paths.dir)
        }
    }
}

/// Removes the mark, durably.
pub(super) fn remove(paths: &Paths) -> io::Result<()> {
    match fs::remove_file(paths.incomplete()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => File::open(&paths.dir)?.sync_all(),
    }
}
