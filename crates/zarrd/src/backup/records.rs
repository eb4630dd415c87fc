//! The records of a backup: lines of JSON, sorted by key, compressed with Zstandard.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;
use zarrd_store::Attributes;

use super::BackupError;

/// The maximum size of a value that is part of its record, in bytes.
pub(super) const MAX_INLINE_BYTES: u64 = 4096;
/// The maximum length of a line, in bytes: the longest key, escaped, and the largest small value.
const MAX_LINE_BYTES: u64 = 32 << 10;

/// A value of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BackedUp {
    pub(super) key: String,
    /// The version, in 32 hexadecimal digits.
    pub(super) version: String,
    /// The size in bytes.
    pub(super) size: u64,
    /// The checksum of the value (XXH3, 64 bits), in hexadecimal digits.
    pub(super) xxh3: String,
    /// The encoded [attributes](zarrd_store::Attributes::encode), in base64; none if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) attributes: Option<String>,
    /// The value, in base64; none if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<String>,
}

/// Writes records.
pub(super) struct RecordsWriter {
    lines: zstd::Encoder<'static, Hashed<BufWriter<File>>>,
    path: PathBuf,
}

/// Reads records in the order of their keys.
pub(super) struct RecordsReader {
    lines: BufReader<zstd::Decoder<'static, BufReader<File>>>,
    path: PathBuf,
    next: Option<BackedUp>,
}

/// Passes bytes on, and hashes them.
struct Hashed<W> {
    inner: W,
    hash: Xxh3,
}

impl BackedUp {
    /// The attributes; `None` if they are damaged.
    pub(super) fn attributes(&self) -> Option<Attributes> {
        match &self.attributes {
            None => Some(Attributes::NONE),
            Some(text) => Attributes::decode(&BASE64_STANDARD.decode(text).ok()?),
        }
    }
}

impl RecordsWriter {
    pub(super) fn create(path: &Path) -> Result<Self, BackupError> {
        let failed = || BackupError::io("create", path);
        let file = File::create_new(path).map_err(failed())?;
        let hashed = Hashed { inner: BufWriter::with_capacity(1 << 20, file), hash: Xxh3::new() };
        Ok(Self { lines: zstd::Encoder::new(hashed, 3).map_err(failed())?, path: path.to_owned() })
    }

    pub(super) fn push(&mut self, record: &BackedUp) -> Result<(), BackupError> {
        let written = serde_json::to_writer(&mut self.lines, record).map_err(io::Error::from);
        written.and_then(|()| self.lines.write_all(b"\n")).map_err(BackupError::io("write", &self.path))
    }

    /// Makes the file durable, and returns its checksum.
    pub(super) fn finish(self) -> Result<String, BackupError> {
        let failed = || BackupError::io("write", &self.path);
        let Hashed { inner, hash } = self.lines.finish().map_err(failed())?;
        let file = inner.into_inner().map_err(|error| failed()(error.into_error()))?;
        file.sync_all().map_err(failed())?;
        Ok(render(hash.digest()))
    }
}

impl RecordsReader {
    pub(super) fn open(path: &Path) -> Result<Self, BackupError> {
        let failed = || BackupError::io("open", path);
        let decoder = zstd::Decoder::new(File::open(path).map_err(failed())?).map_err(failed())?;
        let mut reader = Self { lines: BufReader::with_capacity(1 << 16, decoder), path: path.to_owned(), next: None };
        reader.advance()?;
        Ok(reader)
    }

    /// The next record, without passing it.
    pub(super) fn peek(&self) -> Option<&BackedUp> {
        self.next.as_ref()
    }

    /// The next record.
    pub(super) fn next(&mut self) -> Result<Option<BackedUp>, BackupError> {
        let record = self.next.take();
        if record.is_some() {
            self.advance()?;
        }
        Ok(record)
    }

    fn advance(&mut self) -> Result<(), BackupError> {
        let mut line = Vec::new();
        let read = self.lines.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
        if read.map_err(BackupError::io("read", &self.path))? == 0 {
            return Ok(());
        }
        let parsed = serde_json::from_slice(&line);
        self.next = Some(parsed.map_err(|error| BackupError::damaged(&self.path, error.to_string()))?);
        Ok(())
    }
}

/// The checksum of a file, as [`RecordsWriter::finish`] returns it. Blocks.
pub(super) fn checksum(path: &Path) -> Result<String, BackupError> {
    let mut file = File::open(path).map_err(BackupError::io("open", path))?;
    let mut hashed = Hashed { inner: io::sink(), hash: Xxh3::new() };
    io::copy(&mut file, &mut hashed).map_err(BackupError::io("read", path))?;
    Ok(render(hashed.hash.digest()))
}

/// A checksum as text.
pub(super) fn render(checksum: u64) -> String {
    format!("{checksum:016x}")
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(key: &str) -> BackedUp {
        BackedUp {
            key: key.to_owned(),
            version: "0".repeat(32),
            size: 3,
            xxh3: render(7),
            attributes: None,
            value: Some("YWJj".into()),
        }
    }

    #[test]
    fn records_are_read_as_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let mut writer = RecordsWriter::create(&path).unwrap();
        let records = [record("a"), BackedUp { attributes: Some("AQ==".into()), value: None, ..record("b/\"ü\"") }];
        records.iter().try_for_each(|record| writer.push(record)).unwrap();
        let written = writer.finish().unwrap();
        assert_eq!(checksum(&path).unwrap(), written);
        let mut reader = RecordsReader::open(&path).unwrap();
        assert_eq!(reader.peek(), Some(&records[0]));
        let read: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(read, records);
    }

    #[test]
    fn damage_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("records");
        let mut writer = RecordsWriter::create(&path).unwrap();
        (0..1000).try_for_each(|number| writer.push(&record(&number.to_string()))).unwrap();
        let sum = writer.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        assert_ne!(checksum(&path).unwrap(), sum);
        let read_all = || {
            let mut reader = RecordsReader::open(&path)?;
            while reader.next()?.is_some() {}
            Ok::<_, BackupError>(())
        };
        assert!(matches!(read_all(), Err(BackupError::Io { .. })), "a file that was cut short has an error at its end");
    }
}
