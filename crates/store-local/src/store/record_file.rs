//! The records of a snapshot, in a file without a name.
//!
//! ```text
//! key length u16, key, record length u32, record     for each key, in the order of the keys
//! ```
//!
//! Numbers are big-endian. Each record has its checksum. The offset of every [`BLOCK`]th entry is in memory, eight bytes
//! for each; a lookup reads one key at each of some twenty offsets, and then one block.

use std::{
    fs::File,
    io::{self, BufWriter, Write},
    os::unix::fs::FileExt,
};

use bytes::{Buf, Bytes};
use zarrd_store::{Key, StoreError};

/// The number of entries between two offsets.
const BLOCK: u64 = 64;
/// The bytes that are read at a time, one entry after the other.
const READ_BYTES: usize = 64 << 10;
/// The bytes that are read of an entry for its key, unless the key is longer.
const KEY_BYTES: usize = 256;

/// Writes a [`RecordFile`].
pub(super) struct RecordWriter {
    file: BufWriter<File>,
    offsets: Vec<u64>,
    entries: u64,
    end: u64,
}

/// Keys with their records, in the order of the keys.
pub(super) struct RecordFile {
    file: File,
    offsets: Box<[u64]>,
    entries: u64,
    end: u64,
}

/// The entries of a [`RecordFile`] from one on.
pub(super) struct RecordReader<'f> {
    file: &'f RecordFile,
    /// The offset of what follows `buffer`.
    offset: u64,
    buffer: Bytes,
    /// The key of the next entry, if it was read already.
    key: Option<String>,
    /// The bytes to read next.
    read_bytes: usize,
}

impl RecordWriter {
    pub(super) fn new(file: File) -> Self {
        Self { file: BufWriter::with_capacity(1 << 20, file), offsets: Vec::new(), entries: 0, end: 0 }
    }

    /// Appends the record of a key that follows all others.
    pub(super) fn push(&mut self, key: &str, record: &[u8]) -> io::Result<()> {
        let too_long = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let key_len = u16::try_from(key.len()).map_err(too_long)?;
        let record_len = u32::try_from(record.len()).map_err(too_long)?;
        if self.entries.is_multiple_of(BLOCK) {
            self.offsets.push(self.end);
        }
        for part in [&key_len.to_be_bytes(), key.as_bytes(), &record_len.to_be_bytes(), record] {
            self.file.write_all(part)?;
            self.end = self.end.saturating_add(part.len() as u64);
        }
        self.entries = self.entries.saturating_add(1);
        Ok(())
    }

    /// The bytes that were appended.
    pub(super) fn len(&self) -> u64 {
        self.end
    }

    pub(super) fn finish(self) -> io::Result<RecordFile> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(RecordFile { file, offsets: self.offsets.into(), entries: self.entries, end: self.end })
    }
}

impl RecordFile {
    /// The number of entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// The record of a key. Blocks.
    pub(super) fn get(&self, key: &Key) -> Result<Option<Bytes>, StoreError> {
        let mut reader = self.read_from(key.as_str())?;
        Ok(reader.next()?.filter(|(found, _)| found == key.as_str()).map(|(_, record)| record))
    }

    /// The entries at and after a key. Blocks.
    pub(super) fn read_from(&self, from: &str) -> Result<RecordReader<'_>, StoreError> {
        // The last block whose first key is not after `from`.
        let mut failed = None;
        let after = self.offsets.partition_point(|offset| match self.reader_at(*offset, KEY_BYTES).next_key() {
            Ok(first) => first.is_some_and(|first| first.as_str() <= from),
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let offset = after.checked_sub(1).and_then(|block| self.offsets.get(block)).copied().unwrap_or(0);
        let end = self.offsets.get(after).copied().unwrap_or(self.end);
        let block = usize::try_from(end.saturating_sub(offset)).unwrap_or(READ_BYTES);
        let mut reader = self.reader_at(offset, block.min(READ_BYTES));
        loop {
            match reader.next_key()? {
                Some(key) if key.as_str() < from => reader.take_record().map(drop)?,
                key => return Ok(RecordReader { key, ..reader }),
            }
        }
    }

    fn reader_at(&self, offset: u64, read_bytes: usize) -> RecordReader<'_> {
        RecordReader { file: self, offset, buffer: Bytes::new(), key: None, read_bytes }
    }
}

impl RecordReader<'_> {
    /// The next key with its record. Blocks.
    pub(super) fn next(&mut self) -> Result<Option<(String, Bytes)>, StoreError> {
        let Some(key) = self.next_key()? else { return Ok(None) };
        let record = self.take_record()?;
        Ok(Some((key, record)))
    }

    /// The next key, whose record has to be taken before the key after it.
    fn next_key(&mut self) -> Result<Option<String>, StoreError> {
        if let Some(key) = self.key.take() {
            return Ok(Some(key));
        }
        if self.position() >= self.file.end {
            return Ok(None);
        }
        let len = self.take(2)?.get_u16();
        let key = self.take(usize::from(len))?;
        String::from_utf8(key.into()).map(Some).map_err(|_| damaged())
    }

    fn take_record(&mut self) -> Result<Bytes, StoreError> {
        let len = self.take(4)?.get_u32();
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    /// The offset of the next byte.
    fn position(&self) -> u64 {
        self.offset.saturating_sub(self.buffer.len() as u64)
    }

    fn take(&mut self, len: usize) -> Result<Bytes, StoreError> {
        if self.buffer.len() < len {
            self.fill(len)?;
        }
        Ok(self.buffer.split_to(len))
    }

    /// Reads until `len` bytes are in the buffer.
    fn fill(&mut self, len: usize) -> Result<(), StoreError> {
        let rest = self.file.end.saturating_sub(self.offset);
        let missing = len.saturating_sub(self.buffer.len());
        if (missing as u64) > rest {
            return Err(damaged());
        }
        let read_bytes = std::mem::replace(&mut self.read_bytes, READ_BYTES);
        let read = u64::try_from(missing.max(read_bytes)).unwrap_or(u64::MAX).min(rest);
        let mut bytes = self.buffer.to_vec();
        let begin = bytes.len();
        bytes.resize(begin.saturating_add(usize::try_from(read).map_err(|_| damaged())?), 0);
        let target = bytes.get_mut(begin..).unwrap_or_default();
        let failed = |error| StoreError::io("read the records of a snapshot", error);
        self.file.file.read_exact_at(target, self.offset).map_err(failed)?;
        self.offset = self.offset.saturating_add(read);
        self.buffer = bytes.into();
        Ok(())
    }
}

/// The error of a file that does not have what was written to it.
fn damaged() -> StoreError {
    StoreError::io("read the records of a snapshot", io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn file(entries: &BTreeMap<String, Vec<u8>>) -> RecordFile {
        let mut writer = RecordWriter::new(tempfile::tempfile().unwrap());
        for (key, record) in entries {
            writer.push(key, record).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(mut reader: RecordReader<'_>) -> Vec<(String, Vec<u8>)> {
        std::iter::from_fn(|| reader.next().unwrap()).map(|(key, record)| (key, record.to_vec())).collect()
    }

    proptest! {
        #[test]
        fn entries_are_found_as_in_a_map(
            entries in prop::collection::btree_map("[a-c]{1,4}", prop::collection::vec(any::<u8>(), 0..9), 0..300),
            wanted in "[a-d]{1,5}",
        ) {
            let file = file(&entries);
            prop_assert_eq!(file.entries(), entries.len() as u64);
            let below: Vec<_> = entries.range(wanted.clone()..).map(|(key, record)| (key.clone(), record.clone())).collect();
            prop_assert_eq!(read(file.read_from(&wanted).unwrap()), below);
            let found = file.get(&Key::parse(&wanted).unwrap()).unwrap();
            prop_assert_eq!(found.map(|record| record.to_vec()), entries.get(&wanted).cloned());
        }
    }

    #[test]
    fn records_may_be_larger_than_a_read() {
        let large = |byte| vec![byte; 3 * READ_BYTES + 1];
        let entries =
            BTreeMap::from([("a".to_owned(), large(1)), ("b".to_owned(), vec![]), ("c".to_owned(), large(2))]);
        let file = file(&entries);
        assert_eq!(read(file.read_from("").unwrap()), entries.clone().into_iter().collect::<Vec<_>>());
        assert_eq!(file.get(&Key::parse("c").unwrap()).unwrap().unwrap(), large(2));
    }

    #[test]
    fn a_file_that_was_cut_short_fails() {
        let entries = (0..200).map(|number| (format!("key{number:03}"), vec![7; 10])).collect();
        let file = file(&entries);
        file.file.set_len(file.end - 1).unwrap();
        assert!(file.get(&Key::parse("key000").unwrap()).is_err() || file.get(&Key::parse("key199").unwrap()).is_err());
    }
}
