//! The index: a sorted map from keys to records, changed by atomic batches.
//!
//! Durability comes from the log; the index only has to be consistent. Batches are atomic and immediately visible, and
//! durable after [`Index::sync`]. After a crash, an index has the state of some batch at or after its last sync.
//!
//! [`keyspace`](crate::keyspace) describes the physical keys: store keys, keys in the space of a sweep, and internal
//! entries, which begin with a NUL.

mod redb;
mod sled;
mod unavailable;

use std::{fs::TryLockError, io, path::Path};

use bytes::Bytes;
use zarrd_store::IntentId;

pub(crate) use self::{
    redb::RedbIndex,
    sled::{PAGE_POSITIONS, SledIndex},
    unavailable::UnavailableIndex,
};
use crate::regular_file;

/// The kind of a store's index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IndexKind {
    /// [sled](https://docs.rs/sled) 0.34.7, a log-structured tree.
    Sled,
    /// [redb](https://docs.rs/redb), a copy-on-write B-tree, for stores of more than some ten million keys.
    Redb,
}

/// An entry of an index: a physical key and its value.
pub(crate) type IndexEntry = (Bytes, Bytes);

/// Entries in the order of their keys.
pub(crate) type IndexIter<'i> = Box<dyn Iterator<Item = Result<IndexEntry, IndexError>> + 'i>;

/// A sorted map from physical keys to bytes. All methods may block.
pub(crate) trait Index: Send + Sync {
    /// Returns the value of a key.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, IndexError>;

    /// Iterates over the entries at or after `from`. Batches that are applied meanwhile may or may not be seen.
    fn iter(&self, from: &[u8]) -> Result<IndexIter<'_>, IndexError>;

    /// Applies changes atomically: for each key its new value, or `None` to remove it. Not durable before
    /// [`sync`](Self::sync).
    fn apply(&self, batch: Vec<(Bytes, Option<Bytes>)>) -> Result<(), IndexError>;

    /// Fails if a write failed in the background, so that the index has to be opened again. Does not block.
    fn check_writes(&self) -> Result<(), IndexError> {
        Ok(())
    }

    /// Makes all applied batches durable. After an error it is unknown which of them the index has when it is opened
    /// again.
    fn sync(&self) -> Result<(), IndexError>;

    /// Returns where its pages are, if damage to its files has bounds only for those who know that.
    fn page_positions(&self) -> Result<Option<Bytes>, IndexError> {
        Ok(None)
    }
}

/// Errors of an index.
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
    #[error("the index's metadata entry is corrupt")]
    Meta,
    #[error("the record of the intent {0} in the index is damaged")]
    Intent(IntentId),
    #[error("the index has {found} entries instead of {expected}, or some of them are stale or foreign")]
    Entries { found: u64, expected: u64 },
    #[error("the index has entries that are not where their keys belong, so that look-ups miss them")]
    Misplaced,
    #[error("the index is damaged, and the damage has no bounds: what it has is not all that was written")]
    Unbounded,
    #[error("the index is being reopened, because the disk was full")]
    Reopening,
}

impl IndexError {
    /// The underlying error of the operating system.
    pub(crate) fn io(&self) -> Option<&io::Error> {
        match self {
            Self::Io(error) | Self::Sled(::sled::Error::Io(error)) => Some(error),
            Self::Redb(error) => match &**error {
                ::redb::Error::Io(error) => Some(error),
                _ => None,
            },
            Self::Sled(_) | Self::Panicked(_) | Self::Meta | Self::Intent(_) => None,
            Self::Entries { .. } | Self::Misplaced | Self::Unbounded | Self::Reopening => None,
        }
    }

    /// True if the index found that its own bytes are damaged.
    pub(crate) fn is_damage(&self) -> bool {
        match self {
            Self::Sled(error) => matches!(error, ::sled::Error::Corruption { .. }),
            Self::Redb(error) => matches!(**error, ::redb::Error::Corrupted(_)),
            Self::Panicked(_) | Self::Meta | Self::Intent(_) => true,
            Self::Entries { .. } | Self::Misplaced | Self::Unbounded => true,
            Self::Io(_) | Self::Reopening => false,
        }
    }

    /// True if the file system, or the owner's quota, is full.
    pub(crate) fn is_out_of_space(&self) -> bool {
        // After a failed write, sled and redb return errors of their own, so the first error counts.
        self.io().is_some_and(is_out_of_space)
    }
}

/// True if the file system, or the owner's quota, is full.
pub(crate) fn is_out_of_space(error: &io::Error) -> bool {
    // sled copies the kinds and texts of errors.
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Options of opening an index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexOptions {
    pub(crate) kind: IndexKind,
    /// The memory limit of its cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// The size of a segment of a new sled index, in bytes.
    pub(crate) segment_bytes: u64,
}

impl IndexOptions {
    /// Opens the index in a directory, creating it if it is missing. A panic is turned into an error.
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

/// True if another process has locked the main file of an index. Blocks.
pub(crate) fn is_in_use(main_file: &Path) -> bool {
    regular_file::open(main_file).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

impl IndexKind {
    /// The file that an index of this kind always has, relative to its directory.
    pub(crate) fn main_file(self) -> &'static str {
        match self {
            Self::Sled => sled::FILE,
            Self::Redb => redb::FILE,
        }
    }

    /// The name on the command line.
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
