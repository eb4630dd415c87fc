//! A directory with the backups of a store.

use std::{
    collections::HashSet,
    fs::{self, DirBuilder, File, TryLockError},
    io::Write,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use serde::{Serialize, de::DeserializeOwned};

use super::{
    BackupError, Manifest,
    manifest::{FORMAT, Identity, PLAIN_FORMAT},
    pool::{Pool, parse_version},
    records::RecordsReader,
};

const IDENTITY: &str = "zarrd-backup.json";
const BACKUPS: &str = "backups";

/// A directory with the backups of a store, locked until it is dropped.
#[derive(Debug)]
pub(crate) struct BackupDirectory {
    root: PathBuf,
    _lock: Option<File>,
}

impl BackupDirectory {
    /// Opens the directory for taking a backup. Creates it if it is missing or empty.
    pub(crate) fn create(root: &Path) -> Result<Self, BackupError> {
        // Only its owner may read what may be private.
        let created = DirBuilder::new().recursive(true).mode(0o700).create(root.join(BACKUPS));
        created.map_err(BackupError::io("create", root))?;
        let identity = root.join(IDENTITY);
        if !identity.exists() {
            let mut others = fs::read_dir(root).map_err(BackupError::io("list", root))?;
            // An interrupted first backup leaves it.
            let unfinished = partial(&identity);
            let is_foreign = others.any(|entry| {
                entry.is_ok_and(|entry| {
                    let name = entry.file_name();
                    let is_own = ["lock", BACKUPS, "values", "lost+found"].iter().any(|own| name == *own);
                    !is_own && entry.path() != unfinished
                })
            });
            if is_foreign {
                // Nothing of ours is left in a directory of others.
                let _ = fs::remove_dir(root.join(BACKUPS));
                return Err(BackupError::NotBackups { directory: root.to_owned() });
            }
        }
        let path = root.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path);
        let lock = lock.map_err(BackupError::io("create", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(BackupError::InUse { directory: root.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(BackupError::io("lock", path)(error)),
        }
        let directory = Self { root: root.to_owned(), _lock: Some(lock) };
        if !identity.exists() {
            directory.write_json(&identity, &Identity { format: PLAIN_FORMAT, store: None })?;
        }
        directory.identity()?;
        directory.pool().prepare()?;
        directory.remove_unfinished()?;
        Ok(directory)
    }

    /// Opens the directory for restoring, which may be on a read-only file system.
    pub(crate) fn open(root: &Path) -> Result<Self, BackupError> {
        if !root.join(IDENTITY).is_file() {
            return Err(BackupError::NoBackup { directory: root.to_owned(), named: None });
        }
        let lock = File::open(root.join("lock")).ok();
        if let Some(lock) = &lock
            && matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock))
        {
            return Err(BackupError::InUse { directory: root.to_owned() });
        }
        let directory = Self { root: root.to_owned(), _lock: lock };
        directory.identity()?;
        Ok(directory)
    }

    /// The path of the directory.
    pub(crate) fn path(&self) -> &Path {
        &self.root
    }

    /// Makes the directory that of a store, unless it is that of another one.
    pub(super) fn claim(&self, store: &str) -> Result<(), BackupError> {
        match self.identity()?.store {
            Some(found) if found == store => Ok(()),
            Some(found) => {
                Err(BackupError::OtherStore { directory: self.root.clone(), found, store: store.to_owned() })
            }
            None => self.write_json(
                &self.root.join(IDENTITY),
                &Identity { format: PLAIN_FORMAT, store: Some(store.to_owned()) },
            ),
        }
    }

    /// The complete backups, the oldest first.
    pub(crate) fn manifests(&self) -> Result<Vec<Manifest>, BackupError> {
        let files = self.files()?.into_iter();
        let mut names: Vec<_> = files.filter(|(_, kind)| kind == "json").map(|(name, _)| name).collect();
        names.sort();
        names.iter().map(|name| self.manifest(name)).collect()
    }

    /// A backup by its name, or the newest one.
    pub(crate) fn find(&self, name: Option<&str>) -> Result<Manifest, BackupError> {
        let missing = || BackupError::NoBackup { directory: self.root.clone(), named: name.map(str::to_owned) };
        let mut all = self.manifests()?;
        match name {
            None => all.pop(),
            Some(name) => all.into_iter().find(|manifest| manifest.name == name),
        }
        .ok_or_else(missing)
    }

    fn manifest(&self, name: &str) -> Result<Manifest, BackupError> {
        let path = self.file(name, "json");
        let manifest: Manifest = read_json(&path)?;
        if manifest.format > FORMAT {
            return Err(BackupError::NewerFormat { file: path, found: manifest.format, known: FORMAT });
        }
        if manifest.name != name {
            return Err(BackupError::damaged(path, format!("it describes the backup {}", manifest.name)));
        }
        Ok(manifest)
    }

    /// Completes a backup, durably.
    pub(super) fn complete(&self, manifest: &Manifest) -> Result<(), BackupError> {
        self.write_json(&self.file(&manifest.name, "json"), manifest)
    }

    /// A file of a backup.
    pub(super) fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.root.join(BACKUPS).join(format!("{name}.{kind}"))
    }

    /// The directory of the tokens of a backup.
    pub(crate) fn access(&self, name: &str) -> PathBuf {
        self.file(name, "access")
    }

    pub(super) fn pool(&self) -> Pool {
        Pool::new(&self.root)
    }

    /// Removes all but the newest backups, and the values that none of these has. Returns the bytes of values that were
    /// freed. Blocks.
    pub(crate) fn keep_newest(&self, keep: usize) -> Result<u64, BackupError> {
        let all = self.manifests()?;
        let (old, kept) = all.split_at(all.len().saturating_sub(keep));
        let mut versions = HashSet::new();
        for manifest in kept {
            let path = self.file(&manifest.name, "records");
            let mut records = RecordsReader::open(&path)?;
            while let Some(record) = records.next()? {
                if record.value.is_none() {
                    let version = parse_version(&record.version);
                    versions.insert(version.ok_or_else(|| BackupError::damaged(&path, "a version is malformed"))?);
                }
            }
        }
        // Without its description a backup does not exist, so that goes first.
        old.iter().try_for_each(|manifest| self.remove(&self.file(&manifest.name, "json")))?;
        if !old.is_empty() {
            self.remove_unfinished()?;
        }
        self.pool().retain(&versions)
    }

    /// Removes the files of backups that are not complete.
    fn remove_unfinished(&self) -> Result<(), BackupError> {
        for (name, kind) in self.files()? {
            let is_ours = ["records", "access", "partial"].contains(&kind.as_str());
            if is_ours && (kind == "partial" || !self.file(&name, "json").exists()) {
                self.remove(&self.file(&name, &kind))?;
            }
        }
        Ok(())
    }

    /// The files of all backups, complete or not: the name of the backup and the kind of each.
    fn files(&self) -> Result<Vec<(String, String)>, BackupError> {
        let directory = self.root.join(BACKUPS);
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).map_err(BackupError::io("list", &directory))? {
            let name = entry.map_err(BackupError::io("list", &directory))?.file_name();
            let parts = name.to_str().and_then(|name| name.rsplit_once('.'));
            files.extend(parts.map(|(name, kind)| (name.to_owned(), kind.to_owned())));
        }
        Ok(files)
    }

    fn remove(&self, path: &Path) -> Result<(), BackupError> {
        let removed = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        removed.map_err(BackupError::io("remove", path))
    }

    fn identity(&self) -> Result<Identity, BackupError> {
        let path = self.root.join(IDENTITY);
        let identity: Identity = read_json(&path)?;
        match identity.format > FORMAT {
            true => Err(BackupError::NewerFormat { file: path, found: identity.format, known: FORMAT }),
            false => Ok(identity),
        }
    }

    /// Replaces a file, durably.
    fn write_json(&self, path: &Path, value: &impl Serialize) -> Result<(), BackupError> {
        let partial = partial(path);
        let written = || {
            let mut file = File::create(&partial)?;
            serde_json::to_writer_pretty(&mut file, value)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            fs::rename(&partial, path)?;
            File::open(path.parent().unwrap_or(&self.root))?.sync_all()
        };
        written().map_err(BackupError::io("write", path))
    }
}

/// The file that is renamed to `path` once it is complete.
fn partial(path: &Path) -> PathBuf {
    path.with_extension("partial")
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, BackupError> {
    let text = fs::read(path).map_err(BackupError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|error| BackupError::damaged(path, error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_of_an_interrupted_first_backup_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let unfinished = directory.path().join("zarrd-backup.partial");
        fs::write(&unfinished, "{").unwrap();
        BackupDirectory::create(directory.path()).unwrap();
        assert!(directory.path().join(IDENTITY).is_file() && !unfinished.exists());
    }
}
