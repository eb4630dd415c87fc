//! What each command runs with.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use array::EmptyChunks;
use bytesize::ByteSize;
use client::{BaseUrl, Dialect, NodePath};
use server::{Access, ArrayOptions, Changes, Hosts, Limits, Settings};
use store::Prefix;
use store_local::Access as StoreAccess;
use tracing_subscriber::EnvFilter;

use super::{
    Anonymous, ConfigError, File, ImportFrom, Listen, Location, LogFormat, LogOptions, ServeOptions, StoreOptions,
    TransferOptions, WriteOptions,
};
use crate::cli::{CompactArgs, CopyArgs, ExportArgs, HealthArgs, ImportArgs, LookArgs, ThroughArgs};

const DEFAULT_LISTEN: Listen =
    Listen(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000));
const DEFAULT_DIRECTORY: &str = "./zarrd-data";
/// With less, hardly any chunk could be decoded.
const LEAST_MEMORY: u64 = 16 << 20;
const DEFAULT_JOBS: NonZeroUsize = NonZeroUsize::new(16).unwrap();

/// How to log.
#[derive(Debug)]
pub(crate) struct LogConfig {
    /// How lines are written.
    pub(crate) format: LogFormat,
    /// Which are written.
    pub(crate) filter: EnvFilter,
}

/// How to serve.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    /// The store.
    pub(crate) store: Location,
    /// The access to it.
    pub(crate) access: StoreAccess,
    /// The limits of what it may take where it is written to.
    pub(crate) write: WriteLimits,
    /// The address.
    pub(crate) listen: Listen,
    /// Who may do what, and how much of it.
    pub(crate) settings: Settings,
}

/// How to import.
#[derive(Debug)]
pub(crate) struct ImportConfig {
    /// Where the keys go.
    pub(crate) to: Place,
    /// The limits of what a store of this machine may take.
    pub(crate) write: WriteLimits,
    /// Below which prefix.
    pub(crate) prefix: Prefix,
    /// Where they come from.
    pub(crate) from: ImportFrom,
    /// How many at the same time.
    pub(crate) jobs: NonZeroUsize,
    /// The most keys that another server may list.
    pub(crate) max_keys: NonZeroU64,
    /// What to do about names that are no keys.
    pub(crate) refused: OnRefused,
}

/// How to export.
#[derive(Debug)]
pub(crate) struct ExportConfig {
    /// Where the keys come from.
    pub(crate) from: Place,
    /// Below which prefix.
    pub(crate) prefix: Prefix,
    /// Where the files go.
    pub(crate) to: PathBuf,
    /// How many at the same time.
    pub(crate) jobs: NonZeroUsize,
    /// What to do about keys that cannot be files.
    pub(crate) refused: OnRefused,
}

/// What to look at.
#[derive(Debug)]
pub(crate) struct LookConfig {
    /// Where the hierarchy is.
    pub(crate) place: Place,
    /// The node.
    pub(crate) path: NodePath,
    /// Of which dialect, if only that is meant.
    pub(crate) dialect: Option<Dialect>,
    /// How it is told.
    pub(crate) form: OutputForm,
}

/// How something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutputForm {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// How much is told of each node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What it is.
    Short,
    /// How it is stored as well.
    Long,
}

/// What to check.
#[derive(Debug)]
pub(crate) struct CheckConfig {
    /// The store.
    pub(crate) store: Location,
}

/// The store to compact.
#[derive(Debug)]
pub(crate) struct CompactConfig {
    /// The store.
    pub(crate) store: Location,
    /// The limits of what it may take.
    pub(crate) write: WriteLimits,
}

/// What to copy.
#[derive(Debug)]
pub(crate) struct CopyConfig {
    /// The store that is read.
    pub(crate) from: Location,
    /// The store that is made.
    pub(crate) to: Location,
    /// The limits of what it may take.
    pub(crate) write: WriteLimits,
    /// How many values at the same time.
    pub(crate) jobs: NonZeroUsize,
}

/// Whom to ask how it is.
#[derive(Debug)]
pub(crate) struct HealthConfig {
    /// The server.
    pub(crate) url: BaseUrl,
    /// How long it may take to answer.
    pub(crate) timeout: Duration,
}

/// The limits of what a store that is written to may take; `None` is what the store itself finds right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WriteLimits {
    /// The memory for commits that only its log has, in bytes.
    pub(crate) commit_buffer: Option<u64>,
    /// The most bytes of values that are retained for readers.
    pub(crate) retained: Option<u64>,
}

/// A store to work on.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// One of this machine that nobody else has open.
    Local(Location),
    /// That of a running server.
    Server(BaseUrl),
}

/// What to do about names that cannot be moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OnRefused {
    /// Move nothing.
    Stop,
    /// Move the others.
    Skip,
}

impl LogConfig {
    /// Resolves the layers; `default` is the filter of the command.
    pub(crate) fn new(flags: LogOptions, file: &File, default: &str) -> Result<Self, ConfigError> {
        let filter = flags
            .log_level
            .or_else(|| std::env::var(EnvFilter::DEFAULT_ENV).ok())
            .or_else(|| file.log.log_level.clone())
            .unwrap_or_else(|| default.to_owned());
        let format = flags.log.or(file.log.log).unwrap_or_default();
        match EnvFilter::try_new(&filter) {
            Ok(filter) => Ok(Self { format, filter }),
            Err(source) => Err(ConfigError::LogFilter { filter, source }),
        }
    }
}

impl ServeConfig {
    /// Resolves the layers. An address that others may reach needs a word about what they may do.
    pub(crate) fn new(
        store: StoreOptions,
        write: &WriteOptions,
        serve: ServeOptions,
        file: &File,
    ) -> Result<Self, ConfigError> {
        let listen = listen(serve.listen, file);
        let access = match serve.anonymous.or(file.serve.anonymous) {
            Some(Anonymous::Read) => Access::Read,
            Some(Anonymous::Write) => Access::Write,
            None if listen.0.ip().to_canonical().is_loopback() => Access::Write,
            None => return Err(ConfigError::AnonymousUnsaid { listen }),
        };
        let limits = limits(&serve, &file.serve);
        let arrays = arrays(&serve, &file.serve)?;
        let read_only = serve.read_only.or(file.serve.read_only).unwrap_or_default();
        let (changes, store_access) = match read_only {
            true => (Changes::Rejected, StoreAccess::ReadOnly),
            false => (Changes::Accepted, StoreAccess::ReadWrite),
        };
        let origins = first_given(serve.cors_origin, &file.serve.cors_origin);
        let hosts = Hosts::for_address(listen.0, first_given(serve.allow_host, &file.serve.allow_host));
        let proxies = first_given(serve.behind_proxy, &file.serve.behind_proxy);
        let settings = Settings { access, changes, origins, hosts, proxies, limits, arrays };
        let write = WriteLimits::new(write, file);
        Ok(Self { store: location(store, file), access: store_access, write, listen, settings })
    }
}

impl ImportConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: ImportArgs, file: &File) -> Result<Self, ConfigError> {
        Ok(Self {
            to: place(args.through, file, "import")?,
            write: WriteLimits::new(&args.write, file),
            prefix: args.prefix.0,
            from: args.from,
            jobs: jobs(&args.transfer, file),
            max_keys: args.max_keys,
            refused: OnRefused::new(args.skip_invalid),
        })
    }
}

impl ExportConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: ExportArgs, file: &File) -> Result<Self, ConfigError> {
        Ok(Self {
            from: place(args.through, file, "export")?,
            prefix: args.prefix.0,
            to: args.directory,
            jobs: jobs(&args.transfer, file),
            refused: OnRefused::new(args.skip_invalid),
        })
    }
}

impl LookConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: LookArgs, file: &File, command: &'static str) -> Result<Self, ConfigError> {
        Ok(Self {
            place: place(args.through, file, command)?,
            path: args.path,
            dialect: args.dialect,
            form: if args.json { OutputForm::Json } else { OutputForm::Text },
        })
    }
}

impl Detail {
    /// What the flag says.
    pub(crate) fn new(long: bool) -> Self {
        if long { Self::Long } else { Self::Short }
    }
}

impl CheckConfig {
    /// Resolves the layers.
    pub(crate) fn new(store: StoreOptions, file: &File) -> Result<Self, ConfigError> {
        Ok(Self { store: kept(location(store, file), "check")? })
    }
}

impl CompactConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: CompactArgs, file: &File) -> Result<Self, ConfigError> {
        let store = args.store.unwrap_or_else(|| location(StoreOptions::default(), file));
        Ok(Self { store: kept(store, "compact")?, write: WriteLimits::new(&args.write, file) })
    }
}

impl CopyConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: CopyArgs, file: &File) -> Result<Self, ConfigError> {
        let (from, to) = (kept(args.from, "copy")?, kept(args.to, "copy")?);
        let write = WriteLimits::new(&args.write, file);
        Ok(Self { from, to, write, jobs: jobs(&args.transfer, file) })
    }
}

impl HealthConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: HealthArgs, file: &File) -> Result<Self, ConfigError> {
        let url = match args.url {
            Some(url) => url,
            None => BaseUrl::parse(&format!("http://{}", listen(args.listen, file).reachable()))?,
        };
        Ok(Self { url, timeout: args.timeout.into() })
    }
}

impl WriteLimits {
    /// Resolves the layers.
    pub(crate) fn new(flags: &WriteOptions, file: &File) -> Self {
        let bytes = |flag: Option<ByteSize>, file| flag.or(file).map(|size: ByteSize| size.as_u64());
        Self {
            commit_buffer: bytes(flags.commit_buffer, file.write.commit_buffer),
            retained: bytes(flags.max_retained, file.write.max_retained),
        }
    }
}

impl OnRefused {
    fn new(skip_invalid: bool) -> Self {
        if skip_invalid { Self::Skip } else { Self::Stop }
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

/// One answer is assembled in an eighth of the memory of all, and in no more than the default, so that several go on beside each other.
fn arrays(flags: &ServeOptions, file: &ServeOptions) -> Result<ArrayOptions, ConfigError> {
    let default = ArrayOptions::default();
    let memory = size(flags.max_memory, file.max_memory, default.max_memory);
    if memory < LEAST_MEMORY {
        return Err(ConfigError::LittleMemory { memory: ByteSize(memory), least: ByteSize(LEAST_MEMORY) });
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

fn listen(flag: Option<Listen>, file: &File) -> Listen {
    flag.or(file.serve.listen).unwrap_or(DEFAULT_LISTEN)
}

fn jobs(flags: &TransferOptions, file: &File) -> NonZeroUsize {
    flags.jobs.or(file.transfer.jobs).unwrap_or(DEFAULT_JOBS)
}

fn location(flags: StoreOptions, file: &File) -> Location {
    let location = flags.store.or_else(|| file.store.store.clone());
    location.unwrap_or_else(|| Location::Sled(DEFAULT_DIRECTORY.into()))
}

fn place(through: ThroughArgs, file: &File, command: &'static str) -> Result<Place, ConfigError> {
    match through.server {
        Some(server) => Ok(Place::Server(server)),
        None => kept(location(through.store, file), command).map(Place::Local),
    }
}

fn kept(location: Location, command: &'static str) -> Result<Location, ConfigError> {
    match location {
        Location::Memory => Err(ConfigError::NothingKept { command }),
        location => Ok(location),
    }
}

/// Lists are not joined: those who give one say all of it.
fn first_given<T: Clone>(given: Vec<T>, file: &[T]) -> Vec<T> {
    if given.is_empty() { file.to_vec() } else { given }
}
