//! Listings and documents that were read ahead of a walk.

use std::collections::{HashMap, HashSet};

use zarrd_store::{Key, Prefix, Version};

use super::{documents::Text, listing::Listed};

/// Documents and listings that were read for a whole level of a tree, many at a time.
#[derive(Default)]
pub(crate) struct ReadAhead {
    documents: HashMap<Key, Option<(Version, Text)>>,
    /// The names directly below prefixes.
    listed: HashMap<Prefix, Listed>,
    /// The prefixes of nodes of which the document of v3 says all that the walk asks for.
    only_v3: HashSet<String>,
}

impl ReadAhead {
    pub(crate) fn put_documents(&mut self, documents: impl Iterator<Item = (Key, Option<(Version, Text)>)>) {
        self.documents.extend(documents);
    }

    pub(crate) fn put_listed(&mut self, prefix: Prefix, listed: Listed) {
        self.listed.insert(prefix, listed);
    }

    pub(crate) fn put_only_v3(&mut self, prefix: String) {
        self.only_v3.insert(prefix);
    }

    pub(crate) fn document(&self, key: &Key) -> Option<&(Version, Text)> {
        self.documents.get(key)?.as_ref()
    }

    pub(crate) fn listed(&self, prefix: &Prefix) -> Option<&Listed> {
        self.listed.get(prefix)
    }

    pub(crate) fn has_listed(&self, prefix: &Prefix) -> bool {
        self.listed.contains_key(prefix)
    }

    pub(crate) fn needs_only_v3(&self, prefix: &str) -> bool {
        self.only_v3.contains(prefix)
    }

    /// The values of these documents, if all were read.
    pub(crate) fn take_documents(&mut self, keys: &[Key]) -> Option<Vec<Option<(Version, Text)>>> {
        if self.documents.is_empty() || !keys.iter().all(|key| self.documents.contains_key(key)) {
            return None;
        }
        Some(keys.iter().map(|key| self.documents.remove(key).flatten()).collect())
    }

    /// The names directly below a prefix, with a hash of them, if there are at most so many.
    pub(crate) fn take_listed(&mut self, prefix: &Prefix, most: usize) -> Option<(Listed, u128)> {
        let found = self.listed.remove(prefix)?;
        let hash = found.hash();
        (found.prefixes.len() + found.keys.len() <= most).then_some((found, hash))
    }
}
