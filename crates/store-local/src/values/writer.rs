//! Writing a value file.

use std::{
    io,
    io::Write,
    sync::atomic::{AtomicBool, Ordering},
};

use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{Key, StoreError};

use super::{BLOCK_BYTES, Directory, directory::ValueFile, trailer::Footer};
use crate::{
    gc::GarbageCollector,
    record::{FileId, FileRef},
};

/// A value file being written. Dropping it removes the file.
pub(crate) struct Writer {
    file: ValueFile,
    guard: UnlinkOnDrop,
    size: u64,
    block: Xxh3,
    sums: Vec<u64>,
}

/// A value file, or the directory of a joined value, that is durable except for its directory entry. Dropping it removes
/// the file.
pub(crate) struct StagedFile {
    pub(crate) file: FileRef,
    pub(crate) form: ValueForm,
    guard: UnlinkOnDrop,
}

/// The form of a value on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    File,
    /// The files of the parts from which the value was joined.
    Joined,
}

/// Removes an unreferenced file on drop.
struct UnlinkOnDrop {
    id: FileId,
    collector: GarbageCollector,
    /// True if the index may refer to the file.
    retained: AtomicBool,
}

impl Writer {
    /// Creates the file. Blocks.
    pub(crate) fn create(directory: &Directory, id: FileId, collector: GarbageCollector) -> Result<Self, StoreError> {
        Self::with_file(id, collector, || directory.create_file(id))
    }

    /// Creates the directory of a joined value, and the file with the list of its parts. Blocks.
    pub(super) fn create_list(
        directory: &Directory,
        id: FileId,
        collector: GarbageCollector,
    ) -> Result<Self, StoreError> {
        Self::with_file(id, collector, || directory.create_joined(id))
    }

    fn with_file(
        id: FileId,
        collector: GarbageCollector,
        create: impl FnOnce() -> io::Result<ValueFile>,
    ) -> Result<Self, StoreError> {
        let file = create().map_err(|error| StoreError::io("create a value file", error))?;
        let guard = UnlinkOnDrop { id, collector, retained: AtomicBool::new(false) };
        Ok(Self { file, guard, size: 0, block: Xxh3::new(), sums: Vec::new() })
    }

    /// Appends bytes of the value. Blocks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.file.write_all(bytes).map_err(|error| StoreError::io("write a value file", error))?;
        self.sum(bytes);
        Ok(())
    }

    /// Writes the trailer and makes the file durable, except for its directory entry. Blocks.
    pub(crate) fn finish(mut self, key: &Key, commit: u64) -> Result<StagedFile, FinishError> {
        if !self.size.is_multiple_of(BLOCK_BYTES) {
            self.sums.push(self.block.digest());
        }
        let id = self.guard.id;
        let footer = Footer { key, id, size: self.size, commit };
        let (trailer, checksum) = footer.trailer(&self.sums);
        self.file.write_all(&trailer).map_err(|error| StoreError::io("write a value file", error))?;
        self.file.sync_data().map_err(FinishError::Sync)?;
        let file = FileRef { id, size: self.size, checksum };
        Ok(StagedFile { file, form: ValueForm::File, guard: self.guard })
    }

    fn sum(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() {
            let free_bytes = BLOCK_BYTES.saturating_sub(self.size % BLOCK_BYTES);
            let take = chunk.len().min(super::trailer::to_usize(free_bytes));
            let (now, rest) = chunk.split_at(take);
            self.block.update(now);
            self.size = self.size.saturating_add(take as u64);
            if self.size.is_multiple_of(BLOCK_BYTES) {
                self.sums.push(self.block.digest());
                self.block.reset();
            }
            chunk = rest;
        }
    }
}

/// Errors of finishing a value file.
pub(crate) enum FinishError {
    /// Writing failed.
    Store(StoreError),
    /// The sync failed, after which the kernel may have dropped the written data.
    Sync(io::Error),
}

impl From<StoreError> for FinishError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl StagedFile {
    /// The joined value of this size whose list of parts the file is.
    pub(super) fn joined(self, size: u64) -> Self {
        Self { file: FileRef { size, ..self.file }, form: ValueForm::Joined, ..self }
    }

    /// Retains the file, since the index may refer to it now.
    pub(crate) fn retain(&self) {
        self.guard.retained.store(true, Ordering::Relaxed);
    }
}

impl Drop for UnlinkOnDrop {
    fn drop(&mut self) {
        if !*self.retained.get_mut() {
            self.collector.remove(vec![self.id]);
        }
    }
}
