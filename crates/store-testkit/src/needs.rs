//! The guarantees that checks need.

use zarrd_store::{Conditions, Guarantees, Listing, Reads, Writes};

/// A guarantee that a check needs. A check is skipped for a store that does not declare it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Snapshots, and values that are open, are not affected by later changes.
    CommitReads,
    /// Values can be changed.
    Writes,
    /// Many keys can be changed together.
    CommitWrites,
    /// Preconditions are checked atomically with the change, at least among the changes of one process, as a suite is.
    AtomicConditions,
    /// Erases can have the preconditions that sets can have.
    ConditionalErases,
    /// Keys are listed.
    Listings,
    /// A key may be a prefix of others.
    SharedNames,
    /// Values keep their attributes.
    Attributes,
}

impl Need {
    pub(super) fn is_met_by(self, guarantees: &Guarantees) -> bool {
        match self {
            Self::CommitReads => guarantees.reads == Reads::Commit,
            Self::Writes => guarantees.writes != Writes::None,
            Self::CommitWrites => guarantees.writes == Writes::Commit,
            Self::AtomicConditions => matches!(guarantees.conditions, Conditions::Atomic | Conditions::ThisProcess),
            Self::ConditionalErases => guarantees.conditional_erase,
            Self::Listings => guarantees.listing == Listing::Sorted,
            Self::SharedNames => guarantees.shared_names,
            Self::Attributes => guarantees.attributes,
        }
    }
}
