//! The ballast: disk blocks that the store allocates in advance and releases when the disk is full.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
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

/// Files that only occupy disk space.
///
/// The log and the index can continue on a full disk: space is released just before it is needed, and the ballast is
/// restored when space is available again.
pub(crate) struct Ballast {
    dir: PathBuf,
    block_bytes: u64,
    open_reserve_bytes: u64,
    /// The size of the existing blocks, in bytes.
    allocated_bytes: AtomicU64,
}

impl Ballast {
    /// The existing ballast in a directory. Its target size is `bytes`, and `open_reserve_bytes` for opening the store.
    pub(crate) fn new(dir: PathBuf, bytes: u64, open_reserve_bytes: u64) -> Self {
        let ballast = Self { dir, block_bytes: bytes / BLOCKS, open_reserve_bytes, allocated_bytes: AtomicU64::new(0) };
        let blocks = ballast.blocks().chain([ballast.open_reserve()]);
        let allocated_bytes = blocks.filter_map(|block| fs::metadata(block).ok()).map(|metadata| metadata.len()).sum();
        ballast.allocated_bytes.store(allocated_bytes, Ordering::Relaxed);
        ballast
    }

    /// The allocated size, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Releases as many blocks as needed for `bytes` of free space. Blocks.
    pub(crate) fn free_space(&self, bytes: u64) {
        self.release(self.blocks(), bytes);
    }

    /// Releases the open reserve, and blocks if necessary. Blocks.
    pub(crate) fn free_open_space(&self) {
        self.release([self.open_reserve()].into_iter().chain(self.blocks()), self.open_reserve_bytes);
    }

    fn release(&self, blocks: impl Iterator<Item = PathBuf>, bytes: u64) {
        for block in blocks {
            let Ok(space) = self.space() else { return };
            if space.free >= bytes.saturating_add(MARGIN_BYTES) {
                return;
            }
            let Ok(metadata) = fs::metadata(&block) else { continue };
            match fs::remove_file(&block) {
                Ok(()) => {
                    self.allocated_bytes.fetch_sub(metadata.len().min(self.size()), Ordering::Relaxed);
                    tracing::warn!(bytes = metadata.len(), "the disk is full: released a block of the ballast");
                }
                Err(error) => tracing::warn!(%error, "could not release a block of the ballast"),
            }
        }
    }

    /// Allocates missing blocks while at least twice the space is free. Blocks.
    pub(crate) fn restore(&self) {
        if self.block_bytes == 0 || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        if !self.restore_open_reserve() {
            return;
        }
        let required = self.block_bytes.saturating_mul(4).max(MARGIN_BYTES * 4);
        for block in self.blocks() {
            if !self.allocate_if_missing(&block, self.block_bytes, required) {
                return;
            }
        }
    }

    /// Allocates the open reserve, or as much of it as fits: the next start depends on it. Returns true if it is
    /// complete. Blocks.
    pub(crate) fn restore_open_reserve(&self) -> bool {
        let block = self.open_reserve();
        let size = fs::metadata(&block).map_or(0, |metadata| metadata.len());
        let Ok(space) = self.space() else { return false };
        let wanted =
            self.open_reserve_bytes.min(size.saturating_add(space.free)) / OPEN_RESERVE_UNIT * OPEN_RESERVE_UNIT;
        if wanted <= size || fs::create_dir_all(&self.dir).is_err() {
            return size >= self.open_reserve_bytes;
        }
        // A partial allocation counts.
        let allocated = extend_block(&block, size, wanted);
        let now = fs::metadata(&block).map_or(0, |metadata| metadata.len());
        self.allocated_bytes.fetch_add(now.saturating_sub(size), Ordering::Relaxed);
        allocated.is_ok() && now >= self.open_reserve_bytes
    }

    /// Allocates a block if `required` bytes are free. Returns true if it exists.
    fn allocate_if_missing(&self, block: &Path, bytes: u64, required: u64) -> bool {
        if block.exists() {
            return true;
        }
        let allocated = self.space().is_ok_and(|space| space.free >= required) && allocate_block(block, bytes).is_ok();
        if allocated {
            self.allocated_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        allocated
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
