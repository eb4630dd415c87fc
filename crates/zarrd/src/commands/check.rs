//! `zarrd check`: reads every value of a store and verifies its checksums.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use store_local::{CheckReport, LocalStore};

use crate::{
    config::CheckConfig,
    error::Error,
    open::open_for_reading,
    signals::{HangUp, Signals},
    ui::{Progress, error_chain},
};

const IN_USE: &str = "stop it first, or let it run: a server verifies every value that it reads";

/// Checks.
pub(super) async fn run(config: CheckConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    let store = signals.finish(open_for_reading(&config.store, IN_USE)).await?;
    if let Err(stopped) = signals.check() {
        return signals.finish(store.close()).await.map_err(Into::into).and(Err(stopped.into()));
    }
    let progress = Progress::start("check");
    progress.start_processing();
    let result = signals.unless_stopped(check_all(&store, &progress)).await;
    let result = match result {
        // The reading thread cannot be stopped, and closing would wait for it. A store that was only read needs no
        // closing.
        Err(error @ Error::Stopped(_)) => Err(error),
        result => result.and(signals.finish(store.close()).await.map_err(Into::into)),
    };
    progress.finish(&result);
    result
}

async fn check_all(store: &LocalStore, progress: &Progress) -> Result<(), Error> {
    let counters = Arc::clone(progress.counters());
    let on_progress = move |report: &CheckReport| {
        counters.keys.store(report.keys, Relaxed);
        counters.bytes.store(report.bytes, Relaxed);
        counters.corrupt.store(report.corrupt, Relaxed);
    };
    let (report, corrupt) = store.check(on_progress).await?;
    for value in &corrupt {
        progress.message(&format!("damaged: {:?}: {}", value.key, error_chain(&value.cause)));
    }
    match report.corrupt {
        0 => Ok(()),
        corrupt => Err(Error::CorruptValues { corrupt, values: report.keys }),
    }
}
