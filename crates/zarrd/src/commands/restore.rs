//! `zarrd restore`: creates a store from a backup.

use zarrd_store_local::{LocalStore, Purpose};

use super::{canonical_path, copied_access::copy_directory};
use crate::{
    backup::{BackupDirectory, BackupError, Manifest, Tokens, restore},
    config::{ACCESS, CopiedTokens, Location, RestoreConfig},
    error::Error,
    open::{DirectoryState, directory_state, open_for, settle_interrupted_operations},
    signals::{HangUp, Signals},
    transfer::TransferError,
    ui::{Output, Progress},
};

const IN_USE: &str = "a backup is restored into a new store";
const RETRY: &str = "remove it before you retry";

/// Runs the command.
pub(super) async fn run(config: RestoreConfig) -> Result<(), Error> {
    let directory = BackupDirectory::open(&config.from)?;
    let Some(to) = &config.to else { return list(&directory) };
    let manifest = directory.find(config.backup.as_deref())?;
    if manifest.tokens == Tokens::LeftOut && config.tokens == CopiedTokens::All {
        return Err(BackupError::WithoutTokens { name: manifest.name }.into());
    }
    if directory_state(to)? == DirectoryState::NotEmpty {
        return Err(Error::CopyTargetNotEmpty { location: to.clone() });
    }
    if let Some(target) = to.directory()
        && canonical_path(target)?.starts_with(canonical_path(directory.path())?)
    {
        let (directory, store) = (target.to_owned(), directory.path().to_owned());
        return Err(TransferError::InsideStore { directory, store }.into());
    }
    let mut signals = Signals::install(HangUp::Stop)?;
    let store = signals.finish(open_for(Purpose::Fill(None), to, config.write, IN_USE)).await?;
    let progress = Progress::start("restore");
    let result = signals.unless_stopped(fill(&config, &directory, &manifest, to, &store, &progress)).await;
    let result = match result {
        Ok(failed) => signals.finish(store.complete()).await.map(|()| failed).map_err(Error::from),
        Err(error) => Err(error),
    };
    let closed = signals.finish(store.close()).await.map_err(Error::from);
    let result = result.and_then(|failed| closed.map(|()| failed));
    let result = result
        .map_err(|error| Error::CopyIncomplete { location: to.clone(), advice: RETRY, source: Box::new(error) })
        .and_then(|failed| match failed {
            0 => Ok(()),
            count => Err(BackupError::Values { count, advice: "the store has all others" }.into()),
        });
    progress.finish(&result);
    result
}

/// Restores everything but the completion of the store. Returns the number of values that were skipped.
async fn fill(
    config: &RestoreConfig,
    directory: &BackupDirectory,
    manifest: &Manifest,
    to: &Location,
    store: &LocalStore,
    progress: &Progress,
) -> Result<u64, Error> {
    let failed = restore(directory, manifest, store, config.jobs, config.damaged, progress).await?;
    settle_interrupted_operations(store).await;
    if let (CopiedTokens::All, Tokens::Included, Some(target)) = (config.tokens, manifest.tokens, to.directory()) {
        copy_directory(&directory.access(&manifest.name), &target.join(ACCESS)).map_err(Error::CopiedAccess)?;
    }
    Ok(failed)
}

/// Prints the backups, one JSON object per line.
fn list(directory: &BackupDirectory) -> Result<(), Error> {
    let mut output = Output::default();
    for manifest in directory.manifests()? {
        output.json(&manifest)?;
    }
    Ok(output.finish()?)
}
