//! `zarrd copy`: copies a store into a new one.

use futures::TryFutureExt;
use zarrd_store::Prefix;
use zarrd_store_local::LocalStore;

use super::{check_outside_store, copied_access::copy_access};
use crate::{
    config::{CopiedTokens, CopyConfig, OnUnsupported},
    error::Error,
    open::{DirectoryState, create_incomplete, directory_state, open_for_reading},
    signals::{HangUp, Signals},
    transfer::{StoreSink, StoreSource, Transfer},
    ui::Progress,
};

const IN_USE: &str = "if that is a zarrd server, stop it first";

/// Runs the command.
pub(super) async fn run(config: CopyConfig) -> Result<(), Error> {
    if directory_state(&config.to)? == DirectoryState::NotEmpty {
        return Err(Error::CopyTargetNotEmpty { location: config.to });
    }
    if let Some(directory) = config.to.directory() {
        check_outside_store(directory, &config.from)?;
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    let from = signals.finish(open_for_reading(&config.from, IN_USE)).await?;
    let copied = copy(&config, &from, &mut signals).await;
    copied.and(signals.finish(from.close()).await.map_err(Into::into))
}

/// Copies the tokens in the store's directory, unless the copy is to be without.
fn copy_tokens(config: &CopyConfig) -> Result<(), Error> {
    match (config.tokens, config.from.directory(), config.to.directory()) {
        (CopiedTokens::All, Some(from), Some(to)) => copy_access(from, to).map_err(Error::CopiedAccess),
        _ => Ok(()),
    }
}

async fn copy(config: &CopyConfig, from: &LocalStore, signals: &mut Signals) -> Result<(), Error> {
    signals.check()?;
    let to = signals.finish(create_incomplete(&config.to, config.write, IN_USE)).await?;
    let progress = Progress::start("copy");
    let source = StoreSource { store: from.clone(), prefix: Prefix::root(), max_keys: None };
    let sink = StoreSink { store: to.clone(), prefix: Prefix::root() };
    let transfer = Transfer {
        source: &source,
        sink: &sink,
        jobs: config.jobs,
        on_unsupported: OnUnsupported::Fail,
        progress: &progress,
    };
    let result = signals.unless_stopped(transfer.run().err_into()).await.and_then(|()| copy_tokens(config));
    let result: Result<(), Error> = match result {
        Ok(()) => signals.finish(to.complete()).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    let result = result.and(signals.finish(to.close()).await.map_err(Into::into));
    progress.finish(&result);
    result.map_err(|error| Error::CopyIncomplete { location: config.to.clone(), source: Box::new(error) })
}
