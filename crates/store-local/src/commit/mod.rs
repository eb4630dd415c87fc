//! Commits: checking preconditions, and making changes durable in groups.
//!
//! A commit is **checked** against the visible state and the changes of its group. One thread, the committer, collects
//! all waiting commits into a **group**, writes it to the log with one sync, inserts it into the active memtable and
//! acknowledges the commits. A large commit is prepared by its caller, which checks it and writes it to a file of its
//! own; the committer checks again only the keys that changed since.

mod backlog;
mod bulk;
mod committer;
mod group;
mod preconditions;
mod recent;
mod staged;

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::oneshot;
use zarrd_store::{
    Attributes, ChangeOutcome, IntentFilter, IntentId, Key, Precondition, Prefix, StoreError, Version, VersionMatch,
    Wait,
};

pub(crate) use self::{
    bulk::{Bulk, MAX_CHANGES, VisibleState, is_bulk, key_order},
    committer::{Committer, Publisher},
    preconditions::{check_changes, check_preconditions},
    recent::RecentChanges,
    staged::{InlineValue, StagedContent, StagedValue},
};

/// A change whose staged value belongs to this store.
pub(crate) enum PlainChange {
    Key {
        key: Key,
        condition: KeyCondition,
        action: Action,
    },
    ErasePrefix(Prefix),
    CheckEmpty(Prefix),
    /// Adds an intent with this record, or removes it.
    Intent {
        id: IntentId,
        record: Option<Bytes>,
    },
    CheckIntent(IntentId),
    CheckNoIntent(Arc<dyn IntentFilter>),
}

impl PlainChange {
    /// The key of the change, if it has one.
    pub(crate) fn key(&self) -> Option<&Key> {
        match self {
            Self::Key { key, .. } => Some(key),
            Self::ErasePrefix(_) | Self::CheckEmpty(_) => None,
            Self::Intent { .. } | Self::CheckIntent(_) | Self::CheckNoIntent(_) => None,
        }
    }
}

/// A change of one key.
pub(crate) enum Action {
    Set(Arc<StagedValue>, Attributes),
    /// Sets a small value that is not staged.
    Put(Bytes),
    /// Sets a small value that was put, and is in the file of its commit.
    Written,
    Erase,
    Check,
}

/// A [`Precondition`], which takes little memory if it is one of the usual ones.
#[derive(Debug, PartialEq)]
pub(crate) enum KeyCondition {
    None,
    /// The key has no value.
    Absent,
    /// The key is at this version, of which these are the halves.
    At(u64, u64),
    Other(Box<Precondition>),
}

impl From<Precondition> for KeyCondition {
    fn from(precondition: Precondition) -> Self {
        match precondition {
            Precondition { if_match: None, if_none_match: None } => Self::None,
            Precondition { if_match: None, if_none_match: Some(VersionMatch::Any) } => Self::Absent,
            Precondition { if_match: Some(VersionMatch::OneOf(versions)), if_none_match: None }
                if versions.len() == 1 =>
            {
                let version = versions.first().map_or(0, |version| version.as_u128());
                Self::At((version >> 64) as u64, version as u64)
            }
            other => Self::Other(Box::new(other)),
        }
    }
}

impl KeyCondition {
    /// True if the condition holds for a key at version `current`.
    pub(crate) fn is_met_by(&self, current: Option<Version>) -> bool {
        match self {
            Self::None => true,
            Self::Absent => current.is_none(),
            Self::At(high, low) => current == Some(Version::from_u128((u128::from(*high) << 64) | u128::from(*low))),
            Self::Other(precondition) => precondition.is_met_by(current),
        }
    }
}

/// A request to the committer.
pub(crate) enum Request {
    Commit {
        changes: Vec<PlainChange>,
        reply: Reply<Vec<ChangeOutcome>>,
        /// The wait for the committer, which ends when it begins with the commit.
        wait: Wait,
    },
    Bulk {
        bulk: Box<Bulk>,
        reply: Reply<Vec<ChangeOutcome>>,
        wait: Wait,
    },
    /// Freezes the active memtable unless it is empty, so that it is applied to the index.
    Freeze,
    /// Stops the committer after all earlier requests.
    Stop,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

impl Request {
    /// True if it needs its own group: changes of key ranges or intents are validated only against what is visible, and
    /// a large commit has been written already.
    fn is_exclusive(&self) -> bool {
        match self {
            Self::Commit { changes, .. } => needs_own_group(changes),
            Self::Bulk { .. } | Self::Freeze => true,
            Self::Stop => false,
        }
    }

    /// Replies with an error.
    pub(crate) fn reject(self, error: StoreError) {
        match self {
            Self::Commit { reply, .. } | Self::Bulk { reply, .. } => answer(reply, Err(error)),
            Self::Freeze | Self::Stop => {}
        }
    }
}

/// True if the changes concern key ranges, or change intents, which are validated only against what is visible. Checks of
/// intents need no group of their own, since a group that changes intents has one commit.
fn needs_own_group(changes: &[PlainChange]) -> bool {
    use PlainChange::{CheckIntent, CheckNoIntent, Key};
    changes.iter().any(|change| !matches!(change, Key { .. } | CheckIntent(_) | CheckNoIntent(_)))
}

fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    // If the caller is gone, the commit is still made.
    let _ = reply.send(result);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_hold_like_their_preconditions() {
        let versions = [1, 1 << 64, (1 << 64) + 1, u128::MAX].map(Version::from_u128);
        let mut preconditions = vec![Precondition::none(), Precondition::absent(), Precondition::present()];
        preconditions.extend(versions.map(Precondition::at));
        for matches in [vec![], versions[..2].to_vec()] {
            let matches = Some(VersionMatch::OneOf(matches));
            preconditions.push(Precondition { if_match: matches.clone(), if_none_match: None });
            preconditions.push(Precondition { if_match: None, if_none_match: matches.clone() });
            preconditions.push(Precondition { if_match: Some(VersionMatch::Any), if_none_match: matches });
        }
        for precondition in preconditions {
            let condition = KeyCondition::from(precondition.clone());
            for current in [None].into_iter().chain(versions.map(Some)) {
                assert_eq!(
                    condition.is_met_by(current),
                    precondition.is_met_by(current),
                    "{precondition:?} {current:?}"
                );
            }
        }
    }
}
