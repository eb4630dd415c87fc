//! Values by key, for many keys with a common prefix.

use std::collections::HashMap;

use crate::Key;

/// A map of keys that holds the common prefix of most keys only once: long paths would take most of its memory.
#[derive(Debug)]
pub struct KeyMap<V> {
    prefix: Box<str>,
    /// By the rest of keys that have the prefix.
    below: HashMap<Box<str>, V>,
    /// By other keys.
    others: HashMap<Key, V>,
}

impl<V> KeyMap<V> {
    /// An empty map of keys that mostly begin with `prefix`, which does not have to end in `/`, with space for
    /// `others` keys that do not.
    pub fn new(prefix: &str, others: usize) -> Self {
        Self { prefix: prefix.into(), below: HashMap::new(), others: HashMap::with_capacity(others) }
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: Key, value: V) {
        match self.rest(&key) {
            Some(rest) => drop(self.below.insert(rest.into(), value)),
            None => drop(self.others.insert(key, value)),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &Key) -> Option<&V> {
        match self.rest(key) {
            Some(rest) => self.below.get(rest),
            None => self.others.get(key),
        }
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &Key) -> Option<&mut V> {
        match self.rest(key) {
            Some(rest) => self.below.get_mut(rest),
            None => self.others.get_mut(key),
        }
    }

    /// The rest of a key after the common prefix.
    fn rest<'k>(&self, key: &'k Key) -> Option<&'k str> {
        key.as_str().strip_prefix(&*self.prefix).filter(|_| !self.prefix.is_empty())
    }
}
