//! The directory of tokens.

use std::path::PathBuf;

use super::{AccessOptions, ConfigFile, StoreOptions};

/// The directory of tokens in the directory of a store.
pub(crate) const ACCESS: &str = "access";

/// The directory of tokens of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenDirectory {
    /// This one, which is created if it does not exist.
    Given(PathBuf),
    /// This one in the directory of the store, which is not created if the store is read-only.
    InStore(PathBuf),
    /// None: the store has no directory.
    None,
}

impl TokenDirectory {
    /// Resolves the options.
    pub(super) fn new(flags: AccessOptions, store: StoreOptions, file: &ConfigFile) -> Self {
        if let Some(given) = flags.access.or_else(|| file.access.access.clone()) {
            return Self::Given(given);
        }
        file.location(store).directory().map_or(Self::None, |store| Self::InStore(store.join(ACCESS)))
    }
}
