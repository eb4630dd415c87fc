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
            current: RwLock::new(Arc::new(opened)),
            file_systems,
            #[cfg(feature = "test-faults")]
            faults: options.faults.clone(),
            #[cfg(not(feature = "test-faults"))]
            faults: Faults,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file of a value for reading. `None` if there is none, or if it is no regular file, which is not opened.
    pub(crate) fn open_value(&self, key: &str, mut check: TypeCheck, wait: Wait) -> Result<Option<Opened>, Failure> {
        for _ in 0..REPLACEMENTS {
            let root = self.current(wait)?;
            if check == TypeCheck::Needed {
                let Some(found) = self.look_up_in(&root, key, wait)? else { return Ok(None) };
                if found.attributes.kind != Kind::Regular {
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

    /// Opens a path without any access to what it leads to; `None` if there is nothing.
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
    pub(crate) fn open_directory(&self, prefix: &str) -> Result<Option<Opened>, Failure> {
        let path = prefix.strip_suffix('/').unwrap_or(".");
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let root = self.current(Wait::Allowed)?;
        let Some(file) = self.open_in(&root, path, flags, Wait::Allowed)? else { return Ok(None) };
        let attributes = self.attributes(&file, AtFlags::empty())?;
        self.faults.moment(Moment::Listing);
        self.opened(file, attributes, Wait::Allowed).map(Some)
    }

    /// Opens a directory for looks at the names in it, if that waits for no disk; `None` if there is none.
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
            Ok(attributes) => Ok(Some(self.faults.attributes(attributes))),
            Err(error) if is_absence(error) => Ok(None),
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
    fn open_in(&self, root: &Opened, path: &str, flags: OFlags, wait: Wait) -> Result<Option<OwnedFd>, Failure> {
        if wait == Wait::Never {
            return self.open_cached(root, path, flags);
        }
        let resolve = self.resolve_flags();
        for tried in 0..TRIES {
            let opened = self
                .faults
                .open(path)
                .and_then(|()| openat2(&root.file, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve));
            match opened {
                Ok(file) => return Ok(Some(file)),
                // Names on the way were changed, or another process holds a lease on the file.
                Err(Errno::AGAIN | Errno::INTR | Errno::STALE) if tried < QUICK_TRIES => {}
                Err(Errno::AGAIN | Errno::INTR | Errno::STALE) => thread::sleep(PAUSE),
                Err(error) if is_absence(error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::AGAIN.into())
    }

    /// Opens a path like [`open_in`](Self::open_in), if all names on the way are in memory. They are those of file
    /// systems of this machine: of another one, the kernel would ask whether they are still current.
    fn open_cached(&self, root: &Opened, path: &str, flags: OFlags) -> Result<Option<OwnedFd>, Failure> {
        if self.faults.open(path).is_err() {
            return Err(Failure::WouldBlock);
        }
        let resolve = self.resolve_flags() | ResolveFlags::CACHED;
        match openat2(&root.file, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(file) => Ok(Some(file)),
            Err(error) if is_absence(error) => Ok(None),
            Err(_) => Err(Failure::WouldBlock),
        }
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

/// True if an error means that there is nothing of this name that could be a value or a directory.
fn is_absence(error: Errno) -> bool {
    matches!(error, Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::NXIO)
}
