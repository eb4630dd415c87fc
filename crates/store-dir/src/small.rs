//! The names of small directories, which are cached for as long as their attributes are the same.
//!
//! A tree of many groups is listed again at each request for it, and once more to find out whether it changed meanwhile.
//! Reading the names of a directory takes most of the time of its listing, so the names of small ones are cached. They are
//! used under the conditions of [held names](crate::held): within a minute, while the directory has the attributes that it
//! had before they were read, on file systems where every new name changes these, if the directory had not changed for
//! two seconds then, and if no name is a symbolic link.

use std::{collections::HashMap, sync::Arc, time::Instant};

use parking_lot::Mutex;

use crate::{
    attributes::Attributes,
    part::{Children, Part},
    quiet::Precision,
    sorted_names::{self, MAX_AGE, SortedNames},
};

/// The maximum number of names of a small directory.
const MAX_NAMES: usize = 1_024;

/// The maximum size of the names of a small directory, in bytes.
const MAX_TEXT: usize = 32 << 10;

/// The maximum size of a generation of directories, in bytes.
const MAX_SIZE: usize = 8 << 20;

/// The size of a directory in addition to its prefix and its names, in bytes.
const OVERHEAD: usize = 320;

/// The names of the small directories that were listed last, of all together at most two generations.
#[derive(Debug, Default)]
pub(crate) struct SmallDirectories(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    current: HashMap<String, Arc<Small>>,
    last: HashMap<String, Arc<Small>>,
    /// The size of the current one, in bytes.
    size: usize,
}

#[derive(Debug)]
struct Small {
    attributes: Attributes,
    names: SortedNames,
    read: Instant,
}

/// Collects the names of a directory that may be a small one.
#[derive(Debug)]
pub(crate) struct SmallCollection {
    names: SortedNames,
    began: Instant,
}

impl SmallDirectories {
    /// The children of a part, if the names of the directory are cached, and it has these attributes.
    pub(crate) fn find(&self, attributes: &Attributes, part: Part<'_>) -> Option<Children> {
        let small = {
            let mut generations = self.0.lock();
            let small = generations.current.get(part.prefix).or_else(|| generations.last.get(part.prefix)).cloned();
            let is_usable = |small: &Arc<Small>| small.attributes == *attributes && small.read.elapsed() < MAX_AGE;
            let small = small.filter(is_usable)?;
            if !generations.current.contains_key(part.prefix) {
                generations.insert(part.prefix, small.clone());
            }
            small
        };
        Some(small.names.children(part))
    }

    /// Begins to collect the names of a directory; `None` if it has just changed, or if its file system is not known.
    pub(crate) fn collect(attributes: &Attributes, precision: Precision) -> Option<SmallCollection> {
        sorted_names::follow_attributes(attributes, precision)
            .then(|| SmallCollection { names: SortedNames::default(), began: Instant::now() })
    }

    /// Caches all names of a directory.
    pub(crate) fn insert(&self, attributes: &Attributes, prefix: &str, collection: SmallCollection) {
        let SmallCollection { names, began } = collection;
        let small = Small { attributes: *attributes, names: names.sorted(), read: began };
        self.0.lock().insert(prefix, Arc::new(small));
    }

    #[cfg(test)]
    fn size(&self) -> usize {
        let generations = self.0.lock();
        generations.current.iter().chain(&generations.last).map(|(prefix, small)| size_of_small(prefix, small)).sum()
    }
}

impl Generations {
    fn insert(&mut self, prefix: &str, small: Arc<Small>) {
        let size = size_of_small(prefix, &small);
        if self.size.saturating_add(size) > MAX_SIZE {
            self.last = std::mem::take(&mut self.current);
            self.size = 0;
        }
        self.last.remove(prefix);
        let before = self.current.insert(prefix.to_owned(), small);
        let freed = before.map_or(0, |before| size_of_small(prefix, &before));
        self.size = self.size.saturating_add(size).saturating_sub(freed);
    }
}

impl SmallCollection {
    /// Adds a name, whose `end` is `/` for a directory; `None` if there are too many.
    pub(crate) fn with(mut self, name: &str, end: &str) -> Option<Self> {
        let fits = self.names.len() < MAX_NAMES && self.names.text_len().saturating_add(name.len()) < MAX_TEXT;
        (fits && self.names.push(name, end)).then_some(self)
    }
}

fn size_of_small(prefix: &str, small: &Small) -> usize {
    OVERHEAD.saturating_add(prefix.len()).saturating_add(small.names.size())
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path, thread::sleep, time::Duration};

    use zarrd_store::{ListableStore, PageRequest, Prefix};

    use super::*;
    use crate::{DirStore, Options, quiet::LONG};

    /// Creates folders of arrays with one document and one chunk each.
    fn fill(root: &Path) {
        for number in 0..60 {
            let array = root.join(format!("f{}/a{number}", number % 3));
            fs::create_dir_all(array.join("c")).unwrap();
            fs::write(array.join("zarr.json"), "{}").unwrap();
            fs::write(array.join("c/0"), "1").unwrap();
        }
    }

    async fn keys(store: &DirStore) -> Vec<String> {
        let page = store.list_prefix(&Prefix::root(), PageRequest::first(1_000)).await.unwrap();
        page.keys.into_iter().map(|entry| entry.key.to_string()).collect()
    }

    async fn children(store: &DirStore, prefix: &str) -> usize {
        let page = store.list_dir(&Prefix::parse(prefix).unwrap(), PageRequest::first(1_000)).await.unwrap();
        page.keys.len() + page.prefixes.len()
    }

    #[tokio::test]
    async fn unchanged_directories_are_read_once() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path());
        let store = DirStore::open(root.path(), Options::new("test")).await.unwrap();
        let young = keys(&store).await;
        let before = store.inner.held.entries();
        assert_eq!(keys(&store).await, young);
        assert!(store.inner.held.entries() > before, "what has just changed may change again within one tick");
        sleep(LONG + Duration::from_millis(100));
        assert_eq!(keys(&store).await, young);
        let read = store.inner.held.entries();
        for _ in 0..5 {
            assert_eq!(keys(&store).await, young);
            assert_eq!(children(&store, "f1/").await, 20);
            assert_eq!(children(&store, "f1/a1/").await, 2);
        }
        assert_eq!(store.inner.held.entries(), read, "no directory is read again");
    }

    #[tokio::test]
    async fn changed_directories_are_read_again() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path());
        sleep(LONG + Duration::from_millis(100));
        let store = DirStore::open(root.path(), Options::new("test")).await.unwrap();
        let first = keys(&store).await;
        // Changes that follow each other at once, each with a listing.
        for number in 0..2 {
            let (new, gone) = (root.path().join(format!("f0/n{number}")), root.path().join("f1/a1/c/0"));
            fs::write(&new, "1").unwrap();
            assert!(keys(&store).await.contains(&format!("f0/n{number}")), "{number}");
            fs::remove_file(&new).unwrap();
            assert_eq!(keys(&store).await.len(), first.len(), "{number}");
            fs::remove_file(&gone).unwrap();
            assert_eq!(children(&store, "f1/a1/c/").await, 0, "{number}");
            fs::write(&gone, "1").unwrap();
            assert_eq!(children(&store, "f1/a1/c/").await, 1, "{number}");
        }
        // Another directory of the same names is not taken for the first.
        fs::rename(root.path().join("f0"), root.path().join("old")).unwrap();
        fs::create_dir(root.path().join("f0")).unwrap();
        assert_eq!(children(&store, "f0/").await, 0);
        assert_eq!(children(&store, "old/").await, 20);
    }

    #[test]
    fn links_and_coarse_times_and_many_names_are_not_cached() {
        let root = tempfile::tempdir().unwrap();
        let young = Attributes::of_path(root.path()).unwrap();
        assert!(SmallDirectories::collect(&young, Precision::Fine).is_none());
        sleep(LONG);
        assert!(SmallDirectories::collect(&young, Precision::Coarse).is_none());
        let mut collection = SmallDirectories::collect(&young, Precision::Fine);
        for number in 0..=MAX_NAMES {
            assert!(collection.is_some(), "{number}");
            collection = collection.and_then(|collection| collection.with(&number.to_string(), ""));
        }
        assert!(collection.is_none());
        let long = SmallDirectories::collect(&young, Precision::Fine).unwrap().with(&"n".repeat(MAX_TEXT), "");
        assert!(long.is_none());
    }

    #[test]
    fn the_size_of_all_directories_is_bounded() {
        let root = tempfile::tempdir().unwrap();
        sleep(LONG);
        let attributes = Attributes::of_path(root.path()).unwrap();
        let directories = SmallDirectories::default();
        for number in 0..60_000 {
            let collection = SmallDirectories::collect(&attributes, Precision::Fine).unwrap();
            directories.insert(&attributes, &format!("{number}/"), collection.with("zarr.json", "").unwrap());
        }
        assert!(directories.size() <= 2 * MAX_SIZE, "{}", directories.size());
        let find = |prefix| directories.find(&attributes, Part { prefix, after: "", limit: 10 });
        assert_eq!(find("59999/").unwrap().names, ["zarr.json"]);
        assert!(find("0/").is_none());
    }
}
