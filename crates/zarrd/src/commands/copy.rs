//! `zarrd copy`: all of a store into a new one.

use store::Prefix;
use store_local::LocalStore;

use super::refuse_inside_store;
use crate::{
    config::{CopyConfig, OnRefused},
    exit::Failure,
    opening::{Occupancy, make_to_fill, occupancy, open_to_read},
    signals::{HangUp, Signals},
    transfer::{StoreSink, StoreSource, Transfer},
    ui::Progress,
};

const IN_USE: &str = "if that is a zarrd server, stop it first";

/// Copies.
pub(super) async fn run(config: CopyConfig) -> Result<(), Failure> {
    if occupancy(&config.to)? == Occupancy::Occupied {
        return Err(Failure::CopyTarget { location: config.to });
    }
    if let Some(directory) = config.to.directory() {
        refuse_inside_store(directory, &config.from)?;
    }
    let mut signals = Signals::install(HangUp::Stops)?;
    let from = signals.finish(open_to_read(&config.from, IN_USE)).await?;
    let copied = fill(&config, &from, &mut signals).await;
    copied.and(signals.finish(from.close()).await.map_err(Into::into))
}

async fn fill(config: &CopyConfig, from: &LocalStore, signals: &mut Signals) -> Result<(), Failure> {
    signals.check()?;
    let to = signals.finish(make_to_fill(&config.to, config.write, IN_USE)).await?;
    let progress = Progress::begin("copy");
    let source = StoreSource { store: from.clone(), prefix: Prefix::root(), most: None };
    let sink = StoreSink { store: to.clone(), prefix: Prefix::root() };
    let transfer =
        Transfer { source: &source, sink: &sink, jobs: config.jobs, refused: OnRefused::Stop, progress: &progress };
    let result = signals.unless_stopped(transfer.run()).await;
    let result = match result {
        Ok(()) => signals.finish(to.complete()).await.map_err(Into::into),
        Err(error) => Err(error),
    };
    let result = result.and(signals.finish(to.close()).await.map_err(Into::into));
    progress.finish(&result);
    result.map_err(|error| Failure::CopyIncomplete { location: config.to.clone(), source: Box::new(error) })
}
