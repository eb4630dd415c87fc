//! Errors of commands, and their exit codes.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc};

use zarrd_disk_cache::OpenError as CacheError;
use zarrd_store::StoreError;

use crate::{
    backup::BackupError,
    config::{ConfigError, DiskCacheLocation, Location, LoginError},
    exit::Code,
    hierarchy::NodeReadError,
    open::OpenStoreError,
    signals::{InstallError, Stopped},
    transfer::TransferError,
    ui::OutputError,
};

/// Errors of commands.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The certificate cannot be used.
    #[error("cannot serve TLS")]
    Certificate(#[from] zarrd_server::CertificateError),
    /// The disk cache cannot be used.
    #[error("--disk-cache {location} cannot be used")]
    DiskCache {
        /// The directory and size.
        location: DiskCacheLocation,
        /// Reason.
        #[source]
        source: CacheError,
    },
    /// A store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenStoreError),
    /// The store failed.
    #[error("the store failed")]
    Store(#[from] StoreError),
    /// The index was not compacted.
    #[error("the index was not compacted")]
    Compact(#[from] zarrd_store_local::CompactError),
    /// The server cannot listen on its address.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The access log or the audit log cannot be opened.
    #[error(transparent)]
    RequestLog(#[from] zarrd_server::OpenLogError),
    /// The server failed.
    #[error("the server failed")]
    Serve(#[source] io::Error),
    /// The threads of the runtime cannot be started.
    #[error("cannot start the threads of the program")]
    Runtime(#[source] io::Error),
    /// A directory cannot be located.
    #[error("cannot resolve the path of a directory")]
    ResolvePath(#[source] io::Error),
    /// Signal handlers cannot be installed.
    #[error(transparent)]
    Signals(#[from] InstallError),
    /// Keys were not transferred.
    #[error(transparent)]
    Transfer(#[from] TransferError),
    /// A backup was not taken, or not restored.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The target of a copy is not empty.
    #[error("{location} is not empty; a copy needs a new store")]
    CopyTargetNotEmpty {
        /// The target.
        location: Location,
    },
    /// Operations on the store were interrupted.
    #[error(
        "{operations} operations on the store were interrupted, and chunks that they erase would be exported; \
         zarrd compact or zarrd serve settles them"
    )]
    InterruptedOperations {
        /// The number of operations.
        operations: usize,
    },
    /// The tokens of a store cannot be copied.
    #[error("could not copy the tokens of the store (DIR/access); --without-access leaves them behind")]
    CopiedAccess(#[source] std::io::Error),
    /// A copy failed.
    #[error("the copy at {location} is incomplete; {advice}")]
    CopyIncomplete {
        /// The target.
        location: Location,
        /// What to do about it.
        advice: &'static str,
        /// Reason.
        #[source]
        source: Box<Error>,
    },
    /// Corrupt values were found.
    #[error("{corrupt} of {values} values are damaged or missing")]
    CorruptValues {
        /// Number of corrupt or missing values.
        corrupt: u64,
        /// Number of all values.
        values: u64,
    },
    /// The index of a store cannot be read to its end.
    #[error(
        "the index cannot be read to its end: of the {values} values that it names {corrupt} are damaged or missing, \
         and it may have more; zarrd recover reads what is whole into a new store"
    )]
    UnreadableIndex {
        /// Number of corrupt or missing values among those that were found.
        corrupt: u64,
        /// Number of values that were found.
        values: u64,
    },
    /// Not everything of a damaged store was recovered with certainty.
    #[error(
        "{certain} values were recovered with certainty; {doubtful} doubtful ones {fate}; {lost} values or parts of the \
         store are lost"
    )]
    PartlyRecovered {
        /// Number of values that were recovered with certainty.
        certain: u64,
        /// Number of doubtful values.
        doubtful: u64,
        /// What was done with those.
        fate: &'static str,
        /// Number of known losses.
        lost: u64,
    },
    /// The report of a recovery cannot be written.
    #[error("cannot write the report {}", .file.display())]
    WriteReport {
        /// The file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The server is unreachable or unhealthy.
    #[error("{url} is not healthy: {reason}")]
    Unhealthy {
        /// URL of the server.
        url: String,
        /// Its error, or that of the connection.
        reason: String,
    },
    /// A node cannot be read.
    #[error(transparent)]
    Node(#[from] NodeReadError),
    /// Elements cannot be read.
    #[error(transparent)]
    Elements(#[from] crate::elements::ReadElementsError),
    /// Elements cannot be written.
    #[error(transparent)]
    WriteElements(#[from] crate::elements::WriteElementsError),
    /// The name of a node is invalid.
    #[error("invalid node path {path:?}")]
    NodeName {
        /// Path of the node.
        path: String,
        /// Reason.
        #[source]
        source: zarrd_client::PathError,
    },
    /// The directory of tokens cannot be opened.
    #[error("cannot open the access directory")]
    OpenAccess(#[from] zarrd_access::OpenError),
    /// The directory of tokens cannot be read.
    #[error("cannot read the access directory")]
    ReadAccess(#[from] Arc<zarrd_access::ReadError>),
    /// Tokens or keys were not changed.
    #[error("nothing was changed")]
    ChangeAccess(#[from] zarrd_access::ChangeError),
    /// The first administrator's token cannot be written.
    #[error("cannot write the token of the first administrator to {}; make another one with zarrd token create", path.display())]
    FirstToken {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The directory of tokens belongs to another user.
    #[error(
        "{} belongs to user {owner}, whose servers could not read new files of user {user}; run the command as user \
         {owner}, for example with `sudo -u '#{owner}'`",
        directory.display()
    )]
    OtherOwner {
        /// The directory.
        directory: PathBuf,
        /// The id of its owner.
        owner: u32,
        /// The id of the user who runs the command.
        user: u32,
    },
    /// The client of a server cannot be built.
    #[error("cannot connect to the server")]
    Client(#[source] zarrd_client::BuildError),
    /// A file cannot be read.
    #[error("cannot read {}", .file.display())]
    ReadFile {
        /// The file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The server did not append to the arrays of a group.
    #[error("nothing was appended")]
    Append(#[from] zarrd_client::NodeError),
    /// The server did not create a share link.
    #[error("cannot create the share link")]
    Share(#[from] zarrd_client::RemoteError),
    /// The expiry of a token cannot be represented.
    #[error("--expires is too far away")]
    ExpiryTooFar,
    /// No token has a name.
    #[error("no token is named {name:?}; `zarrd token list` has all names")]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// Several tokens have a name.
    #[error("{count} tokens are named {name:?}; revoke them by their ids, which `zarrd token list` has")]
    AmbiguousName {
        /// The name.
        name: String,
        /// The number of tokens.
        count: usize,
    },
    /// A token for a server was not stored or removed.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// The result cannot be written to stdout.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A signal stopped the command.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

impl Error {
    /// The exit code.
    pub(crate) fn exit_code(&self) -> Code {
        match self {
            Self::Config(ConfigError::DamagedStore { .. } | ConfigError::ServedDirectory { .. }) => Code::StoreUnusable,
            Self::Config(_) | Self::Certificate(_) | Self::CopyTargetNotEmpty { .. } | Self::ExpiryTooFar => {
                Code::Usage
            }
            Self::Open(
                OpenStoreError::Open { .. }
                | OpenStoreError::OpenForeign { .. }
                | OpenStoreError::NotFound { .. }
                | OpenStoreError::ForeignFiles { .. },
            ) => Code::StoreUnusable,
            Self::Open(OpenStoreError::InUse { .. }) | Self::DiskCache { source: CacheError::InUse { .. }, .. } => {
                Code::StoreInUse
            }
            Self::DiskCache { source: CacheError::TooSmall { .. }, .. } => Code::Usage,
            Self::DiskCache { .. } => Code::Failed,
            Self::CorruptValues { .. } | Self::UnreadableIndex { .. } | Self::PartlyRecovered { .. } => {
                Code::CorruptionFound
            }
            Self::Listen { .. } => Code::CannotListen,
            Self::Transfer(error) => transfer_exit_code(error),
            Self::Backup(error) => backup_exit_code(error),
            Self::CopyIncomplete { source, .. } => source.exit_code(),
            Self::Stopped(Stopped { signal }) => signal.exit_code(),
            Self::Open(OpenStoreError::Client { .. })
            | Self::Store(_)
            | Self::CopiedAccess(_)
            | Self::InterruptedOperations { .. }
            | Self::Compact(_)
            | Self::RequestLog(_)
            | Self::Serve(_)
            | Self::Runtime(_)
            | Self::ResolvePath(_)
            | Self::Signals(_)
            | Self::Node(_)
            | Self::Elements(_)
            | Self::WriteElements(_)
            | Self::NodeName { .. }
            | Self::OpenAccess(_)
            | Self::ReadAccess(_)
            | Self::ChangeAccess(_)
            | Self::FirstToken { .. }
            | Self::Client(_)
            | Self::ReadFile { .. }
            | Self::WriteReport { .. }
            | Self::Append(_)
            | Self::Share(_)
            | Self::OtherOwner { .. }
            | Self::NoSuchName { .. }
            | Self::AmbiguousName { .. }
            | Self::Login(_)
            | Self::Output(_)
            | Self::Unhealthy { .. } => Code::Failed,
        }
    }
}

fn transfer_exit_code(error: &TransferError) -> Code {
    match error {
        TransferError::NotADirectory { .. }
        | TransferError::NotEmpty { .. }
        | TransferError::TargetNotEmpty { .. }
        | TransferError::OverwriteRoot
        | TransferError::OwnDirectory { .. }
        | TransferError::InsideStore { .. }
        | TransferError::ContainsStore { .. } => Code::Usage,
        TransferError::Incomplete { corrupt: 1.., .. } | TransferError::Changing { .. } => Code::CorruptionFound,
        TransferError::UnsupportedNames { .. }
        | TransferError::NoKeys { .. }
        | TransferError::List(_)
        | TransferError::Incomplete { .. }
        | TransferError::Aborted { .. }
        | TransferError::Place { .. }
        | TransferError::Directory { .. } => Code::Failed,
    }
}

fn backup_exit_code(error: &BackupError) -> Code {
    match error {
        BackupError::NotBackups { .. }
        | BackupError::NoBackup { .. }
        | BackupError::NewerFormat { .. }
        | BackupError::OtherStore { .. }
        | BackupError::WithoutTokens { .. } => Code::Usage,
        BackupError::InUse { .. } => Code::StoreInUse,
        BackupError::Damaged { .. } | BackupError::Values { .. } => Code::CorruptionFound,
        BackupError::Vanished { .. } | BackupError::Store(_) | BackupError::Io { .. } => Code::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_has_its_own_exit_code() {
        let code = |failed, corrupt| Error::from(TransferError::Incomplete { failed, corrupt }).exit_code();
        assert_eq!((code(2, 1), code(2, 0)), (Code::CorruptionFound, Code::Failed));
        let source = Box::new(TransferError::Incomplete { failed: 1, corrupt: 1 }.into());
        let copy = Error::CopyIncomplete { location: Location::Memory, advice: "", source };
        assert_eq!(copy.exit_code(), Code::CorruptionFound);
    }
}
