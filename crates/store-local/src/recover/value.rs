//! Values that may be recovered, and losses.

use std::sync::Arc;

use zarrd_store::Key;

use crate::{
    log::BulkCommit,
    record::{FileRef, Record},
};

/// How far the value of a key is known to be the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It was the value of the key after the last commit.
    Certain,
    /// It may be an earlier value of the key, one of a key that was erased, or one that was never committed.
    Doubtful,
}

/// A value that may be recovered: its record is whole, and its file is read later.
#[derive(Clone, Debug)]
pub struct RecoverableValue {
    /// The key.
    pub key: Key,
    /// How far it is known to be the last value.
    pub certainty: Certainty,
    pub(super) source: Source,
}

/// Something that is lost, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The value of a key.
    Value {
        /// The key.
        key: Key,
        /// The damage.
        cause: String,
    },
    /// Damage of a file that cost no value.
    Damage {
        /// The file and its damage.
        cause: String,
    },
    /// Any change of the keys from one on, and before another.
    Range {
        /// The first key that is concerned, empty for the first of all.
        from: String,
        /// The key up to which they are, `None` for the last.
        to: Option<String>,
        /// The damage.
        cause: String,
    },
}

/// Where the bytes of a value are.
#[derive(Clone)]
pub(super) enum Source {
    Record(Record),
    /// The commit, and the index of the value in it.
    Bulk(Arc<BulkCommit>, usize),
    /// A file whose record is lost.
    File(FileRef),
}

impl RecoverableValue {
    /// The size of the value in bytes; 0 for a small one of a large commit.
    pub fn size(&self) -> u64 {
        match &self.source {
            Source::Record(record) => record.size(),
            Source::Bulk(bulk, index) => {
                bulk.entries().get(*index).and_then(|entry| entry.replaced_file()).map_or(0, |file| file.size)
            }
            Source::File(file) => file.size,
        }
    }

    /// True if the value has a file of its own.
    pub fn has_file(&self) -> bool {
        match &self.source {
            Source::Record(record) => record.file().is_some(),
            Source::Bulk(bulk, index) => {
                bulk.entries().get(*index).is_some_and(|entry| entry.replaced_file().is_some())
            }
            Source::File(_) => true,
        }
    }
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value { key, cause } => write!(f, "lost: {key:?}: {cause}"),
            Self::Damage { cause } => write!(f, "damaged: {cause}"),
            Self::Range { from, to: None, cause } if from.is_empty() => {
                write!(f, "lost, perhaps: changes of any key: {cause}")
            }
            Self::Range { from, to: None, cause } => write!(f, "lost, perhaps: keys from {from:?} on: {cause}"),
            Self::Range { from, to: Some(to), cause } => {
                write!(f, "lost, perhaps: keys from {from:?} to before {to:?}: {cause}")
            }
        }
    }
}

impl Loss {
    /// True if the loss may concern a key.
    pub fn concerns(&self, key: &str) -> bool {
        match self {
            Self::Value { key: lost, .. } => lost.as_str() == key,
            Self::Damage { .. } => false,
            Self::Range { from, to, .. } => from.as_str() <= key && to.as_ref().is_none_or(|to| key < to.as_str()),
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Record(_) => "Record",
            Self::Bulk(..) => "Bulk",
            Self::File(_) => "File",
        })
    }
}
