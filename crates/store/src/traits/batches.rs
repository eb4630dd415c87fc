//! Changing many keys.

use std::fmt;

use async_trait::async_trait;

use crate::{
    Batch, ByteRange, ByteStream, Change, ChangeOutcome, Intent, Key, Payload, RunId, SnapshotStore, Staged,
    StoreError, Version, WriteableStore,
};

/// Changes many keys: in one commit, or else key by key.
///
/// Every [`TransactionalStore`] is one, and so is [`Keyed`](crate::Keyed) of a store that can
/// be written.
#[async_trait]
pub trait BatchStore: SnapshotStore + WriteableStore {
    /// Writes a value for `key` without making it visible. Fails like [`WriteableStore::set`].
    ///
    /// The staged value is discarded when its last clone is dropped, or when the store is closed before it is
    /// committed.
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError>;

    /// Stages the values of other keys, one after the other, as one value without attributes. The keys may be changed or erased
    /// afterwards. A store that has no way to do so without [copies their bytes](crate::stage_copy_of_parts).
    ///
    /// Fails with [`StoreError::PreconditionFailed`] for the first key whose value has another version, or which has none, and
    /// like [`WriteableStore::set`].
    async fn stage_joined(&self, key: &Key, parts: &[(Key, Version)]) -> Result<Staged, StoreError>;

    /// Returns the bytes of a staged value, or a range of them, checked like the bytes of visible values. A range that
    /// contains no byte of the value yields an empty stream.
    ///
    /// Fails with [`StoreError::InvalidStaged`] if another store staged the value, or if it was committed.
    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError>;

    /// Makes the changes of a batch: where keys change in [commits](crate::Writes::Commit), as one commit of all of them; where
    /// each key changes by itself, one after the other.
    ///
    /// - Outcomes are in the order of the documents, and then of the chunks.
    ///
    /// Where each key changes by itself ([`Writes::Key`](crate::Writes::Key)):
    ///
    /// - The conditions of checks are looked at first, and those of documents too if there is more than one change. If
    ///   one does not hold, nothing is changed.
    /// - Then the chunks are changed, several at a time. A chunk whose condition does not hold keeps its value, and the
    ///   others are changed nevertheless.
    /// - If all of them are, the documents are changed in their order.
    /// - Finally the checks are looked at again. So all of it was done while they held, or the batch fails.
    /// - A batch that has begun is finished even if the future is dropped.
    /// - Conditions hold as [declared](crate::Guarantees::conditions). Those that the store does not
    ///   have fail with [`StoreError::Unsupported`] before anything is changed, as do intents, since there are none.
    ///
    /// # Errors
    ///
    /// Those of [`TransactionalStore::commit`], with nothing changed; [`StoreError::OutcomeUnknown`] if at most one key was,
    /// whose answer was lost; and [`StoreError::PartlyApplied`] if some keys were changed before the batch failed.
    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError>;
}

/// Changes many keys in one commit, and reads many keys as of one commit.
///
/// Its guarantees are [`COMMITS`](crate::Guarantees::COMMITS), except that a store may leave values unchecked: in particular,
/// its [watermark](SnapshotStore::watermark) is never `None`. Of several stores that are shown as one, this is true
/// below each prefix where [`SnapshotStore::guarantees_below`] says so; what names or covers anything else fails with
/// [`StoreError::Unsupported`], and changes nothing.
#[async_trait]
pub trait TransactionalStore: BatchStore {
    /// Makes all changes visible and durable together, or none of them.
    ///
    /// - Outcomes are in the order of the changes. They describe the state before the commit: a set or an erase reports
    ///   whether its key had a value then, even if the key is below a prefix that the same commit erases.
    /// - All preconditions, including [`Change::CheckEmpty`], are checked against the state before the commit,
    ///   atomically with it.
    /// - [`Change::ErasePrefix`] erases every key that is below its prefix when the commit is made. It is applied
    ///   before all other changes of the commit, wherever it is in the list, so that a commit can replace everything
    ///   below a prefix. It counts as one change, and its cost does not depend on the number of keys.
    /// - Prefixes may be repeated and nested, and keys below them may be changed in the same commit.
    /// - Existing snapshots are not affected.
    ///
    /// # Errors
    ///
    /// A commit that fails changes nothing and leaves its staged values unchanged: their clones can be committed again.
    ///
    /// - [`StoreError::PreconditionFailed`] or [`StoreError::NotEmpty`] for the first change whose condition does not
    ///   hold.
    /// - [`StoreError::TooManyChanges`] if there are more than
    ///   [`MAX_COMMIT_CHANGES`](crate::MAX_COMMIT_CHANGES) changes.
    /// - [`StoreError::DuplicateKey`] if two changes name one key.
    /// - [`StoreError::InvalidStaged`] if another store staged a value, or if it was committed before.
    /// - [`StoreError::Intent`] if an intent cannot be added or removed, or is not as the commit needs it; see
    ///   [`IntentError`](crate::IntentError).
    async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError>;

    /// Returns the intents that were added and not removed, in the order of their ids.
    ///
    /// Intents are not values: they are not listed, counted, read by a key, or erased with a prefix.
    async fn intents(&self) -> Result<Vec<Intent>, StoreError>;

    /// The run of this store, which begins when it is opened for writing. Fails if it is not.
    fn run(&self) -> Result<RunId, StoreError>;

    /// True if the run of an operation may go on, so that the operation is not interrupted. By default that is the run of
    /// this store and no other, since one process at a time has a store open for writing.
    fn is_running(&self, run: RunId) -> bool {
        self.run().is_ok_and(|own| own == run)
    }
}

impl fmt::Debug for dyn BatchStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BatchStore").field(&self.guarantees()).finish()
    }
}

impl fmt::Debug for dyn TransactionalStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TransactionalStore")
    }
}
