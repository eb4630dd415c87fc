//! The directory of value files.

use std::{
    fs::{self, File, OpenOptions},
    io,
    ops::{Deref, DerefMut},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
    process::{Resource, getrlimit},
};

use crate::{
    record::{FileId, directory_name},
    space::Space,
};

/// The longest that a file waits for a descriptor. Those who read and write values have them for a short time each.
const MAX_DESCRIPTOR_WAIT: Duration = Duration::from_secs(2);
/// The time until the system is asked once more, which does not say when it has descriptors again.
const DESCRIPTOR_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The descriptors that are left to everything that is neither a value file nor a connection: the index, the log, the
/// program's own.
const RESERVED_DESCRIPTORS: u64 = 32;
/// The fewest value files that may be open at a time.
const MIN_DESCRIPTORS: u64 = 4;

/// The directory `values` of a store, and the handle that its files are opened through.
#[derive(Clone)]
pub(crate) struct Directory(Arc<DirectoryInner>);

struct DirectoryInner {
    path: PathBuf,
    /// The directory itself, which files are opened relative to.
    root: File,
    descriptors: Arc<Descriptors>,
}

/// A value file that is open.
pub(crate) struct ValueFile {
    /// Closed before its descriptor counts as free.
    file: File,
    _descriptor: Descriptor,
}

/// The descriptors that value files may take. However many are asked for, the index finds one when it needs it, where a
/// failure would be one of the whole store.
struct Descriptors {
    free: Mutex<u64>,
    freed: Condvar,
}

/// The right to have a value file open.
struct Descriptor(Arc<Descriptors>);

/// How a file was opened without waiting for the disk.
pub(crate) enum ImmediateOrBlocking<T> {
    /// It was in memory.
    Done(T),
    /// The disk may be needed; ask again where waiting is allowed.
    WouldBlock,
}

impl Directory {
    /// Makes the 256 directories, durably. They are never made or removed afterwards, so a file's own directory entry
    /// is all that its making has to sync.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        for directory in 0..=u8::MAX {
            fs::create_dir_all(path.join(directory_name(directory)))?;
        }
        File::open(path)?.sync_all()
    }

    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        for directory in 0..=u8::MAX {
            if !fs::metadata(path.join(directory_name(directory)))?.is_dir() {
                return Err(io::ErrorKind::NotADirectory.into());
            }
        }
        let descriptors = Arc::new(Descriptors::new(getrlimit(Resource::Nofile).current));
        Ok(Self(Arc::new(DirectoryInner { path: path.to_owned(), root: File::open(path)?, descriptors })))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Makes a file. Blocks, also where there is no descriptor for it; fails with `EMFILE` where there is none for long.
    pub(crate) fn create_file(&self, id: FileId) -> io::Result<ValueFile> {
        let path = self.0.path.join(id.path());
        self.with_descriptor(|| OpenOptions::new().write(true).create_new(true).open(&path))
    }

    /// Opens a file. Blocks, also where there is no descriptor for it; fails with `EMFILE` where there is none for long.
    pub(crate) fn open_file(&self, id: FileId) -> io::Result<ValueFile> {
        let path = self.0.path.join(id.path());
        self.with_descriptor(|| File::open(&path))
    }

    /// Opens a file if that takes no disk access, so that it may be called on an async thread.
    #[cfg(target_os = "linux")]
    pub(crate) fn try_open_file(&self, id: FileId) -> ImmediateOrBlocking<ValueFile> {
        use rustix::fs::{ResolveFlags, openat2};
        let Some(descriptor) = Descriptors::take(&self.0.descriptors, Instant::now()) else {
            return ImmediateOrBlocking::WouldBlock;
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match openat2(&self.0.root, id.path(), flags, Mode::empty(), ResolveFlags::CACHED) {
            Ok(file) => ImmediateOrBlocking::Done(ValueFile { file: file.into(), _descriptor: descriptor }),
            Err(_) => ImmediateOrBlocking::WouldBlock,
        }
    }

    /// Opens a file if that takes no disk access, which only Linux can tell.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn try_open_file(&self, _id: FileId) -> ImmediateOrBlocking<ValueFile> {
        ImmediateOrBlocking::WouldBlock
    }

    /// Makes the entries of the files that were made in a directory durable.
    ///
    /// The directory is opened for it, which takes 3 µs where its sync takes 130 and more; to hold all 256 open would take
    /// as many descriptors.
    pub(crate) fn sync(&self, directory: u8) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0.root, directory_name(directory), flags, Mode::empty()) {
            Ok(opened) => File::from(opened).sync_all(),
            // A sync that fails ends all writing, so it must not fail for want of a descriptor.
            #[cfg(target_os = "linux")]
            Err(Errno::MFILE | Errno::NFILE) => Ok(rustix::fs::syncfs(&self.0.root)?),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn remove_file(&self, id: FileId) -> io::Result<()> {
        fs::remove_file(self.0.path.join(id.path()))
    }

    /// The space of the file system.
    pub(crate) fn space(&self) -> io::Result<Space> {
        Space::of(&self.0.root)
    }

    fn with_descriptor(&self, open: impl Fn() -> io::Result<File>) -> io::Result<ValueFile> {
        let deadline = Instant::now() + MAX_DESCRIPTOR_WAIT;
        let opened = Descriptors::take(&self.0.descriptors, deadline).ok_or_else(|| Errno::MFILE.into());
        let opened = opened.and_then(|descriptor| {
            loop {
                match open() {
                    // Others than value files may have taken all that there are.
                    Err(error) if is_out_of_descriptors(&error) && Instant::now() < deadline => {
                        thread::sleep(DESCRIPTOR_RETRY_INTERVAL)
                    }
                    opened => return Ok(ValueFile { file: opened?, _descriptor: descriptor }),
                }
            }
        });
        opened.inspect_err(|error| {
            if is_out_of_descriptors(error) {
                tracing::warn!(%error, "a value was refused; more files may be open with a higher limit (ulimit -n)");
            }
        })
    }
}

impl Descriptors {
    /// Those of a process that may have `limit` files open: half of what is not reserved, since connections need them
    /// too.
    fn new(limit: Option<u64>) -> Self {
        let free =
            limit.map_or(u64::MAX, |limit| (limit.saturating_sub(RESERVED_DESCRIPTORS) / 2).max(MIN_DESCRIPTORS));
        Self { free: Mutex::new(free), freed: Condvar::new() }
    }

    fn take(this: &Arc<Self>, deadline: Instant) -> Option<Descriptor> {
        let mut free = this.free.lock();
        while *free == 0 {
            if this.freed.wait_until(&mut free, deadline).timed_out() && *free == 0 {
                return None;
            }
        }
        *free = free.saturating_sub(1);
        Some(Descriptor(Arc::clone(this)))
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        let mut free = self.0.free.lock();
        *free = free.saturating_add(1);
        self.0.freed.notify_one();
    }
}

impl Deref for ValueFile {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl DerefMut for ValueFile {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.file
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errors = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Reads at an offset if the bytes are in memory, so that it may be called on an async thread.
#[cfg(target_os = "linux")]
pub(crate) fn try_read(file: &File, buffer: &mut [u8], offset: u64) -> ImmediateOrBlocking<()> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let len = buffer.len();
    match preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) if read == len => ImmediateOrBlocking::Done(()),
        _ => ImmediateOrBlocking::WouldBlock,
    }
}

/// Reads at an offset if the bytes are in memory, which only Linux can tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn try_read(_file: &File, _buffer: &mut [u8], _offset: u64) -> ImmediateOrBlocking<()> {
    ImmediateOrBlocking::WouldBlock
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(limit: u64) -> (tempfile::TempDir, Directory) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_owned();
        Directory::create(&path).unwrap();
        let root = File::open(&path).unwrap();
        let descriptors = Arc::new(Descriptors::new(Some(limit)));
        (dir, Directory(Arc::new(DirectoryInner { path, root, descriptors })))
    }

    #[test]
    fn a_file_waits_until_another_is_closed() {
        let (_dir, directory) = directory(RESERVED_DESCRIPTORS + 2 * MIN_DESCRIPTORS);
        let mut open: Vec<ValueFile> =
            (0..MIN_DESCRIPTORS).map(|id| directory.create_file(FileId(id)).unwrap()).collect();
        assert!(matches!(directory.try_open_file(FileId(0)), ImmediateOrBlocking::WouldBlock));
        let refused = directory.create_file(FileId(MIN_DESCRIPTORS)).err().unwrap();
        assert!(is_out_of_descriptors(&refused), "{refused:?}");
        let waiting = {
            let directory = directory.clone();
            thread::spawn(move || directory.create_file(FileId(MIN_DESCRIPTORS)).map(drop))
        };
        thread::sleep(Duration::from_millis(100));
        assert!(!waiting.is_finished());
        drop(open.pop());
        waiting.join().unwrap().unwrap();
        assert!(directory.sync(0).is_ok());
    }
}
