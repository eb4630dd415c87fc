//! Records: the index's values.
//!
//! ```text
//! format   u8   1, or 2 with attributes
//! kind     u8   0 inline, 1 file
//! commit   u64  the number of the change that set the key
//! modified u64  milliseconds since the Unix epoch
//! in format 2: length u16, attributes (zarrd_store::Attributes::encode)
//! inline: the value's bytes
//! file:   id u64, size u64, trailer checksum u64
//! checksum u64  xxh3 of the key and all of the above, seeded with the store's id
//! ```
//!
//! A value without attributes has a record of format 1, so that only stores with others need a program that knows
//! format 2. Numbers are big-endian. The checksum binds the record to its key and its store.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};
use zarrd_store::{Attributes, Key, ValueMeta, Version};

/// The maximum size of a value that is stored in the index itself, in bytes.
pub(crate) const MAX_INLINE_BYTES: usize = 4096;

/// That of documents with consolidated metadata. Each change of a node below writes them anew, and a file would take two
/// more syncs.
const MAX_INLINE_DOCUMENT_BYTES: usize = 16 << 10;
const CONSOLIDATED_DOCUMENTS: [&str; 2] = ["zarr.json", ".zmetadata"];

const FORMAT: u8 = 1;
const FORMAT_WITH_ATTRIBUTES: u8 = 2;
const INLINE: u8 = 0;
const FILE: u8 = 1;
const HEADER_LEN: usize = 18;

/// The value of a key, or a reference to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The number of the change that set the key.
    pub(crate) commit: u64,
    /// The time of the set, in milliseconds since the Unix epoch.
    pub(crate) modified: u64,
    pub(crate) attributes: Attributes,
    pub(crate) location: Location,
}

/// The location of a value's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    /// In the record.
    Inline(Bytes),
    /// In a value file.
    File(FileRef),
}

/// A reference to a value file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileRef {
    pub(crate) id: FileId,
    /// The length of the value, in bytes.
    pub(crate) size: u64,
    /// The last checksum of the file's trailer.
    pub(crate) checksum: u64,
}

/// The number of a value file, never reused in a store nor its copies: the epoch (24 bits) and a counter (40 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileId(pub(crate) u64);

/// The maximum size of the value of a key that is stored in the index itself, in bytes.
pub(crate) fn max_inline_bytes(key: &Key) -> usize {
    let name = key.as_str().rsplit('/').next().unwrap_or_default();
    if CONSOLIDATED_DOCUMENTS.contains(&name) { MAX_INLINE_DOCUMENT_BYTES } else { MAX_INLINE_BYTES }
}

impl Record {
    pub(crate) fn size(&self) -> u64 {
        match &self.location {
            Location::Inline(bytes) => bytes.len() as u64,
            Location::File(file) => file.size,
        }
    }

    /// The value, if it is in the record.
    pub(crate) fn inline(&self) -> Option<&Bytes> {
        match &self.location {
            Location::Inline(bytes) => Some(bytes),
            Location::File(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<FileRef> {
        match self.location {
            Location::Inline(_) => None,
            Location::File(file) => Some(file),
        }
    }

    /// The version of the key in the store with this id.
    pub(crate) fn version(&self, store_id: u64) -> Version {
        Version::from_u128((u128::from(store_id) << 64) | u128::from(self.commit))
    }

    pub(crate) fn meta(&self, store_id: u64) -> ValueMeta {
        let modified = UNIX_EPOCH.checked_add(Duration::from_millis(self.modified)).unwrap_or(UNIX_EPOCH);
        let attributes = self.attributes.clone();
        ValueMeta { size: self.size(), version: self.version(store_id), modified, attributes }
    }

    pub(crate) fn encode(&self, key: &[u8], store_id: u64) -> Bytes {
        let attributes = self.attributes.encode();
        let inline = if let Location::Inline(value) = &self.location { value.len() } else { 0 };
        let content = inline.saturating_add(attributes.len());
        let mut bytes = Vec::with_capacity(content.saturating_add(HEADER_LEN + 2 + 24 + 8));
        bytes.push(if attributes.is_empty() { FORMAT } else { FORMAT_WITH_ATTRIBUTES });
        bytes.push(if matches!(self.location, Location::Inline(_)) { INLINE } else { FILE });
        bytes.extend_from_slice(&self.commit.to_be_bytes());
        bytes.extend_from_slice(&self.modified.to_be_bytes());
        if !attributes.is_empty() {
            push_attributes(&mut bytes, &attributes);
        }
        match &self.location {
            Location::Inline(value) => bytes.extend_from_slice(value),
            Location::File(file) => {
                for field in [file.id.0, file.size, file.checksum] {
                    bytes.extend_from_slice(&field.to_be_bytes());
                }
            }
        }
        let sum = checksum(key, &bytes, store_id);
        bytes.extend_from_slice(&sum.to_be_bytes());
        bytes.into()
    }

    /// Decodes a record; `None` if it is damaged. An inline value shares the memory of `bytes`.
    pub(crate) fn decode(key: &[u8], mut bytes: Bytes, store_id: u64) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if u64::from_be_bytes(*sum) != checksum(key, body, store_id) {
            return None;
        }
        bytes.truncate(body.len());
        let format = bytes.try_get_u8().ok()?;
        let kind = bytes.try_get_u8().ok()?;
        let commit = bytes.try_get_u64().ok()?;
        let modified = bytes.try_get_u64().ok()?;
        let attributes = match format {
            FORMAT => Attributes::NONE,
            FORMAT_WITH_ATTRIBUTES => take_attributes(&mut bytes)?,
            _ => return None,
        };
        let location = match kind {
            INLINE => Location::Inline(bytes),
            FILE => Location::File(FileRef {
                id: FileId(bytes.try_get_u64().ok()?),
                size: bytes.try_get_u64().ok()?,
                checksum: bytes.try_get_u64().ok()?,
            }),
            _ => return None,
        };
        Some(Self { commit, modified, attributes, location })
    }
}

/// Appends encoded attributes with their length.
pub(crate) fn push_attributes(bytes: &mut Vec<u8>, attributes: &[u8]) {
    // They are bounded, by about 3 KiB.
    bytes.extend_from_slice(&u16::try_from(attributes.len()).unwrap_or(u16::MAX).to_be_bytes());
    bytes.extend_from_slice(attributes);
}

/// Takes attributes with their length from the front of `bytes`; `None` if they are damaged.
pub(crate) fn take_attributes(bytes: &mut Bytes) -> Option<Attributes> {
    let len = usize::from(bytes.try_get_u16().ok()?);
    if bytes.len() < len {
        return None;
    }
    Attributes::decode(&bytes.split_to(len))
}

/// The current time, in milliseconds since the Unix epoch.
pub(crate) fn now_millis() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The bytes followed by their checksum.
pub(crate) fn with_checksum(mut bytes: BytesMut) -> Bytes {
    let sum = xxh3_64(&bytes);
    bytes.put_u64(sum);
    bytes.freeze()
}

fn checksum(key: &[u8], body: &[u8], store_id: u64) -> u64 {
    let mut hash = Xxh3::with_seed(store_id);
    hash.update(key);
    // No store key contains a NUL, and keys of intents have one length, so key and body cannot be confused.
    hash.update(b"\0");
    hash.update(body);
    hash.digest()
}

impl FileId {
    const COUNT_BITS: u32 = 40;

    /// The first number of an epoch.
    pub(crate) fn first_of(epoch: u64) -> u64 {
        epoch << Self::COUNT_BITS
    }

    /// The number from which the store counts commits and files after it was opened: a random one in the first half of
    /// the epoch. When a backup is restored, and when a copy is opened beside the original, the epoch comes again;
    /// versions and names of files do not.
    pub(crate) fn random_start_of(epoch: u64) -> u64 {
        Self::first_of(epoch).saturating_add(rand::random_range(0..1 << (Self::COUNT_BITS - 1)))
    }

    /// The epoch in which the file was created.
    pub(crate) fn epoch(self) -> u64 {
        self.0 >> Self::COUNT_BITS
    }

    /// The file's path relative to the directory of values. Files created in sequence share a directory, so that one
    /// sync covers them.
    pub(crate) fn path(self) -> String {
        format!("{}/{:016x}", directory_name(self.directory()), self.0)
    }

    /// The number of the file's directory.
    pub(crate) fn directory(self) -> u8 {
        self.0.to_be_bytes()[6]
    }

    /// Parses a file name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let id = u64::from_str_radix(name, 16).ok().map(Self)?;
        (format!("{:016x}", id.0) == name).then_some(id)
    }
}

/// The name of a directory of value files.
pub(crate) fn directory_name(directory: u8) -> String {
    format!("{directory:02x}")
}

#[cfg(test)]
mod tests {
    use zarrd_store::{AttributeFields, ContentField};

    use super::*;

    #[test]
    fn records_round_trip_and_detect_every_damage() {
        let key = Key::parse("a/b").unwrap();
        let file = FileRef { id: FileId(5 << 40 | 77), size: 9_999, checksum: 3 };
        let fields =
            AttributeFields { content: [(ContentField::Type, "text/plain".into())].into(), ..Default::default() };
        let locations =
            [Location::Inline(Bytes::new()), Location::Inline(Bytes::from_static(b"xyz")), Location::File(file)];
        let attributes = [Attributes::NONE, Attributes::new(fields).unwrap()];
        for (location, attributes) in
            locations.iter().flat_map(|location| attributes.iter().map(move |it| (location, it)))
        {
            let location = location.clone();
            let record = Record { commit: 7, modified: 1_700_000_000_123, attributes: attributes.clone(), location };
            let bytes = record.encode(key.as_bytes(), 42);
            assert_eq!(bytes[0], if attributes.is_empty() { 1 } else { 2 });
            let decode =
                |key: &str, bytes: &[u8], id| Record::decode(key.as_bytes(), Bytes::copy_from_slice(bytes), id);
            assert_eq!(decode("a/b", &bytes, 42).as_ref(), Some(&record));
            assert_eq!(decode("a/c", &bytes, 42), None);
            assert_eq!(decode("a/b", &bytes, 43), None);
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(decode("a/b", &damaged, 42), None);
            }
            for len in 0..bytes.len() {
                assert_eq!(decode("a/b", &bytes[..len], 42), None);
            }
        }
    }

    #[test]
    fn file_ids_parse_and_format() {
        let id = FileId(FileId::first_of(3) + 0x1_02fe);
        assert_eq!((id.epoch(), id.directory(), id.path().as_str()), (3, 0x02, "02/00000300000102fe"));
        assert_eq!(FileId::from_name("00000300000102fe"), Some(id));
        for bad in ["", "3", "+0000300000102fe", "00000300000102FE", "x0000300000102fe"] {
            assert_eq!(FileId::from_name(bad), None);
        }
    }
}
