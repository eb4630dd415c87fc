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

/// The time that an orphaned file is kept.
const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Moves orphaned files to `orphans` on a thread of its own. `referenced` is sorted.
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

/// Deletes value files that have been in `orphans` for longer than [`RETENTION`] at the time `now`. Other files there stay.
pub(crate) fn prune(paths: &Paths, now: SystemTime) -> io::Result<()> {
    let entries = match fs::read_dir(paths.orphans()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().and_then(FileId::from_name).is_none() {
            continue;
        }
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

/// Moves files of earlier epochs that are not in `referenced` (sorted) to `orphans`.
///
/// Files of this epoch are ignored, so this can run while the store is used: a referenced file that is replaced in the
/// meantime is removed by the commit that replaced it.
fn collect(paths: &Paths, directory: &Directory, referenced: &[FileId], epoch: u64) -> io::Result<()> {
    let orphans = paths.orphans();
    fs::create_dir_all(&orphans)?;
    let mut moved = 0_u64;
    for number in 0..=u8::MAX {
        for entry in fs::read_dir(directory.path().join(directory_name(number)))? {
            let entry = entry?;
            let name = entry.file_name();
            let Some(id) = name.to_str().and_then(FileId::from_name) else { continue };
            if id.epoch() < epoch && referenced.binary_search(&id).is_err() {
                match fs::rename(entry.path(), orphans.join(&name)) {
                    // It was replaced and removed in the meantime.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    moved => moved?,
                }
                moved = moved.saturating_add(1);
            }
        }
    }
    if moved > 0 {
        tracing::info!(files = moved, to = %orphans.display(), "moved orphaned value files");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_value_files_among_the_orphans_are_pruned() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths { dir: dir.path().to_owned() };
        prune(&paths, SystemTime::now()).unwrap();
        let name = format!("{:016x}", (1_u64 << 40) | 0xff);
        // What a check of the file system rescued is at the root of a disk of its own.
        let kept = [
            dir.path().join("lost+found/#12345"),
            dir.path().join("lost+found").join(&name),
            paths.orphans().join("notes"),
        ];
        let orphan = paths.orphans().join(&name);
        for file in kept.iter().chain([&orphan]) {
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "rescued").unwrap();
        }
        prune(&paths, SystemTime::now()).unwrap();
        assert!(orphan.exists());
        prune(&paths, SystemTime::now() + RETENTION + Duration::from_secs(60)).unwrap();
        assert!(!orphan.exists() && kept.iter().all(|file| file.exists()));
    }
}
