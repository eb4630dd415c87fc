//! The configuration of each command.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use access::Grants;
use array::EmptyChunks;
use bytesize::ByteSize;
use client::{BaseUrl, Dialect, NodePath, Token};
use server::{
    AccessPolicy, AnonymousAccess, ArrayOptions, Changes, DirectorySlot, Hosts, Limits, MetricsAccess,
    RequestLogOptions, Settings,
};
use store::Prefix;
use store_local::Access as StoreAccess;
use tracing_subscriber::{EnvFilter, filter::Targets};

use super::{
    AnonymousRight, ConfigError, ConfigFile, ImportFrom, Listen, Location, LogFormat, LogOptions, Mount, ServeOptions,
    StoreOptions, TokenDirectory, TransferOptions, WriteOptions, log_caps, logins, request_logs,
};
use crate::cli::{CompactArgs, CopyArgs, EndpointArgs, ExportArgs, HealthArgs, ImportArgs, NodeArgs, ServeArgs};

const DEFAULT_LISTEN: Listen =
    Listen(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000));
/// Minimum of `--max-memory`, in bytes: with less, hardly any chunk could be decoded.
const MIN_MEMORY_BYTES: u64 = 16 << 20;
const DEFAULT_JOBS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

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

/// Configuration of `serve`.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    /// Location of the store.
    pub(crate) store: Location,
    /// The stores that are mounted below names.
    pub(crate) mounts: Vec<Mount>,
    /// Access mode of the store.
    pub(crate) access: StoreAccess,
    /// Directory of tokens.
    pub(crate) tokens: TokenDirectory,
    /// Limits of the store if it is written to.
    pub(crate) write: WriteLimits,
    /// Address to listen on.
    pub(crate) listen: Listen,
    /// Files for TLS; `None` for plain HTTP.
    pub(crate) tls: Option<TlsFiles>,
    /// Access control and limits of the server.
    pub(crate) settings: Settings,
    /// The access log and the audit log.
    pub(crate) logs: RequestLogOptions,
}

/// Files for TLS, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// Path of the certificate chain.
    pub(crate) cert: PathBuf,
    /// Path of its private key.
    pub(crate) key: PathBuf,
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

impl ServeConfig {
    /// Resolves the options.
    pub(crate) fn new(args: ServeArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let ServeArgs { store, access, write, serve } = args;
        let listen = listen(serve.listen, file);
        let tls = TlsFiles::new(&serve, &file.serve)?;
        let proxies = override_list(serve.behind_proxy.clone(), &file.serve.behind_proxy);
        let is_private = listen.0.ip().to_canonical().is_loopback() && proxies.is_empty();
        let tokens = TokenDirectory::new(access, store.clone(), file);
        let access = access_policy(&serve, file, is_private)?;
        let store = file.location(store);
        let mounts = mounts(&serve, &file.serve)?;
        if tokens == TokenDirectory::None && access.anonymous == AnonymousAccess::Granted(Grants::none()) {
            return Err(ConfigError::AccessRequired { store });
        }
        let logs = request_logs::resolve(&serve, &file.serve)?;
        let limits = limits(&serve, &file.serve);
        let arrays = arrays(&serve, &file.serve)?;
        let read_only = serve.read_only.or(file.serve.read_only).unwrap_or_default();
        let (changes, store_access) = match read_only {
            true => (Changes::Rejected, StoreAccess::ReadOnly),
            // Changes of a store that cannot be changed are answered by the server.
            false if store.is_foreign() => (Changes::Accepted, StoreAccess::ReadOnly),
            false => (Changes::Accepted, StoreAccess::ReadWrite),
        };
        let origins = override_list(serve.cors_origin, &file.serve.cors_origin);
        let hosts = Hosts::for_address(listen.0, override_list(serve.allow_host, &file.serve.allow_host));
        let settings = Settings { access, changes, origins, hosts, proxies, limits, arrays };
        let write = WriteLimits::new(&write, file);
        Ok(Self { store, mounts, access: store_access, tokens, write, listen, tls, settings, logs })
    }
}

impl TlsFiles {
    /// Resolves the options; the two files may be given in different places.
    fn new(flags: &ServeOptions, file: &ServeOptions) -> Result<Option<Self>, ConfigError> {
        let cert = flags.tls_cert.as_ref().or(file.tls_cert.as_ref());
        let key = flags.tls_key.as_ref().or(file.tls_key.as_ref());
        match (cert, key) {
            (Some(cert), Some(key)) => Ok(Some(Self { cert: cert.clone(), key: key.clone() })),
            (Some(_), None) => Err(ConfigError::IncompleteTls { given: "--tls-cert", missing: "--tls-key" }),
            (None, Some(_)) => Err(ConfigError::IncompleteTls { given: "--tls-key", missing: "--tls-cert" }),
            (None, None) => Ok(None),
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
        Ok(Self {
            to,
            from_token,
            write: WriteLimits::new(&args.write, file),
            prefix: args.prefix.0,
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
        Ok(Self {
            from: readable_endpoint(args.endpoint, file, "export")?,
            prefix: args.prefix.0,
            to: args.directory,
            jobs: jobs(&args.transfer, file),
            on_unsupported: OnUnsupported::new(args.skip_invalid),
        })
    }
}

impl NodeConfig {
    /// Resolves the options.
    pub(crate) fn new(args: NodeArgs, file: &ConfigFile, command: &'static str) -> Result<Self, ConfigError> {
        Ok(Self {
            endpoint: readable_endpoint(args.endpoint, file, command)?,
            path: args.path,
            dialect: args.dialect,
            format: OutputFormat::new(args.json),
        })
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
        Ok(Self { from, to, write, jobs: jobs(&args.transfer, file) })
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
        }
    }
}

impl OnUnsupported {
    fn new(skip_invalid: bool) -> Self {
        if skip_invalid { Self::Skip } else { Self::Fail }
    }
}

fn limits(flags: &ServeOptions, file: &ServeOptions) -> Limits {
    let default = Limits::default();
    let time = |flag: Option<humantime::Duration>, file, default| flag.or(file).map_or(default, Duration::from);
    Limits {
        value: size(flags.max_body, file.max_body, default.value),
        selection: size(flags.max_selection, file.max_selection, default.selection),
        text_selection: size(flags.max_text_selection, file.max_text_selection, default.text_selection),
        read_request: default.read_request,
        connections: flags.max_connections.or(file.max_connections).map_or(default.connections, NonZeroUsize::get),
        header_timeout: time(flags.header_timeout, file.header_timeout, default.header_timeout),
        upload_timeout: time(flags.upload_timeout, file.upload_timeout, default.upload_timeout),
        download_timeout: time(flags.download_timeout, file.download_timeout, default.download_timeout),
        min_rate: flags.min_rate.or(file.min_rate).map_or(default.min_rate, |rate| NonZeroU64::new(rate.as_u64())),
        stop_timeout: time(flags.shutdown_timeout, file.shutdown_timeout, default.stop_timeout),
    }
}

/// One response is assembled in at most an eighth of the memory, so that several can be assembled concurrently.
fn arrays(flags: &ServeOptions, file: &ServeOptions) -> Result<ArrayOptions, ConfigError> {
    let default = ArrayOptions::default();
    let memory = size(flags.max_memory, file.max_memory, default.max_memory);
    if memory < MIN_MEMORY_BYTES {
        return Err(ConfigError::TooLittleMemory { memory: ByteSize(memory), min: ByteSize(MIN_MEMORY_BYTES) });
    }
    Ok(ArrayOptions {
        max_memory: memory,
        cache_capacity: size(flags.chunk_cache, file.chunk_cache, default.cache_capacity),
        max_chunks: flags.max_chunks.or(file.max_chunks).map_or(default.max_chunks, NonZeroU64::get),
        slab_memory: default.slab_memory.min(memory / 8),
        max_work: size(flags.max_work, file.max_work, default.max_work),
        empty_chunks: match flags.write_empty_chunks.or(file.write_empty_chunks) {
            Some(true) => EmptyChunks::Store,
            Some(false) => EmptyChunks::Omit,
            None => default.empty_chunks,
        },
        ..default
    })
}

fn size(flag: Option<ByteSize>, file: Option<ByteSize>, default: u64) -> u64 {
    flag.or(file).map_or(default, |size| size.as_u64())
}

fn listen(flag: Option<Listen>, file: &ConfigFile) -> Listen {
    flag.or(file.serve.listen).unwrap_or(DEFAULT_LISTEN)
}

/// The access policy, without the directory of tokens. A server that only users of its machine can reach is open until
/// the first token is made.
fn access_policy(serve: &ServeOptions, file: &ConfigFile, is_private: bool) -> Result<AccessPolicy, ConfigError> {
    let rights = override_list(serve.anonymous.clone(), &file.serve.anonymous);
    let anonymous = match AnonymousRight::combine(rights)? {
        Some(grants) => AnonymousAccess::Granted(grants),
        None if is_private => AnonymousAccess::UntilFirstToken,
        None => AnonymousAccess::Granted(Grants::none()),
    };
    let metrics = match serve.public_metrics.or(file.serve.public_metrics).unwrap_or_default() {
        true => MetricsAccess::Public,
        false => MetricsAccess::Readers,
    };
    Ok(AccessPolicy { anonymous, directory: DirectorySlot::default(), metrics })
}

/// The mounts, each with a name of its own.
fn mounts(flags: &ServeOptions, file: &ServeOptions) -> Result<Vec<Mount>, ConfigError> {
    let mut mounts = override_list(flags.mount.clone(), &file.mount);
    mounts.sort_by(|one, other| one.name.cmp(&other.name));
    let same = mounts.windows(2).find_map(|pair| match pair {
        [one, other] if one.name == other.name => Some(one.name.clone()),
        _ => None,
    });
    same.map_or(Ok(mounts), |name| Err(ConfigError::DuplicateMount { name }))
}

fn jobs(flags: &TransferOptions, file: &ConfigFile) -> NonZeroUsize {
    flags.jobs.or(file.transfer.jobs).unwrap_or(DEFAULT_JOBS)
}

/// A store for a command that only reads it, which other programs may write.
fn readable_endpoint(args: EndpointArgs, file: &ConfigFile, command: &'static str) -> Result<Endpoint, ConfigError> {
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

/// A location that is not in memory, where nothing is found by a command.
fn not_in_memory(location: Location, command: &'static str) -> Result<Location, ConfigError> {
    match location {
        Location::Memory => Err(ConfigError::NotPersistent { command }),
        location => Ok(location),
    }
}

/// A location of a persistent store of zarrd's own.
fn persistent(location: Location, command: &'static str) -> Result<Location, ConfigError> {
    match not_in_memory(location, command)? {
        store if store.is_foreign() => Err(ConfigError::NotOwned { command, store }),
        location => Ok(location),
    }
}

/// The list of the flag, or else that of the file: lists are not joined.
fn override_list<T: Clone>(flag: Vec<T>, file: &[T]) -> Vec<T> {
    if flag.is_empty() { file.to_vec() } else { flag }
}
