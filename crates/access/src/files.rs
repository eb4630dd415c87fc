//! Files and directories: bounded reads, durable writes, and signs of change.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, File, Metadata},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt},
    path::Path,
    time::{Duration, SystemTime},
};

use crate::denial::ReadError;

/// The first characters of files that are being written. Files whose names begin with `.` are not read.
const TEMPORARY: &str = ".new-";

/// The age from which on a file that is being written is that of a process that was killed.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The identity, size and times of a file or directory. A change of its content changes at least one of them, unless it
/// happens within the granularity of the times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            mode: metadata.mode(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The permission bits.
    pub(crate) fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }
}

/// A function from the system's error to one that names the action and the path.
pub(crate) fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ReadError {
    let path = path.to_owned();
    move |source| ReadError::Io { action, path, source }
}

/// Creates a directory that only its owner can use, unless it exists.
pub(crate) fn create_dir(path: &Path) -> Result<(), ReadError> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io_error("create", path))?;
    path.parent().map_or(Ok(()), sync_dir)
}

/// The stamp of a directory, which must be readable, and writable by its owner only. It is opened, since on network
/// file systems only that asks the server, unless all file descriptors are taken.
pub(crate) fn stamp_dir(path: &Path) -> Result<Stamp, ReadError> {
    let opened = File::open(path).and_then(|dir| dir.metadata());
    let metadata = match opened {
        Err(error) if is_out_of_files(&error) => fs::metadata(path),
        opened => opened,
    };
    let metadata = metadata.map_err(io_error("open", path))?;
    if !metadata.is_dir() {
        return Err(io_error("open", path)(io::ErrorKind::NotADirectory.into()));
    }
    let stamp = Stamp::of(&metadata);
    if stamp.permissions() & 0o022 != 0 {
        return Err(ReadError::WritableByOthers { path: path.to_owned(), mode: stamp.permissions() });
    }
    Ok(stamp)
}

/// True if a file cannot be opened because the process or the system has too many open files.
fn is_out_of_files(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    matches!(error.raw_os_error(), Some(ENFILE | EMFILE))
}

/// The names of the files in a directory, except of those being written, if they are not too many.
pub(crate) fn list(path: &Path, limit: usize) -> Result<Vec<OsString>, ReadError> {
    let (mut names, mut hidden) = (Vec::new(), 0);
    for entry in fs::read_dir(path).map_err(io_error("list", path))? {
        let name = entry.map_err(io_error("list", path))?.file_name();
        if name.as_encoded_bytes().starts_with(b".") {
            hidden += 1;
        } else {
            names.push(name);
        }
        if names.len() > limit || hidden > limit {
            return Err(ReadError::TooManyFiles { path: path.to_owned(), limit });
        }
    }
    Ok(names)
}

/// Reads a file of at most `limit` bytes; `None` if it does not exist.
pub(crate) fn read(path: &Path, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let read = || {
        // Opening a named pipe would block.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut content = Vec::new();
        File::open(path)?.take(limit as u64 + 1).read_to_end(&mut content)?;
        if content.len() > limit {
            return Err(io::Error::other(format!("it is longer than {limit} bytes")));
        }
        Ok(content)
    };
    match read() {
        Ok(content) => Ok(Some(content)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// True if a file does not exist, or does not exist any more.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::StaleNetworkFileHandle)
}

/// Creates a file, completely and durably or not at all; fails if it exists. Only its owner can read it.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = parent(path)?;
    temporary(dir, content)?.persist_noclobber(path).map_err(|error| error.error)?;
    sync(dir)
}

/// Replaces a file, completely and durably or not at all.
pub(crate) fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = parent(path)?;
    temporary(dir, content)?.persist(path).map_err(|error| error.error)?;
    sync(dir)
}

/// Removes a file durably. Returns false if it does not exist.
pub(crate) fn remove(path: &Path) -> io::Result<bool> {
    match fs::remove_file(path) {
        Ok(()) => sync(parent(path)?).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Removes what processes left that were killed while they wrote. Errors are ignored: the files do no harm.
pub(crate) fn remove_abandoned(dir: &Path) {
    let is_abandoned = |entry: &fs::DirEntry| {
        let is_old = |modified: SystemTime| modified.elapsed().is_ok_and(|age| age > ABANDONED);
        entry.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes())
            && entry.metadata().and_then(|metadata| metadata.modified()).is_ok_and(is_old)
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten().filter(is_abandoned) {
        let _ = fs::remove_file(entry.path());
    }
}

fn temporary(dir: &Path, content: &[u8]) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync_dir(dir: &Path) -> Result<(), ReadError> {
    let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
    sync(dir).map_err(io_error("sync", dir))
}

fn sync(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn parent(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
