//! `zarrd import`: a directory, or a prefix of another server, into a store.

use super::{refuse_inside_store, refuse_nothing, resolve};
use crate::{
    config::{ImportConfig, ImportFrom, Location, Place},
    exit::Failure,
    opening::{self, OpenPlace},
    signals::{HangUp, Signals},
    transfer::{DirectorySource, Source, StoreSource, Transfer, TransferError},
    ui::Progress,
};

/// Imports.
pub(super) async fn run(config: ImportConfig) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let source = signals.unless_stopped(source(&config)).await?;
    let place = signals.finish(OpenPlace::for_writing(&config.to, config.write)).await?;
    let progress = Progress::begin("import");
    let sink = place.sink(config.prefix);
    let transfer =
        Transfer { source: &*source, sink: &*sink, jobs: config.jobs, refused: config.refused, progress: &progress };
    let result = signals.unless_stopped(transfer.run()).await;
    let result = result.and(signals.finish(place.close()).await);
    progress.finish(&result);
    result
}

async fn source(config: &ImportConfig) -> Result<Box<dyn Source>, Failure> {
    match &config.from {
        ImportFrom::Remote(remote) => {
            let store = opening::remote(&remote.base)?;
            refuse_nothing(&store, &remote.prefix).await?;
            Ok(Box::new(StoreSource { store, prefix: remote.prefix.clone(), most: Some(config.max_keys) }))
        }
        ImportFrom::Directory(directory) => {
            let source = DirectorySource::new(directory)?;
            if let Place::Local(location) = &config.to {
                refuse_store_inside(directory, location)?;
                refuse_inside_store(directory, location)?;
            }
            Ok(Box::new(source))
        }
    }
}

/// A store below the directory would be imported into itself: `zarrd import .` beside `./zarrd-data`.
fn refuse_store_inside(directory: &std::path::Path, location: &Location) -> Result<(), Failure> {
    let Some(store) = location.directory() else { return Ok(()) };
    let (inner, outer) = (resolve(store)?, resolve(directory)?);
    if inner != outer && inner.starts_with(outer) {
        return Err(TransferError::StoreInside { directory: directory.to_owned(), store: store.to_owned() }.into());
    }
    Ok(())
}
