//! The collections that a sorted listing of keys passes through.

use std::time::SystemTime;

use super::resource::SAMPLED_KEYS;

/// The collections around the last key of a listing.
///
/// A collection closes when the listing has left it, so that its time is known then. In a sorted listing each closes once.
#[derive(Debug)]
pub(super) struct Collections {
    /// The prefix of the innermost collection.
    path: String,
    /// The collections, the outermost first.
    open: Vec<OpenCollection>,
}

/// A collection that the listing is in.
#[derive(Debug)]
struct OpenCollection {
    /// The length of its prefix, which begins `path`.
    len: usize,
    /// The newest time of its first keys.
    newest: SystemTime,
    sampled: usize,
}

impl Collections {
    /// The collections of a listing of a prefix, which is open until the end.
    pub(super) fn new(prefix: &str, modified: SystemTime) -> Self {
        let root = OpenCollection { len: prefix.len(), newest: modified, sampled: SAMPLED_KEYS };
        Self { path: prefix.to_owned(), open: vec![root] }
    }

    /// Continues with the next key. Calls `closed` with the prefix and the time of each collection that it leaves, and
    /// returns the number of collections that it enters.
    pub(super) fn enter(&mut self, key: &str, modified: SystemTime, mut closed: impl FnMut(&str, SystemTime)) -> usize {
        let parent = key.rfind('/').and_then(|slash| key.get(..=slash)).unwrap_or_default();
        while self.open.len() > 1 && !parent.starts_with(self.path.as_str()) {
            self.close(&mut closed);
        }
        let from = self.path.len();
        let entered = parent.get(from..).unwrap_or_default();
        let lengths = entered.match_indices('/').map(|(at, _)| from.saturating_add(at).saturating_add(1));
        let before = self.open.len();
        self.open.extend(lengths.map(|len| OpenCollection { len, newest: modified, sampled: 0 }));
        self.path.push_str(entered);
        for collection in self.open.iter_mut().filter(|collection| collection.sampled < SAMPLED_KEYS) {
            collection.sampled = collection.sampled.saturating_add(1);
            collection.newest = collection.newest.max(modified);
        }
        self.open.len().saturating_sub(before)
    }

    /// Closes all collections at the end of the listing.
    pub(super) fn finish(&mut self, mut closed: impl FnMut(&str, SystemTime)) {
        while !self.open.is_empty() {
            self.close(&mut closed);
        }
    }

    fn close(&mut self, closed: &mut impl FnMut(&str, SystemTime)) {
        let Some(collection) = self.open.pop() else { return };
        closed(&self.path, collection.newest);
        let outer = self.open.last().map_or(0, |outer| outer.len);
        self.path.truncate(outer);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// The number of entered collections, and the closed ones in their order.
    fn passed(prefix: &str, keys: &[(&str, u64)]) -> (usize, Vec<(String, u64)>) {
        let mut collections = Collections::new(prefix, at(100));
        let mut closed = Vec::new();
        let mut record = |prefix: &str, time: SystemTime| {
            let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
            closed.push((prefix.to_owned(), seconds));
        };
        let entered = keys.iter().map(|(key, seconds)| collections.enter(key, at(*seconds), &mut record)).sum();
        collections.finish(&mut record);
        (entered, closed)
    }

    #[test]
    fn each_collection_closes_once_with_its_newest_time() {
        let keys = [("a", 9), ("a-b/x", 8), ("a/b/c/d", 1), ("a/b/c/e", 3), ("a/b/é/f", 2), ("a/c/d", 7), ("é/x", 5)];
        let expected =
            [("a-b/", 8), ("a/b/c/", 3), ("a/b/é/", 2), ("a/b/", 3), ("a/c/", 7), ("a/", 7), ("é/", 5), ("", 100)];
        let expected = expected.map(|(prefix, time)| (prefix.to_owned(), time)).to_vec();
        assert_eq!(passed("", &keys), (7, expected));
    }

    #[test]
    fn the_listed_prefix_is_one_of_them() {
        let keys = [("a/b", 1), ("a/c/d", 2)];
        assert_eq!(passed("a/", &keys), (1, vec![("a/c/".to_owned(), 2), ("a/".to_owned(), 100)]));
        assert_eq!(passed("a/", &[]), (0, vec![("a/".to_owned(), 100)]));
    }

    #[test]
    fn only_the_first_keys_count_for_the_time() {
        let names: Vec<String> = (0..SAMPLED_KEYS + 1).map(|number| format!("a/{number:03}")).collect();
        let keys: Vec<(&str, u64)> = names.iter().enumerate().map(|(at, name)| (name.as_str(), at as u64)).collect();
        let (_, closed) = passed("", &keys);
        assert_eq!(closed[0], ("a/".to_owned(), SAMPLED_KEYS as u64 - 1));
    }
}
