//! `zarrd backup`: backs up a store into a directory with earlier backups.

use std::{path::Path, sync::Arc};

use futures::TryFutureExt;
use zarrd_client::HttpSnapshot;
use zarrd_store::{Prefix, PrefixSnapshot, SnapshotStore};

use super::{canonical_path, copied_access::copy_directory};
use crate::{
    backup::{BackupDirectory, BackupError, Manifest, Tokens, take},
    config::{BackupConfig, Endpoint},
    error::Error,
    open::{self, open_for_reading},
    signals::{HangUp, Signals},
    transfer::TransferError,
    ui::{Progress, note},
};

const IN_USE: &str = "back up a running server with --server URL";

/// Runs the command.
pub(super) async fn run(config: BackupConfig) -> Result<(), Error> {
    if let Some(store) = config.store_directory()
        && canonical_path(&config.to)?.starts_with(canonical_path(store)?)
    {
        return Err(TransferError::InsideStore { directory: config.to.clone(), store: store.to_owned() }.into());
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    match &config.from {
        Endpoint::Local(location) => {
            let store = signals.finish(open_for_reading(location, IN_USE)).await?;
            let taken = signals.unless_stopped(store.snapshot_below(&Prefix::root()).err_into::<Error>()).await;
            let result = match taken {
                Ok(snapshot) => back_up(&config, &snapshot, &mut signals).await,
                Err(error) => Err(error),
            };
            result.and(signals.finish(store.close()).await.map_err(Into::into))
        }
        Endpoint::Server(server) => {
            let store = open::connect(server)?;
            let snapshot = signals.unless_stopped(store.snapshot_below(&Prefix::root()).err_into::<Error>()).await?;
            let shared: Arc<dyn PrefixSnapshot> = Arc::new(HttpSnapshot::clone(&snapshot));
            let result = back_up(&config, &shared, &mut signals).await;
            // The server ends it by itself if this fails.
            let _ = signals.finish(snapshot.end()).await;
            result
        }
    }
}

async fn back_up(
    config: &BackupConfig,
    snapshot: &Arc<dyn PrefixSnapshot>,
    signals: &mut Signals,
) -> Result<(), Error> {
    let directory = BackupDirectory::create(&config.to)?;
    let progress = Progress::start("backup");
    let copied = |to: &Path| copy_tokens(config, to);
    let taken = take(snapshot, &directory, config.jobs, config.verify, copied, &progress);
    let result = signals.unless_stopped(taken.err_into::<Error>()).await;
    let result = result.and_then(|manifest| finish(config, &directory, &manifest, &progress));
    progress.finish(&result);
    result
}

/// Removes old backups, and reports what the new one lacks.
fn finish(
    config: &BackupConfig,
    directory: &BackupDirectory,
    manifest: &Manifest,
    progress: &Progress,
) -> Result<(), Error> {
    progress.message(&format!("backup {} of {} keys", manifest.name, manifest.keys));
    if manifest.tokens == Tokens::LeftOut {
        progress.message("the tokens of the server are not part of it; --tokens names their directory");
    }
    if let Some(keep) = config.keep {
        directory.keep_newest(keep.get())?;
    }
    match u64::try_from(manifest.damaged.len()).unwrap_or(u64::MAX) {
        0 => Ok(()),
        count => {
            let advice = "the backup has all others; older backups may have these";
            Err(BackupError::Values { count, advice }.into())
        }
    }
}

fn copy_tokens(config: &BackupConfig, to: &Path) -> Result<Tokens, BackupError> {
    let Some(from) = &config.tokens else { return Ok(Tokens::LeftOut) };
    if !from.is_dir() {
        if matches!(config.from, Endpoint::Server(_)) {
            note(format_args!("{} is not a directory, so the backup has no tokens", from.display()));
            return Ok(Tokens::LeftOut);
        }
        return Ok(Tokens::None);
    }
    copy_directory(from, to).map_err(|source| BackupError::Io {
        action: "copy the tokens to",
        file: to.into(),
        source,
    })?;
    Ok(Tokens::Included)
}
