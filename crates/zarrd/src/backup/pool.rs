//! The files of values, which the backups of a directory share.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, Read},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use futures::TryStreamExt;
use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{ByteStream, StoreError, Version};

use super::{BackupError, records::BackedUp};
use crate::new_file::NewFile;

/// The beginning of the names of files that are not complete.
const PARTIAL: &str = ".partial-";

/// The directory `values`.
#[derive(Clone, Debug)]
pub(super) struct Pool(PathBuf);

impl Pool {
    pub(super) fn new(directory: &Path) -> Self {
        Self(directory.join("values"))
    }

    /// The file of a value.
    pub(super) fn path(&self, version: &str) -> PathBuf {
        self.0.join(version.get(..2).unwrap_or_default()).join(version)
    }

    /// True if the file of a value is there and has its size. Blocks.
    pub(super) fn has(&self, record: &BackedUp) -> bool {
        let metadata = fs::metadata(self.path(&record.version));
        metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == record.size)
    }

    /// Creates the directories, and removes what an interrupted backup has left.
    pub(super) fn prepare(&self) -> Result<(), BackupError> {
        for byte in 0..=u8::MAX {
            let directory = self.0.join(format!("{byte:02x}"));
            fs::create_dir_all(&directory).map_err(BackupError::io("create", &directory))?;
            for entry in fs::read_dir(&directory).map_err(BackupError::io("list", &directory))? {
                let entry = entry.map_err(BackupError::io("list", &directory))?;
                if entry.file_name().to_string_lossy().starts_with(PARTIAL) {
                    fs::remove_file(entry.path()).map_err(BackupError::io("remove", entry.path()))?;
                }
            }
        }
        Ok(())
    }

    /// Writes the file of a value, and returns its size and checksum. It is durable after [`sync`](Self::sync).
    pub(super) async fn write(&self, version: &str, mut stream: ByteStream) -> Result<(u64, u64), BackupError> {
        let path = self.path(version);
        let partial = path.with_file_name(format!("{PARTIAL}{version}"));
        let failed = || BackupError::io("write", &partial);
        let mut file = NewFile::new(partial.clone());
        let (mut size, mut hash) = (0_u64, Xxh3::new());
        while let Some(bytes) = stream.try_next().await? {
            hash.update(&bytes);
            size = size.saturating_add(bytes.len() as u64);
            file.push(bytes).await.map_err(failed())?;
        }
        let complete = partial.clone();
        file.finish(move || fs::rename(complete, path)).await.map_err(failed())?;
        Ok((size, hash.digest()))
    }

    /// Makes all files durable. Blocks.
    pub(super) fn sync(&self) -> Result<(), BackupError> {
        let synced = File::open(&self.0).and_then(|directory| Ok(rustix::fs::syncfs(directory.as_fd())?));
        synced.map_err(BackupError::io("make durable", &self.0))
    }

    /// The checksum of a file as the disk has it. Blocks.
    pub(super) fn checksum(&self, version: &str) -> Result<u64, BackupError> {
        let path = self.path(version);
        let failed = || BackupError::io("read", &path);
        let mut file = File::open(&path).map_err(failed())?;
        // What is in memory is what was written, and not what the disk has.
        let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 18]);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(hash.digest()),
                Ok(read) => hash.update(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed()(error)),
            }
        }
    }

    /// Removes the files of all values but these. Returns the bytes that were freed. Blocks.
    pub(super) fn retain(&self, kept: &HashSet<u128>) -> Result<u64, BackupError> {
        let mut freed = 0_u64;
        for byte in 0..=u8::MAX {
            let directory = self.0.join(format!("{byte:02x}"));
            for entry in fs::read_dir(&directory).map_err(BackupError::io("list", &directory))? {
                let entry = entry.map_err(BackupError::io("list", &directory))?;
                let name = entry.file_name();
                // Files that are not ours stay.
                let Some(version) = name.to_str().and_then(parse_version) else { continue };
                if !kept.contains(&version) {
                    freed = freed.saturating_add(entry.metadata().map_or(0, |metadata| metadata.len()));
                    fs::remove_file(entry.path()).map_err(BackupError::io("remove", entry.path()))?;
                }
            }
        }
        Ok(freed)
    }
}

/// The version that 32 hexadecimal digits stand for.
pub(super) fn parse_version(text: &str) -> Option<u128> {
    text.parse().ok().map(Version::as_u128)
}

/// Fails unless the size and the checksum of a value are those of its record.
pub(super) fn check(path: &Path, record: &BackedUp, size: u64, checksum: u64) -> Result<(), StoreError> {
    if size == record.size && super::records::render(checksum) == record.xxh3 {
        return Ok(());
    }
    let what = format!("{} has not the bytes that were backed up", path.display());
    Err(StoreError::io("restore a value", io::Error::new(io::ErrorKind::InvalidData, what)))
}
