//! Bulk commits: the changes of a large commit, in a file of their own.
//!
//! ```text
//! entries, in the order of their keys, each
//!   kind u8, modified u64, key length u16, value length u32, key, value, checksum u64
//! kinds: 0 erased; 1 a small value, which follows; 2 a value file: id u64, size u64, trailer checksum u64
//!        with 128 added: attributes with their length (u16), and then as without
//! ```
//!
//! The file is written and synced before the commit joins a group, whose frame refers to it with a checksum over the
//! checksums of its entries. The keys are in memory; small values are read from the file until the index has them.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use bytes::{BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{Attributes, Key, StoreError};

use super::{LogFiles, bytes_reader::BytesReader};
use crate::{
    FileCorruption, OpenError, ValueCorruption,
    gc::ReplacedFile,
    log_key::LogKey,
    record::{FileId, FileRef, Location, Record, push_attributes, take_attributes},
    regular_file,
};

const ERASED: u8 = 0;
const INLINE: u8 = 1;
const FILE: u8 = 2;
/// Added to the kind of a value with attributes.
const WITH_ATTRIBUTES: u8 = 128;
/// The length of the fields before an entry's key, in bytes.
const ENTRY_HEADER: u64 = 15;
/// The memory of an entry in addition to its key, in bytes, with its place in the index of a memtable.
const ENTRY_OVERHEAD: u64 = 152;

/// One change of a bulk commit.
#[derive(Clone, Debug)]
pub(crate) struct BulkEntry {
    pub(crate) key: Key,
    modified: u64,
    attributes: Attributes,
    value: EntryValue,
}

/// The value of a key in a bulk commit.
#[derive(Clone, Copy, Debug)]
enum EntryValue {
    Erased,
    /// A small value in the commit's file.
    Inline {
        /// The offset of the entry.
        offset: u64,
        /// The length of attributes and value.
        len: u32,
    },
    File(FileRef),
}

/// Writes the file of a bulk commit, in the order of the keys.
pub(crate) struct BulkWriter {
    file: io::BufWriter<File>,
    guard: UnlinkOnDrop,
    key: LogKey,
    entries: Vec<BulkEntry>,
    sums: Xxh3,
    offset: u64,
}

/// A bulk commit that is durable and has no number yet.
pub(crate) struct PreparedBulk {
    file: File,
    guard: UnlinkOnDrop,
    key: LogKey,
    entries: Vec<BulkEntry>,
    checksum: u64,
    file_bytes: u64,
}

/// A bulk commit that the log refers to, or is about to.
pub(crate) struct BulkCommit {
    prepared: PreparedBulk,
    /// The number before that of its first change.
    number: u64,
}

/// Removes the file of a commit that was not made.
struct UnlinkOnDrop {
    id: u64,
    path: PathBuf,
    retained: AtomicBool,
}

impl BulkWriter {
    /// Creates the file for at most `entries` entries.
    pub(crate) fn create(files: &LogFiles, key: LogKey, id: u64, entries: usize) -> io::Result<Self> {
        let path = path(files.dir(), id);
        let file = File::options().read(true).write(true).create_new(true).open(&path)?;
        let guard = UnlinkOnDrop { id, path, retained: AtomicBool::new(false) };
        let file = io::BufWriter::with_capacity(1 << 18, file);
        Ok(Self { file, guard, key, entries: Vec::with_capacity(entries), sums: Xxh3::new(), offset: 0 })
    }

    /// Appends a key with its new value and attributes, or `None` if it is erased.
    pub(crate) fn push(&mut self, key: &Key, modified: u64, value: Option<&(Location, Attributes)>) -> io::Result<()> {
        let mut bytes = BytesMut::with_capacity(256);
        let mut block = Vec::new();
        let attributes = value.map(|(_, attributes)| attributes.clone()).unwrap_or_default();
        if !attributes.is_empty() {
            push_attributes(&mut block, &attributes.encode());
        }
        let marked = if block.is_empty() { 0 } else { WITH_ATTRIBUTES };
        let block_len = u32::try_from(block.len()).unwrap_or(u32::MAX);
        let (kind, len, entry_value) = match value {
            None => (ERASED, 0, EntryValue::Erased),
            Some((Location::Inline(value), _)) => {
                let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
                (INLINE, len, EntryValue::Inline { offset: self.offset, len: len.saturating_add(block_len) })
            }
            Some((Location::File(file), _)) => (FILE, 24, EntryValue::File(*file)),
        };
        bytes.put_u8(kind | marked);
        bytes.put_u64(modified);
        bytes.put_u16(u16::try_from(key.as_bytes().len()).unwrap_or(u16::MAX));
        bytes.put_u32(len.saturating_add(block_len));
        bytes.put_slice(key.as_bytes());
        bytes.put_slice(&block);
        match value {
            None => {}
            Some((Location::Inline(value), _)) => bytes.put_slice(value),
            Some((Location::File(file), _)) => {
                for field in [file.id.0, file.size, file.checksum] {
                    bytes.put_u64(field);
                }
            }
        }
        let sum = self.key.checksum(self.guard.id, &[&bytes]);
        bytes.put_u64(sum);
        self.sums.update(&sum.to_be_bytes());
        self.offset = self.offset.saturating_add(bytes.len() as u64);
        self.entries.push(BulkEntry { key: key.clone(), modified, attributes, value: entry_value });
        self.file.write_all(&bytes)
    }

    /// Makes the file durable. Errors affect only this commit.
    pub(crate) fn finish(self, files: &LogFiles) -> io::Result<PreparedBulk> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        files.sync_dir()?;
        Ok(PreparedBulk {
            file,
            guard: self.guard,
            key: self.key,
            entries: self.entries,
            checksum: self.sums.digest(),
            file_bytes: self.offset,
        })
    }
}

impl PreparedBulk {
    pub(crate) fn entries(&self) -> &[BulkEntry] {
        &self.entries
    }

    /// Assigns the numbers after this one to the changes.
    pub(crate) fn with_number(self, number: u64) -> BulkCommit {
        BulkCommit { prepared: self, number }
    }

    /// Reads the file that a frame refers to.
    pub(crate) fn read(dir: &Path, key: LogKey, id: u64, entries: u32, checksum: u64) -> Result<Self, OpenError> {
        let path = path(dir, id);
        let damaged = |cause| OpenError::Corrupt { file: path.clone(), cause };
        let mut file = match regular_file::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(damaged(FileCorruption::Missing)),
            file => file.map_err(OpenError::io("open", &path))?,
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(OpenError::io("read", &path))?;
        let bytes = Bytes::from(bytes);
        let (mut reader, file_bytes, mut sums) = (BytesReader(bytes.clone()), bytes.len() as u64, Xxh3::new());
        let mut found = Vec::new();
        while !reader.0.is_empty() {
            let offset = file_bytes.saturating_sub(reader.0.len() as u64);
            let (entry, sum) = read_entry(&mut reader, key, id, offset)
                .ok_or_else(|| damaged(FileCorruption::CorruptFrame { offset }))?;
            sums.update(&sum.to_be_bytes());
            found.push(entry);
        }
        if found.len() as u64 != u64::from(entries) || sums.digest() != checksum {
            return Err(damaged(FileCorruption::ContentMismatch));
        }
        let guard = UnlinkOnDrop { id, path, retained: AtomicBool::new(true) };
        Ok(Self { file, guard, key, entries: found, checksum, file_bytes })
    }
}

fn read_entry(reader: &mut BytesReader, key: LogKey, id: u64, offset: u64) -> Option<(BulkEntry, u64)> {
    let all = reader.0.clone();
    let (kind, modified, key_len, len) = (reader.u8()?, reader.u64()?, reader.u16()?, reader.u32()?);
    let name = reader.take(key_len.into())?;
    let mut value = BytesReader(reader.take(usize::try_from(len).ok()?)?);
    let body = all.slice(..all.len().saturating_sub(reader.0.len()));
    let sum = reader.u64()?;
    if sum != key.checksum(id, &[&body]) {
        return None;
    }
    let attributes = match kind & WITH_ATTRIBUTES {
        0 => Attributes::NONE,
        _ => take_attributes(&mut value.0)?,
    };
    let value = match kind & !WITH_ATTRIBUTES {
        ERASED => EntryValue::Erased,
        INLINE => EntryValue::Inline { offset, len },
        FILE => EntryValue::File(FileRef { id: FileId(value.u64()?), size: value.u64()?, checksum: value.u64()? }),
        _ => return None,
    };
    Some((BulkEntry { key: Key::from_stored(&name).ok()?, modified, attributes, value }, sum))
}

impl BulkEntry {
    /// True if the key has a value.
    pub(crate) fn is_set(&self) -> bool {
        !matches!(self.value, EntryValue::Erased)
    }

    /// The value file that a later change of the key replaces.
    pub(crate) fn replaced_file(&self) -> Option<ReplacedFile> {
        match self.value {
            EntryValue::File(file) => Some(ReplacedFile { id: file.id, size: file.size }),
            EntryValue::Erased | EntryValue::Inline { .. } => None,
        }
    }
}

impl BulkCommit {
    /// The number of the last change.
    pub(crate) fn number(&self) -> u64 {
        self.number_of(self.prepared.entries.len().saturating_sub(1))
    }

    /// The number before that of the first change, as in the frame.
    pub(crate) fn base(&self) -> u64 {
        self.number
    }

    pub(crate) fn number_of(&self, value: usize) -> u64 {
        self.number.saturating_add(value as u64).saturating_add(1)
    }

    pub(crate) fn id(&self) -> u64 {
        self.prepared.guard.id
    }

    pub(crate) fn checksum(&self) -> u64 {
        self.prepared.checksum
    }

    pub(crate) fn entries(&self) -> &[BulkEntry] {
        &self.prepared.entries
    }

    /// The record that the commit assigns to a key. Reads the file if the value is small.
    pub(crate) fn record(&self, key: &Key, value: usize) -> Result<Record, StoreError> {
        let corrupt = || StoreError::corrupt(key.clone(), ValueCorruption::Record);
        let entry = self.prepared.entries.get(value).ok_or_else(corrupt)?;
        let location = match entry.value {
            EntryValue::Erased => return Err(corrupt()),
            EntryValue::File(file) => Location::File(file),
            EntryValue::Inline { offset, len } => {
                let block = match entry.attributes.is_empty() {
                    true => 0,
                    false => entry.attributes.encode().len().saturating_add(2),
                };
                let bytes = self.read_inline(&entry.key, offset, len)?.ok_or_else(corrupt)?;
                Location::Inline(bytes.slice(block.min(bytes.len())..))
            }
        };
        let (modified, attributes) = (entry.modified, entry.attributes.clone());
        Ok(Record { commit: self.number_of(value), modified, attributes, location })
    }

    fn read_inline(&self, key: &Key, offset: u64, len: u32) -> Result<Option<Bytes>, StoreError> {
        let before = ENTRY_HEADER.saturating_add(key.as_bytes().len() as u64);
        let value = usize::try_from(before.saturating_add(len.into())).unwrap_or(usize::MAX);
        let mut bytes = vec![0; value.saturating_add(8)];
        let read = self.prepared.file.read_exact_at(&mut bytes, offset);
        read.map_err(|error| StoreError::io("read the file of a large commit", error))?;
        let Some((body, sum)) = bytes.split_last_chunk::<8>() else { return Ok(None) };
        if u64::from_be_bytes(*sum) != self.prepared.key.checksum(self.id(), &[body]) {
            return Ok(None);
        }
        bytes.truncate(value);
        Ok(Some(Bytes::from(bytes).slice(usize::try_from(before).unwrap_or(usize::MAX)..)))
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let keys = self.prepared.entries.iter().map(|entry| entry.key.as_bytes().len() as u64);
        keys.map(|key| key.saturating_add(ENTRY_OVERHEAD)).fold(0, u64::saturating_add)
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.prepared.file_bytes
    }

    pub(crate) fn path(&self) -> &Path {
        &self.prepared.guard.path
    }

    /// Retains the file, since the log may refer to it.
    pub(crate) fn retain(&self) {
        self.prepared.guard.retained.store(true, Ordering::Relaxed);
    }

    /// Removes the file after the index has all of its entries. Readers still have it open.
    pub(crate) fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.prepared.guard.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Drop for UnlinkOnDrop {
    fn drop(&mut self) {
        if !*self.retained.get_mut() {
            // The next start removes what is left.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The path of the file of a bulk commit.
pub(super) fn path(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:016x}.bulk"))
}
