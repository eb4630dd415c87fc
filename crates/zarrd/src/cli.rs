//! The command line. What it says is resolved with the other layers in [`config`](crate::config).

use std::{num::NonZeroU64, path::PathBuf};

use clap::{
    ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource,
};
use client::{BaseUrl, Dialect, NodePath};

use crate::{
    config::{
        ImportFrom, Listen, Location, LogOptions, PrefixArg, ServeOptions, StoreOptions, TransferOptions, WriteOptions,
    },
    exit,
    transfer::MOST_KEYS,
};

const ABOUT: &str = "The home of a lab's arrays: a small server that keeps Zarr data and hands it out over HTTP.";

const EXAMPLES: &str = "\
Examples:
  zarrd serve                             keep data in ./zarrd-data, listen on http://127.0.0.1:8000
  zarrd import ./data.zarr lab/data.zarr  copy a hierarchy from disk into the store
  zarrd export lab/data.zarr ./copy.zarr  and back
  zarrd tree lab                          what nodes there are below lab, with shapes and data types
  zarrd check                             read everything once and verify its checksums

Settings:
  Each flag marked [env: …] is a setting: a flag on the command line counts before its variable in the environment, \
  that before zarrd.toml (or the file that --config names), that before the default. The keys of zarrd.toml are \
  the flags without their dashes:

    store = \"sled:/data\"
    listen = \"0.0.0.0:8000\"
    anonymous = \"read\"
    allow-host = [\"zarr.example.org\"]";

const SERVE_EXAMPLES: &str = "\
Examples:
  zarrd serve
      for programs on this machine only: they may read and write everything
  zarrd serve --store redb:/data --listen 0.0.0.0:8000 --anonymous read
      for everybody who reaches port 8000, reading only
  zarrd serve --read-only --store /archive
      a store that nothing is to be written to; it must be there
  zarrd serve --store memory: --listen 127.0.0.1:0
      for a test: nothing is kept, and the line on stdout tells the port

Once it listens, one line on stdout says where. Logs go to stderr. SIGTERM and Ctrl-C stop it: no new connections are taken, \
running requests finish, the store is closed, the exit code is 0. A second signal stops it at once with exit code \
130 or 143, which loses nothing that was acknowledged. SIGHUP is logged and changes nothing.";

const IMPORT_EXAMPLES: &str = "\
Examples:
  zarrd import ./data.zarr lab/data.zarr
      every file below ./data.zarr becomes a key below lab/data.zarr/, its bytes as they are
  zarrd import --server http://127.0.0.1:8000 ./data.zarr lab/data.zarr
      the same while a server has the store open
  zarrd import http://other:8000/store/lab/exp1/ lab/exp1
      take over everything below a prefix of another zarrd

Any Zarr dialect will do, and any other file. Files whose names begin with a dot count. Symbolic links are not \
followed. A link, a device, or a file whose name is not a key makes the command fail before anything is written, each of them \
named; --skip-invalid leaves them out instead. Chunks are written before the metadata of their array, and arrays before \
their groups, so that who reads meanwhile sees no array without its chunks. It is not one commit: an import that was \
interrupted can be repeated, and overwrites what it finds. A new store is therefore usable, and not marked as incomplete, \
while it is imported into.

At the end one line of JSON on stdout tells what was done.";

const EXPORT_EXAMPLES: &str = "\
Examples:
  zarrd export lab/data.zarr ./data.zarr
      every key below lab/data.zarr/ becomes a file below ./data.zarr
  zarrd export '' ./everything
      the whole store
  zarrd export --server http://127.0.0.1:8000 lab ./lab
      from a running server

DIR is made, or is there and empty. A key such as a/b cannot be a file where a is a key too, and neither can a name of \
more than 255 bytes: they make the command fail before anything is written, each of them named; --skip-invalid leaves \
them out instead. A value that is damaged is named and left out, and the exit code is 5: whoever opens the exported \
array finds a missing chunk there, which Zarr reads as the fill value. A file appears under its name when it is whole; \
when the command ends, all that are there are durable.

At the end one line of JSON on stdout tells what was done.";

const LS_EXAMPLES: &str = "\
Examples:
  zarrd ls
      the nodes at the root of the store in ./zarrd-data
  zarrd ls -l lab/exp1
      those below the group lab/exp1, with dialects, chunks and codecs
  zarrd ls --server http://127.0.0.1:8000 --json lab
      through a running server, a JSON object a line

Groups end in /. Nodes of all dialects are listed.";

const TREE_EXAMPLES: &str = "\
Examples:
  zarrd tree
      the whole store in ./zarrd-data
  zarrd tree --depth 2 lab
      two levels below the group lab
  zarrd tree --server http://127.0.0.1:8000 lab
      through a running server

The dialect is told where it is not that of the group above. With --json there is a JSON object a line, in the same order.";

const INFO_EXAMPLES: &str = "\
Examples:
  zarrd info lab/exp1/mice
      all that is known of an array: how it is stored, how much of it is there, its attributes
  zarrd info --server http://127.0.0.1:8000 --json lab/exp1
      of a group, through a running server, as one JSON object

Stored chunks are counted up to 100,000.";

const CHECK_EXAMPLES: &str = "\
Examples:
  zarrd check
  zarrd check --store redb:/data

No server may have the store open. Each damaged or missing value is named on stderr, and the exit code is 5 where there \
are any. They can be replaced by setting or erasing their keys. One line of JSON on stdout tells what was looked at.";

const COMPACT_EXAMPLES: &str = "\
Examples:
  zarrd compact
      the index of the store in ./zarrd-data
  zarrd compact redb:/data

Values that are replaced or erased leave space in the index, which goes back to the file system only here. The index is \
written anew beside the old one, so both have to fit: where they do not, nothing is changed, the message names the \
bytes that are needed, and the exit code is 1. Value files need no compacting.

No server may have the store open. A signal waits for the end. At the end one line of JSON on stdout says how long it took.";

const COPY_EXAMPLES: &str = "\
Examples:
  zarrd copy sled:/data redb:/data-new
      turn a store with a sled index into one with a redb index

No server may have either store open. TO is made, or is an empty directory. Until all is copied TO has a file called \
incomplete and every command refuses it with exit code 3; where a copy did not finish, remove TO and make the copy \
again. The values get new versions, so ETags change. At the end one line of JSON on stdout tells what was done.";

const HEALTH_EXAMPLES: &str = "\
Examples:
  zarrd health
      ask the server that this machine's ZARRD_LISTEN, or zarrd.toml, tells of
  zarrd health --url http://lab:8000

The exit code is 0 where the server is ready, and 1 where it is not there, is stopping, or has become read-only after a failed \
write. A full disk does not count, since reading and erasing go on, and neither does serve --read-only.";

/// Parses the command line of this process; where it is wrong, or asks for help, the process ends.
pub(crate) fn parse() -> Cli {
    let matches = Cli::command().get_matches();
    if let Some((name @ ("import" | "export" | "ls" | "tree" | "info"), matches)) = matches.subcommand()
        && names_both_places(matches)
    {
        let message = format!("zarrd {name} takes --store or --server, not both");
        Cli::command().error(ErrorKind::ArgumentConflict, message).exit()
    }
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

/// A store that the environment names does not count here: it is the usual one, and a flag says otherwise.
fn names_both_places(matches: &ArgMatches) -> bool {
    ["store", "server"].iter().all(|flag| matches.value_source(flag) == Some(ValueSource::CommandLine))
}

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "zarrd", version, about = ABOUT, after_help = format!("{EXAMPLES}\n\n{}", exit::TABLE))]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to log.
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// The configuration file [default: zarrd.toml in the working directory, if it is there]
    #[arg(long, env = "ZARRD_CONFIG", value_name = "FILE", global = true)]
    #[arg(help_heading = "Log and configuration")]
    pub(crate) config: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve a store over HTTP
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Copy a directory, or a prefix of another zarrd, into a store
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
    /// Tell all that is known of a node
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// Read every value of a store and verify its checksums
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckArgs),
    /// Write a store's index anew, without the space that changes have left in it
    #[command(after_help = COMPACT_EXAMPLES)]
    Compact(CompactArgs),
    /// Copy a store into a new one, for example with another kind of index
    #[command(after_help = COPY_EXAMPLES)]
    Copy(CopyArgs),
    /// Ask a running server whether it is well
    #[command(after_help = HEALTH_EXAMPLES)]
    Health(HealthArgs),
}

/// The arguments of `serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Which store.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// The limits of what it may take.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// How.
    #[command(flatten)]
    pub(crate) serve: ServeOptions,
}

/// A store, directly or through a server.
#[derive(Debug, Args)]
pub(crate) struct ThroughArgs {
    /// The store itself.
    #[command(flatten)]
    pub(crate) store: StoreOptions,
    /// Work through the running server at this URL instead of opening a store; counts before a store named by
    /// ZARRD_STORE or zarrd.toml
    #[arg(long, value_name = "URL", visible_alias = "url")]
    pub(crate) server: Option<BaseUrl>,
}

/// The arguments of `import`.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// A directory, or the URL of a prefix of another zarrd, such as `http://other:8000/store/lab/exp1/`
    #[arg(value_name = "DIR|URL")]
    pub(crate) from: ImportFrom,
    /// The prefix below which the keys are put, such as lab/exp1; without it they are put at the root
    #[arg(default_value = "", hide_default_value = true)]
    pub(crate) prefix: PrefixArg,
    /// The store.
    #[command(flatten)]
    pub(crate) through: ThroughArgs,
    /// The limits of what it may take.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// How.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
    /// The most keys that another server may list, lest one whose listing never ends keeps the import going
    #[arg(long, value_name = "NUMBER", default_value_t = MOST_KEYS)]
    pub(crate) max_keys: NonZeroU64,
    /// Leave out what cannot become a key, instead of failing
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

/// The arguments of `export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The prefix whose keys are wanted, such as lab/exp1; '' is the whole store
    pub(crate) prefix: PrefixArg,
    /// The directory to make; one that is there must be empty
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// The store.
    #[command(flatten)]
    pub(crate) through: ThroughArgs,
    /// How.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
    /// Leave out what cannot become a file, instead of failing
    #[arg(long)]
    pub(crate) skip_invalid: bool,
}

/// Which node to look at, and how.
#[derive(Debug, Args)]
pub(crate) struct LookArgs {
    /// The path of the node, such as lab/exp1
    #[arg(default_value = "/", value_parser = NodePath::parse)]
    pub(crate) path: NodePath,
    /// Where it is.
    #[command(flatten)]
    pub(crate) through: ThroughArgs,
    /// Of a path with nodes in several dialects, mean that one: v2, v3 or draft
    #[arg(long)]
    pub(crate) dialect: Option<Dialect>,
    /// For programs: JSON instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of `ls`.
#[derive(Debug, Args)]
pub(crate) struct LsArgs {
    /// At what.
    #[command(flatten)]
    pub(crate) at: LookArgs,
    /// Tell dialects, chunks and codecs too
    #[arg(long, short)]
    pub(crate) long: bool,
}

/// The arguments of `tree`.
#[derive(Debug, Args)]
pub(crate) struct TreeArgs {
    /// At what.
    #[command(flatten)]
    pub(crate) at: LookArgs,
    /// How many levels to show [default: all]
    #[arg(long, short, value_name = "LEVELS")]
    pub(crate) depth: Option<u32>,
}

/// The arguments of `info`.
#[derive(Debug, Args)]
pub(crate) struct InfoArgs {
    /// At what.
    #[command(flatten)]
    pub(crate) at: LookArgs,
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
    /// The store: sled:DIR or redb:DIR [default: that of ZARRD_STORE or zarrd.toml, else sled:./zarrd-data]
    #[arg(env = "ZARRD_STORE", hide_env = true)]
    pub(crate) store: Option<Location>,
    /// The limits of what it may take.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
}

/// The arguments of `copy`.
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// The store to read: sled:DIR or redb:DIR
    pub(crate) from: Location,
    /// The store to make: sled:DIR or redb:DIR
    pub(crate) to: Location,
    /// The limits of what it may take.
    #[command(flatten)]
    pub(crate) write: WriteOptions,
    /// How.
    #[command(flatten)]
    pub(crate) transfer: TransferOptions,
}

/// The arguments of `health`.
#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The server's URL [default: that of --listen]
    #[arg(long)]
    pub(crate) url: Option<BaseUrl>,
    /// The address that the server listens on [default: 127.0.0.1:8000]
    #[arg(long, env = "ZARRD_LISTEN", value_name = "IP:PORT")]
    pub(crate) listen: Option<Listen>,
    /// How long it may take to answer
    #[arg(long, value_name = "TIME", default_value = "3s")]
    pub(crate) timeout: humantime::Duration,
}
