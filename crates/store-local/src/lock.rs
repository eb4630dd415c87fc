//! The lock of a store's directory.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::PathBuf,
};

use crate::{OpenError, paths::Paths, regular_file};

/// The lock of a store, released when it is dropped or the process ends.
///
/// The lock file has two lines: the process id of the last writer, and the file's own inode number. A copy of the file has
/// another one.
pub(crate) struct Lock {
    /// `None` if no lock file exists and none may be created.
    _file: Option<File>,
    origin: Origin,
    place: Option<Place>,
}

/// Where a lock file was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// In this directory, or it does not say.
    Here,
    /// In another directory, from which it was copied.
    Copied,
}

impl Origin {
    /// The origin of a lock file with this metadata.
    fn of(file: &File, metadata: &Metadata) -> Self {
        let (_, inode) = read(file);
        if inode.is_some_and(|inode| inode != metadata.ino()) { Self::Copied } else { Self::Here }
    }
}

/// The place of the lock file, by which a process notices that its directory was removed or replaced.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    paths: Paths,
    /// The device and inode of the lock file.
    file: (u64, u64),
}

/// The directory of an open store was removed or replaced.
#[derive(Debug, thiserror::Error)]
#[error("the files in {} were removed or replaced while the store was open", dir.display())]
pub(crate) struct Replaced {
    dir: PathBuf,
}

impl Lock {
    pub(crate) fn take(paths: &Paths) -> Result<Self, OpenError> {
        let path = &paths.lock();
        let mut file = regular_file::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(OpenError::io("open", path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(paths, &file)),
            Err(TryLockError::Error(source)) => return Err(OpenError::io("lock", path)(source)),
        }
        let metadata = file.metadata().map_err(OpenError::io("inspect", path))?;
        let origin = Origin::of(&file, &metadata);
        let pid = std::process::id();
        let written = file.set_len(0).and_then(|()| io::Seek::rewind(&mut file));
        // What it says is for messages only: a full disk must not prevent opening.
        if let Err(error) = written.and_then(|()| writeln!(file, "{pid}\n{}", metadata.ino())) {
            tracing::debug!(%error, "could not write the process id to the lock file");
        }
        let place = Place { paths: paths.clone(), file: (metadata.dev(), metadata.ino()) };
        Ok(Self { _file: Some(file), origin, place: Some(place) })
    }

    /// Takes a shared lock, which excludes writers only. Writes nothing.
    pub(crate) fn take_shared(paths: &Paths) -> Result<Self, OpenError> {
        let path = &paths.lock();
        let place = None;
        let file = match regular_file::options().open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { _file: None, origin: Origin::Here, place });
            }
            file => file.map_err(OpenError::io("open", path))?,
        };
        match file.try_lock_shared() {
            Ok(()) => {
                let metadata = file.metadata().map_err(OpenError::io("inspect", path))?;
                Ok(Self { origin: Origin::of(&file, &metadata), _file: Some(file), place })
            }
            Err(TryLockError::WouldBlock) => Err(locked(paths, &file)),
            Err(TryLockError::Error(source)) => Err(OpenError::io("lock", path)(source)),
        }
    }

    /// Where the lock file was before it was locked.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// The place of the lock file of a store that is open for writing.
    pub(crate) fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }
}

impl Place {
    /// Fails if another file, or none, is where the locked one was.
    pub(crate) fn check(&self) -> Result<(), Replaced> {
        let is_same = match fs::metadata(self.paths.lock()) {
            Ok(metadata) => (metadata.dev(), metadata.ino()) == self.file,
            // Only its absence proves something.
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        };
        if is_same { Ok(()) } else { Err(Replaced { dir: self.paths.given().to_owned() }) }
    }
}

fn locked(paths: &Paths, file: &File) -> OpenError {
    OpenError::Locked { dir: paths.dir.clone(), pid: read(file).0 }
}

/// The process id and the inode number in a lock file; what is unreadable is left out.
fn read(file: &File) -> (Option<u32>, Option<u64>) {
    let mut text = String::new();
    let _ = file.take(64).read_to_string(&mut text);
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.trim().parse().ok());
    (pid, lines.next().and_then(|line| line.trim().parse().ok()))
}
