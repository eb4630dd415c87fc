//! Keys and values of pieces, as the blocks have them.

use std::{
    hash::{Hash, Hasher},
    io::{self, Read, Write},
};

use bytes::Bytes;
use equivalent::Equivalent;
use foyer::{Code, Error, ErrorKind};
use tokio::sync::{OwnedSemaphorePermit, mpsc::UnboundedSender};
use xxhash_rust::xxh3::Xxh3;
use zarrd_store::{Key, MAX_KEY_LEN, PIECE_LEN, PieceId, StoreId, Version};

/// The bytes of an entry in addition to the text of its key and to its piece.
pub(crate) const OVERHEAD: usize = 128;

/// The key of a piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EntryKey(pub(crate) PieceId);

/// The first piece of a value in any version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FirstPiece<'k> {
    pub(crate) store: StoreId,
    pub(crate) key: &'k Key,
}

/// The bytes of a piece with their checksum.
#[derive(Debug)]
pub(crate) struct EntryValue {
    /// The checksum over key and bytes.
    checksum: u128,
    bytes: Bytes,
    /// Reports when the value was written, or was not; `None` for one that was read.
    _waiting: Option<Waiting>,
}

/// A piece that waits to be written, until dropped.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) settled: UnboundedSender<Settled>,
    pub(crate) piece: Option<Settled>,
    /// The space in the queue.
    pub(crate) _permit: OwnedSemaphorePermit,
}

/// A piece that is not waiting any more.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) key: EntryKey,
    pub(crate) len: u64,
}

impl EntryValue {
    /// A piece that waits to be written.
    pub(crate) fn new(id: &PieceId, bytes: Bytes, waiting: Waiting) -> Self {
        Self { checksum: checksum(id, &bytes), bytes, _waiting: Some(waiting) }
    }

    /// The bytes, if they belong to this piece.
    pub(crate) fn checked(&self, id: &PieceId) -> Option<Bytes> {
        (checksum(id, &self.bytes) == self.checksum).then(|| self.bytes.clone())
    }
}

/// The checksum over a key and the bytes of its piece.
fn checksum(id: &PieceId, bytes: &[u8]) -> u128 {
    let PieceId { store, key, version, index } = id;
    let mut hash = Xxh3::new();
    hash.update(&store.as_u128().to_le_bytes());
    hash.update(&version.as_u128().to_le_bytes());
    hash.update(&index.to_le_bytes());
    hash.update(&(key.as_bytes().len() as u64).to_le_bytes());
    hash.update(key.as_bytes());
    hash.update(bytes);
    hash.digest128()
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(piece) = self.piece.take() {
            // Without a receiver, the cache is closed.
            let _ = self.settled.send(piece);
        }
    }
}

/// The hash of a first piece leaves its version out.
impl Hash for EntryKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let PieceId { store, key, version, index } = &self.0;
        match index {
            0 => FirstPiece { store: *store, key }.hash(state),
            index => {
                FirstPiece { store: *store, key }.hash(state);
                state.write(&version.as_u128().to_le_bytes());
                state.write(&index.to_le_bytes());
            }
        }
    }
}

impl Hash for FirstPiece<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(&self.store.as_u128().to_le_bytes());
        state.write(self.key.as_bytes());
    }
}

impl Equivalent<EntryKey> for FirstPiece<'_> {
    fn equivalent(&self, EntryKey(id): &EntryKey) -> bool {
        id.index == 0 && id.store == self.store && id.key == *self.key
    }
}

impl Code for EntryKey {
    fn encode(&self, writer: &mut impl Write) -> foyer::Result<()> {
        let PieceId { store, key, version, index } = &self.0;
        let parts: [&[u8]; 4] = [
            &store.as_u128().to_le_bytes(),
            &version.as_u128().to_le_bytes(),
            &index.to_le_bytes(),
            &(key.as_bytes().len() as u64).to_le_bytes(),
        ];
        parts.into_iter().chain([key.as_bytes()]).try_for_each(|part| writer.write_all(part)).map_err(Error::io_error)
    }

    fn decode(reader: &mut impl Read) -> foyer::Result<Self> {
        let store = StoreId::from_u128(u128::from_le_bytes(array(reader)?));
        let version = Version::from_u128(u128::from_le_bytes(array(reader)?));
        let index = u64::from_le_bytes(array(reader)?);
        let text = text(reader, MAX_KEY_LEN as u64)?;
        let key = Key::from_stored(&text).map_err(|_| damaged("the key of a piece"))?;
        Ok(Self(PieceId { store, key, version, index }))
    }

    fn estimated_size(&self) -> usize {
        self.0.key.as_bytes().len().saturating_add(48)
    }
}

impl Code for EntryValue {
    fn encode(&self, writer: &mut impl Write) -> foyer::Result<()> {
        let parts = [&self.checksum.to_le_bytes()[..], &(self.bytes.len() as u64).to_le_bytes(), &self.bytes];
        parts.into_iter().try_for_each(|part| writer.write_all(part)).map_err(Error::io_error)
    }

    fn decode(reader: &mut impl Read) -> foyer::Result<Self> {
        let checksum = u128::from_le_bytes(array(reader)?);
        let bytes = text(reader, PIECE_LEN)?.into();
        Ok(Self { checksum, bytes, _waiting: None })
    }

    fn estimated_size(&self) -> usize {
        self.bytes.len().saturating_add(24)
    }
}

fn array<const N: usize>(reader: &mut impl Read) -> foyer::Result<[u8; N]> {
    let mut bytes = [0; N];
    reader.read_exact(&mut bytes).map_err(Error::io_error)?;
    Ok(bytes)
}

/// Bytes after their length, which has a maximum.
fn text(reader: &mut impl Read, max: u64) -> foyer::Result<Vec<u8>> {
    let len = u64::from_le_bytes(array(reader)?);
    if len > max {
        return Err(damaged("the length of a piece"));
    }
    // Memory that is only written is not cleared first.
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    match reader.take(len).read_to_end(&mut bytes).map_err(Error::io_error)? as u64 {
        read if read == len => Ok(bytes),
        _ => Err(damaged("the end of a piece")),
    }
}

fn damaged(what: &'static str) -> Error {
    let source = io::Error::new(io::ErrorKind::InvalidData, what);
    Error::new(ErrorKind::OutOfRange, what).with_source(source)
}

#[cfg(test)]
mod tests {
    use foyer::DefaultHasher;
    use std::hash::BuildHasher;

    use super::*;

    fn id(store: &str, key: &str, version: u128, index: u64) -> PieceId {
        let (store, key) = (StoreId::of(store), Key::parse(key).unwrap());
        PieceId { store, key, version: Version::from_u128(version), index }
    }

    fn value(id: &PieceId, bytes: &'static [u8]) -> EntryValue {
        EntryValue { checksum: checksum(id, bytes), bytes: Bytes::from_static(bytes), _waiting: None }
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        for (key, bytes) in [("a", &b""[..]), ("a/b c/ä", b"0123")] {
            let id = id("s3://b", key, 7, 3);
            let (mut encoded_key, mut encoded) = (Vec::new(), Vec::new());
            EntryKey(id.clone()).encode(&mut encoded_key).unwrap();
            value(&id, bytes).encode(&mut encoded).unwrap();
            assert_eq!(EntryKey(id.clone()).estimated_size(), encoded_key.len());
            assert_eq!(value(&id, bytes).estimated_size(), encoded.len());
            assert_eq!(EntryKey::decode(&mut &encoded_key[..]).unwrap().0, id);
            assert_eq!(EntryValue::decode(&mut &encoded[..]).unwrap().checked(&id).unwrap(), bytes);
        }
    }

    #[test]
    fn the_checksum_is_of_every_byte_and_of_every_part_of_the_key() {
        let first = id("s3://b", "a", 7, 3);
        let mut encoded = Vec::new();
        value(&first, b"0123").encode(&mut encoded).unwrap();
        for at in 0..encoded.len() {
            let mut flipped = encoded.clone();
            flipped[at] ^= 1;
            let read = EntryValue::decode(&mut &flipped[..]).ok().and_then(|value| value.checked(&first));
            assert_eq!(read, None, "byte {at}");
        }
        for other in
            [id("s3://c", "a", 7, 3), id("s3://b", "b", 7, 3), id("s3://b", "a", 8, 3), id("s3://b", "a", 7, 4)]
        {
            assert_eq!(value(&first, b"0123").checked(&other), None, "{other:?}");
        }
    }

    #[test]
    fn lengths_are_bounded_before_memory_is_allocated() {
        let mut encoded = vec![0; 16];
        encoded.extend(u64::MAX.to_le_bytes());
        assert!(EntryValue::decode(&mut &encoded[..]).is_err());
        let mut encoded = vec![0; 40];
        encoded.extend(u64::MAX.to_le_bytes());
        assert!(EntryKey::decode(&mut &encoded[..]).is_err());
    }

    #[test]
    fn first_pieces_of_all_versions_have_one_hash_and_others_have_not() {
        let hash = |id: PieceId| DefaultHasher::default().hash_one(EntryKey(id));
        let key = Key::parse("a").unwrap();
        let first = FirstPiece { store: StoreId::of("s"), key: &key };
        assert_eq!(hash(id("s", "a", 1, 0)), hash(id("s", "a", 2, 0)));
        assert_eq!(hash(id("s", "a", 1, 0)), DefaultHasher::default().hash_one(first));
        assert!(first.equivalent(&EntryKey(id("s", "a", 2, 0))));
        assert!(!first.equivalent(&EntryKey(id("s", "a", 2, 1))) && !first.equivalent(&EntryKey(id("s", "b", 2, 0))));
        assert_ne!(EntryKey(id("s", "a", 1, 0)), EntryKey(id("s", "a", 2, 0)), "they differ nevertheless");
        let others =
            [id("s", "a", 1, 1), id("s", "a", 2, 1), id("s", "a", 1, 2), id("s", "b", 1, 0), id("t", "a", 1, 0)];
        for other in others {
            assert_ne!(hash(other.clone()), hash(id("s", "a", 1, 0)), "{other:?}");
        }
    }
}
