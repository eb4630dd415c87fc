//! The lock of a store's directory.

use std::{
    fs::{File, TryLockError},
    io::{self, Read, Write},
    path::Path,
};

use crate::OpenError;

/// The lock of a store, released when it is dropped or the process ends.
pub(crate) struct Lock {
    /// `None` if no lock file exists and none may be created.
    _file: Option<File>,
}

impl Lock {
    pub(super) fn take(dir: &Path, path: &Path) -> Result<Self, OpenError> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(OpenError::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(dir, file)),
            Err(TryLockError::Error(source)) => return Err(OpenError::io("lock", path)(source)),
        }
        let pid = std::process::id();
        // The pid is for messages only: a full disk must not prevent opening.
        if let Err(error) = file.set_len(0).and_then(|()| writeln!(file, "{pid}")) {
            tracing::debug!(%error, "could not write the process id to the lock file");
        }
        Ok(Self { _file: Some(file) })
    }

    /// Takes a shared lock, which excludes writers only. Writes nothing.
    pub(super) fn take_shared(dir: &Path, path: &Path) -> Result<Self, OpenError> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { _file: None }),
            file => file.map_err(OpenError::io("open", path))?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(locked(dir, file)),
            Err(TryLockError::Error(source)) => Err(OpenError::io("lock", path)(source)),
        }
    }
}

fn locked(dir: &Path, file: File) -> OpenError {
    let mut pid = String::new();
    // An unreadable pid is omitted from the message.
    let _ = file.take(32).read_to_string(&mut pid);
    OpenError::Locked { dir: dir.to_owned(), pid: pid.trim().parse().ok() }
}
