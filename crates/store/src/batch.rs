//! Changes of many keys, in one commit or key by key.

use crate::{Change, Conditions, Guarantees, Precondition, StoreError};

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

impl Batch {
    /// A batch of documents.
    pub fn of_documents(documents: Vec<Change>) -> Self {
        Self { chunks: Vec::new(), documents }
    }

    /// All changes as one list, the changes of documents first.
    pub fn into_changes(self) -> Vec<Change> {
        let Self { chunks, mut documents } = self;
        documents.extend(chunks);
        documents
    }
}

/// Fails with [`StoreError::Unsupported`] if a store with these guarantees, which can be written, has no such condition on a
/// change.
pub(crate) fn check_condition(
    guarantees: &Guarantees,
    condition: &Precondition,
    change: ConditionalChange,
) -> Result<(), StoreError> {
    if *condition == Precondition::none() {
        return Ok(());
    }
    let holds = match guarantees.conditions {
        Conditions::Atomic | Conditions::ThisProcess => true,
        Conditions::CreateOnly => *condition == Precondition::absent(),
        Conditions::None => false,
    };
    match change {
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
