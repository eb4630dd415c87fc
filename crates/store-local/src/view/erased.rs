//! The prefixes that were erased in a memtable.

use std::collections::HashMap;

use zarrd_store::Prefix;

use crate::keyspace::FIRST_HIDDEN;

/// Erased prefixes with the numbers of their erases. A lookup checks the ancestors of a key, so its cost does not
/// depend on the number of prefixes.
#[derive(Default)]
pub(super) struct ErasedPrefixes {
    prefixes: HashMap<Box<str>, Erases>,
}

struct Erases {
    prefix: Prefix,
    /// The numbers, ascending.
    numbers: Vec<u64>,
}

impl ErasedPrefixes {
    /// Adds an erase with the highest number so far.
    pub(super) fn add(&mut self, number: u64, prefix: Prefix) {
        let erases = self.prefixes.entry(prefix.as_str().into());
        erases.or_insert_with(|| Erases { prefix, numbers: Vec::new() }).numbers.push(number);
    }

    /// The number of the last erase of a key up to `at`.
    pub(super) fn last_of(&self, key: &str, at: u64) -> Option<u64> {
        let last = |erases: &Erases| erases.numbers.iter().rev().find(|number| **number <= at).copied();
        self.above(key).filter_map(last).max()
    }

    /// The numbers of all erases of a key.
    pub(super) fn all_of(&self, key: &str) -> Vec<u64> {
        self.above(key).flat_map(|erases| erases.numbers.iter().copied()).collect()
    }

    /// The shortest prefix that was erased up to `at` and contains a key.
    pub(super) fn covering(&self, key: &str, at: u64) -> Option<&Prefix> {
        let is_erased = |erases: &&Erases| erases.numbers.first().is_some_and(|first| *first <= at);
        self.above(key).find(is_erased).map(|erases| &erases.prefix)
    }

    /// All erases with their numbers, unordered.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &Prefix)> {
        self.prefixes.values().flat_map(|erases| erases.numbers.iter().map(|number| (*number, &erases.prefix)))
    }

    /// The erased prefixes that contain a key, the shortest first.
    fn above<'a, 'k>(&'a self, key: &'k str) -> impl Iterator<Item = &'a Erases> + use<'a, 'k> {
        let none = self.prefixes.is_empty();
        let ends = key.bytes().enumerate().filter(|(_, byte)| *byte == b'/').map(|(at, _)| at.saturating_add(1));
        // The root does not contain hidden keys.
        let root = (!key.starts_with(FIRST_HIDDEN)).then_some(0);
        let ends = root.into_iter().chain(ends).take_while(move |_| !none);
        ends.filter_map(|end| self.prefixes.get(key.get(..end)?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compares the lookups with a linear search.
        #[test]
        fn lookups_agree_with_a_linear_search(
            erases in prop::collection::vec("([ab]/){0,3}", 0..12),
            key in "([ab]/){0,3}[ab]",
            at in 0_u64..14,
        ) {
            let mut erased = ErasedPrefixes::default();
            let mut list = Vec::new();
            for (number, prefix) in (1..).zip(&erases) {
                erased.add(number, Prefix::parse(prefix).unwrap());
                list.push((number, prefix.clone()));
            }
            let above: Vec<_> = list.iter().filter(|(_, prefix)| key.starts_with(prefix.as_str())).collect();
            let visible = above.iter().filter(|(number, _)| *number <= at);
            prop_assert_eq!(erased.last_of(&key, at), visible.clone().map(|(number, _)| *number).max());
            let shortest = visible.map(|(_, prefix)| prefix.as_str()).min_by_key(|prefix| prefix.len());
            prop_assert_eq!(erased.covering(&key, at).map(Prefix::as_str), shortest);
            let mut all = erased.all_of(&key);
            all.sort_unstable();
            prop_assert_eq!(all, above.iter().map(|(number, _)| *number).collect::<Vec<_>>());
            prop_assert_eq!(erased.iter().count(), list.len());
        }
    }
}
