//! What each command runs with.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use client::BaseUrl;
use store::Prefix;
use tracing_subscriber::EnvFilter;

use super::{
    Anonymous, ConfigError, File, ImportFrom, Listen, Location, LogFormat, LogOptions, ServeOptions, StoreOptions,
    TransferOptions,
};
use crate::cli::{CopyArgs, ExportArgs, HealthArgs, ImportArgs, ThroughArgs};

const DEFAULT_LISTEN: Listen =
    Listen(std::net::SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 8000));
const DEFAULT_DIRECTORY: &str = "./zarrd-data";
const DEFAULT_JOBS: NonZeroUsize = NonZeroUsize::new(16).unwrap();
const DEFAULT_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

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
    /// The address.
    pub(crate) listen: Listen,
    /// What anybody may do.
    pub(crate) anonymous: Anonymous,
    /// By which names the server may be called besides its loopback ones.
    pub(crate) allow_host: Vec<String>,
    /// Whose pages may change data.
    pub(crate) cors_origin: Vec<String>,
    /// The largest upload.
    pub(crate) max_body: Option<u64>,
    /// How long running requests may take after a signal.
    pub(crate) shutdown_timeout: Duration,
}

/// How to import.
#[derive(Debug)]
pub(crate) struct ImportConfig {
    /// Where the keys go.
    pub(crate) to: Place,
    /// Below which prefix.
    pub(crate) prefix: Prefix,
    /// Where they come from.
    pub(crate) from: ImportFrom,
    /// How many at the same time.
    pub(crate) jobs: NonZeroUsize,
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

/// What to check.
#[derive(Debug)]
pub(crate) struct CheckConfig {
    /// The store.
    pub(crate) store: Location,
}

/// What to copy.
#[derive(Debug)]
pub(crate) struct CopyConfig {
    /// The store that is read.
    pub(crate) from: Location,
    /// The store that is made.
    pub(crate) to: Location,
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
    pub(crate) fn new(store: StoreOptions, serve: ServeOptions, file: &File) -> Result<Self, ConfigError> {
        let listen = listen(serve.listen, file);
        let anonymous = match serve.anonymous.or(file.serve.anonymous) {
            Some(anonymous) => anonymous,
            None if listen.0.ip().to_canonical().is_loopback() => Anonymous::Write,
            None => return Err(ConfigError::AnonymousUnsaid { listen }),
        };
        Ok(Self {
            store: location(store, file),
            listen,
            anonymous,
            allow_host: first_given(serve.allow_host, &file.serve.allow_host),
            cors_origin: first_given(serve.cors_origin, &file.serve.cors_origin),
            max_body: serve.max_body.or(file.serve.max_body).map(|size| size.as_u64()),
            shutdown_timeout: serve
                .shutdown_timeout
                .or(file.serve.shutdown_timeout)
                .map_or(DEFAULT_SHUTDOWN_TIMEOUT, Into::into),
        })
    }
}

impl ImportConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: ImportArgs, file: &File) -> Result<Self, ConfigError> {
        Ok(Self {
            to: place(args.through, file, "import")?,
            prefix: args.prefix.0,
            from: args.from,
            jobs: jobs(&args.transfer, file),
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

impl CheckConfig {
    /// Resolves the layers.
    pub(crate) fn new(store: StoreOptions, file: &File) -> Result<Self, ConfigError> {
        Ok(Self { store: kept(location(store, file), "check")? })
    }
}

impl CopyConfig {
    /// Resolves the layers.
    pub(crate) fn new(args: CopyArgs, file: &File) -> Result<Self, ConfigError> {
        let (from, to) = (kept(args.from, "copy")?, kept(args.to, "copy")?);
        Ok(Self { from, to, jobs: jobs(&args.transfer, file) })
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

impl OnRefused {
    fn new(skip_invalid: bool) -> Self {
        if skip_invalid { Self::Skip } else { Self::Stop }
    }
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
fn first_given(given: Vec<String>, file: &[String]) -> Vec<String> {
    if given.is_empty() { file.to_vec() } else { given }
}
