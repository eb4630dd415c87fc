//! The configuration of `serve`.

use std::{
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    time::Duration,
};

use bytesize::ByteSize;
use zarrd_access::Grants;
use zarrd_array::EmptyChunks;
use zarrd_server::{
    AccessPolicy, AnonymousAccess, ArrayOptions, BucketNames, Changes, DirectorySlot, Hosts, Limits, LogOutput,
    MetricsAccess, RequestLogOptions, S3Settings, Settings,
};
use zarrd_store_local::Access as StoreAccess;

use super::{
    AnonymousRight, ConfigError, ConfigFile, DiskCacheLocation, Listen, Location, Mount, ServeOptions, StoreOptions,
    TokenDirectory, request_logs,
    resolved::{WriteLimits, listen},
    served_directory::ServedDirectory,
};
use crate::cli::ServeArgs;

/// Minimum of `--max-memory`, in bytes: with less, hardly any chunk could be decoded.
const MIN_MEMORY_BYTES: u64 = 16 << 20;

/// Configuration of `serve`.
#[derive(Debug)]
pub(crate) struct ServeConfig {
    /// Location of the store.
    pub(crate) store: Location,
    /// What to do for the other choice, if the directory itself decided what it is.
    pub(crate) other_choice: Option<String>,
    /// The files and directories of the server itself, which it never serves.
    pub(crate) private: Vec<PathBuf>,
    /// The stores that are mounted below names.
    pub(crate) mounts: Vec<Mount>,
    /// Access mode of the store.
    pub(crate) access: StoreAccess,
    /// The access to mounted stores that other programs write.
    pub(crate) mount_access: StoreAccess,
    /// The cache on disk of what is read of distant stores.
    pub(crate) disk_cache: Option<DiskCacheLocation>,
    /// Directory of tokens.
    pub(crate) tokens: TokenDirectory,
    /// Limits of the store if it is written to.
    pub(crate) write: WriteLimits,
    /// Address to listen on.
    pub(crate) listen: Listen,
    /// Address at whose root the store is served over WebDAV.
    pub(crate) dav_listen: Option<Listen>,
    /// Address at which the store is served to S3 clients.
    pub(crate) s3_listen: Option<Listen>,
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

impl ServeConfig {
    /// Resolves the options.
    pub(crate) fn new(args: ServeArgs, file: &ConfigFile) -> Result<Self, ConfigError> {
        let ServeArgs { directory, store, access, write, serve } = args;
        let served = directory.as_deref().map(ServedDirectory::new).transpose()?;
        let (store, other_choice) = match served {
            Some(served) => (StoreOptions { store: Some(served.location) }, served.other_choice),
            None => (store, None),
        };
        let listen = listen(serve.listen, file);
        let dav_listen = serve.dav_listen.or(file.serve.dav_listen);
        let s3_listen = serve.s3_listen.or(file.serve.s3_listen);
        // The address by which most clients can reach the server.
        let is_loopback = |listen: &Listen| listen.0.ip().to_canonical().is_loopback();
        let widest = [dav_listen, s3_listen].into_iter().flatten().find(|other| !is_loopback(other)).unwrap_or(listen);
        let tls = TlsFiles::new(&serve, &file.serve)?;
        let proxies = override_list(serve.behind_proxy.clone(), &file.serve.behind_proxy);
        let is_local = is_loopback(&listen) && is_loopback(&widest) && proxies.is_empty();
        let tokens = TokenDirectory::new(access, store.clone(), file);
        let access = access_policy(&serve, file, is_local)?;
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
            false if store.is_foreign() && !store.is_written() => (Changes::Accepted, StoreAccess::ReadOnly),
            false => (Changes::Accepted, StoreAccess::ReadWrite),
        };
        let origins = override_list(serve.cors_origin, &file.serve.cors_origin);
        let hosts = Hosts::for_address(widest.0, override_list(serve.allow_host, &file.serve.allow_host));
        let base_path = serve.base_path.or_else(|| file.serve.base_path.clone()).unwrap_or_default();
        let root_bucket = serve.s3_root_bucket.or_else(|| file.serve.s3_root_bucket.clone());
        let domain = serve.s3_domain.or_else(|| file.serve.s3_domain.clone());
        let s3 = S3Settings { url: None, domain, buckets: BucketNames::new(root_bucket) };
        let settings = Settings { access, changes, origins, hosts, proxies, base_path, s3, limits, arrays };
        let scrub = serve.scrub.or(file.serve.scrub).unwrap_or_default().0;
        let write = WriteLimits { scrub, ..WriteLimits::new(&write, file) };
        let disk_cache = serve.disk_cache.or_else(|| file.serve.disk_cache.clone());
        let mut config = Self {
            store,
            other_choice,
            private: Vec::new(),
            mounts,
            access: store_access,
            mount_access: if read_only { StoreAccess::ReadOnly } else { StoreAccess::ReadWrite },
            disk_cache,
            tokens,
            write,
            listen,
            dav_listen,
            s3_listen,
            tls,
            settings,
            logs,
        };
        config.private = config.private_paths(file);
        Ok(config)
    }
}

impl ServeConfig {
    /// The directories of stores, tokens and cached pieces, the key of TLS, logs, and the configuration file.
    fn private_paths(&self, file: &ConfigFile) -> Vec<PathBuf> {
        let stores = self.mounts.iter().map(|mount| &mount.store).chain([&self.store]).filter_map(Location::directory);
        let tokens = match &self.tokens {
            TokenDirectory::Given(path) | TokenDirectory::InStore(path) => Some(path.as_path()),
            TokenDirectory::None => None,
        };
        let key = self.tls.as_ref().map(|tls| tls.key.as_path());
        let logs = [&self.logs.access_output, &self.logs.audit_output].into_iter().filter_map(|output| match output {
            LogOutput::File(path) => Some(path.as_path()),
            LogOutput::Stderr => None,
        });
        let cache = self.disk_cache.as_ref().map(|cache| cache.directory.as_path());
        let paths = stores.chain(tokens).chain(cache).chain(key).chain(logs).chain(file.path.as_deref());
        paths.map(std::path::Path::to_path_buf).collect()
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
        result_cache: size(flags.result_cache, file.result_cache, default.result_cache),
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

/// The access policy, without the directory of tokens. A server that only users of its machine can reach is open until
/// the first token is made.
fn access_policy(serve: &ServeOptions, file: &ConfigFile, is_local: bool) -> Result<AccessPolicy, ConfigError> {
    let rights = override_list(serve.anonymous.clone(), &file.serve.anonymous);
    let anonymous = match AnonymousRight::combine(rights)? {
        Some(grants) => AnonymousAccess::Granted(grants),
        None if is_local => AnonymousAccess::UntilFirstToken,
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

fn size(flag: Option<ByteSize>, file: Option<ByteSize>, default: u64) -> u64 {
    flag.or(file).map_or(default, |size| size.as_u64())
}

/// The list of the flag, or else that of the file: lists are not joined.
fn override_list<T: Clone>(flag: Vec<T>, file: &[T]) -> Vec<T> {
    if flag.is_empty() { file.to_vec() } else { flag }
}
