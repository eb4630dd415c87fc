//! One process at a time.

use std::{
    fs::{File, TryLockError},
    io::{Read, Write},
    path::Path,
};

use crate::OpenError;

/// The lock on a store, released when it is dropped or the process ends.
pub(crate) struct Lock {
    _file: File,
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
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                // A pid that cannot be read is left out of the message.
                let _ = file.take(32).read_to_string(&mut pid);
                return Err(OpenError::Locked { dir: dir.to_owned(), pid: pid.trim().parse().ok() });
            }
            Err(TryLockError::Error(source)) => return Err(OpenError::io("lock", path)(source)),
        }
        let pid = std::process::id();
        file.set_len(0).and_then(|()| writeln!(file, "{pid}")).map_err(OpenError::io("write", path))?;
        Ok(Self { _file: file })
    }
}
