//! The file `progress`: how far the store has come, kept apart from the index so that an older index is known as such.
//!
//! Two slots of 4 KiB, written in turn, each with epoch, commit and a checksum; the later valid one counts. It is
//! written after the index is durable and synced only at a start and a stop, so it may lag behind the index and never leads.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use xxhash_rust::xxh3::xxh3_64;

const SLOT: u64 = 4096;
const LEN: usize = 24;

/// The open file.
pub(crate) struct Progress {
    file: File,
    epoch: u64,
    next_slot: u64,
}

/// What the file says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    /// How often the store was opened.
    pub(crate) epoch: u64,
    /// The number of the last commit.
    pub(crate) commit: u64,
}

impl Progress {
    /// Makes the file, durable but for its directory's entry.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        let file = File::create(path)?;
        for slot in 0..2 {
            file.write_all_at(&Mark::default().encode(), slot * SLOT)?;
        }
        file.sync_all()
    }

    /// The later of the marks that can be read; `None` where neither can.
    pub(crate) fn read(path: &Path) -> io::Result<Option<Mark>> {
        let bytes = std::fs::read(path)?;
        let slots = bytes.chunks(usize::try_from(SLOT).unwrap_or(usize::MAX));
        Ok(slots.take(2).filter_map(Mark::decode).max())
    }

    /// Begins an epoch, durably.
    pub(crate) fn begin(path: &Path, mark: Mark) -> io::Result<Self> {
        let file = File::options().write(true).open(path)?;
        let mut progress = Self { file, epoch: mark.epoch, next_slot: 0 };
        // Both slots, so that neither is of an earlier epoch.
        progress.commit(mark.commit)?;
        progress.commit(mark.commit)?;
        progress.sync()?;
        Ok(progress)
    }

    /// Notes a commit that is durable.
    pub(crate) fn commit(&mut self, commit: u64) -> io::Result<()> {
        self.file.write_all_at(&Mark { epoch: self.epoch, commit }.encode(), self.next_slot * SLOT)?;
        self.next_slot ^= 1;
        Ok(())
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }
}

impl Mark {
    fn encode(self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        let (fields, sum) = bytes.split_at_mut(16);
        for (place, field) in fields.chunks_exact_mut(8).zip([self.epoch, self.commit]) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        sum.copy_from_slice(&xxh3_64(fields).to_be_bytes());
        bytes
    }

    fn decode(slot: &[u8]) -> Option<Self> {
        let (fields, rest) = slot.split_first_chunk::<16>()?;
        let sum = rest.first_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != xxh3_64(fields) {
            return None;
        }
        let (epoch, rest) = fields.split_first_chunk::<8>()?;
        Some(Self { epoch: u64::from_be_bytes(*epoch), commit: u64::from_be_bytes(*rest.first_chunk::<8>()?) })
    }
}
