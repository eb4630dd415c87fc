//! The settings: each group is one struct that is read both from flags and `ZARRD_*` variables and from `zarrd.toml`.

use std::{
    fmt::Display,
    num::{NonZeroU64, NonZeroUsize},
    str::FromStr,
};

use bytesize::ByteSize;
use serde::{Deserialize, Deserializer, de::Error as _};
use server::{Host, Network, Origin};

use super::{Listen, Location};

/// How to log.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct LogOptions {
    /// How log lines on stderr are written [default: human]
    #[arg(long, env = "ZARRD_LOG", value_enum, global = true, help_heading = "Log and configuration")]
    pub(crate) log: Option<LogFormat>,
    /// What is logged, such as `info` or `server=debug,warn`; RUST_LOG works too [default: info for serve, else warn]
    #[arg(long, env = "ZARRD_LOG_LEVEL", value_name = "FILTER", global = true, help_heading = "Log and configuration")]
    pub(crate) log_level: Option<String>,
}

/// Which store.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct StoreOptions {
    /// Where the data is kept: `sled:DIR`, `redb:DIR` (for more than ten million keys), or `memory:` (kept nowhere);
    /// a bare DIR means `sled:DIR` [default: sled:./zarrd-data]
    #[arg(long, env = "ZARRD_STORE", value_name = "STORE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) store: Option<Location>,
}

/// The limits of what a store that is written to may take.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct WriteOptions {
    /// The memory for commits that the store's log has and its index does not have yet; writers wait when it is full
    /// [default: 32MiB, less on a small file system]
    #[arg(long, env = "ZARRD_COMMIT_BUFFER", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) commit_buffer: Option<ByteSize>,
    /// The most bytes of replaced and erased values that are retained for readers that began before; beyond it the oldest
    /// reader is cut off [default: a tenth of the file system, at most 8GiB]
    #[arg(long, env = "ZARRD_MAX_RETAINED", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_retained: Option<ByteSize>,
}

/// How to serve.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct ServeOptions {
    /// The address to listen on; port 0 takes a free one [default: 127.0.0.1:8000]
    #[arg(long, env = "ZARRD_LISTEN", value_name = "IP:PORT")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) listen: Option<Listen>,
    /// Change nothing, whoever asks: every change is answered 403, and nothing is written into the store's directory, which has
    /// to be there [default: false]
    #[arg(long, env = "ZARRD_READ_ONLY", value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) read_only: Option<bool>,
    /// What anybody who reaches the server may do; must be said for any address but a loopback one
    #[arg(long, env = "ZARRD_ANONYMOUS", value_enum)]
    pub(crate) anonymous: Option<Anonymous>,
    /// Another name by which the server may be called while it listens on a loopback address; may be repeated
    #[arg(long, env = "ZARRD_ALLOW_HOST", value_name = "HOST", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) allow_host: Vec<Host>,
    /// A network of proxies that the server is behind, such as 10.0.0.0/8: who asks is then whom they name in Forwarded or X-Forwarded-For; may be
    /// repeated
    #[arg(long, env = "ZARRD_BEHIND_PROXY", value_name = "CIDR", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) behind_proxy: Vec<Network>,
    /// A web origin whose pages may change data, such as `https://viewer.example.org`; may be repeated
    #[arg(long, env = "ZARRD_CORS_ORIGIN", value_name = "ORIGIN", value_delimiter = ',')]
    #[serde(deserialize_with = "from_texts")]
    pub(crate) cors_origin: Vec<Origin>,
    /// The largest value that may be uploaded, such as 64MiB [default: 16GiB]
    #[arg(long, env = "ZARRD_MAX_BODY", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_body: Option<ByteSize>,
    /// The most bytes of elements that one answer of `/array` has as raw or npy [default: 4GiB]
    #[arg(long, env = "ZARRD_MAX_SELECTION", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_selection: Option<ByteSize>,
    /// The same as JSON, CSV or PNG, counted as the elements are in memory [default: 64MiB]
    #[arg(long, env = "ZARRD_MAX_TEXT_SELECTION", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_text_selection: Option<ByteSize>,
    /// How many chunks one answer of `/array` may concern [default: 262144]
    #[arg(long, env = "ZARRD_MAX_CHUNKS", value_name = "NUMBER")]
    pub(crate) max_chunks: Option<NonZeroU64>,
    /// How much work one request to `/array` may be beyond what it carries or yields: bytes decoded and encoded, times what their codecs
    /// cost (1 for a copy, 2 to read zstd, 60 to read bz2, 800 to write zstd at its highest level) [default: 64GiB]
    #[arg(long, env = "ZARRD_MAX_WORK", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_work: Option<ByteSize>,
    /// The memory that all requests together may hold: for documents being parsed, chunks being decoded, elements being assembled, listings, and
    /// answers that are made whole; the cache of chunks comes on top [default: 1GiB]
    #[arg(long, env = "ZARRD_MAX_MEMORY", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) max_memory: Option<ByteSize>,
    /// The memory for decoded chunks that are kept for the next who asks; 0 keeps none [default: 256MiB]
    #[arg(long, env = "ZARRD_CHUNK_CACHE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) chunk_cache: Option<ByteSize>,
    /// Store chunks that are full of the fill value when elements are written, instead of leaving them out [default: false]
    #[arg(long, env = "ZARRD_WRITE_EMPTY_CHUNKS", value_name = "BOOL")]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) write_empty_chunks: Option<bool>,
    /// How many connections there may be at the same time; beyond them the one that has been idle for longest is closed for a new one, and where none is idle the new one is
    /// answered 503 [default: 1024]
    #[arg(long, env = "ZARRD_MAX_CONNECTIONS", value_name = "NUMBER")]
    pub(crate) max_connections: Option<NonZeroUsize>,
    /// How long the head of a request may take, and a connection be idle, such as 30s [default: 1m]
    #[arg(long, env = "ZARRD_HEADER_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) header_timeout: Option<humantime::Duration>,
    /// How long an upload may make no progress [default: 1m]
    #[arg(long, env = "ZARRD_UPLOAD_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) upload_timeout: Option<humantime::Duration>,
    /// How long a client may not take what it is sent [default: 1m]
    #[arg(long, env = "ZARRD_DOWNLOAD_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) download_timeout: Option<humantime::Duration>,
    /// The bytes a second that a client has to send of an upload, and to take of an answer, on average and apart from pauses of the two
    /// times above; 0 for none [default: 1KiB]
    #[arg(long, env = "ZARRD_MIN_RATE", value_name = "SIZE")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) min_rate: Option<ByteSize>,
    /// How long running requests may take to finish when the server is told to stop [default: 30s]
    #[arg(long, env = "ZARRD_SHUTDOWN_TIMEOUT", value_name = "TIME")]
    #[serde(deserialize_with = "from_text")]
    pub(crate) shutdown_timeout: Option<humantime::Duration>,
}

/// How to move keys.
#[derive(Clone, Debug, Default, clap::Args, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub(crate) struct TransferOptions {
    /// How many values are moved at the same time [default: 16]
    #[arg(long, env = "ZARRD_JOBS", value_name = "NUMBER")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// What those who do not say who they are may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Anonymous {
    /// Read everything.
    Read,
    /// Read, change and erase everything.
    Write,
}

/// Reads a value by the same parser that its flag has.
fn from_text<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(D::Error::custom)
}

/// The same of a list.
fn from_texts<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr,
    T::Err: Display,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
}
