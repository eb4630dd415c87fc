//! The command line, which [`config`](crate::config) resolves with the environment and the configuration file.

mod tokens;

use std::{
    io::{self, IsTerminal, Write},
    num::NonZeroU64,
    path::PathBuf,
};

use clap::{
    ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource,
};
use client::{BaseUrl, Dialect, NodePath};

use crate::{
    config::{
        AccessOptions, Expiry, ImportFrom, Listen, Location, LogOptions, PrefixArg, ServeOptions, StoreOptions,
        TransferOptions, WriteOptions,
    },
    exit,
    transfer::DEFAULT_MAX_KEYS,
    ui::without_secrets,
};

pub(crate) use self::tokens::{AccessArgs, TokenArgs};

const ABOUT: &str = "The home of a lab's arrays: a small server that stores Zarr data and serves it over HTTP.";

const EXAMPLES: &str = "\
Examples:
  zarrd serve                             serve the store in ./zarrd-data on http://127.0.0.1:8000
  zarrd import ./data.zarr lab/data.zarr  copy a hierarchy from disk into the store
  zarrd export lab/data.zarr ./copy.zarr  and back
  zarrd tree lab                          show the nodes below lab, with shapes and data types
  zarrd check                             read every value and verify its checksums

Settings:
  Each flag marked [env: …] is a setting. A flag takes precedence over its environment variable, the variable over \
  zarrd.toml (or the file given with --config), and the file over the default. The keys of zarrd.toml are the flags \
  without their dashes:

    store = \"sled:/data\"
    listen = \"0.0.0.0:8000\"
    anonymous = \"read\"
    allow-host = [\"zarr.example.org\"]";

const SERVE_EXAMPLES: &str = "\
Examples:
  zarrd serve
      for programs on this machine only, which may read and write everything
  zarrd serve --store redb:/data --listen 0.0.0.0:8000 --anonymous read
      for all clients that can reach port 8000, read-only
  zarrd serve --read-only --store /archive
      serve an existing store without writing to it
  zarrd serve --store dir:/data
      serve a directory that zarr-python and others write, without writing to it
  zarrd serve --store s3://bucket/lab
      serve a prefix of a bucket, with the credentials of the environment
  zarrd serve --store https://example.org/data
      serve the files of a web server
  zarrd serve --mount lab=s3://bucket/lab --mount old=dir:/archive
      show other stores below /lab and /old, beside what the own store has
  zarrd serve --store memory: --listen 127.0.0.1:0
      for a test: nothing is persistent, and the line on stdout has the port

When it listens, it prints one line with its address on stdout. Logs go to stderr. SIGTERM and Ctrl-C stop it: it accepts \
no more connections, running requests finish, the store is closed, and the exit code is 0. A second signal stops it \
immediately with exit code 130 or 143, without losing acknowledged changes. SIGHUP \
reopens the files of --access-log-file and --audit-log-file, and loads the certificate of --tls-cert again.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  zarrd import ./data.zarr lab/data.zarr
      every file below ./data.zarr becomes a key below lab/data.zarr/, with the same bytes
  zarrd import --server http://127.0.0.1:8000 ./data.zarr lab/data.zarr
      the same while a server has opened the store
  zarrd import http://other:8000/store/lab/exp1/ lab/exp1
      copy everything below a prefix of another zarrd
  zarrd import s3://bucket/exp2 lab/exp2
      copy everything below a prefix of a bucket (gs:// and az:// too)

All Zarr dialects and all other files can be imported, including files whose names begin with a dot. Symbolic links are \
not followed. If there is a link, a device, or a file whose name is not a valid key, the command lists them and fails \
before it writes anything; --skip-invalid skips them instead. Chunks are written before the metadata of their array, \
and arrays before their groups, so that readers never see an array with missing chunks. An import is not one commit: an \
interrupted import can be repeated, and overwrites existing keys. A new store is therefore usable, and not marked as \
incomplete, during an import.

The last line on stdout is a summary in JSON.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  zarrd export lab/data.zarr ./data.zarr
      every key below lab/data.zarr/ becomes a file below ./data.zarr
  zarrd export '' ./everything
      the whole store
  zarrd export --server http://127.0.0.1:8000 lab ./lab
      from a running server
  zarrd export --store s3://bucket/lab exp1 ./exp1
      from a bucket

DIR must be new or empty. A key such as a/b cannot become a file if a is a key too, nor can a name of more than 255 bytes: \
the command lists them and fails before it writes anything; --skip-invalid skips them instead. A damaged value is \
reported and skipped, and the exit code is 5: Zarr reads the missing chunk as the fill value. A file gets its name when \
it is complete; when the command ends, all files are durable.

The last line on stdout is a summary in JSON.";

const LS_EXAMPLES: &str = "\
Examples:
  zarrd ls
      the nodes at the root of the store in ./zarrd-data
  zarrd ls -l lab/exp1
      those below the group lab/exp1, with dialects, chunks and codecs
  zarrd ls --server http://127.0.0.1:8000 --json lab
      through a running server, as one JSON object per line

Groups end in /. Nodes of all dialects are listed.";

const TREE_EXAMPLES: &str = "\
Examples:
  zarrd tree
      the whole store in ./zarrd-data
  zarrd tree --depth 2 lab
      two levels below the group lab
  zarrd tree --server http://127.0.0.1:8000 lab
      through a running server
  zarrd tree --store s3://bucket/lab
      the nodes in a bucket

The dialect is shown if it differs from that of the parent group. With --json the output is one JSON object per line, in \
the same order.";

const INFO_EXAMPLES: &str = "\
Examples:
  zarrd info lab/exp1/mice
      the metadata of an array, its attributes, and the number and size of its stored chunks
  zarrd info --server http://127.0.0.1:8000 --json lab/exp1
      a group, through a running server, as one JSON object

At most 100,000 stored chunks are counted.";

const CHECK_EXAMPLES: &str = "\
Examples:
  zarrd check
  zarrd check --store redb:/data
  zarrd check --store s3://bucket/lab
      directories and buckets have no checksums of zarrd's: every value is read to its end

No server may have opened a store of zarrd's own. Each damaged or missing value is reported on stderr, and the exit code is \
5 if there are any. To repair them, set or erase their keys. The last line on stdout is a summary in JSON.";

const COMPACT_EXAMPLES: &str = "\
Examples:
  zarrd compact
      the index of the store in ./zarrd-data
  zarrd compact redb:/data

Replaced and erased values leave unused space in the index, which only this command returns to the file system. It writes \
a new index next to the old one. If there is not enough space for both, nothing is changed, the message has the number \
of bytes that are needed, and the exit code is 1. Value files need no compaction.

No server may have opened the store. A signal waits for the end. The last line on stdout is a summary in JSON.";

const COPY_EXAMPLES: &str = "\
Examples:
  zarrd copy sled:/data redb:/data-new
      convert a store with a sled index into one with a redb index

No server may have opened either store. TO must be new or an empty directory. Until the copy is complete, TO has a file \
named incomplete, and every command rejects it with exit code 3; after a failed copy, remove TO and retry. The values \
get new versions, so ETags change. The last line on stdout is a summary in JSON.";

const HEALTH_EXAMPLES: &str = "\
Examples:
  zarrd health
      check the server on this machine, at the address in ZARRD_LISTEN or zarrd.toml
  zarrd health --url http://lab:8000

The exit code is 0 if the server is ready, and 1 if it is unreachable, is stopping, or has become read-only after a failed \
write. A full disk is not a failure, since reads and erasures continue, nor is serve --read-only.";

const TOKEN_EXAMPLES: &str = "\
Examples:
  zarrd token create --name Ada --allow read:lab/ --allow write:lab/exp1/ --expires 90d
      may read everything below lab/, and change what is below lab/exp1/, for 90 days
  zarrd token create --name operator --allow admin:/
      may do everything, including the creation of tokens through a server
  zarrd token list
  zarrd token revoke Ada
  zarrd token rotate && zarrd token rotate --drop 1
      end all tokens that were made with key 1

Tokens are files in a directory, which the commands work on directly: run them as the user that runs the server. Running \
servers see a change within a second. The token itself is shown once, by create; it is not stored, and whoever has it \
has its rights.";

const SHARE_EXAMPLES: &str = "\
Examples:
  zarrd share https://lab.example.org lab/exp1 --expires 7d
  zarrd share https://lab.example.org lab/exp1 --expires 2027-01-31 --name 'for Ada' --json

The URL is the base for curl, browsers and every Zarr client: the usual path follows it, such as /store/lab/exp1. It ends at \
its time, with the token that it is made with, or with `DELETE /share/ID`.";

const LOGIN_EXAMPLES: &str = "\
Examples:
  zarrd login https://lab.example.org
      asks for the token, and does not show it
  zarrd login http://127.0.0.1:8000 < token.txt

The token is stored in zarrd/tokens.json in XDG_CONFIG_HOME or ~/.config, accessible to you only, and sent by other \
commands to URLs with the same scheme, host and port. ZARRD_TOKEN takes precedence; if import has two servers, it is for \
the one of --server.";

const LOGOUT_EXAMPLES: &str = "\
Examples:
  zarrd logout https://lab.example.org

The token stays valid: zarrd token revoke ends it.";

/// Parses the command line of this process, and exits if it is invalid or requests help.
pub(crate) fn parse() -> Cli {
    let matches = Cli::command().try_get_matches().unwrap_or_else(|error| exit_with(&error));
    if let Some((name @ ("import" | "export" | "ls" | "tree" | "info"), matches)) = matches.subcommand()
        && has_both_endpoints(matches)
    {
        let message = format!("zarrd {name} accepts --store or --server, not both");
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
    /// Read every value of a store, and verify its checksums
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Rewrite a store's index without unused space
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Copy a store into a new one, for example with another kind of index
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
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
    /// Prefix to import into, such as lab/exp1 [default: the root]
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: PrefixArg,
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
    #[arg(default_value = "/", value_parser = NodePath::parse)]
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
