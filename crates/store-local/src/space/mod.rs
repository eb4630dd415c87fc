//! Disk space and inodes: the reserve that values may not use, and the ballast for a full disk.

mod ballast;
mod reserve;

use std::{
    fs::File,
    io::{self, Write},
};

pub(crate) use self::{ballast::Ballast, reserve::Reserve};
use crate::gc::PinLimits;

/// The space of a file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    /// The free space, in bytes.
    pub(crate) free: u64,
    /// The total size, in bytes.
    pub(crate) total: u64,
    /// The inodes, if the file system has a limited number of them.
    pub(crate) inodes: Option<Inodes>,
}

/// The inodes of a file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Inodes {
    /// The free ones.
    pub(crate) free: u64,
    /// All of them.
    pub(crate) total: u64,
}

impl Space {
    /// The space of the file system of a file or directory.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let stat = rustix::fs::fstatvfs(file)?;
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        let inodes = (stat.f_files > 0).then_some(Inodes { free: stat.f_favail, total: stat.f_files });
        Ok(Self { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks), inodes })
    }
}

/// Sizes that depend on the file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// The maximum memory of commits that are not yet in the index.
    pub(crate) commit_buffer: u64,
    /// The maximum size of a log segment.
    pub(crate) segment: u64,
    /// The maximum sizes of replaced values that are retained.
    pub(crate) pins: PinLimits,
    /// The ballast of an open store.
    pub(crate) ballast: u64,
    /// The ballast for opening a store: sled writes a snapshot and starts a segment, and so does the log.
    pub(crate) open_reserve: u64,
    /// The segment size of a new sled index.
    pub(crate) index_segment: u64,
}

impl Sizes {
    /// The sizes for a file system of `total` bytes, unless the options set them.
    pub(crate) fn new(total: u64, options: &crate::Options) -> Self {
        let index_segment = options.index_segment_bytes.unwrap_or(if total < 1 << 30 { 1 << 20 } else { 4 << 20 });
        let commit_buffer = options.commit_buffer_bytes.unwrap_or_else(|| (total / 64).clamp(1 << 20, 32 << 20));
        Self {
            commit_buffer,
            segment: options.segment_bytes.unwrap_or_else(|| (total / 128).clamp(1 << 20, 16 << 20)),
            pins: PinLimits {
                readers: options.max_pinned_bytes.unwrap_or_else(|| (total / 10).min(8 << 30)),
                snapshots: options.max_snapshot_bytes.unwrap_or(total / 10),
            },
            // The space for applying a full buffer: sled rewrites a page after some changes, and frees the old one
            // later.
            ballast: commit_buffer.saturating_mul(4).min(total / 12),
            open_reserve: index_segment.saturating_mul(4).min(total / 12),
            index_segment,
        }
    }
}

/// Appends zeros to a file, which allocates disk blocks. Nothing is synced.
pub(crate) fn write_zeros(file: &mut File, mut bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 18];
    while bytes > 0 {
        let chunk = usize::try_from(bytes).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(zeros.get(..chunk).unwrap_or_default())?;
        bytes = bytes.saturating_sub(chunk as u64);
    }
    Ok(())
}
