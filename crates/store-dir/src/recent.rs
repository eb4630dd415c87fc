//! The names of files whose attributes were read a moment ago.

use std::{
    hash::{BuildHasher, RandomState},
    time::Instant,
};

use crate::{attributes::FileId, recent_set::RecentSet};

/// The names of files whose attributes were read within the last seconds. The kernel still has their inodes in memory,
/// unless it was short of it meanwhile, so that reading them again waits for no disk.
///
/// Names are stored as hashes. A collision costs the wait for a disk at most.
#[derive(Debug, Default)]
pub(crate) struct RecentNames {
    hasher: RandomState,
    names: RecentSet<u64>,
}

impl RecentNames {
    /// Records a name in a directory whose attributes are about to be read, and returns true if they were read within the
    /// last seconds.
    pub(crate) fn insert(&self, directory: FileId, name: &str) -> bool {
        self.insert_at(directory, name, Instant::now())
    }

    fn insert_at(&self, directory: FileId, name: &str, now: Instant) -> bool {
        self.names.insert_at(self.hasher.hash_one((directory, name)), now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent_set::{GENERATION_TIME, MAX_VALUES};

    fn directory(inode: u64) -> FileId {
        FileId { device: (8, 1), inode }
    }

    #[test]
    fn names_are_forgotten_after_seconds() {
        let (names, begun) = (RecentNames::default(), Instant::now());
        let insert = |name, after| names.insert_at(directory(1), name, begun + GENERATION_TIME * after);
        assert!(!insert("a", 0));
        assert!(!insert("b", 0));
        assert!(insert("b", 0));
        assert!(!names.insert_at(directory(2), "a", begun), "another directory has another file");
        for after in 1..5 {
            assert!(insert("a", after), "it is read again and again");
        }
        assert!(!insert("b", 5));
        assert!(!insert("a", 7), "nothing was read meanwhile");
    }

    #[test]
    fn the_number_of_remembered_names_is_bounded() {
        let (names, now) = (RecentNames::default(), Instant::now());
        let insert = |number: usize| names.insert_at(directory(1), &number.to_string(), now);
        assert!((0..10 * MAX_VALUES).all(|number| !insert(number)));
        assert!(names.names.len() <= 2 * MAX_VALUES);
        assert!(insert(10 * MAX_VALUES - 1));
        assert!(!insert(0));
    }
}
