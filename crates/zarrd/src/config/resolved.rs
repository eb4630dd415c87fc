//! The configuration of each command.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::{Path, PathBuf},
    time::Duration,
};

use bytesize::ByteSize;
use tracing_subscriber::{EnvFilter, filter::Targets};
use zarrd_client::{BaseUrl, Dialect, Format, NodePath, Token};
use zarrd_store::Prefix;
use zarrd_wire::query::ElementsQuery;

use super::{
    ConfigError, ConfigFile, ImportFrom, Listen, Location, LogFormat, LogOptions, PrefixArg, StoreOptions,
    TransferOptions, WriteOptions, log_caps, logins,
};
use crate::cli::{
    CompactArgs, CopyArgs, EndpointArgs, ExportArgs, GetArgs, HealthArgs, ImportArgs, NodeArgs, StatsArgs,
};

const DEFAULT_LISTEN: Listen =
    Listen(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000));
const DEFAULT_JOBS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
/// Number of values that are copied concurrently from a running server, whose other clients would wait for more: on two
/// cores their slowest requests take 1.1 to 1.4 times as long beside one job, 1.7 beside two and 4 to 5 beside sixteen.
const DEFAULT_SERVER_JOBS: NonZeroUsize = NonZeroUsize::new(1).unwrap();

/// Configuration of the log.
#[derive(Debug)]
pub(crate) struct LogConfig {
    /// Format of the lines.
    pub(crate) format: LogFormat,
    /// Filter of the events.
    pub(crate) filter: EnvFilter,
    /// The most detailed levels of other crates.
    pub(crate) caps: Targets,
}

/// What an import does if there are keys below its prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfKeysExist {
    /// It fails.
    Fail,
    /// It adds to them.
    Merge,
    /// It adds to them, and leaves values that an interrupted import has set.
    Resume,
    /// It replaces all of them.
    Overwrite,
}

/// Configuration of `import`.
#[derive(Debug)]
pub(crate) struct ImportConfig {
    /// The store to import into.
    pub(crate) to: Endpoint,
    /// Limits of a local store.
    pub(crate) write: WriteLimits,
    /// The prefix to import into.
    pub(crate) prefix: Prefix,
    /// The files and directories of zarrd itself, which are not imported.
    pub(crate) private: Vec<PathBuf>,
    /// What happens to keys that are there.
    pub(crate) if_exists: IfKeysExist,
    /// Source of the keys.
    pub(crate) from: ImportFrom,
    /// The token for the server that is the source, if any.
    pub(crate) from_token: Option<Token>,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
    /// Maximum number of keys in the listing of another server.
    pub(crate) max_keys: NonZeroU64,
    /// Reaction to names that are not valid keys.
    pub(crate) on_unsupported: OnUnsupported,
}

/// Configuration of `export`.
#[derive(Debug)]
pub(crate) struct ExportConfig {
    /// The store to export from.
    pub(crate) from: Endpoint,
    /// The prefix to export.
    pub(crate) prefix: Prefix,
    /// The directory to create.
    pub(crate) to: PathBuf,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
    /// Reaction to keys that cannot become files.
    pub(crate) on_unsupported: OnUnsupported,
}

/// Configuration of the commands that read a node: `ls`, `tree` and `info`.
#[derive(Debug)]
pub(crate) struct NodeConfig {
    /// The store with the node.
    pub(crate) endpoint: Endpoint,
    /// Path of the node.
    pub(crate) path: NodePath,
    /// Dialect of the node, if restricted to one.
    pub(crate) dialect: Option<Dialect>,
    /// Format of the output.
    pub(crate) format: OutputFormat,
}

/// Configuration of `get`.
#[derive(Debug)]
pub(crate) struct GetConfig {
    /// The store with the array.
    pub(crate) endpoint: Endpoint,
    /// Path of the array.
    pub(crate) path: NodePath,
    /// The elements, and what is computed of them.
    pub(crate) query: ElementsQuery,
    /// Format of the elements.
    pub(crate) format: Format,
    /// File to write; `None` for stdout.
    pub(crate) output: Option<PathBuf>,
}

/// Configuration of `stats`.
#[derive(Debug)]
pub(crate) struct StatsConfig {
    /// The store with the array.
    pub(crate) endpoint: Endpoint,
    /// Path of the array.
    pub(crate) path: NodePath,
    /// The elements, and their statistics.
    pub(crate) query: ElementsQuery,
    /// Format of the output.
    pub(crate) format: OutputFormat,
}

/// Format of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputFormat {
    /// Text for people.
    Text,
    /// JSON, one object per line.
    Json,
}

/// Level of detail of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// Kind, shape and data type.
    Short,
    /// Dialect, chunks and codecs in addition.
    Long,
}

/// Configuration of `check`.
#[derive(Debug)]
pub(crate) struct CheckConfig {
    /// Location of the store.
    pub(crate) store: Location,
}

/// Configuration of `compact`.
#[derive(Debug)]
pub(crate) struct CompactConfig {
    /// Location of the store.
    pub(crate) store: Location,
    /// Limits of the store.
    pub(crate) write: WriteLimits,
}

/// Configuration of `copy`.
#[derive(Debug)]
pub(crate) struct CopyConfig {
    /// The store to copy from.
    pub(crate) from: Location,
    /// The store to create.
    pub(crate) to: Location,
    /// Limits of the new store.
    pub(crate) write: WriteLimits,
    /// Number of values that are copied concurrently.
    pub(crate) jobs: NonZeroUsize,
    /// The tokens that are copied with it.
    pub(crate) tokens: CopiedTokens,
    /// What becomes of a copy that was interrupted.
    pub(crate) incomplete: IncompleteCopy,
}

/// What `copy` does with an incomplete copy at its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IncompleteCopy {
    /// It fails, as for each target that is not empty.
    Reject,
    /// It continues a copy of the same state of the same store.
    Resume,
}

/// The tokens that a copy of a store gets from the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopiedTokens {
    /// All, with the keys that sign them.
    All,
    /// None: whoever reaches a server on the copy may do everything, until it has tokens of its own.
    None,
}

/// Configuration of `health`.
#[derive(Debug)]
pub(crate) struct HealthConfig {
    /// URL of the server.
    pub(crate) url: BaseUrl,
    /// Path of a certificate to trust.
    pub(crate) certificate: Option<PathBuf>,
    /// Time limit for its response.
    pub(crate) timeout: Duration,
}

/// Limits of a store that is written to; `None` for the default of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteLimits {
    /// Memory for commits that are not in the index yet, in bytes.
    pub(crate) commit_buffer: Option<u64>,
    /// Maximum size of replaced values that are retained for readers, in bytes.
    pub(crate) retained: Option<u64>,
    /// The same for snapshots of clients.
    pub(crate) snapshots: Option<u64>,
    /// The time from one scrub to the next; `None` for none.
    pub(crate) scrub: Option<Duration>,
}

/// A store to work on.
#[derive(Clone, Debug)]
pub(crate) enum Endpoint {
    /// A local store, which is opened exclusively.
    Local(Location),
    /// The store of a running server.
    Server(ServerEndpoint),
}

/// A running server.
#[derive(Clone, Debug)]
pub(crate) struct ServerEndpoint {
    /// Its URL.
    pub(crate) base: BaseUrl,
    /// The token for it, if any.
    pub(crate) token: Option<Token>,
}

/// Reaction to names that cannot be transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnUnsupported {
    /// Transfer nothing.
    Fail,
    /// Transfer the others.
    Skip,
}

impl LogConfig {
    /// Resolves the options; `default` is the default filter of the command.
    pub(crate) fn new(flags: LogOptions, file: &ConfigFile, default: &str) -> Result<Self, ConfigError> {
        let filter = flags
            .log_level
            .or_else(|| std::env::var(EnvFilter::DEFAULT_ENV).ok())
            .or_else(|| file.log.log_level.clone())
            .unwrap_or_else(|| default.to_owned());
        let format = flags.log.or(file.log.log).unwrap_or_default();
        match EnvFilter::try_new(&filter) {
            Ok(parsed) => Ok(Self { format, caps: log_caps::caps(&parsed, &filter), filter: parsed }),
            Err(source) => Err(ConfigError::LogFilter { filter, source }),
        }
    }
}

impl ImportConfig {
    /// Resolves the options.
    pub(crate) fn new(args: ImportArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let to = writable_endpoint(args.endpoint, file, "import")?;
        // The token of the environment is for one server.
        let from_token = match (&args.from, &to) {
            (ImportFrom::Directory(_) | ImportFrom::Foreign(_), _) => None,
            (ImportFrom::Remote(remote), Endpoint::Local(_)) => logins::token(&remote.base)?,
            (ImportFrom::Remote(remote), Endpoint::Server(_)) => logins::stored_token(&remote.base)?,
        };
        let store = match &to {
            Endpoint::Local(location) => location.directory().map(Path::to_path_buf),
            Endpoint::Server(_) => None,
        };
        let private = store.into_iter().chain(file.access.access.clone()).chain(file.path.clone()).collect();
        Ok(Self {
            to,
            private,
            from_token,
            write: WriteLimits::new(&args.write, file),
            prefix: match args.prefix {
                Some(PrefixArg(prefix)) => prefix,
                None => args.from.default_prefix().ok_or(ConfigError::NoPrefix)?,
            },
            if_exists: match (args.overwrite, args.merge, args.resume) {
                (true, _, _) => IfKeysExist::Overwrite,
                (false, true, _) => IfKeysExist::Merge,
                (false, false, true) => IfKeysExist::Resume,
                (false, false, false) => IfKeysExist::Fail,
            },
            from: args.from,
            jobs: jobs(&args.transfer, file),
            max_keys: args.max_keys,
            on_unsupported: OnUnsupported::new(args.skip_invalid),
        })
    }
}

impl ExportConfig {
    /// Resolves the options.
    pub(crate) fn new(args: ExportArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let from = readable_endpoint(args.endpoint, file, "export")?;
        Ok(Self {
            jobs: jobs_from(&from, &args.transfer, file),
            from,
            prefix: args.prefix.0,
            to: args.directory,
            on_unsupported: OnUnsupported::new(args.skip_invalid),
        })
    }
}

impl NodeConfig {
    /// Resolves the options.
    pub(crate) fn new(args: NodeArgs, file: &ConfigFile, command: &'static str) -> Result<Self, ConfigError> {
        let endpoint = readable_endpoint(args.endpoint, file, command)?;
        check_no_directory(&endpoint, &args.path, command)?;
        Ok(Self { endpoint, path: args.path, dialect: args.dialect, format: OutputFormat::new(args.json) })
    }
}

impl GetConfig {
    /// Resolves the options.
    pub(crate) fn new(args: GetArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let query = args.query()?;
        let format = match (args.format, &args.output) {
            (Some(format), _) => format,
            (None, None) => Format::Json,
            (None, Some(file)) => {
                let format = file.extension().and_then(|extension| extension.to_str()?.parse().ok());
                format.ok_or_else(|| ConfigError::Extension { file: file.clone() })?
            }
        };
        let endpoint = readable_endpoint(args.selection.endpoint, file, "get")?;
        check_no_directory(&endpoint, &args.selection.path, "get")?;
        Ok(Self { endpoint, path: args.selection.path, query, format, output: args.output })
    }
}

impl StatsConfig {
    /// Resolves the options.
    pub(crate) fn new(args: StatsArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let query = args.query()?;
        let endpoint = readable_endpoint(args.selection.endpoint, file, "stats")?;
        check_no_directory(&endpoint, &args.selection.path, "stats")?;
        Ok(Self { endpoint, path: args.selection.path, query, format: OutputFormat::new(args.json) })
    }
}

impl Detail {
    /// Resolves the flag `--long`.
    pub(crate) fn new(long: bool) -> Self {
        if long { Self::Long } else { Self::Short }
    }
}

impl CheckConfig {
    /// Resolves the options.
    pub(crate) fn new(store: StoreOptions, file: &ConfigFile) -> Result<Self, ConfigError> {
        Ok(Self { store: not_in_memory(file.location(store), "check")? })
    }
}

impl CompactConfig {
    /// Resolves the options.
    pub(crate) fn new(args: CompactArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let store = args.store.unwrap_or_else(|| file.location(StoreOptions::default()));
        Ok(Self { store: persistent(store, "compact")?, write: WriteLimits::new(&args.write, file) })
    }
}

impl CopyConfig {
    /// Resolves the options.
    pub(crate) fn new(args: CopyArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let (from, to) = (persistent(args.from, "copy")?, persistent(args.to, "copy")?);
        let write = WriteLimits::new(&args.write, file);
        let tokens = if args.without_access { CopiedTokens::None } else { CopiedTokens::All };
        let incomplete = if args.resume { IncompleteCopy::Resume } else { IncompleteCopy::Reject };
        Ok(Self { from, to, write, jobs: jobs(&args.transfer, file), tokens, incomplete })
    }
}

impl HealthConfig {
    /// Resolves the options.
    pub(crate) fn new(args: HealthArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let certificate = args.tls_cert.or_else(|| file.serve.tls_cert.clone());
        let scheme = if certificate.is_some() { "https" } else { "http" };
        let url = match args.url {
            Some(url) => url,
            None => BaseUrl::parse(&format!("{scheme}://{}", listen(args.listen, file).reachable()))?,
        };
        Ok(Self { url, certificate, timeout: args.timeout.into() })
    }
}

impl OutputFormat {
    /// Resolves the flag `--json`.
    pub(super) fn new(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

impl WriteLimits {
    /// Resolves the options.
    pub(crate) fn new(flags: &WriteOptions, file: &ConfigFile) -> Self {
        let bytes = |flag: Option<ByteSize>, file| flag.or(file).map(|size: ByteSize| size.as_u64());
        Self {
            commit_buffer: bytes(flags.commit_buffer, file.write.commit_buffer),
            retained: bytes(flags.max_retained, file.write.max_retained),
            snapshots: bytes(flags.snapshot_space, file.write.snapshot_space),
            scrub: None,
        }
    }
}

impl OnUnsupported {
    fn new(skip_invalid: bool) -> Self {
        if skip_invalid { Self::Skip } else { Self::Fail }
    }
}

pub(super) fn listen(flag: Option<Listen>, file: &ConfigFile) -> Listen {
    flag.or(file.serve.listen).unwrap_or(DEFAULT_LISTEN)
}

pub(super) fn jobs(flags: &TransferOptions, file: &ConfigFile) -> NonZeroUsize {
    flags.jobs.or(file.transfer.jobs).unwrap_or(DEFAULT_JOBS)
}

/// The jobs of a command that reads everything from an endpoint.
pub(super) fn jobs_from(endpoint: &Endpoint, flags: &TransferOptions, file: &ConfigFile) -> NonZeroUsize {
    let default = match endpoint {
        Endpoint::Local(_) => DEFAULT_JOBS,
        Endpoint::Server(_) => DEFAULT_SERVER_JOBS,
    };
    flags.jobs.or(file.transfer.jobs).unwrap_or(default)
}

/// A store for a command that only reads it, which other programs may write.
pub(super) fn readable_endpoint(
    args: EndpointArgs,
    file: &ConfigFile,
    command: &'static str,
) -> Result<Endpoint, ConfigError> {
    match args.server {
        Some(base) => Ok(Endpoint::Server(ServerEndpoint { token: logins::token(&base)?, base })),
        None => not_in_memory(file.location(args.store), command).map(Endpoint::Local),
    }
}

/// A store for a command that changes it.
fn writable_endpoint(args: EndpointArgs, file: &ConfigFile, command: &'static str) -> Result<Endpoint, ConfigError> {
    match readable_endpoint(args, file, command)? {
        Endpoint::Local(location) => persistent(location, command).map(Endpoint::Local),
        server @ Endpoint::Server(_) => Ok(server),
    }
}

/// Fails if there is no store, and the path of a node is that of a directory: its files are meant.
fn check_no_directory(endpoint: &Endpoint, path: &NodePath, command: &'static str) -> Result<(), ConfigError> {
    let Endpoint::Local(Location::Sled(store) | Location::Redb(store)) = endpoint else { return Ok(()) };
    let relative = Path::new(path.relative());
    if relative.as_os_str().is_empty() || store.exists() {
        return Ok(());
    }
    let directory = [relative.to_owned(), Path::new("/").join(relative)].into_iter().find(|path| path.is_dir());
    directory.map_or(Ok(()), |path| Err(ConfigError::NodeIsDirectory { command, path }))
}

/// A location that is not in memory, where nothing is found by a command.
fn not_in_memory(location: Location, command: &'static str) -> Result<Location, ConfigError> {
    match location {
        Location::Memory => Err(ConfigError::NotPersistent { command }),
        location => Ok(location),
    }
}

/// A location of a persistent store of zarrd's own.
pub(super) fn persistent(location: Location, command: &'static str) -> Result<Location, ConfigError> {
    match not_in_memory(location, command)? {
        store if store.is_foreign() => Err(ConfigError::NotOwned { command, store }),
        location => Ok(location),
    }
}
