//! The command line, which [`config`](crate::config) resolves with the environment and the configuration file.

mod append;
mod elements;
mod examples;
mod tokens;

use std::{
    io::{self, IsTerminal, Write},
    num::{NonZeroU64, NonZeroUsize},
    path::{Path, PathBuf},
};

use clap::{
    ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource,
};
use zarrd_client::{BaseUrl, Dialect, NodePath};

use crate::{
    config::{
        AccessOptions, Expiry, ImportFrom, Listen, Location, LogOptions, PrefixArg, ServeOptions, StoreOptions,
        TransferOptions, WriteOptions,
    },
    exit,
    transfer::DEFAULT_MAX_KEYS,
    ui::without_secrets,
};

use self::examples::{
    APPEND_EXAMPLES, BACKUP_EXAMPLES, CHECK_EXAMPLES, COMPACT_EXAMPLES, COPY_EXAMPLES, EXAMPLES, EXPORT_EXAMPLES,
    GET_EXAMPLES, HEALTH_EXAMPLES, IMPORT_EXAMPLES, INFO_EXAMPLES, LOGIN_EXAMPLES, LOGOUT_EXAMPLES, LS_EXAMPLES,
    RECOVER_EXAMPLES, RESTORE_EXAMPLES, SERVE_EXAMPLES, SHARE_EXAMPLES, STATS_EXAMPLES, TOKEN_EXAMPLES, TREE_EXAMPLES,
};
pub(crate) use self::{
    append::AppendArgs,
    elements::{GetArgs, StatsArgs},
    tokens::{AccessArgs, TokenArgs},
};

const ABOUT: &str = "The home of a lab's arrays: a small server that stores Zarr data and serves it over HTTP.";

/// Parses the command line of this process, and exits if it is invalid or requests help.
pub(crate) fn parse() -> Cli {
    let matches = Cli::command().try_get_matches().unwrap_or_else(|error| exit_with(&error));
    if let Some((name @ ("import" | "export" | "backup" | "ls" | "tree" | "info"), matches)) = matches.subcommand()
        && has_both_endpoints(matches)
    {
        let message = format!("zarrd {name} accepts --store or --server, not both");
        exit_with(&Cli::command().error(ErrorKind::ArgumentConflict, message))
    }
    if let Some(("serve", matches)) = matches.subcommand()
        && ["store", "directory"].iter().all(|name| matches.value_source(name) == Some(ValueSource::CommandLine))
    {
        let message = "zarrd serve accepts DIR|STORE or --store, not both";
        exit_with(&Cli::command().error(ErrorKind::ArgumentConflict, message))
    }
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| exit_with(&error))
}

/// Shows an error without the credentials that an argument or a variable may have, or help, and exits.
fn exit_with(error: &clap::Error) -> ! {
    if !error.use_stderr() {
        error.exit();
    }
    let styled = error.render();
    let text = if io::stderr().is_terminal() { styled.ansi().to_string() } else { styled.to_string() };
    let _ = io::stderr().write_all(without_secrets(&text).as_bytes());
    std::process::exit(error.exit_code())
}

/// Parses the path of a node. A directory of this machine is none.
fn node_path(text: &str) -> Result<NodePath, String> {
    NodePath::parse(text).map_err(|error| match Path::new(text).is_dir() {
        true => format!("{error}; for the directory of this machine, write --store dir:{text}"),
        false => error.to_string(),
    })
}

/// True if both flags are on the command line. A store in the environment does not count: it is the default, which
/// `--server` overrides.
fn has_both_endpoints(matches: &ArgMatches) -> bool {
    ["store", "server"].iter().all(|flag| matches.value_source(flag) == Some(ValueSource::CommandLine))
}

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "zarrd", version, about = ABOUT, after_help = format!("{EXAMPLES}\n\n{}", exit::TABLE))]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// The command.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Options of the log.
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// Configuration file [default: zarrd.toml in the working directory, if it exists]
    #[arg(long, env = "ZARRD_CONFIG", value_name = "FILE", global = true)]
    #[arg(help_heading = "Log and configuration")]
    pub(crate) config: Option<PathBuf>,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a store over HTTP
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Copy a directory, a bucket, or a prefix of another zarrd into a store
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(ImportArgs),
    /// Copy a prefix of a store into a new directory
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// List the nodes directly below a group
    #[command(after_help = LS_EXAMPLES)]
    Ls(LsArgs),
    /// Show all nodes below a group, with their shapes and data types
    #[command(after_help = TREE_EXAMPLES)]
    Tree(TreeArgs),
    /// Show a node's metadata
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Read elements of an array, or what can be computed of them
    #[command(after_help = GET_EXAMPLES)]
    Get(GetArgs),
    /// Show statistics of the elements of an array
    #[command(after_help = STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Append to the arrays of a group, which grow together
    #[command(after_help = APPEND_EXAMPLES)]
    Append(AppendArgs),
    /// Read every value of a store, and verify its checksums
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Rewrite a store's index without unused space
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Copy a store into a new one, for example with another kind of index
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
    /// Back up a store, also that of a running server, into a directory with earlier backups
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Create a store from a backup
    #[command(after_help = RESTORE_EXAMPLES)]
    Restore(RestoreArgs),
    /// Read what is whole of a damaged store into a new one
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
    /// Check a running server's health
    #[command(after_help = HEALTH_EXAMPLES)]
    Health(HealthArgs),
    /// Create, list and revoke the tokens with which clients authenticate
    #[command(subcommand, after_help = TOKEN_EXAMPLES)]
    Token(TokenArgs),
    /// Create a share link, which reads a prefix of a server until a time
    #[command(after_help = SHARE_EXAMPLES)]
    Share(ShareArgs),
    /// Store a token for a server
    #[command(after_help = LOGIN_EXAMPLES)]
    Login(ServerArgs),
    /// Remove the token that is stored for a server
    #[command(after_help = LOGOUT_EXAMPLES)]
    Logout(ServerArgs),
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Store to serve, like --store; a directory of files that are no store of zarrd is served as dir:DIR, a missing or
    /// empty one becomes a new store
    #[arg(value_name = "DIR|STORE")]
    pub(crate) directory: Option<String>,
    /// Location of the store.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Location of tokens.
    #[command(flatten)]
    pub(crate) access: AccessOptions,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// Options of the server.
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
}

/// A store, local or behind a server.
#[derive(Debug, Args)]
pub(crate) struct EndpointArgs {
    /// A local store.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// URL of a running server, whose store is used instead of opening one; takes precedence over a store in
    /// ZARRD_STORE or zarrd.toml
    #[arg(long, value_name = "URL", visible_alias = "url")]
    pub(crate) server: Option<BaseUrl>,
}

/// The arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// Directory, URL of a prefix of another zarrd, such as `http://other:8000/store/lab/exp1/`, or of a bucket, such
    /// as `s3://bucket/exp1`
    #[arg(value_name = "DIR|URL")]
    pub(crate) from: ImportFrom,
    /// Prefix to import into, such as lab/exp1; '' is the root [default: the name of the directory, prefix or bucket]
    pub(crate) prefix: Option<PrefixArg>,
    /// Replace everything below the prefix, so that nothing of older data remains
    #[arg(long, conflicts_with_all = ["merge", "resume"])]
    pub(crate) overwrite: bool,
    /// Add to what is below the prefix, and overwrite keys of the same names
    #[arg(long)]
    pub(crate) merge: bool,
    /// Go on with an import that was interrupted: like --merge, except that values of the same size stay that were set
    /// after the source's value was last changed
    #[arg(long, conflicts_with = "merge")]
    pub(crate) resume: bool,
    /// The store.
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
    /// Maximum number of keys in the listing of another server, which protects against an endless listing
    #[arg(long, value_name = "NUMBER", default_value_t = DEFAULT_MAX_KEYS)]
    pub(crate) max_keys: NonZeroU64,
    /// Skip files that cannot become keys, instead of failing
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

/// The arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Prefix to export, such as lab/exp1; '' is the whole store
    pub(crate) prefix: PrefixArg,
    /// Directory to create; an existing one must be empty
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The store.
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
    /// Skip keys that cannot become files, instead of failing
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

/// A node, and the format of the output.
#[derive(Debug, Args)]
pub(crate) struct NodeArgs {
    /// Path of the node, such as lab/exp1
    #[arg(default_value = "/", value_parser = node_path)]
    pub(crate) path: NodePath,
    /// The store with the node.
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Dialect of the node, if the path has nodes of several: v2, v3 or draft [default: v3 before v2 before draft]
    #[arg(long)]
    pub(crate) dialect: Option<Dialect>,
    /// Print JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// The node.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Show dialects, chunks and codecs too
    #[arg(long, short)]
    pub(crate) long: bool,
}

/// The arguments of `tree`.
#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// The node.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Number of levels to show [default: all]
    #[arg(long, short, value_name = "LEVELS")]
    pub(crate) depth: Option<u32>,
}

/// The arguments of `info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// The node.
    #[command(flatten)]
    pub(crate) node: NodeArgs,
}

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The store.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
}

/// The arguments of `compact`.
#[derive(Debug, Args)]
pub(crate) struct CompactArgs {
    /// Store to compact: sled:DIR or redb:DIR [default: that of ZARRD_STORE or zarrd.toml, else sled:./zarrd-data]
    #[arg(env = "ZARRD_STORE", hide_env = true)]
    pub(crate) store: Option<Location>,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
}

/// The arguments of `copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// Store to copy: sled:DIR or redb:DIR
    pub(crate) from: Location,
    /// Store to create: sled:DIR or redb:DIR
    pub(crate) to: Location,
    /// Leave the tokens behind (DIR/access): a server on the copy is then open until it has some of its own
    #[arg(long)]
    pub(crate) without_access: bool,
    /// Go on with a copy that was interrupted, if the store to copy was not opened for writing since
    #[arg(long)]
    pub(crate) resume: bool,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

/// The arguments of `backup`.
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// Directory of the backups of this store, which is created if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) to: PathBuf,
    /// The store.
    #[command(flatten)]
    pub(crate) endpoint: EndpointArgs,
    /// Directory of the server's tokens, if it is on this machine, so that they become part of the backup
    #[arg(long, value_name = "DIR", requires = "server")]
    pub(crate) tokens: Option<PathBuf>,
    /// Number of backups to keep: older ones are removed when this one is complete [default: all]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) keep: Option<NonZeroUsize>,
    /// Read the files of all values again at the end, instead of those that were new
    #[arg(long)]
    pub(crate) verify: bool,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

/// The arguments of `restore`.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// Directory of the backups
    #[arg(value_name = "DIR")]
    pub(crate) from: PathBuf,
    /// Store to create: sled:DIR or redb:DIR
    #[arg(required_unless_present = "list")]
    pub(crate) to: Option<Location>,
    /// Name of the backup [default: the newest]
    #[arg(long, value_name = "NAME")]
    pub(crate) backup: Option<String>,
    /// List the backups, as JSON, instead of restoring one
    #[arg(long, conflicts_with_all = ["to", "backup"])]
    pub(crate) list: bool,
    /// Restore what is whole if files of the backup are damaged or missing; the exit code is 5
    #[arg(long)]
    pub(crate) skip_damaged: bool,
    /// Leave the tokens behind: a server on the store is then open until it has some of its own
    #[arg(long)]
    pub(crate) without_access: bool,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

/// The arguments of `recover`.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// The damaged store: its directory
    pub(crate) from: Location,
    /// Store to create: sled:DIR or redb:DIR
    pub(crate) to: Location,
    /// Take values too that may be earlier ones, of erased keys, or never committed
    #[arg(long)]
    pub(crate) doubtful: bool,
    /// New file that lists doubtful and lost values, as lines of JSON [default: as messages on stderr]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Leave the tokens behind: a server on the store is then open until it has some of its own
    #[arg(long)]
    pub(crate) without_access: bool,
    /// Limits of the store.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// Options of the transfer.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

/// The arguments of `health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// URL of the server [default: the address of --listen]
    #[arg(long)]
    pub(crate) url: Option<BaseUrl>,
    /// Address on which the server listens [default: 127.0.0.1:8000]
    #[arg(long, env = "ZARRD_LISTEN", value_name = "IP:PORT")]
    pub(crate) listen: Option<Listen>,
    /// Certificate of the server, which is trusted in addition to the authorities of the system; with it, the default
    /// URL begins with `https://`
    #[arg(long, env = "ZARRD_TLS_CERT", value_name = "FILE")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Time limit for the response, such as 3s
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub(crate) timeout: humantime::Duration,
}

/// The arguments of `share`.
#[derive(Debug, Args)]
pub(crate) struct ShareArgs {
    /// URL of the server
    #[arg(value_name = "URL")]
    pub(crate) server: BaseUrl,
    /// The prefix that the link reads
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: PrefixArg,
    /// Expiry: a duration such as 7d, a date, or a time in UTC
    #[arg(long, value_name = "EXPIRY")]
    pub(crate) expires: Expiry,
    /// Name of the link, for people
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) name: String,
    /// Print a JSON object instead of the URL
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `login` and `logout`.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// URL of the server
    #[arg(value_name = "URL")]
    pub(crate) server: BaseUrl,
}
