//! The store that has a key or prefix.

use std::{future::Future, time::Duration};

use futures::{TryFutureExt, TryStreamExt};
use tokio::time::timeout;

use crate::{
    BackendErrorKind, BoxError, Conditions, GetResult, Guarantees, Key, Prefix, ServedStore, StoreError, Writes,
};

/// The time within which a mounted store has to answer a step of a listing, and what trees across stores ask it.
pub const MAX_MOUNT_WAIT: Duration = Duration::from_secs(10);

/// A mounted store.
pub(super) struct Mount {
    /// The prefix below which it is: its name and a `/`.
    pub(super) prefix: Prefix,
    pub(super) store: ServedStore,
}

/// The store that has a key or prefix, and the key or prefix there.
pub(super) enum Place<'m, T> {
    /// That at the root, by the same name.
    Root,
    Mounted(&'m Mount, T),
    /// None: it has the name of a mount.
    Hidden,
}

impl<'m, T> Place<'m, T> {
    /// The same place, with another name there.
    pub(super) fn map<U>(self, name: impl FnOnce(T) -> U) -> Place<'m, U> {
        match self {
            Self::Root => Place::Root,
            Self::Mounted(mount, below) => Place::Mounted(mount, name(below)),
            Self::Hidden => Place::Hidden,
        }
    }
}

/// The failure of a mounted store.
#[derive(Debug, thiserror::Error)]
#[error("the store that is mounted below {prefix} failed")]
pub struct MountFailure {
    prefix: Prefix,
    #[source]
    source: BoxError,
}

/// No answer within [`MAX_MOUNT_WAIT`].
#[derive(Debug, thiserror::Error)]
#[error("no answer within {} s", MAX_MOUNT_WAIT.as_secs())]
struct NoAnswer;

impl MountFailure {
    /// Waits for an answer of the store that is mounted below a prefix, at most [`MAX_MOUNT_WAIT`].
    ///
    /// # Errors
    ///
    /// That of the answer, and a failure with [`BackendErrorKind::Timeout`].
    pub async fn in_time<T>(
        prefix: &Prefix,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let timed_out = |_| {
            let failure = Self { prefix: prefix.clone(), source: NoAnswer.into() };
            StoreError::backend(BackendErrorKind::Timeout, failure)
        };
        timeout(MAX_MOUNT_WAIT, answer).await.map_err(timed_out)?
    }

    /// The error of the store.
    pub fn cause(&self) -> &BoxError {
        &self.source
    }

    /// The prefix below which the store is mounted.
    pub fn prefix(&self) -> &Prefix {
        &self.prefix
    }
}

/// The place of a key.
pub(super) fn place_of_key<'m>(mounts: &'m [Mount], key: &Key) -> Place<'m, Key> {
    for mount in mounts {
        if let Some(below) = mount.prefix.strip(key) {
            return Key::parse(below).map_or(Place::Hidden, |below| Place::Mounted(mount, below));
        }
        if mount.prefix.as_str().strip_suffix('/') == Some(key.as_str()) {
            return Place::Hidden;
        }
    }
    Place::Root
}

impl Mount {
    /// The guarantees of the store below a prefix of it. It is written key by key, if at all.
    pub(super) fn guarantees(&self, below: &Prefix) -> Guarantees {
        let own = self.store.guarantees_below(below);
        match self.store.is_writable() {
            true => Guarantees { writes: own.writes.max(Writes::Key), ..own },
            false => Guarantees { writes: Writes::None, conditions: Conditions::None, conditional_erase: false, ..own },
        }
    }

    /// Waits for an answer, at most [`MAX_MOUNT_WAIT`].
    pub(super) async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        MountFailure::in_time(&self.prefix, answer.map_err(|error| self.error(error))).await
    }

    /// The error as users of all stores see it: with the keys that they use.
    pub(super) fn error(&self, error: StoreError) -> StoreError {
        outward(&self.prefix, error)
    }

    /// The value with the errors of its stream as users of all stores see them.
    pub(super) fn value(&self, value: GetResult) -> GetResult {
        let prefix = self.prefix.clone();
        let GetResult { meta, range, stream } = value;
        GetResult { meta, range, stream: Box::pin(stream.map_err(move |error| outward(&prefix, error))) }
    }
}

fn outward(prefix: &Prefix, error: StoreError) -> StoreError {
    // A key that is too long with the name of its mount is shown as the mounted store has it.
    let named = |key: Key| prefix.join(key.as_str()).unwrap_or(key);
    match error {
        StoreError::Corrupt { key, cause } => StoreError::Corrupt { key: named(key), cause },
        StoreError::Changed { key } => StoreError::Changed { key: named(key) },
        StoreError::NotInSnapshot { key } => StoreError::NotInSnapshot { key: named(key) },
        StoreError::PreconditionFailed { key, current } => StoreError::PreconditionFailed { key: named(key), current },
        StoreError::NameConflict { key, existing } => {
            StoreError::NameConflict { key: named(key), existing: format!("{prefix}{existing}") }
        }
        StoreError::DuplicateKey { key } => StoreError::DuplicateKey { key: named(key) },
        StoreError::NotEmpty { prefix: below, key } => {
            let below = Prefix::parse(&format!("{prefix}{below}")).unwrap_or(below);
            StoreError::NotEmpty { prefix: below, key: named(key) }
        }
        StoreError::PartlyApplied { applied, of, conflicts, source } => StoreError::PartlyApplied {
            applied,
            of,
            conflicts: conflicts.into_iter().map(named).collect(),
            source: Box::new(outward(prefix, *source)),
        },
        StoreError::Backend { .. } => mounted(prefix, error),
        error => error,
    }
}

/// The failure of a mounted store, which names its mount.
fn mounted(prefix: &Prefix, error: StoreError) -> StoreError {
    let name = error.failed_at().map(|name| format!("{prefix}{name}"));
    let reason = error.reason().map(str::to_owned);
    let StoreError::Backend { kind, source } = error else { return error };
    let error = StoreError::backend(kind, MountFailure { prefix: prefix.clone(), source });
    let error = name.into_iter().fold(error, StoreError::at);
    reason.into_iter().fold(error, StoreError::because)
}
