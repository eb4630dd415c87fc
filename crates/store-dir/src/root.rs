//! Opening files below the directory, and none elsewhere.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use crate::{
    attributes::{Attributes, Kind},
    error::{Failure, OpenError},
    faults::{Faults, Moment},
    file_systems::FileSystems,
    options::{Options, Symlinks},
    private::Private,
    quiet::Precision,
};
use parking_lot::RwLock;
use rustix::{
    fd::{AsFd, OwnedFd},
    fs::{AtFlags, Mode, OFlags, ResolveFlags, open, openat2},
    io::Errno,
};

/// The number of tries while the kernel reports that names are being changed concurrently.
const TRIES: u32 = 64;

/// The number of tries without a pause in between.
const QUICK_TRIES: u32 = 32;

const PAUSE: Duration = Duration::from_millis(5);

/// The number of times that a value is looked up again because it is replaced by something else.
const REPLACEMENTS: u32 = 8;

/// The time that an operation may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// It waits for disks and other machines, and blocks its thread.
    Allowed,
    /// It fails with [`Failure::WouldBlock`] where it would wait, and wherever something is unusual. Async threads may
    /// call it.
    Never,
}

/// The check of the type of a file before it is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TypeCheck {
    Needed,
    /// The caller has seen that it is a regular file.
    Done,
}

/// The directory of a store.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    symlinks: Symlinks,
    private: Private,
    current: RwLock<Arc<Opened>>,
    pub(crate) file_systems: FileSystems,
    pub(crate) faults: Faults,
}

/// An open file or directory, and its attributes when it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: OwnedFd,
    pub(crate) attributes: Attributes,
    pub(crate) precision: Precision,
}

impl Wait {
    /// The flags with which attributes are read.
    fn flags(self) -> AtFlags {
        match self {
            Self::Allowed => AtFlags::empty(),
            Self::Never => AtFlags::STATX_DONT_SYNC,
        }
    }
}

impl Root {
    /// Opens a directory. Blocks.
    pub(crate) fn open(path: &Path, options: &Options) -> Result<Self, OpenError> {
        let failed = |source: io::Error| OpenError::Directory { path: path.to_owned(), source };
        let path = std::path::absolute(path).map_err(failed)?;
        options.private.check_root(&path)?;
        let file_systems = FileSystems::default();
        let opened = open_root(&path, &file_systems).map_err(|error| failed(error.into()))?;
        // A sandbox may reject the call with other errors than that of an old kernel.
        openat2(&opened.file, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::BENEATH).map_err(
            |error| match error {
                Errno::NOSYS | Errno::PERM | Errno::INVAL => OpenError::NoOpenat2(error.into()),
                error => failed(error.into()),
            },
        )?;
        Ok(Self {
            path,
            symlinks: options.symlinks,
            private: options.private.clone(),
            current: RwLock::new(Arc::new(opened)),
            file_systems,
            #[cfg(debug_assertions)]
            faults: options.faults.clone(),
            #[cfg(not(debug_assertions))]
            faults: Faults,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file of a value for reading. `None` if there is none, or a directory. What is no regular file is not
    /// opened.
    pub(crate) fn open_value(&self, key: &str, mut check: TypeCheck, wait: Wait) -> Result<Option<Opened>, Failure> {
        for _ in 0..REPLACEMENTS {
            let root = self.current(wait)?;
            if check == TypeCheck::Needed {
                let Some(found) = self.look_up_in(&root, key, wait)? else { return Ok(None) };
                if !found.attributes.is_value()? {
                    return Ok(None);
                }
            }
            check = TypeCheck::Needed;
            self.faults.moment(Moment::Checked);
            // If something else has taken the place of the file meanwhile, opening it neither blocks nor makes it the
            // terminal of the server.
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
            let Some(file) = self.open_in(&root, key, flags, wait)? else { return Ok(None) };
            let attributes = self.attributes(&file, wait.flags())?;
            if attributes.kind == Kind::Regular {
                return self.opened(file, attributes, wait).map(Some);
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a path without any access to what it leads to; `None` if there is nothing. A link that leads to nothing is an
    /// error.
    pub(crate) fn look_up(&self, path: &str, wait: Wait) -> Result<Option<Opened>, Failure> {
        let root = self.current(wait)?;
        self.look_up_in(&root, path, wait)
    }

    fn look_up_in(&self, root: &Opened, path: &str, wait: Wait) -> Result<Option<Opened>, Failure> {
        let Some(file) = self.open_in(root, path, OFlags::PATH, wait)? else { return Ok(None) };
        let attributes = self.attributes(&file, wait.flags())?;
        self.opened(file, attributes, wait).map(Some)
    }

    /// Opens the directory of a prefix; `None` if there is none.
    pub(crate) fn open_directory(&self, root: &Opened, prefix: &str) -> Result<Option<Opened>, Failure> {
        let path = prefix.strip_suffix('/').unwrap_or(".");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let opened = match self.open_in(root, path, flags, Wait::Allowed) {
            // There are no keys in it.
            Err(Failure::Private) => return Ok(None),
            opened => opened?,
        };
        let Some(file) = opened else { return Ok(None) };
        let attributes = self.attributes(&file, AtFlags::empty())?;
        self.faults.moment(Moment::Listing);
        self.opened(file, attributes, Wait::Allowed).map(Some)
    }

    /// Opens a directory to look up names in it, if that waits for no disk; `None` if there is none.
    pub(crate) fn look_up_directory(&self, root: &Opened, path: &str) -> Result<Option<Opened>, Failure> {
        let file = self.open_in(root, path, OFlags::PATH | OFlags::DIRECTORY, Wait::Never)?;
        let Some(file) = file else { return Ok(None) };
        let attributes = self.attributes(&file, Wait::Never.flags())?;
        self.opened(file, attributes, Wait::Never).map(Some)
    }

    /// The attributes of an open file.
    pub(crate) fn attributes(&self, file: impl AsFd, flags: AtFlags) -> Result<Attributes, Failure> {
        Ok(self.faults.attributes(Attributes::of(file, flags)?))
    }

    /// The attributes of a name in a directory, without following a symbolic link.
    pub(crate) fn attributes_of_name(&self, directory: impl AsFd, name: &str) -> Result<Option<Attributes>, Failure> {
        match Attributes::of_name(directory, name, AtFlags::empty()) {
            Ok(attributes) if !self.private.is_empty() && self.private.ids().contains(&attributes.id) => Ok(None),
            Ok(attributes) => Ok(Some(self.faults.attributes(attributes))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn opened(&self, file: OwnedFd, attributes: Attributes, wait: Wait) -> Result<Opened, Failure> {
        let precision = match wait {
            Wait::Allowed => self.file_systems.precision(attributes.id, &file),
            Wait::Never => self.file_systems.known_precision(attributes.id),
        };
        // A link may have led to a file system that asks another machine for everything that follows.
        if wait == Wait::Never && precision == Precision::Coarse {
            return Err(Failure::WouldBlock);
        }
        Ok(Opened { file, attributes, precision })
    }

    /// Opens a path below the directory; `None` if there is nothing.
    ///
    /// The first try follows no link. If there is none on the way, which is usual, that nothing is found means that a
    /// name is missing. Otherwise the target of a link may be missing as well.
    fn open_in(&self, root: &Opened, path: &str, flags: OFlags, wait: Wait) -> Result<Option<OwnedFd>, Failure> {
        let no_links = self.resolve_flags() | ResolveFlags::NO_SYMLINKS;
        let (opened, has_links) = match self.open_at(&root.file, (path, flags), no_links, wait)? {
            Err(Errno::LOOP) => (self.open_at(&root.file, (path, flags), self.resolve_flags(), wait)?, true),
            opened => (opened, false),
        };
        match opened {
            Ok(file) => {
                self.check_private(&file, wait)?;
                Ok(Some(file))
            }
            Err(Errno::NOENT) if !has_links => Ok(None),
            Err(Errno::NOENT | Errno::NOTDIR) => self.check_absence(root, path, wait).map(|()| None),
            // No entry can have this name.
            Err(Errno::NAMETOOLONG) => Ok(None),
            // A socket, or the file of a device that is not there, which has taken the place of something else.
            Err(Errno::NXIO | Errno::NODEV) => Err(Failure::Special),
            Err(_) if wait == Wait::Never => Err(Failure::WouldBlock),
            Err(error) => Err(error.into()),
        }
    }

    /// Fails if an opened file or directory, or one above it, is of the server itself.
    fn check_private(&self, file: &OwnedFd, wait: Wait) -> Result<(), Failure> {
        match self.private.is_empty() || !self.private.has(file, wait.flags())? {
            true => Ok(()),
            false => Err(Failure::Private),
        }
    }

    /// Fails if there is something at a path, or on the way to it, that has taken the place of a file or directory.
    ///
    /// A file on the way is none of that: below the file of a value there are no keys.
    fn check_absence(&self, root: &Opened, path: &str, wait: Wait) -> Result<(), Failure> {
        let ends = path.match_indices('/').map(|(end, _)| end).chain([path.len()]);
        for part in ends.filter_map(|end| path.get(..end)) {
            match self.open_at(&root.file, (part, OFlags::PATH), self.resolve_flags(), wait)? {
                Ok(file) if self.attributes(&file, wait.flags())?.kind == Kind::Directory => {}
                Ok(file) => return self.attributes(&file, wait.flags())?.is_value().map(|_| ()),
                Err(Errno::NOENT) => {
                    let unfollowed = OFlags::PATH | OFlags::NOFOLLOW;
                    return match self.open_at(&root.file, (part, unfollowed), self.resolve_flags(), wait)? {
                        Ok(_) => Err(Failure::LinkToNothing),
                        Err(_) => Ok(()),
                    };
                }
                Err(Errno::NOTDIR | Errno::NAMETOOLONG) => return Ok(()),
                Err(_) if wait == Wait::Never => return Err(Failure::WouldBlock),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Opens a path, again and again while names on the way are being changed.
    ///
    /// Where it must not wait, all names on the way have to be in memory. They are those of file systems of this machine:
    /// of another one, the kernel would ask whether they are still current.
    fn open_at(
        &self,
        directory: &OwnedFd,
        (path, flags): (&str, OFlags),
        resolve: ResolveFlags,
        wait: Wait,
    ) -> Result<Result<OwnedFd, Errno>, Failure> {
        let open = |resolve| openat2(directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve);
        if wait == Wait::Never {
            self.faults.open(path).map_err(|_| Failure::WouldBlock)?;
            return match open(resolve | ResolveFlags::CACHED) {
                Err(Errno::AGAIN | Errno::INTR | Errno::STALE) => Err(Failure::WouldBlock),
                opened => Ok(opened),
            };
        }
        for tried in 0..TRIES {
            match self.faults.open(path).and_then(|()| open(resolve)) {
                // Names on the way were changed, or another process holds a lease on the file.
                Err(Errno::AGAIN | Errno::INTR | Errno::STALE) if tried < QUICK_TRIES => {}
                Err(Errno::AGAIN | Errno::INTR | Errno::STALE) => thread::sleep(PAUSE),
                opened => return Ok(opened),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a directory of a path below `folder`, in which something is to be changed, without following a link. The path
    /// is empty for `folder` itself.
    pub(crate) fn open_unfollowed(&self, folder: &Opened, path: &str) -> Result<OwnedFd, Failure> {
        self.open_unfollowed_in(&folder.file, if path.is_empty() { "." } else { path })
    }

    /// Opens a directory of a path below an open one, without following a link.
    pub(crate) fn open_unfollowed_in(&self, directory: &OwnedFd, path: &str) -> Result<OwnedFd, Failure> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let path = self.faults.spelling(directory, path);
        let opened = match self.open_at(directory, (&path, flags), resolve, Wait::Allowed)? {
            Err(Errno::LOOP) => return Err(Failure::LinkOnTheWay),
            opened => opened?,
        };
        self.check_private(&opened, Wait::Allowed)?;
        Ok(opened)
    }

    /// The attributes of what has a name in a directory, without following a link that has it.
    pub(crate) fn attributes_unfollowed(
        &self,
        directory: &OwnedFd,
        name: &str,
        flags: AtFlags,
    ) -> Result<Attributes, Failure> {
        let name = self.faults.spelling(directory, name);
        Ok(self.faults.attributes(Attributes::of_name(directory, &name, flags)?))
    }

    fn resolve_flags(&self) -> ResolveFlags {
        match self.symlinks {
            Symlinks::Within => ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS,
            Symlinks::Follow => ResolveFlags::NO_MAGICLINKS,
        }
    }

    /// The directory that is at the path now: programs that replace all data may replace the directory itself.
    pub(crate) fn current(&self, wait: Wait) -> Result<Arc<Opened>, Failure> {
        let known = Arc::clone(&self.current.read());
        let found = Attributes::of_path(&self.path).map_err(Failure::Root);
        match (found, wait) {
            (Ok(found), _) if found.id == known.attributes.id => return Ok(known),
            (_, Wait::Never) => return Err(Failure::WouldBlock),
            (Err(error), Wait::Allowed) => return Err(error),
            (Ok(_), Wait::Allowed) => {}
        }
        let opened = Arc::new(open_root(&self.path, &self.file_systems).map_err(Failure::Root)?);
        *self.current.write() = Arc::clone(&opened);
        Ok(opened)
    }
}

fn open_root(path: &Path, file_systems: &FileSystems) -> Result<Opened, Errno> {
    let file = open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let attributes = Attributes::of(&file, AtFlags::empty())?;
    let precision = file_systems.precision(attributes.id, &file);
    Ok(Opened { file, attributes, precision })
}
