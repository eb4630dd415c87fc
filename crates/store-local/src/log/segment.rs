//! Segments of the log: files of zeros, or recycled ones, with a header and frames.
//!
//! The header is followed by the size of the file, with a checksum of its own: earlier versions of zarrd write and read
//! headers without it.

use std::{fs::File, io, os::unix::fs::FileExt, path::Path};

use bytes::{Buf, BufMut, BytesMut};

use super::frame::FRAME_HEADER;
use crate::{faults::SyncFault, log_key::LogKey, space::write_zeros};

/// The size of a header in bytes: a page, which it shares with no frame.
pub(super) const HEADER_BYTES: u64 = 4096;
pub(super) const SPARE_PREFIX: &str = "spare-";
const MAGIC: &[u8; 8] = b"ZARRDLOG";
const FORMAT: u32 = 1;
const HEADER_LEN: usize = 8 + 4 + 5 * 8 + 8;
/// The size of a segment and a checksum of it, in bytes.
const SIZE_LEN: usize = 8 + 8;

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) id: u64,
    pub(super) epoch: u64,
    /// The group of its first frame, if it has one.
    pub(super) first_group: u64,
    /// The previous segment, 0 if none exists.
    pub(super) previous: u64,
    /// The end of the previous segment, in bytes.
    pub(super) previous_end: u64,
}

/// The segment that is being written.
pub(super) struct Segment {
    file: File,
    pub(super) header: Header,
    pub(super) size: u64,
    /// The offset of the next frame.
    pub(super) end: u64,
}

/// The file name of a segment.
pub(crate) fn name(id: u64) -> String {
    format!("{id:016x}.log")
}

/// Parses the file name of a segment.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    let id = name.strip_suffix(".log")?;
    let number = u64::from_str_radix(id, 16).ok()?;
    (format!("{number:016x}") == id).then_some(number)
}

fn size_checksum(key: LogKey, id: u64, size: u64) -> u64 {
    key.checksum(id, &[b"size", &size.to_be_bytes()])
}

/// Creates a file of zeros, durable except for its directory entry.
pub(super) fn fill(path: &Path, size: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    write_zeros(&mut file, size)?;
    file.sync_all()
}

impl Header {
    /// The header of a segment of `size` bytes.
    fn encode(self, key: LogKey, size: u64) -> BytesMut {
        let mut bytes = BytesMut::with_capacity(HEADER_LEN + SIZE_LEN);
        bytes.put_slice(MAGIC);
        bytes.put_u32(FORMAT);
        for field in [self.id, self.epoch, self.first_group, self.previous, self.previous_end] {
            bytes.put_u64(field);
        }
        let sum = key.checksum(self.id, &[&bytes]);
        bytes.put_u64(sum);
        bytes.put_u64(size);
        bytes.put_u64(size_checksum(key, self.id, size));
        bytes
    }

    /// The size of the segment's file when it was created, in bytes; `None` if an earlier version wrote its header.
    pub(super) fn size_of(&self, bytes: &[u8], key: LogKey) -> Option<u64> {
        let mut fields = bytes.get(HEADER_LEN..HEADER_LEN + SIZE_LEN)?;
        let (size, sum) = (fields.get_u64(), fields.get_u64());
        (sum == size_checksum(key, self.id, size)).then_some(size)
    }

    /// Decodes a header; `None` if it is corrupt or another store's.
    pub(super) fn decode(bytes: &[u8], key: LogKey) -> Option<Self> {
        let (bytes, _) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        let mut fields = body.strip_prefix(MAGIC)?;
        if fields.get_u32() != FORMAT {
            return None;
        }
        let header = Self {
            id: fields.get_u64(),
            epoch: fields.get_u64(),
            first_group: fields.get_u64(),
            previous: fields.get_u64(),
            previous_end: fields.get_u64(),
        };
        (u64::from_be_bytes(*sum) == key.checksum(header.id, &[body])).then_some(header)
    }
}

impl Segment {
    /// Writes the header into a file of zeros or a retired segment, durably.
    pub(super) fn create(path: &Path, key: LogKey, header: Header) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        let size = file.metadata()?.len();
        file.write_all_at(&header.encode(key, size), 0)?;
        file.sync_data()?;
        Ok(Self { file, header, size, end: HEADER_BYTES })
    }

    pub(super) fn has_room(&self, payload_bytes: u64) -> bool {
        // A frame is padded to a multiple of 8 bytes.
        self.end.saturating_add(FRAME_HEADER as u64).saturating_add(payload_bytes).saturating_add(8) <= self.size
    }

    /// Writes a frame at the end.
    pub(super) fn write(&self, frame: &[u8]) -> io::Result<()> {
        self.file.write_all_at(frame, self.end)
    }

    /// Makes the frame that was written at the end durable.
    pub(super) fn sync(&mut self, frame: &[u8], fault: &SyncFault) -> io::Result<()> {
        fault.before_sync()?;
        self.file.sync_data()?;
        self.end = self.end.saturating_add(frame.len() as u64);
        Ok(())
    }

    /// Removes the beginning of a frame that could not be written to its end, durably: only padding may be missing.
    pub(super) fn revoke(&self, frame: &[u8]) -> io::Result<()> {
        let mut begun = [0; FRAME_HEADER];
        self.file.read_exact_at(&mut begun, self.end)?;
        if frame.starts_with(&begun) {
            self.file.write_all_at(&[0; FRAME_HEADER], self.end)?;
            self.file.sync_data()?;
        }
        Ok(())
    }
}
