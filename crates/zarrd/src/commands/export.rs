//! `zarrd export`: copies a prefix of a store into a new directory.

use futures::TryFutureExt;
use zarrd_store::TransactionalStore;
use zarrd_store_local::LocalStore;

use super::{check_has_keys, check_outside_store};
use crate::{
    config::{Endpoint, ExportConfig},
    error::Error,
    open::OpenEndpoint,
    signals::{HangUp, Signals},
    transfer::{DirectorySink, PresentValues, Transfer},
    ui::Progress,
};

/// Runs the command.
pub(super) async fn run(config: ExportConfig) -> Result<(), Error> {
    if let Endpoint::Local(location) = &config.from {
        check_outside_store(&config.to, location)?;
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    let endpoint = signals.finish(OpenEndpoint::for_reading(&config.from)).await?;
    let progress = Progress::start("export");
    let result = signals.unless_stopped(export(&config, &endpoint, &progress)).await;
    let result = result.and(signals.finish(endpoint.close().err_into()).await);
    progress.finish(&result);
    result
}

/// Rejects a store in which an operation was interrupted: chunks that were about to be erased would be exported as well.
async fn check_settled(store: &LocalStore) -> Result<(), Error> {
    match store.intents().await?.len() {
        0 => Ok(()),
        operations => Err(Error::InterruptedOperations { operations }),
    }
}

async fn export(config: &ExportConfig, endpoint: &OpenEndpoint, progress: &Progress) -> Result<(), Error> {
    check_has_keys(endpoint.listable(), &config.prefix).await?;
    if let OpenEndpoint::Local(store) = endpoint {
        check_settled(store).await?;
    }
    let source = endpoint.source(config.prefix.clone()).await?;
    let sink = DirectorySink::create(&config.to)?;
    let transfer = Transfer {
        source: &*source,
        sink: &sink,
        jobs: config.jobs,
        on_unsupported: config.on_unsupported,
        present: PresentValues::Replace,
        progress,
    };
    let transferred = transfer.run().await;
    source.close().await;
    // The exported files are made durable even if others failed.
    let finished = sink.finish().await;
    Ok(transferred.and(finished)?)
}
