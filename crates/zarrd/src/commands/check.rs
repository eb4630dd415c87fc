//! `zarrd check`: reads every value of a store and verifies its checksums, if it has any; names the nodes whose documents
//! of v2 and v3 differ.

use std::sync::{Arc, atomic::Ordering::Relaxed};

use futures::{TryFutureExt, TryStreamExt};
use zarrd_store::{Key, OpenOptions, Prefix, ServedStore, SnapshotStore, StoreError, list_all};
use zarrd_store_local::{CheckReport, Checked, LocalStore, UnreadableIndex};

use super::dialect_differences::{self, NodesOfBoth};
use crate::{
    config::{CheckConfig, Location},
    error::Error,
    open::{open_for_reading, open_foreign},
    signals::{HangUp, Signals},
    ui::{Progress, error_chain},
};

const IN_USE: &str = "stop it first, or let it run: a server verifies every value that it reads";

/// The number of values of a store that other programs write that are read at a time.
const CONCURRENT_READS: usize = 16;

/// Runs the command.
pub(super) async fn run(config: CheckConfig) -> Result<(), Error> {
    let mut signals = Signals::install(HangUp::Stop)?;
    if let Location::Foreign(url) = &config.store {
        let store = signals.unless_stopped(open_foreign(url, &OpenOptions::default()).err_into::<Error>()).await?;
        let progress = Progress::start("check");
        progress.start_processing();
        let result = signals.unless_stopped(read_all(&store, &progress)).await;
        progress.finish(&result);
        return result;
    }
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
    let Checked { report, corrupt, unreadable_index } = store.check(on_progress).await?;
    for value in &corrupt {
        progress.message(&format!("damaged: {:?}: {}", value.key, error_chain(&value.cause)));
    }
    let (corrupt, values) = (report.corrupt, report.keys);
    if let Some(UnreadableIndex { after, cause }) = unreadable_index {
        let after = after.map_or_else(|| "its first key".to_owned(), |key| format!("{key:?}"));
        progress.message(&format!("damaged: the index after {after}: {}", error_chain(&cause)));
        return Err(Error::UnreadableIndex { corrupt, values });
    }
    let damage = (corrupt > 0).then_some(Error::CorruptValues { corrupt, values });
    let nodes = match NodesOfBoth::of(store).await {
        Ok(nodes) => nodes,
        // A damaged store may have no listing.
        Err(error) => return Err(damage.unwrap_or_else(|| error.into())),
    };
    dialect_differences::report(nodes, Arc::new(store.clone()).into(), progress).await;
    damage.map_or(Ok(()), Err)
}

/// Reads the values of a store that other programs write, without checksums to compare them with.
async fn read_all(store: &Arc<dyn SnapshotStore>, progress: &Progress) -> Result<(), Error> {
    let counters = progress.counters();
    let mut nodes = NodesOfBoth::default();
    let listed = list_all(&**store, &Prefix::root()).inspect_ok(|entry| nodes.take(&entry.key));
    let read = listed.try_for_each_concurrent(CONCURRENT_READS, |entry| async move {
        match read_value(&**store, &entry.key).await {
            Ok(Some(size)) => {
                counters.keys.fetch_add(1, Relaxed);
                counters.bytes.fetch_add(size, Relaxed);
            }
            Ok(None) => _ = counters.vanished.fetch_add(1, Relaxed),
            Err(error @ (StoreError::Busy { .. } | StoreError::Backend { .. } | StoreError::Closed)) => {
                return Err(error);
            }
            Err(error) => {
                progress.message(&format!("cannot be read: {:?}: {}", entry.key, error_chain(&error)));
                counters.keys.fetch_add(1, Relaxed);
                counters.corrupt.fetch_add(1, Relaxed);
            }
        }
        Ok(())
    });
    read.await?;
    dialect_differences::report(nodes, ServedStore::read_only(Arc::clone(store)), progress).await;
    match counters.corrupt.load(Relaxed) {
        0 => Ok(()),
        corrupt => Err(Error::CorruptValues { corrupt, values: counters.keys.load(Relaxed) }),
    }
}

/// Reads a value to its end, and returns its size in bytes; `None` if it was removed after it had been listed.
async fn read_value(store: &dyn SnapshotStore, key: &Key) -> Result<Option<u64>, StoreError> {
    let Some(value) = store.get(key, None).await? else { return Ok(None) };
    value
        .stream
        .try_fold(0, |size: u64, bytes| async move { Ok(size.saturating_add(bytes.len() as u64)) })
        .await
        .map(Some)
}
