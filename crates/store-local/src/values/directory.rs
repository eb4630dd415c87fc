//! The directory of value files.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use crate::record::{FileId, directory_name};

/// The directory `values` of a store, and the handles that its files are opened and synced through.
#[derive(Clone)]
pub(crate) struct Directory(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// The directory itself, which files are opened relative to.
    root: File,
    /// The 256 directories in it, which are synced once files were made in them.
    children: Vec<File>,
}

/// How a file was opened without waiting for the disk.
pub(crate) enum Quick<T> {
    /// It was in memory.
    Done(T),
    /// The disk may be needed; ask again where waiting is allowed.
    WouldWait,
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
        let children = (0..=u8::MAX).map(|directory| File::open(path.join(directory_name(directory))));
        let children = children.collect::<io::Result<_>>()?;
        Ok(Self(Arc::new(Inner { path: path.to_owned(), root: File::open(path)?, children })))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0.path
    }

    pub(crate) fn create_file(&self, id: FileId) -> io::Result<File> {
        OpenOptions::new().write(true).create_new(true).open(self.0.path.join(id.path()))
    }

    pub(crate) fn open_file(&self, id: FileId) -> io::Result<File> {
        File::open(self.0.path.join(id.path()))
    }

    /// Opens a file if that takes no disk access, so that it may be called on an async thread.
    #[cfg(target_os = "linux")]
    pub(crate) fn open_file_quickly(&self, id: FileId) -> Quick<File> {
        use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        match openat2(&self.0.root, id.path(), flags, Mode::empty(), ResolveFlags::CACHED) {
            Ok(file) => Quick::Done(file.into()),
            Err(_) => Quick::WouldWait,
        }
    }

    /// Opens a file if that takes no disk access, which only Linux can tell.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn open_file_quickly(&self, _id: FileId) -> Quick<File> {
        Quick::WouldWait
    }

    /// Makes the entries of the files that were made in a directory durable.
    pub(crate) fn sync(&self, directory: u8) -> io::Result<()> {
        self.0.children.get(usize::from(directory)).map_or(Ok(()), File::sync_all)
    }

    pub(crate) fn remove_file(&self, id: FileId) -> io::Result<()> {
        fs::remove_file(self.0.path.join(id.path()))
    }

    /// The bytes that files can still take on this file system, and its whole size.
    pub(crate) fn space(&self) -> io::Result<(u64, u64)> {
        let stat = rustix::fs::fstatvfs(&self.0.root)?;
        Ok((stat.f_bavail.saturating_mul(stat.f_frsize), stat.f_blocks.saturating_mul(stat.f_frsize)))
    }
}

/// Reads at an offset if the bytes are in memory, so that it may be called on an async thread.
#[cfg(target_os = "linux")]
pub(crate) fn read_quickly(file: &File, buffer: &mut [u8], offset: u64) -> Quick<()> {
    use rustix::io::{ReadWriteFlags, preadv2};
    let len = buffer.len();
    match preadv2(file, &mut [io::IoSliceMut::new(buffer)], offset, ReadWriteFlags::NOWAIT) {
        Ok(read) if read == len => Quick::Done(()),
        _ => Quick::WouldWait,
    }
}

/// Reads at an offset if the bytes are in memory, which only Linux can tell.
#[cfg(not(target_os = "linux"))]
pub(crate) fn read_quickly(_file: &File, _buffer: &mut [u8], _offset: u64) -> Quick<()> {
    Quick::WouldWait
}
