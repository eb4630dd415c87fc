//! The guarantees of a store, by which its users know what they can rely on.

use std::{fmt, time::Duration};

/// The guarantees of a store, which it declares with [`SnapshotStore::guarantees`](crate::SnapshotStore::guarantees).
///
/// They do not change as long as the store is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// The moment to which the values of a snapshot belong.
    pub reads: Reads,
    /// The unit of a change.
    pub writes: Writes,
    /// The preconditions that hold when a change is made.
    pub conditions: Conditions,
    /// True if the conditions hold for erases as well. Otherwise an erase can have none.
    pub conditional_erase: bool,
    /// The reason why a store that was opened for writing accepts no changes.
    pub read_only_reason: Option<&'static str>,
    /// The listings.
    pub listing: Listing,
    /// The longest time until a change of another program is seen. Changes that were made through the store are seen
    /// at once.
    pub staleness: Duration,
    /// True if a key may also be a prefix of other keys, as `a` and `a/b`.
    pub shared_names: bool,
    /// True if the bytes of a value are checked against a checksum of the store before they are returned.
    pub checked: bool,
    /// The use of consolidated metadata for trees.
    pub consolidated: Consolidated,
    /// True if versions are best learnt from listings: a page of them, with the versions of many keys, costs about as
    /// much as a HEAD of one key.
    pub listed_versions: bool,
    /// True if values are on this machine, so that no answer takes a round trip. It decides how much is read ahead, and
    /// over which gaps.
    pub near: bool,
    /// True if values keep the [attributes](crate::Attributes) that they are set with.
    pub attributes: bool,
}

/// The moment to which the values of a snapshot belong; the strongest guarantee is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reads {
    /// All values are those of one commit.
    Commit,
    /// Each value is the one that its key had when it was first read in the snapshot. A read of a value that was
    /// replaced since fails with [`StoreError::Changed`](crate::StoreError::Changed).
    Key,
}

/// The unit of a change; the strongest guarantee is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Writes {
    /// Any number of keys change together, or none of them.
    Commit,
    /// Each key changes by itself.
    Key,
    /// Nothing can be changed.
    None,
}

/// The preconditions that hold when a change is made; the strongest guarantee is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conditions {
    /// Any precondition is checked atomically with the change.
    Atomic,
    /// Only the precondition that the key has no value.
    CreateOnly,
    /// Preconditions hold among the changes of this process, not among those of other programs.
    ThisProcess,
    /// None.
    None,
}

/// The listings of a store; the strongest guarantee is the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Listing {
    /// Listings are complete and sorted, as [`ListableStore`](crate::ListableStore) defines them.
    Sorted,
    /// Every listing fails with [`StoreError::Unsupported`](crate::StoreError::Unsupported).
    None,
}

/// The use of consolidated metadata for trees; the strongest guarantee is the least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consolidated {
    /// Every node is as its own documents are.
    #[default]
    Ignored,
    /// The nodes below a group that has consolidated metadata are as these say, which another program may not have
    /// brought up to date.
    Trusted,
}

impl Guarantees {
    /// The guarantees of a store with commits that has its data to itself. Every
    /// [`TransactionalStore`](crate::TransactionalStore) has them.
    pub const COMMITS: Self = Self {
        reads: Reads::Commit,
        writes: Writes::Commit,
        conditions: Conditions::Atomic,
        conditional_erase: true,
        read_only_reason: None,
        listing: Listing::Sorted,
        staleness: Duration::ZERO,
        shared_names: true,
        checked: true,
        consolidated: Consolidated::Ignored,
        listed_versions: true,
        near: true,
        attributes: true,
    };

    /// The guarantees of a store that reads data which other programs own, as strong as they can be.
    pub const READ_ONLY: Self = Self {
        reads: Reads::Key,
        writes: Writes::None,
        conditions: Conditions::None,
        conditional_erase: false,
        checked: false,
        listed_versions: false,
        near: false,
        attributes: false,
        ..Self::COMMITS
    };

    /// The guarantees that both stores have.
    #[must_use]
    pub fn weaker(self, other: Self) -> Self {
        Self {
            reads: self.reads.max(other.reads),
            writes: self.writes.max(other.writes),
            conditions: self.conditions.max(other.conditions),
            conditional_erase: self.conditional_erase && other.conditional_erase,
            read_only_reason: self.read_only_reason.or(other.read_only_reason),
            listing: self.listing.max(other.listing),
            staleness: self.staleness.max(other.staleness),
            shared_names: self.shared_names && other.shared_names,
            checked: self.checked && other.checked,
            consolidated: self.consolidated.max(other.consolidated),
            listed_versions: self.listed_versions && other.listed_versions,
            near: self.near && other.near,
            attributes: self.attributes && other.attributes,
        }
    }
}

/// One line for logs, with the words that users see.
impl fmt::Display for Guarantees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { reads, writes, conditions, listing, staleness, shared_names, checked, consolidated, .. } = *self;
        let yes_or_no = |holds| if holds { "yes" } else { "no" };
        write!(
            f,
            "reads: {}, writes: {}, conditions: {}, listing: {}, staleness: {} s, shared names: {}, checked: {}, \
             consolidated metadata: {}",
            reads.as_str(),
            writes.as_str(),
            conditions.as_str(),
            listing.as_str(),
            staleness.as_secs_f64(),
            yes_or_no(shared_names),
            yes_or_no(checked),
            consolidated.as_str(),
        )?;
        match self.read_only_reason {
            Some(reason) => write!(f, ", read-only: {reason}"),
            None => Ok(()),
        }
    }
}

impl Reads {
    /// The name, as users see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Key => "key",
        }
    }
}

impl Writes {
    /// The name, as users see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Key => "key",
            Self::None => "none",
        }
    }
}

impl Conditions {
    /// The name, as users see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Atomic => "atomic",
            Self::CreateOnly => "create-only",
            Self::ThisProcess => "this-process",
            Self::None => "none",
        }
    }
}

impl Listing {
    /// The name, as users see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sorted => "sorted",
            Self::None => "none",
        }
    }
}

impl Consolidated {
    /// The name, as users see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Trusted => "trusted",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guarantees_are_shown_in_the_words_of_users() {
        assert_eq!(
            Guarantees::COMMITS.to_string(),
            "reads: commit, writes: commit, conditions: atomic, listing: sorted, staleness: 0 s, shared names: yes, checked: yes, consolidated metadata: ignored"
        );
        let foreign = Guarantees {
            listing: Listing::None,
            staleness: Duration::from_millis(2500),
            shared_names: false,
            consolidated: Consolidated::Trusted,
            ..Guarantees::READ_ONLY
        };
        assert_eq!(
            foreign.to_string(),
            "reads: key, writes: none, conditions: none, listing: none, staleness: 2.5 s, shared names: no, checked: no, consolidated metadata: trusted"
        );
        let refused = Guarantees { read_only_reason: Some("objects may not be deleted"), ..foreign };
        assert_eq!(refused.to_string(), format!("{foreign}, read-only: objects may not be deleted"));
    }
}
