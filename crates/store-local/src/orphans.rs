//! Orphaned value files, which a crash leaves: staged and never committed, or replaced and not yet removed.

use std::{
    fs, io,
    time::{Duration, SystemTime},
};

use crate::{
    paths::Paths,
    record::{FileId, directory_name},
    values::Directory,
};

/// The time that an orphaned file stays in `lost+found`.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Moves orphaned files to `lost+found` on a thread of its own. `referenced` is sorted.
pub(crate) fn collect_orphans(paths: Paths, directory: Directory, referenced: Vec<FileId>, epoch: u64) {
    let work = move || {
        if let Err(error) = collect(&paths, &directory, &referenced, epoch) {
            tracing::warn!(%error, "could not collect orphaned value files");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("zarrd-collector".into()).spawn(work) {
        tracing::warn!(%error, "could not start the thread that collects orphaned value files");
    }
}

/// Deletes files that have been in `lost+found` longer than [`RETENTION`].
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
            && changed(&metadata).is_some_and(|then| now.duration_since(then).is_ok_and(|age| age > RETENTION))
        {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// The time of the file's last status change, which is when it was moved.
fn changed(metadata: &fs::Metadata) -> Option<SystemTime> {
    use std::os::unix::fs::MetadataExt;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(u64::try_from(metadata.ctime()).ok()?))
}

/// Moves files of earlier epochs that are not in `referenced` (sorted) to `lost+found`.
///
/// Files of this epoch are ignored, so this can run while the store is used: a referenced file that is replaced in the
/// meantime is removed by the commit that replaced it.
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
                    // It was replaced and removed in the meantime.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    moved => moved?,
                }
                moved = moved.saturating_add(1);
            }
        }
    }
    if moved > 0 {
        tracing::info!(files = moved, to = %lost.display(), "moved orphaned value files");
    }
    Ok(())
}
