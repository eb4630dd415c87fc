//! Reasons why a cache cannot be opened.

use std::{io, path::PathBuf};

use zarrd_store::BoxError;

/// The reason why a cache cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The size is too small for its blocks.
    #[error("the size is {size} bytes, and at least {min} are needed")]
    TooSmall {
        /// The size.
        size: u64,
        /// The minimum.
        min: u64,
    },
    /// The path is no directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path.
        path: PathBuf,
    },
    /// The directory has a file that is not one of the cache, which would be in danger.
    #[error("{} has {name:?}, which is no part of a disk cache; name a directory that is empty or does not exist", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// The name of the file.
        name: String,
    },
    /// Another process uses the directory.
    #[error("{} is used by another server{holder}", path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process, after a comma, if it is known.
        holder: String,
    },
    /// The file system has no space for the cache.
    #[error("the file system of {} has no space for {size} bytes", path.display())]
    OutOfSpace {
        /// The directory.
        path: PathBuf,
        /// The size.
        size: u64,
    },
    /// The operating system refuses something.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed action.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        #[source]
        source: io::Error,
    },
    /// The blocks cannot be opened.
    #[error("cannot open the blocks in {}", path.display())]
    Blocks {
        /// The directory.
        path: PathBuf,
        /// The reason.
        #[source]
        source: BoxError,
    },
}
