//! The paths of a store's files.

use std::path::PathBuf;

/// The directory of a store.
#[derive(Clone, Debug)]
pub(crate) struct Paths {
    pub(crate) dir: PathBuf,
}

impl Paths {
    pub(crate) fn identity(&self) -> PathBuf {
        self.dir.join("zarrd.json")
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
