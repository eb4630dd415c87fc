//! `zarrd compact`: rewrites the index of a store without unused space.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use zarrd_store_local::{CompactProgress, CompactReport, LocalStore};

use crate::{
    config::CompactConfig,
    error::Error,
    open::open_existing_for_writing,
    signals::{HangUp, Signals},
    ui::{self, Progress},
};

const IN_USE: &str = "if that is a zarrd server, it compacts its index by itself; else stop it first";

/// Runs the command.
pub(super) async fn run(config: CompactConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let store = signals.finish(open_existing_for_writing(&config.store, config.write, IN_USE)).await?;
    let compacted = match signals.check() {
        Ok(()) => compact(&store, &mut signals).await,
        Err(stopped) => Err(stopped.into()),
    };
    compacted.and(signals.finish(store.close()).await.map_err(Into::into))
}

/// Compaction cannot be interrupted, so the first signal waits for its end.
async fn compact(store: &LocalStore, signals: &mut Signals) -> Result<(), Error> {
    let progress = Progress::start("compact");
    progress.start_processing();
    let counters = Arc::clone(progress.counters());
    let on_progress = move |progress: &CompactProgress| {
        counters.expected_keys.store(progress.total_entries, Relaxed);
        counters.keys.store(progress.copied_entries, Relaxed);
    };
    let compacted = signals.finish(store.compact(on_progress)).await.map_err(Error::from);
    if let Ok(CompactReport { before_bytes, after_bytes }) = &compacted {
        if after_bytes == before_bytes {
            ui::note(format_args!(
                "compact: a new index would not be smaller; it stays as it is, with {before_bytes} bytes"
            ));
        } else {
            ui::note(format_args!("compact: the size of the index was {before_bytes} bytes and is {after_bytes}"));
        }
    }
    progress.finish(&compacted);
    compacted.map(drop)
}
