//! The versions of the documents that scans found.

use std::collections::HashMap;

use zarrd_store::{Entry, Key, Version};

use crate::metadata::keys::NAMES;

/// The memory of the version of a document in addition to its key, in bytes.
const VERSION: u64 = 96;

/// The versions of documents.
#[derive(Default)]
pub(super) struct ScannedVersions(HashMap<Key, Version>);

impl ScannedVersions {
    /// Records the version of an entry if it is a document; returns the memory that it takes, in bytes.
    pub(super) fn record(&mut self, entry: &Entry) -> u64 {
        if !is_recorded(&entry.key) {
            return 0;
        }
        self.0.insert(entry.key.clone(), entry.meta.version);
        VERSION.saturating_add(entry.key.as_str().len() as u64)
    }

    pub(super) fn get(&self, document: &Key) -> Option<Version> {
        self.0.get(document).copied()
    }
}

/// True if a key belongs to a document whose version is recorded.
pub(super) fn is_recorded(key: &Key) -> bool {
    NAMES.contains(&key.name())
}
