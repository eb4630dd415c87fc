//! `zarrd import`: copies a directory, a bucket, or a prefix of another server into a store.

use std::path::Path;

use futures::TryFutureExt;
use zarrd_store::{OpenOptions, Prefix, WriteableStore};
use zarrd_store_local::DirectoryForm;

use super::{canonical_path, check_has_keys, check_outside_store};
use crate::{
    config::{Endpoint, IfKeysExist, ImportConfig, ImportFrom, Location, ServerEndpoint},
    error::Error,
    open::{self, OpenSink},
    signals::{HangUp, Signals},
    transfer::{
        DirectorySource, PresentValues, Source, StoreSource, Transfer, TransferError, has_keys, placement,
        server_source,
    },
    ui::Progress,
};

/// Runs the command.
pub(super) async fn run(config: ImportConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let source = signals.unless_stopped(source(&config)).await?;
    if config.if_exists == IfKeysExist::Overwrite && config.prefix.is_root() {
        return Err(TransferError::OverwriteRoot.into());
    }
    let endpoint = signals.finish(OpenSink::open(&config.to, config.write)).await?;
    let progress = Progress::start("import");
    let result = signals.unless_stopped(transfer(&config, &*source, &endpoint, &progress)).await;
    source.close().await;
    if let (OpenSink::Local(store), Err(_), IfKeysExist::Overwrite) = (&endpoint, &result, config.if_exists) {
        // The error of the import is the one to report; what remains is erased by the next one.
        let _ = signals.finish(placement::hidden(store)).await;
    }
    let result = result.and(signals.finish(endpoint.close().err_into()).await);
    progress.finish(&result);
    result
}

/// Copies the keys, as the target and its keys allow.
async fn transfer(
    config: &ImportConfig,
    source: &dyn Source,
    endpoint: &OpenSink,
    progress: &Progress,
) -> Result<(), Error> {
    let ImportConfig { prefix, jobs, on_unsupported, .. } = config;
    let present = match config.if_exists {
        IfKeysExist::Resume => PresentValues::Keep,
        IfKeysExist::Fail | IfKeysExist::Merge | IfKeysExist::Overwrite => PresentValues::Replace,
    };
    let to = |sink| Transfer { source, sink, jobs: *jobs, on_unsupported: *on_unsupported, present, progress };
    let overwrites = match config.if_exists {
        IfKeysExist::Merge | IfKeysExist::Resume => false,
        IfKeysExist::Fail if has_keys(endpoint.listable(), prefix).await? => {
            return Err(TransferError::TargetNotEmpty { prefix: prefix.clone() }.into());
        }
        IfKeysExist::Fail => false,
        IfKeysExist::Overwrite => has_keys(endpoint.listable(), prefix).await?,
    };
    match endpoint {
        OpenSink::Local(store) if overwrites => {
            let failed = |source| TransferError::Place { prefix: prefix.clone(), source };
            let hidden = placement::hidden(store).await.map_err(failed)?;
            to(&*endpoint.sink(hidden.clone())).run().await?;
            placement::put_in_place(store, &hidden, prefix).await.map_err(failed)?;
        }
        OpenSink::Server(store) if overwrites => {
            let sink = endpoint.sink(prefix.clone());
            let transfer = to(&*sink);
            // A server has no way to move keys. What is missing shows as such until the documents come, the last ones.
            let documents = transfer.list_source().await?;
            store.erase_prefix(prefix).await?;
            transfer.copy(documents).await?;
        }
        OpenSink::Local(_) | OpenSink::Server(_) => to(&*endpoint.sink(prefix.clone())).run().await?,
    }
    Ok(())
}

async fn source(config: &ImportConfig) -> Result<Box<dyn Source>, Error> {
    match &config.from {
        ImportFrom::Remote(remote) => {
            let server = ServerEndpoint { base: remote.base.clone(), token: config.from_token.clone() };
            let store = open::connect(&server)?;
            check_has_keys(&store, &remote.prefix).await?;
            Ok(server_source(store, remote.prefix.clone(), config.max_keys).await?)
        }
        ImportFrom::Directory(directory) => {
            let source = DirectorySource::new(directory, config.private.clone())?;
            check_not_own(directory)?;
            if let Endpoint::Local(location) = &config.to {
                check_store_outside(directory, location)?;
                check_outside_store(directory, location)?;
            }
            Ok(Box::new(source))
        }
        ImportFrom::Foreign(from) => {
            if let Some(directory) = from.directory() {
                check_not_own(directory)?;
                if let Endpoint::Local(location) = &config.to {
                    check_store_outside(directory, location)?;
                    check_outside_store(directory, location)?;
                }
            }
            let store = open::open_foreign(from, &OpenOptions { excluded: &config.private, pieces: None }).await?;
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

/// Fails if the directory is a store or an access directory of zarrd, whose files are no keys.
fn check_not_own(directory: &Path) -> Result<(), Error> {
    let own = |part: &str| TransferError::OwnDirectory { directory: directory.to_owned(), part: part.to_owned() };
    match DirectoryForm::of(directory).map_err(Error::ResolvePath)? {
        DirectoryForm::Store => Err(own("zarrd.json").into()),
        DirectoryForm::Part(part) => Err(own(&part).into()),
        DirectoryForm::Empty | DirectoryForm::Foreign => Ok(()),
    }
}
