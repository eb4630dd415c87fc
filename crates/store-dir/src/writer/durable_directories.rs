//! Directories whose names are durable.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
};

use parking_lot::Mutex;

use crate::attributes::{Attributes, FileId, Time};

/// The number of directories that are cached at most. Forgetting them costs a sync of each.
const MAX_DIRECTORIES: usize = 32 << 10;

/// The number of counters among which the changes of paths are distributed.
const COUNTERS: usize = 1024;

/// The directories whose names this process made durable, by path. A value is durable once the names of all directories
/// on its path are, whichever program made them, so that a directory which is not among these is synced again.
#[derive(Debug, Default)]
pub(crate) struct DurableDirectories(Mutex<Durable>);

#[derive(Debug, Default)]
struct Durable {
    directories: HashMap<String, DirectoryId>,
    /// The number of times that this process made or removed a directory, by the hash of its path. Empty until it does.
    changes: Vec<u64>,
    hasher: RandomState,
}

/// A directory among those that have the same path one after the other. It is unknown where the file system does not keep
/// the time when a directory was created, since inodes are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DirectoryId(Option<(FileId, Time)>);

/// The number of changes of a path before its directory was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathChanges(u64);

impl DirectoryId {
    pub(crate) fn new(attributes: &Attributes) -> Self {
        Self(attributes.created.map(|created| (attributes.id, created)))
    }
}

impl DurableDirectories {
    /// The changes of a path, to be read before its directory is opened.
    pub(crate) fn changes(&self, path: &str) -> PathChanges {
        self.0.lock().changes(path)
    }

    /// True if the name of a directory is durable.
    pub(crate) fn contains(&self, path: &str, id: DirectoryId) -> bool {
        id.0.is_some() && self.0.lock().directories.get(path) == Some(&id)
    }

    /// Records that the name of a directory was made durable, unless the path has changed since: a directory may have got the
    /// inode and the time of the one that was synced.
    pub(crate) fn insert(&self, path: &str, id: DirectoryId, before: PathChanges) {
        let mut durable = self.0.lock();
        if id.0.is_none() || durable.changes(path) != before {
            return;
        }
        if durable.directories.len() >= MAX_DIRECTORIES {
            durable.directories.clear();
        }
        durable.directories.insert(path.to_owned(), id);
    }

    /// Records that this process makes or removed the directory of a path.
    pub(crate) fn remove(&self, path: &str) {
        let mut durable = self.0.lock();
        durable.directories.remove(path);
        durable.changes.resize(COUNTERS, 0);
        let counter = durable.counter(path);
        if let Some(count) = durable.changes.get_mut(counter) {
            *count = count.saturating_add(1);
        }
    }
}

impl Durable {
    fn changes(&self, path: &str) -> PathChanges {
        PathChanges(self.changes.get(self.counter(path)).copied().unwrap_or_default())
    }

    fn counter(&self, path: &str) -> usize {
        usize::try_from(self.hasher.hash_one(path) % COUNTERS as u64).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(inode: u64) -> DirectoryId {
        let created = Time { seconds: 1, nanoseconds: 2 };
        DirectoryId(Some((FileId { device: (0, 1), inode }, created)))
    }

    #[test]
    fn a_directory_that_is_made_again_is_not_durable_by_an_earlier_sync() {
        let durable = DurableDirectories::default();
        let before = durable.changes("a");
        durable.remove("a");
        durable.insert("a", id(1), before);
        assert!(!durable.contains("a", id(1)), "it was made again during the sync");
        durable.insert("a", id(1), durable.changes("a"));
        assert!(durable.contains("a", id(1)));
        assert!(!durable.contains("a", id(2)), "another program made it again");
        durable.remove("a");
        assert!(!durable.contains("a", id(1)));
    }

    #[test]
    fn a_directory_without_a_time_of_creation_is_never_known() {
        let (durable, unknown) = (DurableDirectories::default(), DirectoryId(None));
        durable.insert("a", unknown, durable.changes("a"));
        assert!(!durable.contains("a", unknown));
    }

    #[test]
    fn the_number_of_directories_is_bounded() {
        let durable = DurableDirectories::default();
        for number in 0..=MAX_DIRECTORIES {
            let path = format!("a/{number}");
            durable.insert(&path, id(1), durable.changes(&path));
        }
        assert!(durable.0.lock().directories.len() <= MAX_DIRECTORIES);
    }
}
