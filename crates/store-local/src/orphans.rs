//! Collecting the value files that a crash left: staged and never committed, or replaced and not yet removed.

use std::{
    fs, io,
    time::{Duration, SystemTime},
};

use crate::{
    paths::Paths,
    record::{FileId, directory_name},
    values::Directory,
};

/// How long a collected file is kept in `lost+found`.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// Moves files that nothing refers to out of the way, on a thread of its own. `referenced` is sorted.
pub(crate) fn collect_orphans(paths: Paths, directory: Directory, referenced: Vec<FileId>, epoch: u64) {
    let work = move || {
        if let Err(error) = collect(&paths, &directory, &referenced, epoch) {
            tracing::warn!(%error, "could not collect the value files that nothing refers to");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("zarrd-collector".into()).spawn(work) {
        tracing::warn!(%error, "could not start the collector");
    }
}

/// Deletes what has been in `lost+found` for long.
pub(crate) fn prune_lost_and_found(paths: &Paths) -> io::Result<()> {
    let now = SystemTime::now();
    let entries = match fs::read_dir(paths.lost_and_found()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file()
            && changed(&metadata).is_some_and(|then| now.duration_since(then).is_ok_and(|age| age > KEPT))
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// When the file's own entry last changed, which is when it was moved here.
fn changed(metadata: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(metadata.ctime()).ok()?))
}

/// Moves files of earlier epochs that are not among `referenced` (sorted) to `lost+found`.
///
/// Files of this epoch are left alone, so it can run beside everything else: what was referenced when the store was
/// opened and has been replaced since is removed by whoever replaced it.
fn collect(paths: &Paths, directory: &Directory, referenced: &[FileId], epoch: u64) -> io::Result<()> {
    let lost = paths.lost_and_found();
    fs::create_dir_all(&lost)?;
    let mut moved = 0_u64;
    for number in 0..=u8::MAX {
        for entry in fs::read_dir(directory.path().join(directory_name(number)))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(FileId::from_name) else { continue };
            if id.epoch() < epoch && referenced.binary_search(&id).is_err() {
                match fs::rename(entry.path(), lost.join(&name)) {
                    // It was replaced, and removed, meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    moved => moved?,
                }
                moved = moved.saturating_add(1);
            }
        }
    }
    if moved > 0 {
        tracing::info!(files = moved, to = %lost.display(), "moved value files that nothing refers to");
    }
    Ok(())
}
