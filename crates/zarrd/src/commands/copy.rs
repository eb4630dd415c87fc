//! `zarrd copy`: copies a store into a new one.

use zarrd_store::{Change, Intent, Prefix, StoreError, TransactionalStore};
use zarrd_store_local::{LocalStore, Purpose};

use super::{check_outside_store, copied_access::copy_access};
use crate::{
    config::{CopiedTokens, CopyConfig, IncompleteCopy, OnUnsupported},
    error::Error,
    open::{DirectoryState, directory_state, open_for, open_for_reading, settle_interrupted_operations},
    signals::{HangUp, Signals},
    transfer::{PresentValues, StoreSink, StoreSource, Transfer},
    ui::Progress,
};

const IN_USE: &str = "if that is a zarrd server, stop it first";
const RETRY: &str = "--resume goes on with it; to begin again, remove it";

/// Runs the command.
pub(super) async fn run(config: CopyConfig) -> Result<(), Error> {
    if config.incomplete == IncompleteCopy::Reject && directory_state(&config.to)? == DirectoryState::NotEmpty {
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

/// Finishes or undoes in the copy what was interrupted in the store, which itself is not changed.
async fn settle_in_copy(from: &LocalStore, to: &LocalStore) -> Result<(), StoreError> {
    let intents = from.intents().await?;
    for Intent { id, record } in intents {
        to.commit(vec![Change::AddIntent { id, record }]).await?;
    }
    settle_interrupted_operations(to).await;
    Ok(())
}

async fn copy(config: &CopyConfig, from: &LocalStore, signals: &mut Signals) -> Result<(), Error> {
    signals.check()?;
    // The store is not written meanwhile: a value in a copy of this state is the one of the store.
    let (purpose, present) = match config.incomplete {
        IncompleteCopy::Reject => (Purpose::Fill(Some(from.state()?)), PresentValues::Replace),
        IncompleteCopy::Resume => (Purpose::Resume(from.state()?), PresentValues::Keep),
    };
    let to = signals.finish(open_for(purpose, &config.to, config.write, IN_USE)).await?;
    let progress = Progress::start("copy");
    let source = StoreSource { store: from.clone(), prefix: Prefix::root(), max_keys: None };
    let sink = StoreSink { store: to.clone(), prefix: Prefix::root() };
    let transfer = Transfer {
        source: &source,
        sink: &sink,
        jobs: config.jobs,
        on_unsupported: OnUnsupported::Fail,
        present,
        progress: &progress,
    };
    let transferred = async {
        transfer.run().await?;
        settle_in_copy(from, &to).await?;
        copy_tokens(config)
    };
    let result = signals.unless_stopped(transferred).await;
    let result: Result<(), Error> = match result {
        Ok(()) => signals.finish(to.complete()).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    let result = result.and(signals.finish(to.close()).await.map_err(Into::into));
    progress.finish(&result);
    result.map_err(|error| Error::CopyIncomplete {
        location: config.to.clone(),
        advice: RETRY,
        source: Box::new(error),
    })
}
