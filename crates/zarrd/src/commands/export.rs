//! `zarrd export`: a prefix of a store into a new directory.

use super::{refuse_inside_store, refuse_nothing};
use crate::{
    config::{ExportConfig, Place},
    exit::Failure,
    opening::OpenPlace,
    signals::{HangUp, Signals},
    transfer::{DirectorySink, Transfer},
    ui::Progress,
};

/// Exports.
pub(super) async fn run(config: ExportConfig) -> Result<(), Failure> {
    if let Place::Local(location) = &config.from {
        refuse_inside_store(&config.to, location)?;
    }
    let mut signals = Signals::install(HangUp::Stops)?;
    let place = signals.finish(OpenPlace::for_reading(&config.from)).await?;
    let progress = Progress::begin("export");
    let result = signals.unless_stopped(fill(&config, &place, &progress)).await;
    let result = result.and(signals.finish(place.close()).await);
    progress.finish(&result);
    result
}

async fn fill(config: &ExportConfig, place: &OpenPlace, progress: &Progress) -> Result<(), Failure> {
    refuse_nothing(place.listable(), &config.prefix).await?;
    let source = place.source(config.prefix.clone());
    let sink = DirectorySink::create(&config.to)?;
    let transfer = Transfer { source: &*source, sink: &sink, jobs: config.jobs, refused: config.refused, progress };
    let moved = transfer.run().await;
    // What could be moved is made durable, whatever could not.
    let finished = sink.finish().await;
    Ok(moved.and(finished)?)
}
