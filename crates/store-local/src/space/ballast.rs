//! The ballast: blocks that the store holds so that it can give them back when the disk is full.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use rustix::fs::{FallocateFlags, fallocate};

use super::{Space, write_zeros};

/// How many pieces there are for a store that is open: they are given back one after the other.
const BLOCKS: u64 = 8;
/// The piece that only opening the store gives back: without it a disk that was filled meanwhile would keep the store from opening.
const OPEN_RESERVE_FILE: &str = "opening";
/// The piece for opening has so many bytes, or a multiple.
const OPEN_RESERVE_UNIT: u64 = 64 << 10;
/// The bytes that stay free in addition to what is asked for.
const MARGIN_BYTES: u64 = 1 << 20;

/// Files that hold blocks and nothing else.
///
/// The log's segments and the index go on when others have filled the disk, or the store itself has: room is made just
/// before it is needed, and the ballast is restored when there is space again.
pub(crate) struct Ballast {
    dir: PathBuf,
    block_bytes: u64,
    open_reserve_bytes: u64,
    /// The bytes of the pieces that exist.
    allocated_bytes: AtomicU64,
}

impl Ballast {
    /// The ballast in a directory, as a former process left it; to have `bytes`, and `opening_bytes` for opening the store.
    pub(crate) fn new(dir: PathBuf, bytes: u64, open_reserve_bytes: u64) -> Self {
        let ballast = Self { dir, block_bytes: bytes / BLOCKS, open_reserve_bytes, allocated_bytes: AtomicU64::new(0) };
        let blocks = ballast.blocks().chain([ballast.open_reserve()]);
        let allocated_bytes = blocks.filter_map(|block| fs::metadata(block).ok()).map(|metadata| metadata.len()).sum();
        ballast.allocated_bytes.store(allocated_bytes, Ordering::Relaxed);
        ballast
    }

    /// The bytes that it holds.
    pub(crate) fn size(&self) -> u64 {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    /// Gives back as many pieces as `bytes` of free space take. Blocks.
    pub(crate) fn free_space(&self, bytes: u64) {
        self.release(self.blocks(), bytes);
    }

    /// The same for opening the store. Blocks.
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
                    tracing::warn!(bytes = metadata.len(), "the disk is full: gave back a piece of the ballast");
                }
                Err(error) => tracing::warn!(%error, "could not give back a piece of the ballast"),
            }
        }
    }

    /// Takes the pieces that are missing as far as there is room for twice as much. Blocks.
    pub(crate) fn restore(&self) {
        if self.block_bytes == 0 || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        if !self.restore_open_reserve() {
            return;
        }
        let room = self.block_bytes.saturating_mul(4).max(MARGIN_BYTES * 4);
        for block in self.blocks() {
            if !self.allocate_if_missing(&block, self.block_bytes, room) {
                return;
            }
        }
    }

    /// Takes the piece for opening the store, or as much of it as there is room for: the next start has to be sure of it, whatever
    /// else there is no room for. Whether it is whole. Blocks.
    pub(crate) fn restore_open_reserve(&self) -> bool {
        let block = self.open_reserve();
        let size = fs::metadata(&block).map_or(0, |metadata| metadata.len());
        let Ok(space) = self.space() else { return false };
        let wanted =
            self.open_reserve_bytes.min(size.saturating_add(space.free)) / OPEN_RESERVE_UNIT * OPEN_RESERVE_UNIT;
        if wanted <= size || fs::create_dir_all(&self.dir).is_err() {
            return size >= self.open_reserve_bytes;
        }
        // A part that was taken before it failed counts.
        let allocated = extend_block(&block, size, wanted);
        let now = fs::metadata(&block).map_or(0, |metadata| metadata.len());
        self.allocated_bytes.fetch_add(now.saturating_sub(size), Ordering::Relaxed);
        allocated.is_ok() && now >= self.open_reserve_bytes
    }

    /// Takes a piece if so much space is free; whether it is there.
    fn allocate_if_missing(&self, block: &Path, bytes: u64, room: u64) -> bool {
        if block.exists() {
            return true;
        }
        let allocated = self.space().is_ok_and(|space| space.free >= room) && allocate_block(block, bytes).is_ok();
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

/// Lets a piece that has `held` bytes, or is not there, have more.
fn extend_block(block: &Path, size: u64, bytes: u64) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(block)?;
    let more = bytes.saturating_sub(size);
    match fallocate(&file, FallocateFlags::empty(), size, more) {
        // Not every file system can.
        Err(error) if error == rustix::io::Errno::OPNOTSUPP => {
            write_zeros(&mut file, more).and_then(|()| file.sync_data())
        }
        allocated => allocated.map_err(Into::into),
    }
}
