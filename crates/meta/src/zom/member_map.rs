//! The members of a group, by name.

use std::fmt;

/// A map from names to nodes, sorted by name. Unlike a tree it has no spare capacity: most groups have few members.
#[derive(Clone, PartialEq, Eq)]
pub struct Members<T>(Vec<(String, T)>);

impl<T> Members<T> {
    /// An empty map.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// An empty map with room for this many nodes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self(Vec::with_capacity(capacity))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The node with a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.get(self.position(name).ok()?).map(|(_, node)| node)
    }

    /// True if the map has a node with this name.
    pub fn contains_key(&self, name: &str) -> bool {
        self.position(name).is_ok()
    }

    /// Inserts a node and returns the one that it replaces. Appending in the order of names takes constant time.
    pub fn insert(&mut self, name: String, node: T) -> Option<T> {
        match self.position(&name) {
            Ok(at) => self.0.get_mut(at).map(|(_, before)| std::mem::replace(before, node)),
            Err(at) => {
                self.0.insert(at, (name, node));
                None
            }
        }
    }

    /// The names and nodes, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &T)> {
        self.into_iter()
    }

    /// The names in order.
    pub fn keys(&self) -> impl Iterator<Item = &String> {
        self.0.iter().map(|(name, _)| name)
    }

    /// The nodes in the order of names.
    pub fn values(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, node)| node)
    }

    /// The mutable nodes in the order of names.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|(_, node)| node)
    }

    /// The names and mutable nodes, in the order of names.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&String, &mut T)> {
        self.0.iter_mut().map(|(name, node)| (&*name, node))
    }

    fn position(&self, name: &str) -> Result<usize, usize> {
        // Names that are inserted in order are appended.
        match self.0.last() {
            Some((last, _)) if last.as_str() < name => Err(self.0.len()),
            _ => self.0.binary_search_by(|(existing, _)| existing.as_str().cmp(name)),
        }
    }
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Members<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self).finish()
    }
}

/// The last of duplicate names counts.
impl<T> FromIterator<(String, T)> for Members<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(members: I) -> Self {
        let mut all: Vec<_> = members.into_iter().collect();
        let by_name = |(one, _): &(String, T), (other, _): &(String, T)| one.cmp(other);
        if all.is_sorted_by(|one, other| by_name(one, other).is_gt()) {
            all.reverse();
        }
        if !all.is_sorted_by(|one, other| by_name(one, other).is_lt()) {
            all.sort_by(by_name);
            all.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    std::mem::swap(later, earlier);
                }
                is_same
            });
        }
        all.shrink_to_fit();
        Self(all)
    }
}

impl<T> IntoIterator for Members<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Members<T> {
    type Item = (&'a String, &'a T);
    type IntoIter = std::iter::Map<std::slice::Iter<'a, (String, T)>, fn(&'a (String, T)) -> (&'a String, &'a T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter().map(|(name, node)| (name, node))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn map_matches_btreemap(entries in prop::collection::vec(("[a-c]{0,2}", any::<u8>()), 0..20)) {
            let model: BTreeMap<String, u8> = entries.iter().cloned().collect();
            let mut inserted = Members::new();
            for (name, node) in &entries {
                inserted.insert(name.clone(), *node);
            }
            let collected: Members<u8> = entries.into_iter().collect();
            prop_assert_eq!(&inserted, &collected);
            prop_assert!(collected.iter().eq(&model));
            for (name, node) in &model {
                prop_assert_eq!(collected.get(name), Some(node));
            }
            prop_assert!(!collected.contains_key("d") && collected.get("").is_some() == model.contains_key(""));
            prop_assert_eq!(collected.len(), model.len());
        }
    }
}
