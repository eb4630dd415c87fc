//! Changes of many keys, in one commit or key by key.

use async_trait::async_trait;

use crate::{
    ByteRange, ByteStream, Change, ChangeOutcome, Key, Payload, Precondition, SnapshotStore, Staged, StoreError,
    WriteableStore, Writes,
};

/// The changes of one operation: of chunks, and of the documents by which readers find and understand them.
///
/// No two of them name the same key.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The changes of chunks, which do not depend on each other.
    pub chunks: Vec<Change>,
    /// The changes of documents, in the order in which they are made, and the checks of documents.
    pub documents: Vec<Change>,
}

/// Changes many keys: in one commit, or else key by key.
///
/// Every [`TransactionalStore`](crate::TransactionalStore) is one, and so is [`Keyed`](crate::Keyed) of a store that can
/// be written.
#[async_trait]
pub trait BatchStore: SnapshotStore + WriteableStore {
    /// Writes a value for `key` without making it visible. Fails like [`WriteableStore::set`].
    ///
    /// The staged value is discarded when its last clone is dropped, or when the store is closed before it is
    /// committed.
    async fn stage(&self, key: &Key, payload: Payload) -> Result<Staged, StoreError>;

    /// Returns the bytes of a staged value, or a range of them, checked like those of visible values. A range that
    /// contains no byte of the value yields an empty stream.
    ///
    /// Fails with [`StoreError::InvalidStaged`] if another store staged the value, or if it was committed.
    async fn read_staged(&self, staged: &Staged, range: Option<ByteRange>) -> Result<ByteStream, StoreError>;

    /// Makes the changes of a batch: where keys change in [commits](Writes::Commit), as one commit of all of them; where
    /// each key changes by itself, one after the other.
    ///
    /// - Outcomes are in the order of the documents, and then of the chunks.
    ///
    /// Where each key changes by itself ([`Writes::Key`]):
    ///
    /// - The conditions of checks are looked at first, and those of documents too if there is more than one change. If
    ///   one does not hold, nothing is changed.
    /// - Then the chunks are changed, several at a time. A chunk whose condition does not hold keeps its value, and the
    ///   others are changed nevertheless.
    /// - If all of them are, the documents are changed in their order.
    /// - Finally the checks are looked at again. So all of it was done while they held, or the batch fails.
    /// - A batch that has begun is finished even if the future is dropped.
    /// - Conditions hold as [`Guarantees::conditions`](crate::Guarantees::conditions) says. Those that the store does not
    ///   have fail with [`StoreError::Unsupported`] before anything is changed, as do intents, since there are none.
    ///
    /// # Errors
    ///
    /// Those of [`TransactionalStore::commit`](crate::TransactionalStore::commit), with nothing changed; and
    /// [`StoreError::PartlyApplied`] if some keys were changed before the batch failed.
    async fn apply(&self, batch: Batch) -> Result<Vec<ChangeOutcome>, StoreError>;
}

impl Batch {
    /// A batch of documents.
    pub fn of_documents(documents: Vec<Change>) -> Self {
        Self { chunks: Vec::new(), documents }
    }

    /// All changes as one list, with those of documents first.
    pub fn into_changes(self) -> Vec<Change> {
        let Self { chunks, mut documents } = self;
        documents.extend(chunks);
        documents
    }
}

impl std::fmt::Debug for dyn BatchStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BatchStore").field(&self.guarantees()).finish()
    }
}

/// The error of a condition on a change of a store with these guarantees, if it has no such conditions.
pub(crate) fn check_condition(
    guarantees: &crate::Guarantees,
    condition: &Precondition,
    change: ConditionalChange,
) -> Result<(), StoreError> {
    use crate::Conditions;
    if *condition == Precondition::none() {
        return Ok(());
    }
    let holds = match guarantees.conditions {
        Conditions::Atomic | Conditions::ThisProcess => true,
        Conditions::CreateOnly => *condition == Precondition::absent(),
        Conditions::None => false,
    };
    match change {
        _ if guarantees.writes == Writes::None => Err(StoreError::Unsupported { what: "changes" }),
        ConditionalChange::Set if holds => Ok(()),
        ConditionalChange::Set => Err(StoreError::Unsupported { what: "this condition of a change" }),
        ConditionalChange::Erase if holds && guarantees.conditional_erase => Ok(()),
        ConditionalChange::Erase => Err(StoreError::Unsupported { what: "conditions of an erase" }),
    }
}

/// A change that can have a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionalChange {
    Set,
    Erase,
}
