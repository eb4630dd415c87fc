//! The common parts of copying and moving values and prefixes.

use zarrd_array::Claim;
use zarrd_store::{Change, ChangeOutcome, Key, Precondition, Prefix, StoreError, UploadError, Version};
use zarrd_wire::{dav::Overwrite, routes::StoreTarget};

use crate::{app::App, authorization::Session, error::ApiError, extract::WriteConditions, pager::first_below};

/// The number of attempts while others change the source or the destination.
pub(super) const ATTEMPTS: usize = 3;

/// The treatment of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It stays.
    Copy,
    /// It is erased in the same commit.
    Move,
}

/// A copy or move of one request.
pub(super) struct Transfer {
    pub(super) app: App,
    pub(super) session: Session,
    pub(super) claim: Claim,
    pub(super) kind: Kind,
    pub(super) conditions: WriteConditions,
    pub(super) overwrite: Overwrite,
}

/// The names of a destination, which are replaced together.
#[derive(Clone, Debug)]
pub(super) struct Destination {
    /// The key; `None` if the path ends in a slash.
    pub(super) key: Option<Key>,
    /// The key that a value gets, even if the path ends in a slash.
    pub(super) value_key: Option<Key>,
    /// The prefix of what is below it; `None` if no key can be.
    pub(super) prefix: Option<Prefix>,
}

/// The present content of a destination.
pub(super) struct Existing {
    /// The changes that remove what is below it, or check that there is nothing.
    pub(super) changes: Vec<Change>,
    /// The condition on its key.
    pub(super) precondition: Precondition,
    /// True if there are keys below it.
    pub(super) has_keys_below: bool,
}

impl Transfer {
    /// The content of the destination, and the changes that remove it. Fails if it must not be replaced.
    pub(super) async fn existing(
        &self,
        destination: &Destination,
        current: Option<Version>,
    ) -> Result<Existing, ApiError> {
        let below = match &destination.prefix {
            Some(prefix) => first_below(&self.app, prefix).await?,
            None => None,
        };
        if self.overwrite == Overwrite::Fail {
            let existing = destination.key.as_ref().filter(|_| current.is_some()).map(Key::as_str);
            if let Some(name) = existing.or(below.as_ref().map(Key::as_str)) {
                return Err(ApiError::destination_exists(name));
            }
        }
        let change = destination.prefix.clone().map(|prefix| match &below {
            Some(_) => Change::ErasePrefix { prefix },
            None => Change::CheckEmpty { prefix },
        });
        let precondition = match self.overwrite {
            Overwrite::Fail => Precondition::absent(),
            Overwrite::Replace => Precondition::none(),
        };
        Ok(Existing { changes: change.into_iter().collect(), precondition, has_keys_below: below.is_some() })
    }

    /// Commits, if the caller still has its rights.
    pub(super) async fn commit(&self, changes: Vec<Change>) -> Result<Vec<ChangeOutcome>, StoreError> {
        if let Err(lost) = self.session.confirm(&self.app) {
            return Err(StoreError::Upload(UploadError::Aborted(lost.into())));
        }
        self.app.commits()?.commit(changes).await
    }
}

impl Destination {
    /// The names that the path of a destination stands for.
    pub(super) fn new(target: StoreTarget) -> Self {
        match target {
            StoreTarget::Key(key) => {
                Self { prefix: Prefix::from_key(&key), value_key: Some(key.clone()), key: Some(key) }
            }
            StoreTarget::Prefix(prefix) => {
                let value_key = Key::parse(prefix.as_str().trim_end_matches('/')).ok();
                Self { key: None, value_key, prefix: Some(prefix) }
            }
        }
    }
}
