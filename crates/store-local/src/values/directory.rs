//! The directory of value files.

use std::{
    fs::{self, File},
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
use zarrd_store::{Admitted, WarningRate};

use super::joined;
use crate::{
    lock::{Place, Replaced},
    record::{FileId, directory_name},
    regular_file,
    space::Space,
};

/// The maximum time that a file waits for a descriptor. Readers and writers hold theirs for a short time.
const MAX_DESCRIPTOR_WAIT: Duration = Duration::from_secs(2);
/// The interval at which the system is asked for a descriptor again.
const DESCRIPTOR_RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The descriptors reserved for everything except value files and connections: the index, the log, and the program.
const RESERVED_DESCRIPTORS: u64 = 32;
/// The minimum number of value files that may be open.
const MIN_DESCRIPTORS: u64 = 4;

/// Warnings about the limit of open files.
static WARNINGS: WarningRate = WarningRate::new();

/// The directory `values` of a store.
#[derive(Clone)]
pub(crate) struct Directory(Arc<DirectoryInner>);

struct DirectoryInner {
    path: PathBuf,
    /// The directory itself, relative to which files are opened.
    root: File,
    /// `None` if nothing is written.
    place: Option<Place>,
    descriptors: Arc<Descriptors>,
}

/// An open value file.
pub(crate) struct ValueFile {
    /// Closed before its descriptor is released.
    file: File,
    _descriptor: Descriptor,
}

/// The descriptors that value files may use, limited so that the index always gets one: its failure would be that of
/// the whole store.
struct Descriptors {
    free: Mutex<u64>,
    freed: Condvar,
}

/// The permit of an open value file.
struct Descriptor(Arc<Descriptors>);

/// The result of an attempt without disk access.
pub(crate) enum ImmediateOrBlocking<T> {
    /// The data was in memory.
    Done(T),
    /// Disk access may be needed; repeat the operation where blocking is allowed.
    WouldBlock,
}

impl Directory {
    /// Creates the 256 directories, durably. They are never created or removed afterwards, so that a new file needs
    /// only its own directory entry synced.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)?;
        for directory in 0..=u8::MAX {
            fs::create_dir_all(path.join(directory_name(directory)))?;
        }
        File::open(path)?.sync_all()
    }

    pub(crate) fn open(path: &Path, place: Option<Place>) -> io::Result<Self> {
        let mut is_complete = true;
        for directory in 0..=u8::MAX {
            match fs::metadata(path.join(directory_name(directory))) {
                Ok(metadata) if metadata.is_dir() => {}
                // Readers report each value below it.
                Ok(_) if place.is_none() => {}
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => is_complete = false,
                Err(error) => return Err(error),
            }
        }
        // A copy may lack empty directories.
        if !is_complete && place.is_some() {
            Self::create(path)?;
        }
        let descriptors = Arc::new(Descriptors::new(getrlimit(Resource::Nofile).current));
        Ok(Self(Arc::new(DirectoryInner { path: path.to_owned(), root: File::open(path)?, place, descriptors })))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    /// Creates a file. Blocks, also for a descriptor; fails with `EMFILE` after [`MAX_DESCRIPTOR_WAIT`].
    pub(crate) fn create_file(&self, id: FileId) -> io::Result<ValueFile> {
        let path = self.0.path.join(id.path());
        self.with_descriptor(|| File::create_new(&path))
    }

    /// Creates the directory of a joined value, and the list of its parts in it. Blocks like [`Directory::create_file`].
    pub(super) fn create_joined(&self, id: FileId) -> io::Result<ValueFile> {
        let path = self.0.path.join(id.path());
        fs::create_dir(&path)?;
        self.with_descriptor(|| File::create_new(path.join(joined::LIST))).inspect_err(|_| {
            // If this fails as well, the next start finds an orphan.
            let _ = fs::remove_dir(&path);
        })
    }

    /// Makes the file of a value a part of a joined value as well.
    pub(super) fn link_part(&self, file: FileId, id: FileId, index: usize) -> io::Result<()> {
        fs::hard_link(self.0.path.join(file.path()), self.0.path.join(joined::part_path(id, index)))
    }

    /// Opens a file by its path in the directory of values. Blocks, also for a descriptor; fails with `EMFILE` after
    /// [`MAX_DESCRIPTOR_WAIT`].
    pub(super) fn open_file(&self, path: &str) -> io::Result<ValueFile> {
        let path = self.0.path.join(path);
        self.with_descriptor(|| regular_file::options().open(&path))
    }

    /// Opens a file if that needs no disk access, so that async threads may call it.
    #[cfg(target_os = "linux")]
    pub(super) fn try_open_file(&self, path: &str) -> ImmediateOrBlocking<ValueFile> {
        use rustix::fs::{ResolveFlags, openat2};
        let Some(descriptor) = Descriptors::take(&self.0.descriptors, Instant::now()) else {
            return ImmediateOrBlocking::WouldBlock;
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        match openat2(&self.0.root, path, flags, Mode::empty(), ResolveFlags::CACHED) {
            Ok(file) => ImmediateOrBlocking::Done(ValueFile { file: file.into(), _descriptor: descriptor }),
            Err(_) => ImmediateOrBlocking::WouldBlock,
        }
    }

    /// Opens a file if that needs no disk access, which only Linux reports.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn try_open_file(&self, _path: &str) -> ImmediateOrBlocking<ValueFile> {
        ImmediateOrBlocking::WouldBlock
    }

    /// Makes the entries of new files in a directory durable.
    ///
    /// Opening the directory takes 3 µs, its sync 130 µs and more; keeping all 256 open would take as many descriptors.
    pub(crate) fn sync(&self, directory: u8) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.0.root, directory_name(directory), flags, Mode::empty()) {
            Ok(opened) => File::from(opened).sync_all(),
            // A failed sync makes the store read-only, so it must not fail for lack of a descriptor.
            #[cfg(target_os = "linux")]
            Err(Errno::MFILE | Errno::NFILE) => Ok(rustix::fs::syncfs(&self.0.root)?),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the file of a value, or the directory of a joined one. Blocks.
    pub(crate) fn remove_value(&self, id: FileId) -> io::Result<()> {
        remove_value(&self.0.path.join(id.path()))
    }

    /// True unless the file of a value does not exist. Blocks.
    pub(crate) fn has_file(&self, id: FileId) -> bool {
        self.0.path.join(id.path()).try_exists().unwrap_or(true)
    }

    /// Fails if the files are no longer those of the store.
    pub(crate) fn check_place(&self) -> Result<(), Replaced> {
        self.0.place.as_ref().map_or(Ok(()), Place::check)
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
                    // Descriptors may be used up outside of this limit.
                    Err(error) if is_out_of_descriptors(&error) && Instant::now() < deadline => {
                        thread::sleep(DESCRIPTOR_RETRY_INTERVAL)
                    }
                    opened => return Ok(ValueFile { file: opened?, _descriptor: descriptor }),
                }
            }
        });
        opened.inspect_err(|error| {
            if is_out_of_descriptors(error)
                && let Some(Admitted { left_out }) = WARNINGS.admit("descriptors")
            {
                tracing::warn!(%error, left_out, "a value was rejected: too many open files; raise the limit (ulimit -n)");
            }
        })
    }
}

impl Descriptors {
    /// The limit of a process that may open `limit` files: half of what is not reserved, since connections need
    /// descriptors too.
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

/// Removes the file of a value, or the directory of a joined one with the files that it was made with.
pub(crate) fn remove_value(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        // Some systems do not say which of the two it is.
        Err(error) if error.kind() == io::ErrorKind::IsADirectory || path.is_dir() => joined::remove(path),
        removed => removed,
    }
}

fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errors = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|error| errors.contains(&error))
}

/// Reads at an offset if the bytes are in memory, so that async threads may call it.
#[cfg(target_os = "linux")]
pub(crate) fn try_read(file: &File, buffer: &mut [u8], offset: u64) -> ImmediateOrBlocking<()> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let len = buffer.len();
    match preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) if read == len => ImmediateOrBlocking::Done(()),
        _ => ImmediateOrBlocking::WouldBlock,
    }
}

/// Reads at an offset if the bytes are in memory, which only Linux reports.
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
        (dir, Directory(Arc::new(DirectoryInner { path, root, place: None, descriptors })))
    }

    #[test]
    fn opening_a_file_waits_for_a_descriptor() {
        let (_dir, directory) = directory(RESERVED_DESCRIPTORS + 2 * MIN_DESCRIPTORS);
        let mut open: Vec<ValueFile> =
            (0..MIN_DESCRIPTORS).map(|id| directory.create_file(FileId(id)).unwrap()).collect();
        assert!(matches!(directory.try_open_file(&FileId(0).path()), ImmediateOrBlocking::WouldBlock));
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
