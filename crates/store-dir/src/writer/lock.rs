//! The lock of a directory, which one process at a time has for writing.

use std::{
    fs,
    io::{Read, Write},
    path::Path,
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, FlockOperation, Mode, OFlags, flock, openat},
    io::Errno,
};

use crate::{
    attributes::{Attributes, FileId},
    error::OpenError,
    root::Opened,
};

/// The file that is locked where a lock of the directory itself would not be seen by other machines. Its name is that of a
/// temporary file of tensorstore, which no program takes for a value.
const FILE: &str = ".zarrd.__lock";

/// The maximum length of what the file says, in bytes.
const MAX_TEXT: u64 = 256;

/// The lock of a directory, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) enum FolderLock {
    /// The directory itself is locked, so that no file has to be made for it.
    Directory,
    /// A file in it is locked: file systems of networks lock files for all machines, and directories for one.
    File { file: FileId, _open: OwnedFd },
}

impl FolderLock {
    /// Locks a directory, or fails with the process that has locked it.
    pub(super) fn take(path: &Path, folder: &Opened, is_local: bool) -> Result<Self, OpenError> {
        if is_local { Self::take_directory(path, folder) } else { Self::take_file(path, folder) }
    }

    fn take_directory(path: &Path, folder: &Opened) -> Result<Self, OpenError> {
        match flock(&folder.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self::Directory),
            Err(Errno::WOULDBLOCK) => {
                let holder = holder(folder.attributes.id).map_or_else(String::new, |pid| format!(", process {pid}"));
                Err(OpenError::Locked { path: path.to_owned(), holder })
            }
            Err(error) => Err(OpenError::Lock { path: path.to_owned(), source: error.into() }),
        }
    }

    fn take_file(path: &Path, folder: &Opened) -> Result<Self, OpenError> {
        let failed = |error: Errno| OpenError::Lock { path: path.to_owned(), source: error.into() };
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = openat(&folder.file, FILE, flags, Mode::from_raw_mode(0o644)).map_err(failed)?;
        let mut text = fs::File::from(open.try_clone().map_err(|_| failed(Errno::MFILE))?);
        match flock(&open, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                let mut holder = String::new();
                let _ = text.take(MAX_TEXT).read_to_string(&mut holder);
                let holder = holder.lines().next().map_or_else(String::new, |line| format!(", {line}"));
                return Err(OpenError::Locked { path: path.to_owned(), holder });
            }
            Err(error) => return Err(failed(error)),
        }
        let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let line = format!("process {} of {}\n", std::process::id(), machine.trim());
        // It is for messages only: a full disk must not prevent opening.
        if let Err(error) = text.set_len(0).and_then(|()| text.write_all(line.as_bytes())) {
            tracing::debug!(%error, "could not write the process to the lock file of a directory");
        }
        let file = Attributes::of(&open, AtFlags::empty()).map_err(failed)?.id;
        Ok(Self::File { file, _open: open })
    }

    /// True if the directory still has the lock: a file that was removed locks nothing.
    pub(super) fn is_in(&self, folder: &Opened) -> bool {
        match self {
            Self::Directory => true,
            Self::File { file, .. } => Attributes::of_name(&folder.file, FILE, AtFlags::empty())
                .map_or_else(|error| error != Errno::NOENT, |found| found.id == *file),
        }
    }
}

/// The process that has locked a file or directory, if the kernel shows it to this one.
fn holder(locked: FileId) -> Option<u32> {
    holder_in(&fs::read_to_string("/proc/locks").ok()?, locked)
}

/// The process that has locked a file or directory, given the text of `/proc/locks`: lines such as
/// `1: FLOCK  ADVISORY  WRITE 71 fd:01:131 0 EOF`. The device may be another one than that of attributes.
fn holder_in(locks: &str, locked: FileId) -> Option<u32> {
    let inode = locked.inode.to_string();
    let holders = locks.lines().filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1).skip_while(|field| *field == "->");
        let kind = fields.next()?;
        let mut fields = fields.skip(2);
        let (pid, file) = (fields.next()?, fields.next()?);
        let is_locked = kind == "FLOCK" && file.rsplit(':').next() == Some(&inode);
        let (major, minor) = locked.device;
        let has_device = file.starts_with(&format!("{major:02x}:{minor:02x}:"));
        is_locked.then(|| pid.parse().ok()).flatten().map(|pid: u32| (has_device, pid))
    });
    holders.max_by_key(|(has_device, _)| *has_device).map(|(_, pid)| pid).filter(|pid| *pid > 0)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::quiet::Precision;

    fn folder(dir: &TempDir) -> Opened {
        let file = OwnedFd::from(fs::File::open(dir.path()).unwrap());
        let attributes = Attributes::of(&file, AtFlags::empty()).unwrap();
        Opened { file, attributes, precision: Precision::Fine }
    }

    #[test]
    fn a_directory_is_locked_once_and_the_other_process_is_named() {
        for is_local in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            let (first, second) = (folder(&dir), folder(&dir));
            let lock = FolderLock::take(dir.path(), &first, is_local).unwrap();
            assert!(lock.is_in(&first));
            let error = FolderLock::take(dir.path(), &second, is_local).unwrap_err();
            let OpenError::Locked { holder, .. } = &error else { panic!("{error:?}") };
            assert!(holder.contains(&format!("process {}", std::process::id())), "{error}");
            drop((lock, first));
            FolderLock::take(dir.path(), &second, is_local).unwrap();
        }
    }

    #[test]
    fn a_lock_file_that_was_removed_or_replaced_locks_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let folder = folder(&dir);
        let lock = FolderLock::take(dir.path(), &folder, false).unwrap();
        fs::remove_file(dir.path().join(FILE)).unwrap();
        assert!(!lock.is_in(&folder));
        fs::write(dir.path().join(FILE), "").unwrap();
        assert!(!lock.is_in(&folder));
    }

    #[test]
    fn the_holder_is_the_process_with_a_lock_on_the_inode() {
        let locks = "1: POSIX  ADVISORY  WRITE 11 fd:01:131 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 12 00:2a:131 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 13 fd:01:131 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 14 fd:01:131 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 15 fd:01:1131 0 EOF\n\
                     damaged\n";
        let of = |device, inode| holder_in(locks, FileId { device, inode });
        assert!(matches!(of((0xfd, 1), 131), Some(13 | 14)));
        assert!(of((9, 9), 131).is_some(), "the device may differ");
        assert_eq!(of((0xfd, 1), 1131), Some(15));
        assert_eq!(of((0xfd, 1), 7), None);
    }
}
