//! Directories that were made and may not be durable yet.

use std::collections::HashMap;

use parking_lot::Mutex;

/// The paths of directories that this process made, whose names are not known to be durable, with the number of the
/// making: a value in such a directory is durable once all of them are, whoever made them.
#[derive(Debug, Default)]
pub(crate) struct UnsyncedDirectories(Mutex<Made>);

#[derive(Debug, Default)]
struct Made {
    directories: HashMap<String, u64>,
    last: u64,
}

impl UnsyncedDirectories {
    /// Records that a directory is about to be made.
    pub(crate) fn insert(&self, path: &str) {
        let mut made = self.0.lock();
        made.last = made.last.saturating_add(1);
        let number = made.last;
        made.directories.insert(path.to_owned(), number);
    }

    /// The number of the last making of a directory, if its name may not be durable.
    pub(crate) fn find(&self, path: &str) -> Option<u64> {
        let made = self.0.lock();
        made.directories.get(path).copied()
    }

    /// Records that the name of a directory became durable after this making.
    pub(crate) fn remove(&self, path: &str, number: u64) {
        let mut made = self.0.lock();
        if made.directories.get(path) == Some(&number) {
            made.directories.remove(path);
        }
    }

    /// Records that a directory was removed.
    pub(crate) fn forget(&self, path: &str) {
        self.0.lock().directories.remove(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_is_made_again_is_not_durable_by_an_earlier_sync() {
        let unsynced = UnsyncedDirectories::default();
        unsynced.insert("a");
        let first = unsynced.find("a").unwrap();
        unsynced.insert("a");
        unsynced.remove("a", first);
        let second = unsynced.find("a").expect("it was made again");
        unsynced.remove("a", second);
        assert_eq!(unsynced.find("a"), None);
        unsynced.insert("a");
        unsynced.forget("a");
        assert_eq!(unsynced.find("a"), None);
    }
}
