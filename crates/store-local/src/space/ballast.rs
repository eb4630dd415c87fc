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
const PIECES: u64 = 8;
/// The piece that only opening the store gives back: without it a disk that was filled meanwhile would keep the store from opening.
const OPENING: &str = "opening";
/// The piece for opening has so many bytes, or a multiple.
const PART: u64 = 64 << 10;
/// The bytes that stay free in addition to what is asked for.
const MARGIN: u64 = 1 << 20;

/// Files that hold blocks and nothing else.
///
/// The log's segments and the index go on when others have filled the disk, or the store itself has: room is made just
/// before it is needed, and the ballast is restored when there is space again.
pub(crate) struct Ballast {
    dir: PathBuf,
    piece_bytes: u64,
    opening_bytes: u64,
    /// The bytes of the pieces that exist.
    present: AtomicU64,
}

impl Ballast {
    /// The ballast in a directory, as a former process left it; to have `bytes`, and `opening_bytes` for opening the store.
    pub(crate) fn new(dir: PathBuf, bytes: u64, opening_bytes: u64) -> Self {
        let ballast = Self { dir, piece_bytes: bytes / PIECES, opening_bytes, present: AtomicU64::new(0) };
        let pieces = ballast.pieces().chain([ballast.opening()]);
        let present = pieces.filter_map(|piece| fs::metadata(piece).ok()).map(|metadata| metadata.len()).sum();
        ballast.present.store(present, Ordering::Relaxed);
        ballast
    }

    /// The bytes that it holds.
    pub(crate) fn held(&self) -> u64 {
        self.present.load(Ordering::Relaxed)
    }

    /// Gives back as many pieces as `bytes` of free space take. Blocks.
    pub(crate) fn make_room(&self, bytes: u64) {
        self.give_back(self.pieces(), bytes);
    }

    /// The same for opening the store. Blocks.
    pub(crate) fn make_room_to_open(&self) {
        self.give_back([self.opening()].into_iter().chain(self.pieces()), self.opening_bytes);
    }

    fn give_back(&self, pieces: impl Iterator<Item = PathBuf>, bytes: u64) {
        for piece in pieces {
            let Ok(space) = self.space() else { return };
            if space.free >= bytes.saturating_add(MARGIN) {
                return;
            }
            let Ok(metadata) = fs::metadata(&piece) else { continue };
            match fs::remove_file(&piece) {
                Ok(()) => {
                    self.present.fetch_sub(metadata.len().min(self.held()), Ordering::Relaxed);
                    tracing::warn!(bytes = metadata.len(), "the disk is full: gave back a piece of the ballast");
                }
                Err(error) => tracing::warn!(%error, "could not give back a piece of the ballast"),
            }
        }
    }

    /// Takes the pieces that are missing as far as there is room for twice as much. Blocks.
    pub(crate) fn restore(&self) {
        if self.piece_bytes == 0 || fs::create_dir_all(&self.dir).is_err() {
            return;
        }
        if !self.restore_opening() {
            return;
        }
        let room = self.piece_bytes.saturating_mul(4).max(MARGIN * 4);
        for piece in self.pieces() {
            if !self.take_if_missing(&piece, self.piece_bytes, room) {
                return;
            }
        }
    }

    /// Takes the piece for opening the store, or as much of it as there is room for: the next start has to be sure of it, whatever
    /// else there is no room for. Whether it is whole. Blocks.
    pub(crate) fn restore_opening(&self) -> bool {
        let piece = self.opening();
        let held = fs::metadata(&piece).map_or(0, |metadata| metadata.len());
        let Ok(space) = self.space() else { return false };
        let wanted = self.opening_bytes.min(held.saturating_add(space.free)) / PART * PART;
        if wanted <= held || fs::create_dir_all(&self.dir).is_err() {
            return held >= self.opening_bytes;
        }
        // A part that was taken before it failed counts.
        let taken = take(&piece, held, wanted);
        let now = fs::metadata(&piece).map_or(0, |metadata| metadata.len());
        self.present.fetch_add(now.saturating_sub(held), Ordering::Relaxed);
        taken.is_ok() && now >= self.opening_bytes
    }

    /// Takes a piece if so much space is free; whether it is there.
    fn take_if_missing(&self, piece: &Path, bytes: u64, room: u64) -> bool {
        if piece.exists() {
            return true;
        }
        let taken = self.space().is_ok_and(|space| space.free >= room) && take_whole(piece, bytes).is_ok();
        if taken {
            self.present.fetch_add(bytes, Ordering::Relaxed);
        }
        taken
    }

    fn opening(&self) -> PathBuf {
        self.dir.join(OPENING)
    }

    fn space(&self) -> io::Result<Space> {
        Space::of(&File::open(self.dir.parent().unwrap_or(&self.dir))?)
    }

    fn pieces(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        (0..PIECES).map(|piece| self.dir.join(format!("{piece}")))
    }
}

fn take_whole(piece: &Path, bytes: u64) -> io::Result<()> {
    take(piece, 0, bytes).inspect_err(|_| {
        let _ = fs::remove_file(piece);
    })
}

/// Lets a piece that has `held` bytes, or is not there, have more.
fn take(piece: &Path, held: u64, bytes: u64) -> io::Result<()> {
    let mut file = File::options().create(true).append(true).open(piece)?;
    let more = bytes.saturating_sub(held);
    match fallocate(&file, FallocateFlags::empty(), held, more) {
        // Not every file system can.
        Err(error) if error == rustix::io::Errno::OPNOTSUPP => {
            write_zeros(&mut file, more).and_then(|()| file.sync_data())
        }
        taken => taken.map_err(Into::into),
    }
}
