//! `zarrd check`: every value of a store, read and compared with its checksums.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use store_local::{CheckReport, LocalStore};

use crate::{
    config::CheckConfig,
    exit::{self, Failure},
    opening::open_to_read,
    signals::{HangUp, Signals},
    ui::Progress,
};

const IN_USE: &str = "stop it first, or let it run: a server checks whatever it reads";

/// Checks.
pub(super) async fn run(config: CheckConfig) -> Result<(), Failure> {
    let mut signals = Signals::install(HangUp::Stops)?;
    let store = signals.finish(open_to_read(&config.store, IN_USE)).await?;
    if let Err(stopped) = signals.check() {
        return signals.finish(store.close()).await.map_err(Into::into).and(Err(stopped));
    }
    let progress = Progress::begin("check");
    progress.begin_moving();
    let result = signals.unless_stopped(read_all(&store, &progress)).await;
    let result = match result {
        // The thread that reads cannot be stopped, and closing would wait for it. Reading leaves nothing to be closed.
        Err(error @ Failure::Stopped { .. }) => Err(error),
        result => result.and(signals.finish(store.close()).await.map_err(Into::into)),
    };
    progress.finish(&result);
    result
}

async fn read_all(store: &LocalStore, progress: &Progress) -> Result<(), Failure> {
    let tally = Arc::clone(progress.tally());
    let count = move |report: &CheckReport| {
        tally.keys.store(report.keys, Relaxed);
        tally.bytes.store(report.bytes, Relaxed);
        tally.corrupt.store(report.corrupt, Relaxed);
    };
    let (report, damaged) = store.check(count).await?;
    for value in &damaged {
        progress.report(&format!("damaged: {:?}: {}", value.key, exit::chain(&value.cause)));
    }
    match report.corrupt {
        0 => Ok(()),
        damaged => Err(Failure::Damage { damaged, values: report.keys }),
    }
}
