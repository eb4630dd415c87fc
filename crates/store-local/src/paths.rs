//! The paths of a store's parts.

use std::path::PathBuf;

/// A store's directory.
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

    /// Stands for a store that is being made and has acknowledged nothing.
    pub(crate) fn making(&self) -> PathBuf {
        self.dir.join("making")
    }

    /// Stands for a store that is being filled and lacks some of what it is to have.
    pub(crate) fn incomplete(&self) -> PathBuf {
        self.dir.join("incomplete")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("log")
    }

    /// Names the current generation of the index.
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

    pub(crate) fn lost_and_found(&self) -> PathBuf {
        self.dir.join("lost+found")
    }

    /// The progress file of a store of format 1.
    pub(crate) fn progress(&self) -> PathBuf {
        self.dir.join("progress")
    }

    /// The mark of a clean stop in format 1.
    pub(crate) fn seal(&self) -> PathBuf {
        self.dir.join("seal")
    }
}
