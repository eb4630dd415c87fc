//! The paths of a store's files.

use std::{
    fs::File,
    io,
    os::fd::AsRawFd,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The directory of a store.
///
/// A store that is open for writing keeps its directory open and reaches all files through it, so that they stay its own
/// when the directory is moved and another one takes its place.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    /// The path that is used.
    pub(crate) dir: PathBuf,
    /// The path that was given.
    given: PathBuf,
    /// The directory, held open.
    _handle: Option<Arc<File>>,
}

impl Paths {
    /// The directory at a path, whichever that is at the time of use.
    pub(crate) fn at(dir: &Path) -> Self {
        Self { dir: dir.to_owned(), given: dir.to_owned(), _handle: None }
    }

    /// The directory that is at a path now.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let handle = File::open(dir)?;
        // Libraries take paths. Without /proc, that of the directory has to do.
        let through = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        let used = if through.is_dir() { through } else { dir.to_owned() };
        Ok(Self { dir: used, given: dir.to_owned(), _handle: Some(Arc::new(handle)) })
    }

    /// The path that was given for the directory.
    pub(crate) fn given(&self) -> &Path {
        &self.given
    }

    /// The path of a file as users know it.
    pub(crate) fn shown(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.dir) {
            Ok(below) if below.as_os_str().is_empty() => self.given.clone(),
            Ok(below) => self.given.join(below),
            Err(_) => path.to_owned(),
        }
    }

    pub(crate) fn identity(&self) -> PathBuf {
        self.dir.join("zarrd.json")
    }

    /// The place of a damaged index, from its directory.
    pub(crate) fn damaged_index(&self, index: &Path) -> PathBuf {
        let name = index.file_name().unwrap_or_default().to_string_lossy();
        self.dir.join(format!("damaged-{name}"))
    }

    /// The copy of the identity, for [recovering](crate::Recovery) a store.
    pub(crate) fn identity_copy(&self) -> PathBuf {
        self.dir.join("zarrd.json.copy")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join("lock")
    }

    /// Marks a store that is being created and has acknowledged nothing.
    pub(crate) fn creation_marker(&self) -> PathBuf {
        self.dir.join("making")
    }

    /// Marks a store that is being filled and is not complete.
    pub(crate) fn incomplete_marker(&self) -> PathBuf {
        self.dir.join("incomplete")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// The number of the current generation of the index.
    pub(crate) fn generation(&self) -> PathBuf {
        self.dir.join("generation")
    }

    pub(crate) fn clean_shutdown(&self) -> PathBuf {
        self.dir.join("clean-shutdown")
    }

    /// The first generation of the index.
    pub(crate) fn index(&self) -> PathBuf {
        self.dir.join("index")
    }

    pub(crate) fn values(&self) -> PathBuf {
        self.dir.join("values")
    }

    pub(crate) fn ballast(&self) -> PathBuf {
        self.dir.join("ballast")
    }

    /// The state of the scrub.
    pub(crate) fn scrub(&self) -> PathBuf {
        self.dir.join("scrub")
    }

    /// The orphaned value files. Not `lost+found`, which is the file system's if the store is at its root.
    pub(crate) fn orphans(&self) -> PathBuf {
        self.dir.join("orphans")
    }

    /// The commit watermark of a store of format 1.
    pub(crate) fn format_1_watermark(&self) -> PathBuf {
        self.dir.join("progress")
    }

    /// The clean-shutdown marker of a store of format 1.
    pub(crate) fn format_1_clean_shutdown(&self) -> PathBuf {
        self.dir.join("seal")
    }
}
