//! The temporary file of a value that is being set.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use rustix::{
    fd::OwnedFd,
    fs::{
        AtFlags, Mode, OFlags, RenameFlags, Timespec, Timestamps, UTIME_OMIT, fsync, futimens, linkat, openat,
        renameat, renameat_with, unlinkat,
    },
    io::{Errno, pread, write},
};
use zarrd_store::{Key, Precondition, PutResult, StoreError, Version};

use super::{
    directories::{self, split},
    entry::{self, Entry, read_entry},
    parent::{Parent, TRIES, set_owner},
};
use crate::{
    attributes::{Attributes, Time},
    error::{Failure, change_error, undurable_error},
    faults::Call,
    inner::Inner,
    writer::{Durability, Writer},
};

/// The action that fails if a value cannot be written.
const WRITE: &str = "write a value";

/// The action that fails if a value cannot be read before it is set.
const READ: &str = "read a value that is being set";

/// The action that fails if a complete value cannot take its name.
const RENAME: &str = "give a value its name";

/// The action that fails if a value may not be durable.
const SYNC: &str = "make a value durable";

/// A temporary file in the directory of a key. Dropping it removes the file, and the directories that are empty then.
#[derive(Debug)]
pub(super) struct Spool {
    inner: Arc<Inner>,
    key: Key,
    /// `None` once the file has its name, or was removed.
    open: Option<OpenSpool>,
}

#[derive(Debug)]
struct OpenSpool {
    parent: Parent,
    name: String,
    file: OwnedFd,
    size: u64,
}

impl Spool {
    /// Makes the directories of a key and a temporary file in the last of them. Blocks.
    pub(super) fn create(inner: &Arc<Inner>, key: &Key) -> Result<Self, StoreError> {
        let failed = |failure| change_error(WRITE, key.as_str(), failure);
        let writer = inner.writer()?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for _ in 0..TRIES {
            writer.check(&inner.root).map_err(failed)?;
            let parent = Parent::make(inner, writer, key)?;
            let name = writer.temporary_name();
            let created = inner.root.faults.call(Call::CreateFile);
            match created.and_then(|()| openat(&parent.file, name.as_str(), flags, Mode::from_raw_mode(0o666))) {
                Ok(file) => {
                    let open = OpenSpool { parent, name, file, size: 0 };
                    return Ok(Self { inner: Arc::clone(inner), key: key.clone(), open: Some(open) });
                }
                // Another change has removed the directory, since it was empty.
                Err(Errno::NOENT) => {}
                Err(error) => {
                    parent.remove_made(inner, writer);
                    return Err(failed(error.into()));
                }
            }
        }
        Err(failed(Errno::AGAIN.into()))
    }

    /// Fails if the directory of a store cannot be written into. Leaves nothing there. Blocks.
    pub(super) fn probe(inner: &Arc<Inner>) -> Result<(), StoreError> {
        let Ok(key) = Key::parse("probe") else { return Ok(()) };
        let writer = inner.writer()?;
        let mut spool = Self::create(inner, &key)?;
        let completed = spool.open.as_ref().map_or(Ok(()), |open| open.complete(inner, writer).map(drop));
        spool.discard();
        completed.map_err(|failure| change_error(WRITE, "", failure))
    }

    /// Appends bytes. Blocks.
    pub(super) fn write(&mut self, buffers: &[Bytes]) -> Result<(), StoreError> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let failed = |error: Errno| change_error(WRITE, self.key.as_str(), error.into());
        for buffer in buffers {
            let mut rest: &[u8] = buffer;
            while !rest.is_empty() {
                match self.inner.root.faults.call(Call::Write).and_then(|()| write(&open.file, rest)) {
                    Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(failed(error)),
                }
            }
            open.size = open.size.saturating_add(buffer.len() as u64);
        }
        Ok(())
    }

    /// The number of bytes.
    pub(super) fn size(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.size)
    }

    /// True if the file has not got the name of its key.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The bytes of a range. Blocks.
    pub(super) fn read(&self, range: Range<u64>) -> Result<Bytes, StoreError> {
        let failed = |error: Errno| change_error(READ, self.key.as_str(), error.into());
        let open = self.open.as_ref().ok_or(StoreError::Closed)?;
        let mut bytes = vec![0; usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX)];
        let mut filled = 0;
        while let Some(free) = bytes.get_mut(filled..).filter(|free| !free.is_empty()) {
            match pread(&open.file, free, range.start.saturating_add(filled as u64)) {
                Ok(0) => return Err(failed(Errno::IO)),
                Ok(read) => filled = filled.saturating_add(read),
                Err(Errno::INTR) => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(bytes.into())
    }

    /// Makes the file durable and gives it the name of its key, if the precondition holds. Otherwise it can be finished again.
    /// Blocks.
    pub(super) fn finish(
        &mut self,
        precondition: &Precondition,
        settled: Option<Version>,
    ) -> Result<PutResult, StoreError> {
        let (inner, key) = (Arc::clone(&self.inner), self.key.clone());
        let writer = inner.writer()?;
        let Some(open) = &self.open else { return Err(StoreError::Closed) };
        let failed = |failure| change_error(WRITE, key.as_str(), failure);
        let modified = open.complete(&inner, writer).map_err(failed)?;
        let (version, replaced) = {
            let _turn = writer.lock(&key);
            let replaced = open.rename(&inner, writer, (&key, precondition), settled)?;
            (open.version(&inner, &key, modified), replaced)
        };
        let synced = open.parent.sync(&inner, writer).and_then(|()| writer.check(&inner.root));
        self.open = None;
        synced.map_err(|failure| undurable_error(SYNC, &key, failure))?;
        Ok(PutResult { version, replaced })
    }

    /// Removes the file, unless it has the name of its key by now, and the directories that are empty then: another value may
    /// have been in them when they were made, or when the others in them were erased. Blocks.
    pub(super) fn discard(&mut self) {
        if let (Some(open), Ok(writer)) = (self.open.take(), self.inner.writer()) {
            let _ = unlinkat(&open.parent.file, open.name.as_str(), AtFlags::empty());
            directories::remove_empty(&self.inner, writer, &open.parent.path);
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let Some(open) = self.open.take() else { return };
        let mut spool = Self { inner: Arc::clone(&self.inner), key: self.key.clone(), open: Some(open) };
        match tokio::runtime::Handle::try_current() {
            Ok(_) => drop(zarrd_executor::spawn_blocking(move || spool.discard())),
            Err(_) => spool.discard(),
        }
    }
}

impl OpenSpool {
    /// Gives the file its owner, mode and time, and makes it durable. Returns the time.
    fn complete(&self, inner: &Inner, writer: &Writer) -> Result<Time, Failure> {
        set_owner(inner, writer, &self.file, writer.options.mode.map(|mode| mode.of_file()))?;
        let modified = writer.new_time();
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: modified.seconds, tv_nsec: modified.nanoseconds.into() },
        };
        inner.root.faults.call(Call::SetAttributes)?;
        futimens(&self.file, &times)?;
        if writer.options.durability == Durability::Synced {
            inner.root.faults.call(Call::SyncFile)?;
            fsync(&self.file)?;
        }
        let stored = inner.root.attributes(&self.file, writer.folder.precision.current())?.modified;
        if stored != modified {
            return Err(Failure::CoarseTimes);
        }
        Ok(modified)
    }

    /// Renames the file to its key, if the precondition holds. Returns true if the key had a value.
    fn rename(
        &self,
        inner: &Inner,
        writer: &Writer,
        (key, precondition): (&Key, &Precondition),
        settled: Option<Version>,
    ) -> Result<bool, StoreError> {
        let failed = |failure| change_error(RENAME, key.as_str(), failure);
        let (_, name) = split(key.as_str());
        for _ in 0..TRIES {
            writer.check(&inner.root).map_err(failed)?;
            let found = read_entry(inner, writer, (key, &self.parent), settled)?;
            entry::check(precondition, key, found)?;
            if found == Entry::Directory {
                make_room((key, &self.parent), name)?;
            }
            let name = &*inner.root.faults.spelling(&self.parent.file, name);
            let renamed = inner.root.faults.call(Call::Rename).and_then(|()| match found {
                Entry::Value(_) => renameat(&self.parent.file, self.name.as_str(), &self.parent.file, name),
                Entry::Absent | Entry::Directory => self.rename_to_new(name),
            });
            match renamed {
                Ok(()) => return Ok(found.version().is_some()),
                // Another program has made, or replaced, what has the name.
                Err(Errno::EXIST | Errno::ISDIR | Errno::NOTEMPTY) => {}
                Err(error) => return Err(failed(error.into())),
            }
        }
        Err(failed(Errno::AGAIN.into()))
    }

    /// Renames the file to a name that nothing has. Where that cannot be made sure in one step, another program that takes
    /// the name at the same moment is not noticed.
    fn rename_to_new(&self, name: &str) -> Result<(), Errno> {
        let (directory, own) = (&self.parent.file, self.name.as_str());
        match renameat_with(directory, own, directory, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
            renamed => return renamed,
        }
        match linkat(directory, own, directory, name, AtFlags::empty()) {
            Ok(()) => unlinkat(directory, own, AtFlags::empty()),
            Err(Errno::EXIST) => Err(Errno::EXIST),
            Err(_) => renameat(directory, own, directory, name),
        }
    }

    /// The version of the file with its name, which is recorded as complete: unless another program has changed it
    /// already.
    fn version(&self, inner: &Inner, key: &Key, modified: Time) -> Version {
        let Ok(writer) = inner.writer() else { return Version::from_u128(rand::random()) };
        let attributes = inner.root.attributes(&self.file, writer.folder.precision.current());
        let is_own = |found: &Attributes| found.modified == modified && found.size == self.size && found.links == 1;
        match attributes.ok().filter(is_own) {
            Some(attributes) => {
                let version = inner.meta(key, &attributes).version;
                writer.record(version);
                version
            }
            None => Version::from_u128(rand::random()),
        }
    }
}

/// Removes a directory that has the name of a key, if it is empty. Fails with what is in it otherwise.
fn make_room((key, parent): (&Key, &Parent), name: &str) -> Result<(), StoreError> {
    let failed = |failure| change_error(RENAME, key.as_str(), failure);
    match unlinkat(&parent.file, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => {
            Err(StoreError::NameConflict { key: key.clone(), existing: format!("{key}/") })
        }
        Err(error) => Err(failed(error.into())),
    }
}
