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

/// A value file that is durable except for its directory entry. Dropping it removes the file.
pub(crate) struct StagedFile {
    pub(crate) file: FileRef,
    guard: UnlinkOnDrop,
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
        let file = directory.create_file(id).map_err(|error| StoreError::io("create a value file", error))?;
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
        Ok(StagedFile { file: FileRef { id, size: self.size, checksum }, guard: self.guard })
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
