//! Denials: the reasons for which a credential is refused.

use std::{io, path::PathBuf, sync::Arc, time::SystemTime};

/// The reason for which a credential is refused.
///
/// A client should learn no more than that it was refused, or that it [expired](Self::Expired), or that the server
/// [cannot know](Self::Unavailable); the log may have the reason. No message has any part of a credential.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Denial {
    /// The text does not have the form of a credential of this kind.
    #[error("the credential is malformed")]
    Malformed,
    /// The credential names a key that is not in the key ring, such as one that was dropped.
    #[error("the credential was made with a key that is not in the key ring")]
    UnknownKey,
    /// The credential was not made with the key that it names.
    #[error("the credential does not match its key")]
    BadMac,
    /// The token or share link does not exist any more.
    #[error("the token or share link was revoked")]
    Revoked,
    /// The share link's maker was revoked, has expired, or lacks the right that it shares.
    #[error("the maker of the share link has lost the right to it")]
    MakerGone,
    /// The token or share link has expired.
    #[error("the token or share link has expired")]
    Expired {
        /// The time of its expiry.
        at: SystemTime,
    },
    /// The file of the token or share link is damaged.
    #[error("the file of the token or share link is damaged")]
    Damaged,
    /// The access directory cannot be read, so nothing is known about the credential.
    #[error("the access directory is not readable")]
    Unavailable {
        /// The reason.
        #[source]
        source: Arc<ReadError>,
    },
}

/// Errors of reading an access directory, with which all credentials are refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system failed an operation on a file or directory.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// The failed action, which continues "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A directory has more files than the limit.
    #[error("{} has more than {limit} files, which is the limit for tokens and share links each", path.display())]
    TooManyFiles {
        /// The directory.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// Other users can read or write a key.
    #[error("{} is accessible to others than its owner (mode {mode:o}); run `chmod 600` on it", path.display())]
    InsecureKey {
        /// The file of the key.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Other users can write into a directory, and so could add keys or rights.
    #[error("{} is writable by others than its owner (mode {mode:o}); run `chmod 700` on it", path.display())]
    WritableByOthers {
        /// The directory.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file of a key is damaged, or does not belong to one.
    #[error("{} is not a key of the key ring", path.display())]
    InvalidKey {
        /// The file.
        path: PathBuf,
    },
    /// There are more keys than the limit.
    #[error("{} has more than {limit} keys; drop old ones with `zarrd token rotate --drop`", path.display())]
    TooManyKeys {
        /// The directory of the keys.
        path: PathBuf,
        /// The limit.
        limit: usize,
    },
    /// There are no keys.
    #[error("{} has no keys", path.display())]
    NoKeys {
        /// The directory of the keys.
        path: PathBuf,
    },
}
