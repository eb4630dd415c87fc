//! The description of a backup.

use serde::{Deserialize, Serialize};
use zarrd_wire::snapshot::SnapshotIntent;

/// The newest format of backups.
pub(super) const FORMAT: u32 = FORMAT_WITH_ATTRIBUTES;
/// The format of a backup whose values have attributes, which earlier programs would lose.
pub(super) const FORMAT_WITH_ATTRIBUTES: u32 = 2;
/// The format of other backups, and of the directory.
pub(super) const PLAIN_FORMAT: u32 = 1;

/// A backup that is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The format.
    pub(crate) format: u32,
    /// The name, which is the time at which it was begun, in UTC.
    pub(crate) name: String,
    /// The version of zarrd that took it.
    pub(crate) zarrd: String,
    /// The store; none if it was empty.
    pub(crate) store: Option<String>,
    /// The time at which it was begun, in RFC 3339.
    pub(crate) taken: String,
    /// The commit.
    pub(crate) commit: String,
    /// The number of keys.
    pub(crate) keys: u64,
    /// The size of all values, in bytes.
    pub(crate) bytes: u64,
    /// The checksum of the file of records, as it is stored.
    pub(crate) records: String,
    /// The operations of several commits that were under way; they are finished or undone when it is restored.
    pub(crate) intents: Vec<SnapshotIntent>,
    /// The tokens.
    pub(crate) tokens: Tokens,
    /// The keys whose values were damaged in the store, and are not part of it.
    pub(crate) damaged: Vec<String>,
}

/// The tokens, share links and keys of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Tokens {
    /// They are part of the backup.
    Included,
    /// The store had none.
    None,
    /// It is not known whether there were some, as with those of a server.
    LeftOut,
}

/// The identity of a directory of backups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    pub(super) format: u32,
    /// The store; none as long as it was empty.
    pub(super) store: Option<String>,
}
