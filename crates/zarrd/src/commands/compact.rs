//! `zarrd compact`: the index of a store, written anew without the space that changes have left in it.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use store_local::{CompactProgress, CompactReport, LocalStore};

use crate::{
    config::CompactConfig,
    exit::Failure,
    opening::open_existing_to_write,
    signals::{HangUp, Signals},
    ui::{self, Progress},
};

const IN_USE: &str = "if that is a zarrd server, it compacts its index by itself; else stop it first";

/// Compacts.
pub(super) async fn run(config: CompactConfig) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let store = signals.finish(open_existing_to_write(&config.store, config.write, IN_USE)).await?;
    let compacted = match signals.check() {
        Ok(()) => compact(&store, &mut signals).await,
        stopped => stopped,
    };
    compacted.and(signals.finish(store.close()).await.map_err(Into::into))
}

/// The store cannot be left in the middle, so a first signal waits for the end.
async fn compact(store: &LocalStore, signals: &mut Signals) -> Result<(), Failure> {
    let progress = Progress::begin("compact");
    progress.begin_moving();
    let tally = Arc::clone(progress.tally());
    let count = move |done: &CompactProgress| {
        tally.expected_keys.store(done.total_entries, Relaxed);
        tally.keys.store(done.copied_entries, Relaxed);
    };
    let compacted = signals.finish(store.compact(count)).await.map_err(Failure::from);
    if let Ok(CompactReport { before_bytes, after_bytes }) = &compacted {
        ui::note(format_args!("compact: the index had {before_bytes} bytes and has {after_bytes}"));
    }
    progress.finish(&compacted);
    compacted.map(drop)
}
