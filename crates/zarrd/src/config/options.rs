//! Options: each struct is parsed both from flags and `ZARRD_*` variables and from `zarrd.toml`.

use std::{
    fmt::Display,
    num::{NonZeroU64, NonZeroUsize},
    path::PathBuf,
    str::FromStr,
};

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, de::Error as _};
use zarrd_server::{BasePath, Bucket, Domain, Host, Network, Origin};

use super::{AnonymousRight, DiskCacheLocation, Listen, Location, Mount, scrub::ScrubInterval};

/// Options of the log.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct LogOptions {
    /// Format of the log on stderr [default: human]
    #[arg(long, env = "ZARRD_LOG", value_enum, global = true, help_heading = "Log and configuration")]
    pub(crate) log: Option<LogFormat>,
    /// Filter of the log, such as `info` or `zarrd_server=debug,warn`; RUST_LOG works too. h2, hyper, rustls, tower and
    /// reqwest log at most `info` unless the filter names them: `h2=debug` logs the paths of malformed requests
    /// [default: info for serve, else warn]
    #[arg(long, env = "ZARRD_LOG_LEVEL", value_name = "FILTER", global = true, help_heading = "Log and configuration")]
    pub(crate) log_level: Option<String>,
}

/// Location of the store.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct StoreOptions {
    /// Location of the store: `sled:DIR`, `redb:DIR` (for more than ten million keys), `memory:` (not persistent),
    /// `dir:DIR` (a directory of files that other programs write; `?symlinks=follow` after DIR follows symbolic links that
    /// lead out of it), or `s3://BUCKET/PREFIX`, `gs://…` or `az://…` (a bucket that other programs write, with the
    /// credentials of the environment), or `http://HOST/PATH` or `https://…` (the files of a web server). These are only
    /// read; `?writes=yes` after a directory or bucket lets `serve` change it, key by key. `?recheck=TIME` sets for how
    /// long what was read is cached, `5s` by default, `0` for `dir:`, and `?consolidated=trust` describes trees as
    /// consolidated metadata say; a bare DIR means `sled:DIR` [default: sled:./zarrd-data]
    #[arg(long, env = "ZARRD_STORE", value_name = "STORE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) store: Option<Location>,
}

/// Location of tokens.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct AccessOptions {
    /// Directory of tokens, share links and their keys, which servers may share [default: `access` in the directory of
    /// the store]
    #[arg(long, env = "ZARRD_ACCESS", value_name = "DIR")]
    pub(crate) access: Option<PathBuf>,
}

/// Limits of a store that is written to.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct WriteOptions {
    /// Memory for commits that are in the store's log but not yet in its index; when it is full, writers wait [default:
    /// 32MiB, less on a small file system]
    #[arg(long, env = "ZARRD_COMMIT_BUFFER", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) commit_buffer: Option<ByteSize>,
    /// Maximum size of replaced and erased values that are retained for running readers; beyond it the oldest reader is
    /// cut off [default: a tenth of the file system, at most 8GiB]
    #[arg(long, env = "ZARRD_MAX_RETAINED", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_retained: Option<ByteSize>,
    /// The same for snapshots of clients, such as those of backups; beyond it the oldest one ends [default: a tenth of the
    /// file system]
    #[arg(long, env = "ZARRD_SNAPSHOT_SPACE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) snapshot_space: Option<ByteSize>,
}

/// Options of the server.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct ServeOptions {
    /// Store to show below a name of the root, such as `lab=s3://bucket/lab`, which is only read unless it has
    /// `?writes=yes`; may be repeated. What the store at the root has under the name is hidden
    #[arg(long, env = "ZARRD_MOUNT", value_name = "NAME=STORE", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) mount: Vec<Mount>,
    /// Address to listen on; port 0 selects a free port [default: 127.0.0.1:8000]
    #[arg(long, env = "ZARRD_LISTEN", value_name = "IP:PORT")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) listen: Option<Listen>,
    /// Address at whose root the store is served over WebDAV: a path there is a key. With --tls-cert it speaks HTTPS too
    /// [default: none]
    #[arg(long, env = "ZARRD_DAV_LISTEN", value_name = "IP:PORT")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) dav_listen: Option<Listen>,
    /// Address at which the store is served to S3 clients: the first segment of a key is its bucket. With --tls-cert it
    /// speaks HTTPS too [default: none]
    #[arg(long, env = "ZARRD_S3_LISTEN", value_name = "IP:PORT")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) s3_listen: Option<Listen>,
    /// Domain below which host names begin with a bucket, as in `lab.s3.example.org`; the first segment of a path is the
    /// bucket for all other names [default: none]
    #[arg(long, env = "ZARRD_S3_DOMAIN", value_name = "DOMAIN")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) s3_domain: Option<Domain>,
    /// Name of a bucket that is the whole store, in addition to the others [default: none]
    #[arg(long, env = "ZARRD_S3_ROOT_BUCKET", value_name = "NAME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) s3_root_bucket: Option<Bucket>,
    /// Certificate chain in PEM, to serve HTTPS only; loaded again when it changes and on SIGHUP
    #[arg(long, env = "ZARRD_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Private key of --tls-cert in PEM; other users must not have access to it
    #[arg(long, env = "ZARRD_TLS_KEY", value_name = "FILE")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Reject all changes with status 403, and open the store read-only; its directory must exist [default: false]
    #[arg(long, env = "ZARRD_READ_ONLY", value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) read_only: Option<bool>,
    /// Rights of clients without a token: `none`, `read`, `write`, or a right on a prefix such as `read:public/`; may
    /// be repeated [default: write on a loopback address until the first token is made, unless there is a
    /// --behind-proxy; else none]
    #[arg(long, env = "ZARRD_ANONYMOUS", value_name = "RIGHT", value_delimiter = ',')]
    #[serde(deserialize_with = "from_text_or_texts")]
    pub(crate) anonymous: Vec<AnonymousRight>,
    /// Let everybody read the metrics, instead of clients that may read everything [default: false]
    #[arg(long, env = "ZARRD_PUBLIC_METRICS", value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) public_metrics: Option<bool>,
    /// Additional host name by which clients may address a server on a loopback address; may be repeated
    #[arg(long, env = "ZARRD_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) allow_host: Vec<Host>,
    /// Network of trusted proxies, such as 10.0.0.0/8, whose Forwarded or X-Forwarded-For header has the client's
    /// address; may be repeated. Requests with such headers from other addresses are rejected with status 400
    #[arg(long, env = "ZARRD_BEHIND_PROXY", value_name = "CIDR", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) behind_proxy: Vec<Network>,
    /// Path at which a proxy serves this server, such as `/lab`. It begins the URLs that the server writes; requests may
    /// have it or not [default: none]
    #[arg(long, env = "ZARRD_BASE_PATH", value_name = "PATH")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) base_path: Option<BasePath>,
    /// Web origin whose pages may change data, such as `https://viewer.example.org`; may be repeated
    #[arg(long, env = "ZARRD_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) cors_origin: Vec<Origin>,
    /// Maximum size of an uploaded value, such as 64MiB [default: 16GiB]
    #[arg(long, env = "ZARRD_MAX_BODY", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_body: Option<ByteSize>,
    /// Maximum size of the elements in one response of `/array` as raw or npy [default: 4GiB]
    #[arg(long, env = "ZARRD_MAX_SELECTION", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_selection: Option<ByteSize>,
    /// Maximum size of the elements in one response of `/array` as JSON, CSV or PNG, as their size in memory [default:
    /// 64MiB]
    #[arg(long, env = "ZARRD_MAX_TEXT_SELECTION", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_text_selection: Option<ByteSize>,
    /// Maximum number of chunks that one response of `/array` may need [default: 262144]
    #[arg(long, env = "ZARRD_MAX_CHUNKS", value_name = "NUMBER")]
    pub(crate) max_chunks: Option<NonZeroU64>,
    /// Maximum work of one request to `/array` beyond the elements that it transfers: decoded and encoded bytes, times
    /// the cost of their codecs (1 for a copy, 2 to read zstd, 60 to read bz2, 800 to write zstd at its highest level)
    /// [default: 64GiB]
    #[arg(long, env = "ZARRD_MAX_WORK", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_work: Option<ByteSize>,
    /// Memory for all requests together: documents being parsed, chunks being decoded, elements being assembled,
    /// listings and buffered responses; the caches of chunks and results are not included [default: 1GiB]
    #[arg(long, env = "ZARRD_MAX_MEMORY", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_memory: Option<ByteSize>,
    /// Size of the decoded-chunk cache; 0 disables it [default: 160MiB]
    #[arg(long, env = "ZARRD_CHUNK_CACHE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) chunk_cache: Option<ByteSize>,
    /// Size of the cache of results of reductions and statistics, and of slices of much larger parts; 0 disables it
    /// [default: 8MiB]
    #[arg(long, env = "ZARRD_RESULT_CACHE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) result_cache: Option<ByteSize>,
    /// Directory and size of a cache on disk for what was read of buckets and web servers, such as
    /// `/var/cache/zarrd:50GiB`; the directory is for this server alone, and the space is reserved [default: none]
    #[arg(long, env = "ZARRD_DISK_CACHE", value_name = "DIR:SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) disk_cache: Option<DiskCacheLocation>,
    /// Store written chunks even if all their elements are the fill value, instead of omitting them [default: false]
    #[arg(long, env = "ZARRD_WRITE_EMPTY_CHUNKS", value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) write_empty_chunks: Option<bool>,
    /// Maximum number of connections; a new one beyond it replaces the one that was idle for longest, or gets status
    /// 503 if none is idle [default: 1024]
    #[arg(long, env = "ZARRD_MAX_CONNECTIONS", value_name = "NUMBER")]
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// Time limit for a TLS handshake, for receiving a request head, and for an idle connection, such as 30s [default:
    /// 1m]
    #[arg(long, env = "ZARRD_HEADER_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) header_timeout: Option<humantime::Duration>,
    /// Time to wait for a client to send more of an upload, such as 30s [default: 1m]
    #[arg(long, env = "ZARRD_UPLOAD_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) upload_timeout: Option<humantime::Duration>,
    /// Time to wait for a client to accept data, such as 30s [default: 1m]
    #[arg(long, env = "ZARRD_DOWNLOAD_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) download_timeout: Option<humantime::Duration>,
    /// Minimum average rate, in bytes per second, at which a client must send an upload and accept a response, apart
    /// from pauses within the two limits above; 0 disables it [default: 1KiB]
    #[arg(long, env = "ZARRD_MIN_RATE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) min_rate: Option<ByteSize>,
    /// Time from one scrub to the next, such as 7d, or off: everything in the store is read again in the background and
    /// compared with its checksums [default: 30d]
    #[arg(long, env = "ZARRD_SCRUB", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) scrub: Option<ScrubInterval>,
    /// Time for running requests to finish when the server is stopped, such as 2m [default: 30s]
    #[arg(long, env = "ZARRD_SHUTDOWN_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) shutdown_timeout: Option<humantime::Duration>,
    /// Requests in the access log, which has one JSON object per line [default: off]
    #[arg(long, env = "ZARRD_ACCESS_LOG", value_enum, help_heading = "Access log and audit log")]
    pub(crate) access_log: Option<AccessLogLevel>,
    /// File to append the access log to; SIGHUP reopens it [default: stderr]
    #[arg(long, env = "ZARRD_ACCESS_LOG_FILE", value_name = "FILE", help_heading = "Access log and audit log")]
    pub(crate) access_log_file: Option<PathBuf>,
    /// Log changes and denied requests, one JSON object per line [default: off]
    #[arg(long, env = "ZARRD_AUDIT_LOG", value_enum, help_heading = "Access log and audit log")]
    pub(crate) audit_log: Option<AuditLogLevel>,
    /// File to append the audit log to; SIGHUP reopens it [default: stderr]
    #[arg(long, env = "ZARRD_AUDIT_LOG_FILE", value_name = "FILE", help_heading = "Access log and audit log")]
    pub(crate) audit_log_file: Option<PathBuf>,
}

/// Options of transfers.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct TransferOptions {
    /// Number of values that are copied concurrently [default: 16; 1 of `backup` and `export` with --server]
    #[arg(long, env = "ZARRD_JOBS", value_name = "NUMBER")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// Format of the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// Text for people
    #[default]
    Human,
    /// One JSON object per line
    Json,
}

/// Requests in the access log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AccessLogLevel {
    /// None
    Off,
    /// Those with status 400 and above, and those that were aborted
    Errors,
    /// All
    All,
}

/// Requests in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum AuditLogLevel {
    /// None
    Off,
    /// Changes, and requests denied with status 401 or 403
    On,
}

/// Deserializes a value with the parser of its flag.
fn from_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// Deserializes one value or a list, with the parser of its flag.
fn from_text_or_texts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    };
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}

/// Deserializes a list with the parser of its flag.
fn from_texts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}
