//! Orphaned value files, which a crash leaves: staged and never committed, or replaced and not yet removed.

use std::{
    collections::HashSet,
    fs, io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    paths::Paths,
    record::{FileId, directory_name},
    values::{Directory, joined, remove_value},
};

/// The time that orphaned files stay while the store is open. A clock may be wrong for longer than that, and orphans
/// appear when a store is opened, so this is measured from then on: a store that is opened again keeps them anew.
pub(crate) const RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// What becomes of listed files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListedFiles {
    Keep,
    Remove,
}

/// The directory `orphans` of a store.
pub(crate) struct Orphans {
    paths: Paths,
    /// The size of its value files, in bytes, once it was listed.
    bytes: AtomicU64,
}

impl Orphans {
    pub(crate) fn new(paths: Paths) -> Self {
        Self { paths, bytes: AtomicU64::new(0) }
    }

    /// The size of the value files, in bytes, when the directory was last listed.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Deletes all value files, after [`RETENTION`]. Other files stay.
    pub(crate) fn prune(&self) -> io::Result<()> {
        let bytes = self.list(ListedFiles::Remove)?;
        if bytes > 0 {
            tracing::info!(bytes, "removed orphaned value files");
        }
        Ok(())
    }

    /// Lists the directory, for its size.
    pub(crate) fn measure(&self) -> io::Result<()> {
        self.list(ListedFiles::Keep).map(drop)
    }

    /// Deletes all value files, for their space. Returns their size in bytes.
    pub(crate) fn give_back(&self) -> io::Result<u64> {
        let bytes = self.list(ListedFiles::Remove)?;
        if bytes > 0 {
            tracing::warn!(bytes, "space is short: removed orphaned value files");
        }
        Ok(bytes)
    }

    /// Lists the value files. Returns the size of those that were removed, in bytes.
    fn list(&self, files: ListedFiles) -> io::Result<u64> {
        let entries = match fs::read_dir(self.paths.orphans()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let (mut removed, mut left) = (0_u64, 0_u64);
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str().and_then(FileId::from_name).is_none() {
                continue;
            }
            let metadata = entry.metadata()?;
            let joined = if metadata.is_dir() { joined::size(&entry.path())? } else { None };
            let bytes = joined.unwrap_or(metadata.len());
            if files == ListedFiles::Remove && (metadata.is_file() || joined.is_some()) {
                remove_value(&entry.path())?;
                removed = removed.saturating_add(bytes);
            } else {
                left = left.saturating_add(bytes);
            }
        }
        self.bytes.store(left, Ordering::Relaxed);
        Ok(removed)
    }

    /// Moves files of earlier epochs that are not in `referenced` (sorted) to `orphans`. Returns those of `referenced` that were
    /// not found.
    ///
    /// Files of this epoch are ignored, so this can run while the store is used: a referenced file that is replaced in the
    /// meantime is removed by the commit that replaced it.
    pub(crate) fn collect(
        &self,
        directory: &Directory,
        referenced: &[FileId],
        epoch: u64,
    ) -> io::Result<HashSet<FileId>> {
        let orphans = self.paths.orphans();
        directory.check_place().map_err(io::Error::other)?;
        fs::create_dir_all(&orphans)?;
        let mut found = vec![false; referenced.len()];
        let mut moved = 0_u64;
        for number in 0..=u8::MAX {
            for entry in fs::read_dir(directory.path().join(directory_name(number)))? {
                let entry = entry?;
                let name = entry.file_name();
                let Some(id) = name.to_str().and_then(FileId::from_name) else { continue };
                let place = referenced.binary_search(&id);
                if let Ok(place) = place
                    && let Some(found) = found.get_mut(place)
                {
                    *found = true;
                } else if id.epoch() < epoch {
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
            tracing::info!(files = moved, to = %self.paths.shown(&orphans).display(), "moved orphaned value files");
        }
        self.measure()?;
        let missing = referenced.iter().zip(found).filter(|(_, found)| !found).map(|(id, _)| *id);
        Ok(missing.collect())
    }
}

/// The value files that an earlier version moved to `lost+found`, which is the file system's: they are left there.
pub(crate) fn report_earlier(paths: &Paths) {
    let Ok(entries) = fs::read_dir(paths.dir.join("lost+found")) else { return };
    let is_value = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(FileId::from_name).is_some();
    let files = entries.flatten().filter(is_value).count();
    if files > 0 {
        tracing::info!(
            files,
            "an earlier version moved orphaned value files to lost+found; zarrd does not remove them"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_value_files_among_the_orphans_are_pruned() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        let orphans = Orphans::new(paths.clone());
        orphans.prune().unwrap();
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
        orphans.measure().unwrap();
        assert!(orphan.exists());
        orphans.prune().unwrap();
        assert!(!orphan.exists() && kept.iter().all(|file| file.exists()));
        fs::write(&orphan, "rescued").unwrap();
        orphans.measure().unwrap();
        assert_eq!(orphans.bytes(), 7);
        assert_eq!(orphans.give_back().unwrap(), 7);
        assert_eq!(orphans.bytes(), 0);
        assert!(!orphan.exists() && kept.iter().all(|file| file.exists()));
        assert_eq!(orphans.give_back().unwrap(), 0);
    }
}
