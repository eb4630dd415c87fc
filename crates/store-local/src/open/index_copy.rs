//! Copies of an index in the directory for temporary files, which readers open: sled and redb write when they open one.

use std::{
    fs::{self, DirEntry, File, Permissions},
    io,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
    time::Duration,
};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::OpenError;

const PREFIX: &str = "zarrd-index-";
/// The age from which the copy of a process that has ended is removed. The process of a younger one may be about to lock it.
const MIN_ABANDONED_AGE: Duration = Duration::from_secs(60);

/// A directory for a copy of an index, which is removed when this is dropped. An index has all names and small values, so
/// only its owner has access.
#[derive(Debug)]
pub(crate) struct IndexCopy {
    dir: TempDir,
    /// The directory, locked, by which others see that its process has not ended.
    _lock: Option<File>,
}

impl IndexCopy {
    /// Creates a directory, and removes the directories of processes that were killed.
    pub(crate) fn create() -> Result<Self, OpenError> {
        Self::create_in(&std::env::temp_dir())
    }

    fn create_in(parent: &Path) -> Result<Self, OpenError> {
        if let Err(error) = remove_abandoned(parent) {
            tracing::debug!(%error, "could not remove copies of indexes of processes that have ended");
        }
        let dir = tempfile::Builder::new().prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir_in(parent);
        let dir = dir.map_err(OpenError::io("create a directory in", parent))?;
        // Where directories cannot be locked, no copy is taken for abandoned.
        let lock = File::open(dir.path()).ok().filter(|file| file.lock_shared().is_ok());
        Ok(Self { dir, _lock: lock })
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }
}

/// Removes the copies whose processes have ended.
fn remove_abandoned(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let entry = entry?;
        let is_copy = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        if is_copy && let Some(_lock) = lock_abandoned(&entry) {
            fs::remove_dir_all(entry.path())?;
            tracing::info!(path = %entry.path().display(), "removed the copy of an index, whose process was killed");
        }
    }
    Ok(())
}

/// Locks a directory that this user made, if no process has locked it.
fn lock_abandoned(entry: &DirEntry) -> Option<File> {
    let metadata = entry.metadata().ok()?;
    let is_own = metadata.is_dir() && metadata.uid() == geteuid().as_raw();
    let age = metadata.modified().ok()?.elapsed().ok()?;
    if !is_own || age < MIN_ABANDONED_AGE {
        return None;
    }
    let directory = File::open(entry.path()).ok()?;
    directory.try_lock().is_ok().then_some(directory)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn age(path: &Path) {
        let time = SystemTime::now() - MIN_ABANDONED_AGE - Duration::from_secs(1);
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn copies_of_processes_that_have_ended_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let used = IndexCopy::create_in(parent.path()).unwrap();
        assert_eq!(fs::metadata(used.path()).unwrap().mode() & 0o777, 0o700);
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("db"), "1").unwrap();
            path
        };
        let [abandoned, young, other] = ["zarrd-index-killed", "zarrd-index-young", "other-index"].map(make);
        let link = parent.path().join("zarrd-index-link");
        std::os::unix::fs::symlink(&other, &link).unwrap();
        let file = parent.path().join("zarrd-index-file");
        fs::write(&file, "").unwrap();
        for path in [used.path(), &abandoned, &other, &file] {
            age(path);
        }
        let next = IndexCopy::create_in(parent.path()).unwrap();
        assert!(!abandoned.exists());
        for path in [used.path(), next.path(), &young, &other.join("db"), &link, &file] {
            assert!(path.exists(), "{}", path.display());
        }
        let path = used.path().to_owned();
        drop(used);
        assert!(!path.exists());
    }
}
