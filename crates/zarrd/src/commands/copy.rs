//! `zarrd copy`: all of a store into a new one.

use store::Prefix;
use store_local::LocalStore;

use super::refuse_inside_store;
use crate::{
    config::{CopyConfig, OnRefused},
    exit::Failure,
    opening::{Occupancy, occupancy, open_existing, open_local},
    signals::unless_stopped,
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
    let from = open_existing(&config.from, IN_USE).await?;
    let copied = match open_local(&config.to, IN_USE).await {
        Ok(to) => fill(&config, &from, to).await,
        Err(error) => Err(error),
    };
    copied.and(from.close().await.map_err(Into::into))
}

async fn fill(config: &CopyConfig, from: &LocalStore, to: LocalStore) -> Result<(), Failure> {
    let progress = Progress::begin("copy");
    let source = StoreSource { store: from.clone(), prefix: Prefix::root() };
    let sink = StoreSink { store: to.clone(), prefix: Prefix::root() };
    let transfer =
        Transfer { source: &source, sink: &sink, jobs: config.jobs, refused: OnRefused::Stop, progress: &progress };
    let result = unless_stopped(transfer.run()).await;
    let result = result.and(to.close().await.map_err(Into::into));
    progress.finish(&result);
    result.map_err(|error| Failure::CopyIncomplete { location: config.to.clone(), source: Box::new(error) })
}
