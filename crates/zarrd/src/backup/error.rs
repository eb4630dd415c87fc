//! Errors of backups.

use std::{io, path::PathBuf};

use zarrd_store::{Key, StoreError};

/// Errors of taking and restoring backups.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BackupError {
    /// The directory is not empty, and has no backups.
    #[error("{} is not empty and has no backups; name a new directory", directory.display())]
    NotBackups {
        /// The directory.
        directory: PathBuf,
    },
    /// There is no backup.
    #[error("{} has no backup{}", directory.display(), named.as_ref().map(|name| format!(" named {name:?}")).unwrap_or_default())]
    NoBackup {
        /// The directory.
        directory: PathBuf,
        /// The name that was asked for.
        named: Option<String>,
    },
    /// A newer version of zarrd wrote the backups.
    #[error("{} has format {found}, and this version of zarrd knows {known}", file.display())]
    NewerFormat {
        /// The file.
        file: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format that is known.
        known: u32,
    },
    /// The backups are those of another store.
    #[error(
        "{} has backups of another store ({found}; this one is {store}); a store that was restored or copied is another one \
         and needs a directory of its own",
        directory.display()
    )]
    OtherStore {
        /// The directory.
        directory: PathBuf,
        /// The store whose backups it has.
        found: String,
        /// The store.
        store: String,
    },
    /// Another process uses the directory.
    #[error("another process is using the backups in {}", directory.display())]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A file is not what was written.
    #[error("{} is damaged: {what}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The damage.
        what: String,
    },
    /// Values are damaged or missing.
    #[error("{count} values are damaged or missing; {advice}")]
    Values {
        /// Their number.
        count: u64,
        /// What to do.
        advice: &'static str,
    },
    /// The store changed a value while a snapshot of it was read, or lost it.
    #[error("the snapshot has no value for {key}, which it lists")]
    Vanished {
        /// The key.
        key: Key,
    },
    /// The backup has no tokens, and the store had some.
    #[error(
        "the backup {name} was taken without the tokens of the store, so a server on it would be open to everybody; \
         --without-access restores it all the same"
    )]
    WithoutTokens {
        /// The backup.
        name: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot be read or written.
    #[error("could not {action} {}", file.display())]
    Io {
        /// The action.
        action: &'static str,
        /// The file.
        file: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl BackupError {
    /// The error of an action on a file, which continues "could not".
    pub(super) fn io(action: &'static str, file: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let file = file.into();
        move |source| Self::Io { action, file, source }
    }

    pub(super) fn damaged(file: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Damaged { file: file.into(), what: what.into() }
    }
}
