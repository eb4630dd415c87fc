//! Options of a store.

use std::path::PathBuf;

use crate::{private::Private, writer::WriteOptions};

/// The options of a [`DirStore`](crate::DirStore).
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) name: String,
    pub(crate) symlinks: Symlinks,
    pub(crate) private: Private,
    pub(crate) writes: Option<WriteOptions>,
    #[cfg(debug_assertions)]
    pub(crate) faults: crate::Faults,
}

/// The symbolic links that are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symlinks {
    /// Those that lead to files below the directory of the store, by a relative target. To read through any other is
    /// an error; listings leave it out.
    #[default]
    Within,
    /// All.
    Follow,
}

impl Options {
    /// The options of a store of this name, such as its URL.
    ///
    /// The name is the key of the hash that versions are, and the secret of cursors: servers of one directory that are
    /// given the same name have equal versions, and continue the listings of each other.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            symlinks: Symlinks::default(),
            private: Private::default(),
            writes: None,
            #[cfg(debug_assertions)]
            faults: crate::Faults::default(),
        }
    }

    /// Follows these symbolic links.
    #[must_use]
    pub fn symlinks(self, symlinks: Symlinks) -> Self {
        Self { symlinks, ..self }
    }

    /// Never serves what is at these paths, or below them.
    #[must_use]
    pub fn private(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { private: Private::new(paths), ..self }
    }

    /// Opens the store for writing, too. One process at a time writes into a directory.
    #[must_use]
    pub fn writes(self, writes: WriteOptions) -> Self {
        Self { writes: Some(writes), ..self }
    }

    /// Injects faults.
    #[cfg(debug_assertions)]
    #[must_use]
    pub fn faults(self, faults: crate::Faults) -> Self {
        Self { faults, ..self }
    }
}
