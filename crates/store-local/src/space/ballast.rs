//! The ballast: disk blocks and inodes that the store allocates in advance and releases when the disk is full.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use rustix::fs::{FallocateFlags, fallocate};

use super::{Space, write_zeros};

/// The number of blocks for an open store, which are released one by one.
const BLOCKS: u64 = 8;
/// The file of the open reserve, which is released only to open the store: otherwise a full disk would prevent it.
const OPEN_RESERVE_FILE: &str = "opening";
/// The allocation unit of the open reserve, in bytes.
const OPEN_RESERVE_UNIT: u64 = 64 << 10;
/// The space that stays free in addition to what is requested, in bytes.
const MARGIN_BYTES: u64 = 1 << 20;
/// The number of empty files, each of which keeps an inode.
const SPARE_INODES: u64 = 16;
/// The number of inodes that are released at a time.
const RELEASED_INODES: usize = 4;
/// The free inodes below which one more file may find none.
const FEW_INODES: u64 = 4;
/// A file that is allocated and removed to learn whether there is as much space as the file system says.
const PROBE_FILE: &str = "probe";

/// Files that only occupy disk space.
///
/// The log and the index can continue on a full disk: space is released just before it is needed, and the ballast is
/// restored when space is available again. The free space of the file system decides, until an operation finds less:
/// quotas are not part of it. From then on the ballast counts as exhausted, until all of it could be allocated again.
pub(crate) struct Ballast {
    dir: PathBuf,
    block_bytes: u64,
    open_reserve_bytes: u64,
    /// The size of the existing blocks, in bytes.
    allocated_bytes: AtomicU64,
    exhausted: AtomicBool,
}

impl Ballast {
    /// The existing ballast in a directory. Its target size is `bytes`, and `open_reserve_bytes` for opening the store.
    pub(crate) fn new(dir: PathBuf, bytes: u64, open_reserve_bytes: u64) -> Self {
        let (block_bytes, exhausted) = (bytes / BLOCKS, AtomicBool::new(false));
        let ballast = Self { dir, block_bytes, open_reserve_bytes, allocated_bytes: AtomicU64::new(0), exhausted };
        let blocks = ballast.blocks().chain([ballast.open_reserve()]);
        let allocated_bytes = blocks.filter_map(|block| fs::metadata(block).ok()).map(|metadata| metadata.len()).sum();
        ballast.allocated_bytes.store(allocated_bytes, Ordering::Relaxed);
        ballast
    }

    /// The allocated size, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// True if an operation found no space, and the ballast could not be restored since.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Releases as many blocks as needed for `bytes` of free space. Blocks.
    pub(crate) fn free_space(&self, bytes: u64) {
        self.release(self.blocks(), bytes);
    }

    /// Releases the open reserve, and blocks if necessary. Blocks.
    pub(crate) fn free_open_space(&self) {
        self.release([self.open_reserve()].into_iter().chain(self.blocks()), self.open_reserve_bytes);
    }

    /// Repeats an operation that finds no space for as long as there are blocks to release. Blocks.
    pub(crate) fn retry<T, E>(
        &self,
        is_out_of_space: impl Fn(&E) -> bool,
        operation: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        Self::retry_after(is_out_of_space, || self.release_after_failure(self.blocks()), operation)
    }

    /// The same for opening the store or its index, for which the open reserve is released first. Blocks.
    pub(crate) fn retry_opening<T, E>(
        &self,
        is_out_of_space: impl Fn(&E) -> bool,
        open: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let release = || self.release_after_failure([self.open_reserve()].into_iter().chain(self.blocks()));
        Self::retry_after(is_out_of_space, release, open)
    }

    fn retry_after<T, E>(
        is_out_of_space: impl Fn(&E) -> bool,
        release: impl Fn() -> bool,
        mut operation: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        loop {
            match operation() {
                Err(error) if is_out_of_space(&error) && release() => {}
                result => return result,
            }
        }
    }

    /// Releases all blocks after the index found no space. Blocks.
    pub(crate) fn release_all(&self) {
        while self.release_after_failure(self.blocks()) {}
    }

    fn release(&self, blocks: impl Iterator<Item = PathBuf>, bytes: u64) {
        for block in blocks {
            let Ok(space) = self.space() else { return };
            if space.free >= bytes.saturating_add(MARGIN_BYTES) {
                return;
            }
            self.remove(&block);
        }
    }

    /// Releases some inodes if few are free, or a block.
    fn release_after_failure(&self, mut blocks: impl Iterator<Item = PathBuf>) -> bool {
        // Without blocks there is nothing whose return would end that.
        self.exhausted.store(self.block_bytes > 0, Ordering::Relaxed);
        let few = |space: Space| space.inodes.is_some_and(|inodes| inodes.free < FEW_INODES);
        self.space().is_ok_and(few) && self.release_inodes() || blocks.any(|block| self.remove(&block))
    }

    fn release_inodes(&self) -> bool {
        let removed = self.spare_inodes().filter(|file| fs::remove_file(file).is_ok()).take(RELEASED_INODES).count();
        if removed > 0 {
            tracing::warn!(inodes = removed, "the disk has no inodes left: released some of the ballast");
        }
        removed > 0
    }

    /// Removes a block, and returns when its space is free; returns false if there is none, or it cannot be freed.
    fn remove(&self, block: &Path) -> bool {
        let Ok(file) = File::options().write(true).open(block) else { return false };
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let before = self.space().map_or(0, |space| space.free);
        // XFS frees the space of a truncated file at once, and that of a removed one later. A full Btrfs may be unable to
        // remove a file.
        let _ = file.set_len(0);
        let removed = fs::remove_file(block);
        drop(file);
        if let Err(error) = removed {
            tracing::warn!(%error, "could not release a block of the ballast");
        }
        if bytes == 0 || fs::metadata(block).is_ok_and(|left| left.len() > 0) {
            return false;
        }
        self.allocated_bytes.fetch_sub(bytes.min(self.size()), Ordering::Relaxed);
        tracing::warn!(bytes, "the disk is full: released a block of the ballast");
        self.wait_for_space(before.saturating_add(bytes / 2));
        true
    }

    /// Writes all changes of the file system, unless so much space is free: Btrfs does not give back space before that.
    fn wait_for_space(&self, free: u64) {
        if self.space().is_ok_and(|space| space.free < free)
            && let Err(error) = File::open(&self.dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?))
        {
            tracing::debug!(%error, "could not sync the file system");
        }
    }

    /// Allocates missing blocks while at least twice the space is free. Blocks.
    pub(crate) fn restore(&self) {
        if self.block_bytes == 0 || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        if !self.restore_open_reserve() || !self.restore_inodes() {
            return;
        }
        let required = self.block_bytes.saturating_mul(4).max(MARGIN_BYTES * 4);
        for block in self.blocks() {
            if !self.allocate_if_missing(&block, self.block_bytes, required) {
                return;
            }
        }
        if self.is_exhausted() && self.has_room(required) {
            self.exhausted.store(false, Ordering::Relaxed);
            tracing::info!("the disk has space again");
        }
    }

    /// Allocates the open reserve, or as much of it as fits: the next start depends on it. Returns true if it is
    /// complete. Blocks.
    pub(crate) fn restore_open_reserve(&self) -> bool {
        let block = self.open_reserve();
        let existing = || fs::metadata(&block).map_or(0, |metadata| metadata.len());
        let before = existing();
        let Ok(space) = self.space() else { return false };
        let wanted =
            self.open_reserve_bytes.min(before.saturating_add(space.free)) / OPEN_RESERVE_UNIT * OPEN_RESERVE_UNIT;
        if wanted <= before || fs::create_dir_all(&self.dir).is_err() {
            return before >= self.open_reserve_bytes;
        }
        // A quota may leave less than the file system has; a partial allocation counts.
        let mut size = before;
        let mut more = wanted.saturating_sub(size);
        while more >= OPEN_RESERVE_UNIT && extend_block(&block, size, size.saturating_add(more)).is_err() {
            size = existing();
            more = (more / 2).min(wanted.saturating_sub(size));
        }
        let now = existing();
        self.allocated_bytes.fetch_add(now.saturating_sub(before), Ordering::Relaxed);
        now >= self.open_reserve_bytes
    }

    /// Creates missing empty files while there are many more inodes. Returns true if all exist, or inodes are not
    /// counted.
    fn restore_inodes(&self) -> bool {
        let Ok(space) = self.space() else { return false };
        let Some(inodes) = space.inodes else { return true };
        let mut free = inodes.free;
        self.spare_inodes().all(|file| {
            let is_there = file.exists();
            if !is_there && (free <= SPARE_INODES * 4 || File::create_new(&file).is_err()) {
                return false;
            }
            free = free.saturating_sub(u64::from(!is_there));
            true
        })
    }

    /// Allocates a block if `required` bytes are free. Returns true if it exists.
    fn allocate_if_missing(&self, block: &Path, bytes: u64, required: u64) -> bool {
        if fs::metadata(block).is_ok_and(|existing| existing.len() > 0) {
            return true;
        }
        let allocated = self.has_room(required) && allocate_block(block, bytes).is_ok();
        if allocated {
            self.allocated_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        allocated
    }

    /// True if `bytes` are free; tried out where the file system's free space was wrong before.
    fn has_room(&self, bytes: u64) -> bool {
        let probe = self.dir.join(PROBE_FILE);
        let is_free = self.space().is_ok_and(|space| space.free >= bytes);
        let allocate = || allocate_block(&probe, bytes).and_then(|()| fs::remove_file(&probe)).is_ok();
        is_free && (!self.is_exhausted() || allocate())
    }

    fn open_reserve(&self) -> PathBuf {
        self.dir.join(OPEN_RESERVE_FILE)
    }

    fn space(&self) -> io::Result<Space> {
        Space::of(&File::open(self.dir.parent().unwrap_or(&self.dir))?)
    }

    fn blocks(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        (0..BLOCKS).map(|block| self.dir.join(format!("{block}")))
    }

    fn spare_inodes(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        (0..SPARE_INODES).map(|number| self.dir.join(format!("inode-{number}")))
    }
}

fn allocate_block(block: &Path, bytes: u64) -> io::Result<()> {
    extend_block(block, 0, bytes).inspect_err(|_| {
        let _ = fs::remove_file(block);
    })
}

/// Extends a file of `size` bytes, creating it if necessary.
fn extend_block(block: &Path, size: u64, bytes: u64) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(block)?;
    let more = bytes.saturating_sub(size);
    match fallocate(&file, FallocateFlags::empty(), size, more) {
        // Not supported by every file system.
        Err(error) if error == rustix::io::Errno::OPNOTSUPP => {
            write_zeros(&mut file, more).and_then(|()| file.sync_data())
        }
        allocated => allocated.map_err(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_released_one_by_one_and_allocated_again_even_if_an_empty_one_was_left() {
        let dir = tempfile::tempdir().unwrap();
        let ballast = Ballast::new(dir.path().join("ballast"), BLOCKS << 16, 1 << 16);
        ballast.restore();
        let all = (BLOCKS + 1) << 16;
        assert_eq!(ballast.size(), all);
        let full = || ballast.blocks().filter(|block| fs::metadata(block).is_ok_and(|block| block.len() > 0)).count();
        let mut failures = 2;
        let operation = || {
            failures -= 1;
            if failures < 0 { Ok(()) } else { Err(io::Error::from(io::ErrorKind::StorageFull)) }
        };
        ballast.retry(|_| true, operation).unwrap();
        assert_eq!((full(), ballast.size()), (6, all - (2 << 16)));
        let first = ballast.blocks().next().unwrap();
        File::create_new(&first).unwrap();
        assert!(!ballast.remove(&first), "an empty block has no space to release");
        File::create_new(&first).unwrap();
        ballast.restore();
        assert_eq!((full(), ballast.size()), (8, all));
        assert!(!ballast.is_exhausted());
    }
}
