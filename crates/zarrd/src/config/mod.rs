//! Configuration: flags take precedence over `ZARRD_*` variables, and these over `zarrd.toml` and the defaults. They
//! are resolved into one struct per command.

mod anonymous;
mod append;
mod backup;
mod disk_cache;
mod expiry;
mod file;
mod foreign;
mod location;
mod log_caps;
mod logins;
mod mount;
mod options;
mod prefix;
mod request_logs;
mod resolved;
mod scrub;
mod serve;
mod served_directory;
mod shares;
mod token_directory;
mod tokens;

use std::{io, path::PathBuf};

pub(crate) use anonymous::AnonymousRight;
pub(crate) use append::AppendConfig;
pub(crate) use backup::{BackupConfig, Doubtful, RecoverConfig, RestoreConfig};
pub(crate) use disk_cache::DiskCacheLocation;
pub(crate) use expiry::Expiry;
pub(crate) use file::ConfigFile;
pub(crate) use foreign::ForeignUrl;
pub(crate) use location::{Listen, Location};
pub(crate) use logins::{LoginError, Logins};
pub(crate) use mount::Mount;
pub(crate) use options::{
    AccessLogLevel, AccessOptions, AuditLogLevel, LogFormat, LogOptions, ServeOptions, StoreOptions, TransferOptions,
    WriteOptions,
};
pub(crate) use prefix::{ImportFrom, PrefixArg};
pub(crate) use resolved::{
    CheckConfig, CompactConfig, CopiedTokens, CopyConfig, Detail, Endpoint, ExportConfig, GetConfig, HealthConfig,
    IfKeysExist, ImportConfig, IncompleteCopy, LogConfig, NodeConfig, OnUnsupported, OutputFormat, ServerEndpoint,
    StatsConfig, WriteLimits,
};
pub(crate) use serve::{ServeConfig, TlsFiles};
pub(crate) use shares::ShareConfig;
pub(crate) use token_directory::{ACCESS, TokenDirectory};
pub(crate) use tokens::{TokenCommand, TokenConfig};

/// Errors of the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// An option of a query is invalid.
    #[error("invalid option")]
    Query(#[from] zarrd_wire::query::QueryError),
    /// The extension of a file names no format.
    #[error("{} does not end in .npy, .csv, .json, .png or .raw: name the format with --format", file.display())]
    Extension {
        /// Path of the file.
        file: PathBuf,
    },
    /// A file that the configuration names cannot be read.
    #[error("cannot read {}", file.display())]
    ReadNamed {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The configuration file cannot be read.
    #[error("cannot read the configuration file {}", file.display())]
    Read {
        /// Path of the file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The configuration file is not valid TOML, or has an invalid value.
    #[error("invalid configuration file {}", file.display())]
    Syntax {
        /// Path of the file.
        file: PathBuf,
        /// Position and reason.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// The configuration file has an unknown key.
    #[error("`{key}` in {} is not a setting; the settings are {known}", file.display())]
    UnknownKey {
        /// Path of the file.
        file: PathBuf,
        /// The unknown key.
        key: String,
        /// All known keys.
        known: String,
    },
    /// The argument of `serve` is not the location of a store.
    #[error("cannot serve {text:?}")]
    ServedLocation {
        /// The argument.
        text: String,
        /// Reason.
        #[source]
        source: location::LocationError,
    },
    /// The directory to serve cannot be read, or is none.
    #[error("cannot serve {}, which has to be a directory that can be read", path.display())]
    ServedDirectory {
        /// The path.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The directory to serve has parts of a store, but no complete one.
    #[error(
        "{} has a part of a store of zarrd ({part}) and no complete store, so it is served neither as a store nor as the files of other programs; restore zarrd.json from a backup, or name another directory",
        path.display()
    )]
    DamagedStore {
        /// The path.
        path: PathBuf,
        /// The entry by which it was recognized.
        part: String,
    },
    /// A path of a node is the path of a directory on this machine.
    #[error("{} is a directory of this machine, and {command} takes the path of a node; write: zarrd {command} --store dir:{}", path.display(), path.display())]
    NodeIsDirectory {
        /// The command.
        command: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// The rights of clients without a token are contradictory.
    #[error(transparent)]
    Anonymous(#[from] anonymous::AnonymousRightsError),
    /// The store has no directory in which tokens could be.
    #[error(
        "{store} has no directory for tokens; name one with --access DIR (ZARRD_ACCESS, or `access` in zarrd.toml), or \
         serve clients without a token with --anonymous"
    )]
    AccessRequired {
        /// The store.
        store: Location,
    },
    /// The source of an import has no name that could be a prefix.
    #[error("the source has no name that could be a prefix; name one, such as lab/exp1, or '' for the root")]
    NoPrefix,
    /// A grant of a token is invalid.
    #[error("--allow was given too often")]
    Grants(#[from] zarrd_access::TooManyGrants),
    /// The token for a server cannot be determined.
    #[error(transparent)]
    Login(#[from] LoginError),
    /// Only one of the two files for TLS is given.
    #[error("{given} needs {missing}: TLS needs a certificate and its private key")]
    IncompleteTls {
        /// The flag that is given.
        given: &'static str,
        /// The flag that is missing.
        missing: &'static str,
    },
    /// The command needs a persistent store.
    #[error("{command} needs a persistent store, and memory: keeps nothing; name a sled:DIR or redb:DIR")]
    NotPersistent {
        /// Name of the command.
        command: &'static str,
    },
    /// The command needs a store of its own.
    #[error("{command} does not work on {store}, which other programs write; name a sled:DIR or redb:DIR")]
    NotOwned {
        /// Name of the command.
        command: &'static str,
        /// The store.
        store: Location,
    },
    /// Two stores are mounted below one name.
    #[error("--mount names {name} twice")]
    DuplicateMount {
        /// The name.
        name: zarrd_store::MountName,
    },
    /// The memory limit is too small.
    #[error("--max-memory is {memory}; the minimum is {min}")]
    TooLittleMemory {
        /// The configured limit.
        memory: bytesize::ByteSize,
        /// The minimum.
        min: bytesize::ByteSize,
    },
    /// A log has a file but is off.
    #[error("{file_flag} needs {flag}, which is off by default")]
    LogFileWithoutLog {
        /// The flag of the file.
        file_flag: &'static str,
        /// The flag of the log.
        flag: &'static str,
    },
    /// Both logs have the same file.
    #[error("--access-log-file and --audit-log-file are both {}", file.display())]
    SameLogFile {
        /// The file.
        file: PathBuf,
    },
    /// The log filter is invalid.
    #[error("`{filter}` is not a log filter, such as info or zarrd_server=debug,warn")]
    LogFilter {
        /// The filter.
        filter: String,
        /// Reason.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The address to listen on cannot be converted into a URL.
    #[error("the address to listen on is not that of a server")]
    ListenUrl(#[from] zarrd_client::BaseUrlError),
}
