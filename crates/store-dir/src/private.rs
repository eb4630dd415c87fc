//! Files and directories that are never served, wherever a path leads to them.

use std::{
    ffi::OsStr,
    io,
    os::{fd::AsRawFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fd::OwnedFd,
    fs::{AtFlags, Mode, OFlags, open, openat, readlink},
    io::Errno,
};

use crate::{
    attributes::{Attributes, FileId},
    error::OpenError,
};

/// Paths whose files and directories are never served, with all that is below them.
///
/// They are compared by device and inode, so that it does not matter by which links, mounts or names they are reached.
/// What is at the paths is looked up each time: it may appear, or be replaced, while the store is open.
#[derive(Clone, Debug, Default)]
pub(crate) struct Private(Vec<PathBuf>);

impl Private {
    pub(crate) fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(paths.into_iter().map(|path| std::path::absolute(&path).unwrap_or(path)).collect())
    }

    /// What is at the paths now.
    pub(crate) fn ids(&self) -> Vec<FileId> {
        self.0.iter().filter_map(|path| Attributes::of_path(path).ok()).map(|found| found.id).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if an open file or directory is one of them, or below one. The directories above it are those of its path
    /// without links, which the kernel knows.
    pub(crate) fn has(&self, file: &OwnedFd, flags: AtFlags) -> Result<bool, Errno> {
        let private = self.ids();
        if private.is_empty() {
            return Ok(false);
        }
        if private.contains(&Attributes::of(file, flags)?.id) {
            return Ok(true);
        }
        let real = readlink(format!("/proc/self/fd/{}", file.as_raw_fd()), Vec::new())?;
        let above = Path::new(OsStr::from_bytes(real.as_bytes())).ancestors().skip(1);
        Ok(above.filter_map(|path| Attributes::of_path(path).ok()).any(|found| private.contains(&found.id)))
    }

    /// Fails if a directory contains one of the paths, or is in one of them. A path at which nothing is yet counts as where
    /// it would be.
    pub(crate) fn check_root(&self, root: &Path) -> Result<(), OpenError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error: Errno| OpenError::Directory { path, source: io::Error::from(error) }
        };
        if self.0.is_empty() {
            return Ok(());
        }
        let above = ids_above(root).map_err(failed(root))?;
        let Some(root_id) = above.first() else { return Ok(()) };
        for path in &self.0 {
            if Attributes::of_path(path).is_ok_and(|found| above.contains(&found.id)) {
                return Err(OpenError::InsidePrivate { path: root.to_owned(), private: path.clone() });
            }
            let Some(existing) = path.ancestors().find(|path| path.exists()) else { continue };
            if ids_above(existing).map_err(failed(existing))?.contains(root_id) {
                return Err(OpenError::ContainsPrivate { path: root.to_owned(), private: path.clone() });
            }
        }
        Ok(())
    }
}

/// What is at a path, and the directories above it.
fn ids_above(path: &Path) -> Result<Vec<FileId>, Errno> {
    let found = Attributes::of_path(path)?;
    let mut ids = vec![found.id];
    // A file has no `..`; its directory is that of the path without links.
    let real = path.canonicalize().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    let directory = if real.is_dir() { real.as_path() } else { real.parent().unwrap_or(Path::new("/")) };
    let mut current = open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    loop {
        let id = Attributes::of(&current, AtFlags::empty())?.id;
        if ids.last() != Some(&id) {
            ids.push(id);
        }
        let above = openat(&current, "..", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        if Attributes::of(&above, AtFlags::empty())?.id == id {
            return Ok(ids);
        }
        current = above;
    }
}
