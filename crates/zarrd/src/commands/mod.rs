//! Commands.

mod append;
mod backup;
mod check;
mod compact;
mod copied_access;
mod copy;
mod dialect_differences;
mod disk_cache;
mod export;
pub(crate) mod get;
mod health;
mod import;
mod info;
mod login;
mod ls;
mod recover;
mod restore;
mod s3_profile;
mod serve;
mod share;
mod stats;
mod token;
mod tree;
mod upload_sweep;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use zarrd_client::NodePath;
use zarrd_store::{ListableStore, PageRequest, Prefix};

use crate::{
    cli::{Cli, Command},
    config::{
        AppendConfig, BackupConfig, CheckConfig, CompactConfig, ConfigFile, CopyConfig, Detail, ExportConfig,
        GetConfig, HealthConfig, ImportConfig, Location, LogConfig, NodeConfig, RecoverConfig, RestoreConfig,
        ServeConfig, ShareConfig, StatsConfig, TokenConfig,
    },
    error::Error,
    logging, open,
    transfer::TransferError,
};

/// Time for work on other threads to end after a command.
const RUNTIME_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Increment of the nice value of commands that read a whole store: on a busy machine they get a third of what others get,
/// and are not starved.
const NICER: i32 = 5;

/// Default log filter of `serve`.
const SERVER_LOG_FILTER: &str = "info";

/// Default log filter of the other commands.
const COMMAND_LOG_FILTER: &str = "warn";

/// Runs a command.
pub(crate) fn run(cli: Cli) -> Result<(), Error> {
    let file = ConfigFile::load(cli.config.as_deref())?;
    let filter = if matches!(cli.command, Command::Serve(_)) { SERVER_LOG_FILTER } else { COMMAND_LOG_FILTER };
    logging::start(LogConfig::new(cli.log, &file, filter)?);
    if matches!(cli.command, Command::Backup(_) | Command::Export(_) | Command::Check(_)) {
        // Before there are other threads, which inherit it.
        zarrd_executor::lower_priority(NICER)();
    }
    let runtime = tokio::runtime::Runtime::new().map_err(Error::Runtime)?;
    let result = runtime.block_on(dispatch(cli.command, &file));
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN_TIMEOUT);
    result
}

async fn dispatch(command: Command, file: &ConfigFile) -> Result<(), Error> {
    match command {
        Command::Serve(args) => serve::run(ServeConfig::new(args, file)?).await,
        Command::Import(args) => import::run(ImportConfig::new(args, file)?).await,
        Command::Export(args) => export::run(ExportConfig::new(args, file)?).await,
        Command::Ls(args) => {
            let detail = Detail::new(args.long);
            ignore_broken_pipe(ls::run(NodeConfig::new(args.node, file, "ls")?, detail).await)
        }
        Command::Tree(args) => {
            ignore_broken_pipe(tree::run(NodeConfig::new(args.node, file, "tree")?, args.depth).await)
        }
        Command::Info(args) => ignore_broken_pipe(info::run(NodeConfig::new(args.node, file, "info")?).await),
        Command::Get(args) => ignore_broken_pipe(get::run(GetConfig::new(args, file)?).await),
        Command::Stats(args) => ignore_broken_pipe(stats::run(StatsConfig::new(args, file)?).await),
        Command::Append(args) => append::run(AppendConfig::new(args)?).await,
        Command::Check(args) => check::run(CheckConfig::new(args.store, file)?).await,
        Command::Compact(args) => compact::run(CompactConfig::new(args, file)?).await,
        Command::Copy(args) => copy::run(CopyConfig::new(args, file)?).await,
        Command::Backup(args) => backup::run(BackupConfig::new(args, file)?).await,
        Command::Restore(args) => restore::run(RestoreConfig::new(args, file)?).await,
        Command::Recover(args) => recover::run(RecoverConfig::new(args, file)?).await,
        Command::Health(args) => health::run(HealthConfig::new(args, file)?).await,
        Command::Token(args) => token::run(TokenConfig::new(args, file)?),
        Command::Share(args) => share::run(ShareConfig::new(args)?).await,
        Command::Login(args) => login::login(&args.server),
        Command::Logout(args) => login::logout(&args.server),
    }
}

/// Treats a closed stdout as success: the reader, such as `head`, has seen enough.
fn ignore_broken_pipe(result: Result<(), Error>) -> Result<(), Error> {
    match result {
        Err(Error::Output(error)) if error.is_broken_pipe() => Ok(()),
        result => result,
    }
}

/// The path of a child node.
fn child_path(path: &NodePath, name: &str) -> Result<NodePath, Error> {
    let child = format!("{}{name}", path.key_prefix());
    NodePath::parse(&child).map_err(|source| Error::NodeName { path: child, source })
}

/// Fails if a prefix other than the root has no keys, since it was probably misspelled.
async fn check_has_keys(store: &dyn ListableStore, prefix: &Prefix) -> Result<(), Error> {
    if prefix.is_root() || !store.list_prefix(prefix, PageRequest::first(1)).await?.keys.is_empty() {
        return Ok(());
    }
    Err(TransferError::NoKeys { prefix: prefix.clone() }.into())
}

/// Fails if `directory` is the directory of a store, or lies within it.
fn check_outside_store(directory: &Path, store: &Location) -> Result<(), Error> {
    let Some(store) = store.directory() else { return Ok(()) };
    if canonical_path(directory)?.starts_with(canonical_path(store)?) {
        return Err(TransferError::InsideStore { directory: directory.to_owned(), store: store.to_owned() }.into());
    }
    Ok(())
}

fn canonical_path(path: &Path) -> Result<PathBuf, Error> {
    open::canonical_path(path).map_err(Error::ResolvePath)
}
