//! The store that has a key or prefix.

use std::sync::Arc;

use futures::TryStreamExt;

use crate::{BoxError, Conditions, GetResult, Guarantees, Key, Prefix, SnapshotStore, StoreError, Writes};

/// A mounted store.
pub(super) struct Mount {
    /// The prefix below which it is: its name and a `/`.
    pub(super) prefix: Prefix,
    pub(super) store: Arc<dyn SnapshotStore>,
}

/// The store that has a key or prefix, and the key or prefix there.
pub(super) enum Place<'m, T> {
    /// That at the root, by the same name.
    Root,
    Mounted(&'m Mount, T),
    /// None: it has the name of a mount.
    Hidden,
}

/// The failure of a mounted store.
#[derive(Debug, thiserror::Error)]
#[error("the store that is mounted below {prefix} failed")]
pub struct MountFailure {
    prefix: Prefix,
    #[source]
    source: BoxError,
}

impl MountFailure {
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
    /// The guarantees of the store, which is not written, below a prefix of it.
    pub(super) fn guarantees(&self, below: &Prefix) -> Guarantees {
        Guarantees { writes: Writes::None, conditions: Conditions::None, ..self.store.guarantees_below(below) }
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
