//! What a store that writes has in addition: the open directory with its lock, and what must not repeat.

mod clock;
mod durable_directories;
mod lock;
mod options;

use std::{
    hash::{BuildHasher, RandomState},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Instant,
};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{CWD, Mode, OFlags, openat};
use zarrd_store::{Key, Version};

use self::{clock::Clock, durable_directories::DurableDirectories, lock::FolderLock};
use crate::{
    attributes::{Attributes, Time},
    error::{Failure, OpenError},
    names::OWN_TEMPORARY,
    recent_set::RecentSet,
    root::{Opened, Root, Wait},
};

pub(crate) use self::durable_directories::DirectoryId;
pub use self::options::{Durability, FileMode, WriteOptionError, WriteOptions};

/// The number of locks among which keys are distributed.
const LOCKS: usize = 1024;

/// The state of a store that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    /// The directory that is written into, whatever takes its place at its path.
    pub(crate) folder: Opened,
    pub(crate) options: WriteOptions,
    pub(crate) durable: DurableDirectories,
    lock: FolderLock,
    /// A part of the names of temporary files, which no other process has.
    run: u64,
    names: AtomicU64,
    clock: Clock,
    /// The versions that were written within the last seconds.
    written: RecentSet<Version>,
    hasher: RandomState,
    locks: Vec<Mutex<()>>,
}

impl Writer {
    /// Opens the directory of a store for writing, which no other process may have. Blocks.
    ///
    /// `is_local` is true if its file system is one of this machine.
    pub(crate) fn open(root: &Root, options: WriteOptions, is_local: bool) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Directory { path: root.path().to_owned(), source: error };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let current = root.current(Wait::Allowed).map_err(|failure| failed(failure.into()))?;
        let file = openat(CWD, root.path(), flags, Mode::empty()).map_err(|error| failed(error.into()))?;
        let attributes = Attributes::of(&file, rustix::fs::AtFlags::empty()).map_err(|error| failed(error.into()))?;
        let folder = Opened { file, attributes, precision: current.precision };
        let lock = FolderLock::take(root.path(), &folder, is_local)?;
        Ok(Self {
            folder,
            options,
            durable: DurableDirectories::default(),
            lock,
            run: rand::random(),
            names: AtomicU64::new(0),
            clock: Clock::default(),
            written: RecentSet::default(),
            hasher: RandomState::new(),
            locks: (0..LOCKS).map(|_| Mutex::default()).collect(),
        })
    }

    /// Fails unless the directory is still the one at its path, and is locked.
    pub(crate) fn check(&self, root: &Root) -> Result<(), Failure> {
        let found = Attributes::of_path(root.path()).map_err(Failure::Root)?;
        if found.id != self.folder.attributes.id || !self.lock.is_in(&self.folder) {
            return Err(Failure::Replaced);
        }
        Ok(())
    }

    /// A name for a temporary file, which no other file has.
    pub(crate) fn temporary_name(&self) -> String {
        let number = self.names.fetch_add(1, Relaxed);
        format!("{OWN_TEMPORARY}{:016x}{number:016x}.partial", self.run)
    }

    /// True if a temporary file is one of this process.
    pub(crate) fn has_temporary(&self, name: &str) -> bool {
        name.strip_prefix(OWN_TEMPORARY).is_some_and(|rest| rest.starts_with(&format!("{:016x}", self.run)))
    }

    /// A time of modification that no file of this process has had.
    pub(crate) fn new_time(&self) -> Time {
        self.clock.next()
    }

    /// Records the version of a file that this process wrote completely.
    pub(crate) fn record(&self, version: Version) {
        self.written.insert_at(version, Instant::now());
    }

    /// True if this process wrote the file of a version within the last seconds.
    pub(crate) fn wrote(&self, version: Version) -> bool {
        self.written.contains(&version)
    }

    /// Waits until this process changes neither the key nor one that differs from it in case only. Blocks.
    pub(crate) fn lock(&self, key: &Key) -> Option<MutexGuard<'_, ()>> {
        let hash = self.hasher.hash_one(key.as_str().to_lowercase());
        let index = usize::try_from(hash).unwrap_or_default().checked_rem(self.locks.len()).unwrap_or_default();
        self.locks.get(index).map(Mutex::lock)
    }
}
