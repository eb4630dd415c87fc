//! The index: a sorted map from keys to records, changed by batches that are atomic and durable.

mod redb;
mod sled;

use std::{collections::BTreeMap, io, path::Path};

use bytes::Bytes;
use store::Key;
use xxhash_rust::xxh3::xxh3_64;

pub(crate) use self::{redb::RedbIndex, sled::SledIndex};

/// Where an index keeps its [`Meta`]. No key has a control character, so it is no key, and it sorts before all keys.
pub(crate) const META_KEY: &[u8] = b"\0meta";

/// Which index a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// [sled](https://docs.rs/sled) 0.34.7, a log-structured tree.
    Sled,
    /// [redb](https://docs.rs/redb), a copy-on-write B-tree: for stores beyond some ten million keys.
    Redb,
}

/// A sorted map from keys to encoded records. All methods may block.
pub(crate) trait Index: Send + Sync {
    /// The record of each key, in the order of the keys, all as of one batch.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>, IndexError>;

    /// The record of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError>;

    /// Visits entries in the order of their keys, beginning with the first at or after `from`, for as long as
    /// `visit` wants more. The index's own entry is not visited.
    fn scan(&self, from: &[u8], visit: &mut dyn FnMut(&[u8], Bytes) -> Step) -> Result<(), IndexError>;

    /// Makes a batch visible as a whole, and durable before it returns. After an error it is unknown what will be found
    /// when the index is opened again: all of the batch or nothing.
    fn commit(&self, batch: &Batch) -> Result<(), IndexError>;

    /// What the last batch said of the index; `None` where there has been none.
    fn meta(&self) -> Result<Option<Meta>, IndexError> {
        self.get(META_KEY)?.map(|bytes| Meta::decode(&bytes).ok_or(IndexError::Meta)).transpose()
    }
}

/// What a visitor of [`Index::scan`] wants next.
pub(crate) enum Step {
    /// The next entry.
    Next,
    /// The first entry at or after this key, which lies behind the present one.
    Seek(Vec<u8>),
    /// Nothing more.
    Stop,
}

/// Changes that are made together: for each key its new record, or `None` to remove it.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) changes: BTreeMap<Key, Option<Vec<u8>>>,
    pub(crate) meta: Meta,
}

/// What the index says of itself. It changes with every batch, so that at a start an index that has lost, kept or brought
/// back anything it should not have is told from a whole one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The number of the last commit, which is that of its last change.
    pub(crate) commit: u64,
    /// How many keys there are.
    pub(crate) keys: u64,
    /// The exclusive or of the [`fingerprint`]s of all entries.
    pub(crate) digest: u64,
}

/// An index failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum IndexError {
    #[error("sled failed")]
    Sled(#[from] ::sled::Error),
    #[error("redb failed")]
    Redb(#[source] Box<::redb::Error>),
    #[error("the index panicked: {0}")]
    Panicked(String),
    #[error("the index could not be made durable")]
    Sync(#[source] io::Error),
    #[error("the index's entry about itself is damaged")]
    Meta,
}

/// How an entry counts in [`Meta::digest`].
pub(crate) fn fingerprint(key: &[u8], record: &[u8]) -> u64 {
    xxh3_64(key) ^ xxh3_64(record).rotate_left(32)
}

/// Opens the index of a kind in its directory, making it where there is none. A panic inside is an error.
pub(crate) fn open(kind: IndexKind, dir: &Path, cache_bytes: u64) -> Result<Box<dyn Index>, IndexError> {
    catch(|| {
        Ok(match kind {
            IndexKind::Sled => Box::new(SledIndex::open(dir, cache_bytes)?) as Box<dyn Index>,
            IndexKind::Redb => Box::new(RedbIndex::open(dir, cache_bytes)?),
        })
    })
}

/// Runs `work`, turning a panic into an error: both indexes panic on some damage.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(IndexError::Panicked(text.unwrap_or_else(|| "no message".to_owned())))
    })
}

/// Visits the entries that `seek` gives from a key on, seeking anew wherever the visitor passes something over.
fn walk<K, I>(
    from: &[u8],
    visit: &mut dyn FnMut(&[u8], Bytes) -> Step,
    seek: impl Fn(&[u8]) -> Result<I, IndexError>,
) -> Result<(), IndexError>
where
    K: AsRef<[u8]>,
    I: Iterator<Item = Result<(K, Bytes), IndexError>>,
{
    let mut from = from.to_vec();
    'seek: loop {
        for entry in seek(&from)? {
            let (key, record) = entry?;
            if key.as_ref() == META_KEY {
                continue;
            }
            match visit(key.as_ref(), record) {
                Step::Next => {}
                Step::Seek(next) => {
                    from = next;
                    continue 'seek;
                }
                Step::Stop => return Ok(()),
            }
        }
        return Ok(());
    }
}

impl Meta {
    const LEN: usize = 32;

    pub(crate) fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        let fields = [self.commit, self.keys, self.digest];
        for (place, field) in bytes.chunks_exact_mut(8).zip(fields) {
            place.copy_from_slice(&field.to_be_bytes());
        }
        if let Some((body, sum)) = bytes.split_last_chunk_mut::<8>() {
            *sum = xxh3_64(body).to_be_bytes();
        }
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<8>()?;
        if bytes.len() != Self::LEN || u64::from_be_bytes(*sum) != xxh3_64(body) {
            return None;
        }
        let mut fields = body.as_chunks::<8>().0.iter().map(|field| u64::from_be_bytes(*field));
        Some(Self { commit: fields.next()?, keys: fields.next()?, digest: fields.next()? })
    }
}

impl IndexKind {
    /// The file that an index of this kind always has, within its directory.
    pub(crate) fn main_file(self) -> &'static str {
        match self {
            Self::Sled => sled::FILE,
            Self::Redb => redb::FILE,
        }
    }

    /// The name that the command line knows it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sled => "sled",
            Self::Redb => "redb",
        }
    }
}

impl std::fmt::Display for IndexKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
