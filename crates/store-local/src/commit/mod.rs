//! Commits: judged, made durable in rounds, and shown.
//!
//! A commit is **judged** against what is visible and what its round has changed already. One thread, the committer, takes all
//! commits that wait as one round, writes it into the log with one sync, inserts it into the active memtable and answers. A
//! large commit is prepared by its caller: judged, and written to a file of its own; the committer judges again only the keys
//! that have changed since.

mod backlog;
mod bulk;
mod committer;
mod judge;
mod recent;
mod round;
mod staged;

use std::sync::Arc;

use bytes::Bytes;
use store::{ChangeOutcome, IntentId, Key, Precondition, Prefix, StoreError};
use tokio::sync::oneshot;

pub(crate) use self::{
    bulk::{Bulk, Visible, is_bulk},
    committer::{Committer, Publisher},
    judge::{Current, judge},
    recent::RecentChanges,
    staged::{InlineValue, StagedContent, StagedValue},
};

/// One change, with its staged value taken out of its wrapping.
pub(crate) enum PlainChange {
    Key {
        key: Key,
        precondition: Precondition,
        action: Action,
    },
    ErasePrefix(Prefix),
    CheckEmpty(Prefix),
    /// Adds an intent with this record, or settles it.
    Intent {
        id: IntentId,
        record: Option<Bytes>,
    },
}

impl PlainChange {
    /// The key concerned, if it is one.
    pub(crate) fn key(&self) -> Option<&Key> {
        match self {
            Self::Key { key, .. } => Some(key),
            Self::ErasePrefix(_) | Self::CheckEmpty(_) | Self::Intent { .. } => None,
        }
    }
}

/// An action on one key.
pub(crate) enum Action {
    Set(Arc<StagedValue>),
    Erase,
    Check,
}

/// A request to the committer.
pub(crate) enum Request {
    Commit {
        changes: Vec<PlainChange>,
        reply: Reply<Vec<ChangeOutcome>>,
    },
    Bulk {
        bulk: Box<Bulk>,
        reply: Reply<Vec<ChangeOutcome>>,
    },
    /// Freezes the active memtable if it has anything, so that the index gets it.
    Freeze,
    /// Ends the committer once all that was asked before is done.
    Stop,
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

impl Request {
    /// True if it needs a round of its own: what concerns ranges of keys or intents is judged against what is visible
    /// alone, and a large commit has been written already.
    fn is_alone(&self) -> bool {
        match self {
            Self::Commit { changes, .. } => needs_own_round(changes),
            Self::Bulk { .. } | Self::Freeze => true,
            Self::Stop => false,
        }
    }

    /// Answers a request that is not taken.
    pub(crate) fn refuse(self, error: StoreError) {
        match self {
            Self::Commit { reply, .. } | Self::Bulk { reply, .. } => answer(reply, Err(error)),
            Self::Freeze | Self::Stop => {}
        }
    }
}

/// True if changes are judged against what is visible alone.
fn needs_own_round(changes: &[PlainChange]) -> bool {
    changes.iter().any(|change| !matches!(change, PlainChange::Key { .. }))
}

fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    // The caller may have gone; the commit stands all the same.
    let _ = reply.send(result);
}
