//! What each command does.

mod check;
mod compact;
mod copy;
mod export;
mod health;
mod import;
mod info;
mod ls;
mod serve;
mod tree;

use std::{path::Path, time::Duration};

use client::NodePath;
use store::{ListableStore, PageRequest, Prefix};

use crate::{
    cli::{Cli, Command},
    config::{
        CheckConfig, CompactConfig, CopyConfig, Detail, ExportConfig, File, HealthConfig, ImportConfig, Location,
        LogConfig, LookConfig, ServeConfig,
    },
    exit::Failure,
    log, opening,
    transfer::TransferError,
};

/// How long work that cannot be dropped may go on after a command is done.
const LAST_WORK: Duration = Duration::from_secs(5);

/// What commands log that are not servers.
const QUIET: &str = "warn";

/// What a server logs.
const TALKATIVE: &str = "info";

/// Runs a command to its end.
pub(crate) fn run(cli: Cli) -> Result<(), Failure> {
    let file = File::load(cli.config.as_deref())?;
    let default = if matches!(cli.command, Command::Serve(_)) { TALKATIVE } else { QUIET };
    log::begin(LogConfig::new(cli.log, &file, default)?);
    let runtime = tokio::runtime::Runtime::new()
        .map_err(|source| Failure::System { action: "start the threads of the program", source })?;
    let result = runtime.block_on(dispatch(cli.command, &file));
    runtime.shutdown_timeout(LAST_WORK);
    result
}

async fn dispatch(command: Command, file: &File) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::run(ServeConfig::new(args.store, &args.write, args.serve, file)?).await,
        Command::Import(args) => import::run(ImportConfig::new(args, file)?).await,
        Command::Export(args) => export::run(ExportConfig::new(args, file)?).await,
        Command::Ls(args) => heard(ls::run(LookConfig::new(args.at, file, "ls")?, Detail::new(args.long)).await),
        Command::Tree(args) => heard(tree::run(LookConfig::new(args.at, file, "tree")?, args.depth).await),
        Command::Info(args) => heard(info::run(LookConfig::new(args.at, file, "info")?).await),
        Command::Check(args) => check::run(CheckConfig::new(args.store, file)?).await,
        Command::Compact(args) => compact::run(CompactConfig::new(args, file)?).await,
        Command::Copy(args) => copy::run(CopyConfig::new(args, file)?).await,
        Command::Health(args) => health::run(HealthConfig::new(args, file)?).await,
    }
}

/// Whoever stops listening, as `head` does, has heard enough.
fn heard(result: Result<(), Failure>) -> Result<(), Failure> {
    match result {
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// The path of a node below another.
fn below(path: &NodePath, name: &str) -> Result<NodePath, Failure> {
    let child = format!("{}{name}", path.key_prefix());
    NodePath::parse(&child).map_err(|source| Failure::NodeName { path: child, source })
}

/// Fails where a prefix that was named has no keys, which is more likely a slip of the pen than what was meant.
async fn refuse_nothing(store: &dyn ListableStore, prefix: &Prefix) -> Result<(), Failure> {
    if prefix.is_root() || !store.list_prefix(prefix, PageRequest::first(1)).await?.keys.is_empty() {
        return Ok(());
    }
    Err(TransferError::Nothing { prefix: prefix.clone() }.into())
}

/// Fails where `directory` is, or lies in, the directory of a store.
fn refuse_inside_store(directory: &Path, store: &Location) -> Result<(), Failure> {
    let Some(store) = store.directory() else { return Ok(()) };
    if resolve(directory)?.starts_with(resolve(store)?) {
        return Err(TransferError::InStore { directory: directory.to_owned(), store: store.to_owned() }.into());
    }
    Ok(())
}

fn resolve(path: &Path) -> Result<std::path::PathBuf, Failure> {
    opening::resolved(path).map_err(|source| Failure::System { action: "find out where a directory is", source })
}
