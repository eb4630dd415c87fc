//! `zarrd import`: copies a directory, a bucket, or a prefix of another server into a store.

use std::path::Path;

use futures::TryFutureExt;
use zarrd_store::Prefix;

use super::{canonical_path, check_has_keys, check_outside_store};
use crate::{
    config::{Endpoint, ImportConfig, ImportFrom, Location, ServerEndpoint},
    error::Error,
    open::{self, OpenSink},
    signals::{HangUp, Signals},
    transfer::{DirectorySource, Source, StoreSource, Transfer, TransferError},
    ui::Progress,
};

/// Runs the command.
pub(super) async fn run(config: ImportConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let source = signals.unless_stopped(source(&config)).await?;
    let endpoint = signals.finish(OpenSink::open(&config.to, config.write)).await?;
    let progress = Progress::start("import");
    let sink = endpoint.sink(config.prefix);
    let transfer = Transfer {
        source: &*source,
        sink: &*sink,
        jobs: config.jobs,
        on_unsupported: config.on_unsupported,
        progress: &progress,
    };
    let result = signals.unless_stopped(transfer.run().err_into()).await;
    let result = result.and(signals.finish(endpoint.close().err_into()).await);
    progress.finish(&result);
    result
}

async fn source(config: &ImportConfig) -> Result<Box<dyn Source>, Error> {
    match &config.from {
        ImportFrom::Remote(remote) => {
            let server = ServerEndpoint { base: remote.base.clone(), token: config.from_token.clone() };
            let store = open::connect(&server)?;
            check_has_keys(&store, &remote.prefix).await?;
            Ok(Box::new(StoreSource { store, prefix: remote.prefix.clone(), max_keys: Some(config.max_keys) }))
        }
        ImportFrom::Directory(directory) => {
            let source = DirectorySource::new(directory)?;
            if let Endpoint::Local(location) = &config.to {
                check_store_outside(directory, location)?;
                check_outside_store(directory, location)?;
            }
            Ok(Box::new(source))
        }
        ImportFrom::Foreign(from) => {
            if let (Location::Files(files), Endpoint::Local(location)) = (from, &config.to) {
                check_store_outside(&files.directory, location)?;
                check_outside_store(&files.directory, location)?;
            }
            let store = open::open_foreign(from).await?;
            Ok(Box::new(StoreSource { store, prefix: Prefix::root(), max_keys: Some(config.max_keys) }))
        }
    }
}

/// Fails if the store lies below the directory, and would be imported into itself: `zarrd import .` next to
/// `./zarrd-data`.
fn check_store_outside(directory: &Path, location: &Location) -> Result<(), Error> {
    let Some(store) = location.directory() else { return Ok(()) };
    let (inner, outer) = (canonical_path(store)?, canonical_path(directory)?);
    if inner != outer && inner.starts_with(outer) {
        return Err(TransferError::ContainsStore { directory: directory.to_owned(), store: store.to_owned() }.into());
    }
    Ok(())
}
