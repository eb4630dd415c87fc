//! The index: a sorted map from keys to records, changed by atomic batches.
//!
//! The log makes commits durable; the index only has to hold together. Batches are atomic and visible at once, and
//! durable after [`Index::sync`]. After a crash an index is as of some batch at or after its last sync.
//!
//! Physical keys are those of [`keyspace`](crate::keyspace): a store key, one of a sweep's own space, or an entry that the
//! store keeps about itself, which begins with a NUL.

mod redb;
mod sled;

use std::{io, path::Path};

use bytes::Bytes;
use store::IntentId;

pub(crate) use self::{redb::RedbIndex, sled::SledIndex};

/// Which index a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// [sled](https://docs.rs/sled) 0.34.7, a log-structured tree.
    Sled,
    /// [redb](https://docs.rs/redb), a copy-on-write B-tree: for stores beyond some ten million keys.
    Redb,
}

/// An entry of an index: a physical key and what it has.
pub(crate) type IndexEntry = (Bytes, Bytes);

/// Entries in the order of their keys.
pub(crate) type IndexIter<'i> = Box<dyn Iterator<Item = Result<IndexEntry, IndexError>> + 'i>;

/// A sorted map from physical keys to bytes. All methods may block.
pub(crate) trait Index: Send + Sync {
    /// The value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError>;

    /// Entries from the first at or after `from`. Batches that are applied meanwhile may be seen or not.
    fn iter(&self, from: &[u8]) -> Result<IndexIter<'_>, IndexError>;

    /// Makes changes visible together: for each key its new value, or `None` to remove it. Not durable before
    /// [`sync`](Self::sync).
    fn apply(&self, batch: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError>;

    /// Makes everything that was applied durable. After an error it is unknown which batches will be found when the index is
    /// opened again.
    fn sync(&self) -> Result<(), IndexError>;
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
    #[error("the index's files could not be written")]
    Io(#[source] io::Error),
    #[error("the index's entry about itself is corrupt")]
    Meta,
    #[error("the record of the intent {0} in the index is damaged")]
    Intent(IntentId),
    #[error(
        "the index has {found} entries, of which some are missing, stale or not its own; it should have {expected}"
    )]
    Entries { found: u64, expected: u64 },
    #[error("the index is being opened again, since the disk was full")]
    Reopening,
}

impl IndexError {
    /// The system's error below it, if that is the cause.
    pub(crate) fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) | Self::Sled(::sled::Error::Io(error)) => Some(error),
            Self::Redb(error) => match &**error {
                ::redb::Error::Io(error) => Some(error),
                _ => None,
            },
            Self::Sled(_) | Self::Panicked(_) | Self::Meta | Self::Intent(_) => None,
            Self::Entries { .. } | Self::Reopening => None,
        }
    }

    /// True if the file system is full, or the owner's quota is.
    pub(crate) fn is_out_of_space(&self) -> bool {
        // sled and redb answer everything after a failed write with an error of their own, so the first one decides.
        self.io().is_some_and(is_out_of_space)
    }
}

/// True if the system says that the file system is full, or that the owner's quota is.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    // sled makes new errors of the old ones' kinds and texts.
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Options of opening an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexOptions {
    pub(crate) kind: IndexKind,
    /// The memory for its cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// The segments of a sled index that is made, in bytes.
    pub(crate) segment_bytes: u64,
}

impl IndexOptions {
    /// Opens the index in a directory, making it if it is missing. A panic inside is an error.
    pub(crate) fn open(self, dir: &Path) -> Result<Box<dyn Index>, IndexError> {
        catch(|| {
            Ok(match self.kind {
                IndexKind::Sled => {
                    Box::new(SledIndex::open(dir, self.cache_bytes, self.segment_bytes)?) as Box<dyn Index>
                }
                IndexKind::Redb => Box::new(RedbIndex::open(dir, self.cache_bytes)?),
            })
        })
    }
}

/// Runs `work`, turning a panic into an error: both indexes panic on some damage.
pub(crate) fn catch<T>(work: impl FnOnce() -> Result<T, IndexError>) -> Result<T, IndexError> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        Err(IndexError::Panicked(text.unwrap_or_else(|| "no message".to_owned())))
    })
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
