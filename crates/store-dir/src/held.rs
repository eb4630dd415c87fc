//! The names of large directories, which are held between the pages of a listing.
//!
//! The system returns the names of a directory in no order, so a page of sorted names takes a pass over all of them, and
//! a listing of many pages would take as many passes. The second page therefore holds the names that follow it, sorted,
//! for the next ones.
//!
//! Held names are used for a minute, while the directory has the attributes that it had before they were read, on file
//! systems whose directories are known to have times that every new name changes. A change that leaves the times as they
//! were, within one tick of the clock, is excluded as for files: what changed within two seconds is not held. Names whose
//! kind may change without the directory, as symbolic links, are not held either.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Mutex, MutexGuard};

use crate::{
    attributes::Attributes,
    part::{Children, Part},
    quiet::Precision,
    sorted_names::{self, MAX_AGE, SortedNames},
};

/// The maximum size of the names of one directory with their places, in bytes.
const MAX_SIZE: usize = 32 << 20;

/// The maximum number of directories. The one that was used longest ago makes room for another.
const MAX_DIRECTORIES: usize = 2;

/// The time after its last use for which a directory is held.
const TIME: Duration = Duration::from_secs(10);

/// The names of a few directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct HeldNames(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    directories: Mutex<Directories>,
    /// Held while names are collected, so that only one directory takes memory beyond those that are held.
    collecting: Mutex<()>,
    /// The number of entries of directories that were read.
    #[cfg(test)]
    entries: std::sync::atomic::AtomicU64,
}

#[derive(Debug, Default)]
struct Directories {
    held: VecDeque<Held>,
    /// True if a task releases directories.
    releasing: bool,
}

#[derive(Clone, Debug)]
struct Held {
    prefix: String,
    attributes: Attributes,
    names: Arc<SortedNames>,
    read: Instant,
    used: Instant,
}

/// Collects the names of a directory.
#[derive(Debug)]
pub(crate) struct Collection<'h> {
    names: SortedNames,
    began: Instant,
    /// True if they cannot be held.
    is_unfit: bool,
    _alone: MutexGuard<'h, ()>,
}

impl HeldNames {
    /// The children of a part, if they are held, and the directory has these attributes.
    pub(crate) fn find(&self, attributes: &Attributes, part: Part<'_>) -> Option<Children> {
        let names = {
            let mut directories = self.0.directories.lock();
            let held = directories.held.iter_mut().find(|held| held.is_of(attributes, part))?;
            held.used = Instant::now();
            held.names.clone()
        };
        Some(names.children(part))
    }

    /// Begins to collect the names of a part, to hold them; `None` if it is the first page, which may be the only one, if
    /// the directory has just changed, if its file system is not known, or while others are collected.
    pub(crate) fn collect(
        &self,
        attributes: &Attributes,
        precision: Precision,
        part: Part<'_>,
    ) -> Option<Collection<'_>> {
        if part.after.is_empty() || !sorted_names::follow_attributes(attributes, precision) {
            return None;
        }
        let alone = self.0.collecting.try_lock()?;
        let names = SortedNames::after(part.after);
        Some(Collection { names, began: Instant::now(), is_unfit: false, _alone: alone })
    }

    /// Holds the names that were collected of a part.
    pub(crate) fn hold(&self, attributes: &Attributes, part: Part<'_>, collection: Collection<'_>) {
        let collection_began = collection.began;
        let Some(names) = collection.sorted() else { return };
        let held = Held {
            prefix: part.prefix.to_owned(),
            attributes: *attributes,
            names: Arc::new(names),
            read: collection_began,
            used: Instant::now(),
        };
        let mut directories = self.0.directories.lock();
        directories.held.retain(|other| other.prefix != held.prefix);
        if directories.held.len() >= MAX_DIRECTORIES {
            let oldest = directories.held.iter().enumerate().min_by_key(|(_, held)| held.used).map(|(index, _)| index);
            oldest.and_then(|oldest| directories.held.remove(oldest));
        }
        directories.held.push_back(held);
        if let Ok(runtime) = tokio::runtime::Handle::try_current()
            && !std::mem::replace(&mut directories.releasing, true)
        {
            runtime.spawn(self.clone().release());
        }
    }

    /// Counts entries that were read.
    pub(crate) fn count_entries(&self, _entries: u64) {
        #[cfg(test)]
        self.0.entries.fetch_add(_entries, std::sync::atomic::Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(crate) fn entries(&self) -> u64 {
        self.0.entries.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Releases directories when their time is over, until there are none.
    async fn release(self) {
        loop {
            tokio::time::sleep(TIME).await;
            let mut directories = self.0.directories.lock();
            directories.held.retain(|held| held.used.elapsed() < TIME && held.read.elapsed() < MAX_AGE);
            if directories.held.is_empty() {
                directories.releasing = false;
                return;
            }
        }
    }
}

impl Held {
    /// True if it has the children of a part of a directory with these attributes.
    fn is_of(&self, attributes: &Attributes, part: Part<'_>) -> bool {
        self.attributes == *attributes
            && self.prefix == part.prefix
            && *self.names.after <= *part.after
            && self.read.elapsed() < MAX_AGE
    }
}

impl Collection<'_> {
    /// Adds a name; `end` is `/` for a directory.
    pub(crate) fn add(&mut self, name: &str, end: &str) {
        let size = self.names.size().saturating_add(name.len());
        self.is_unfit |= size > MAX_SIZE || !self.names.push(name, end);
    }

    /// Takes note of a name whose kind may change without the directory.
    pub(crate) fn cannot_be_held(&mut self) {
        self.is_unfit = true;
    }

    fn sorted(self) -> Option<SortedNames> {
        (!self.is_unfit).then(|| self.names.sorted())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use zarrd_store::{ListableStore, PageRequest, Prefix};

    use super::*;
    use crate::{DirStore, Options, quiet::LONG};

    /// Creates this many files in `c`, some of them in directories below it.
    fn fill(root: &Path, files: usize) {
        fs::create_dir_all(root.join("c")).unwrap();
        for number in 0..files {
            let name = match number % 10 {
                0 => format!("c/{number}.d/x"),
                _ => format!("c/{number}"),
            };
            fs::create_dir_all(root.join(&name).parent().unwrap()).unwrap();
            fs::write(root.join(name), "1").unwrap();
        }
    }

    /// Waits until a change of a directory that follows has another time.
    async fn become_quiet() {
        tokio::time::sleep(LONG + Duration::from_millis(100)).await;
    }

    async fn open(root: &Path) -> DirStore {
        DirStore::open(root, Options::new("test")).await.unwrap()
    }

    /// The keys below `c/` after a page, and the cursor of the next.
    async fn page(store: &DirStore, keys: &mut Vec<String>, request: PageRequest) -> Option<PageRequest> {
        let limit = request.limit;
        let page = store.list_prefix(&Prefix::parse("c/").unwrap(), request).await.unwrap();
        keys.extend(page.keys.into_iter().map(|entry| entry.key.to_string()));
        page.cursor.map(|cursor| PageRequest::after(limit, cursor))
    }

    #[tokio::test]
    async fn listing_of_many_pages_reads_each_directory_a_few_times() {
        for files in [500, 2000, 8000] {
            let root = tempfile::tempdir().unwrap();
            fill(root.path(), files);
            become_quiet().await;
            let store = open(root.path()).await;
            let (mut keys, mut next) = (Vec::new(), Some(PageRequest::first(50)));
            while let Some(request) = next {
                next = page(&store, &mut keys, request).await;
            }
            let mut expected: Vec<String> = (0..files)
                .map(|number| if number % 10 == 0 { format!("c/{number}.d/x") } else { format!("c/{number}") })
                .collect();
            expected.sort_unstable();
            assert_eq!(keys, expected);
            let entries = store.inner.held.entries();
            assert!(entries <= 4 * files as u64, "{entries} entries were read of {files} files");
        }
    }

    #[tokio::test]
    async fn held_names_are_not_used_once_the_directory_has_changed() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), 500);
        become_quiet().await;
        let store = open(root.path()).await;
        let mut keys = Vec::new();
        let second = page(&store, &mut keys, PageRequest::first(50)).await.unwrap();
        let third = page(&store, &mut keys, second).await.unwrap();
        let last = keys.last().unwrap().clone();
        fs::write(root.path().join(format!("{last}+")), "1").unwrap();
        fs::remove_file(root.path().join("c/99")).unwrap();
        let mut rest = Vec::new();
        let mut next = Some(third);
        while let Some(request) = next {
            next = page(&store, &mut rest, request).await;
        }
        assert_eq!(rest.first(), Some(&format!("{last}+")));
        assert!(!rest.contains(&"c/99".to_owned()));
    }

    #[test]
    fn directory_that_has_just_changed_is_not_collected() {
        let root = tempfile::tempdir().unwrap();
        let attributes = Attributes::of_path(root.path()).unwrap();
        let part = Part { prefix: "c/", after: "5", limit: 10 };
        assert!(HeldNames::default().collect(&attributes, Precision::Fine, part).is_none());
        std::thread::sleep(LONG);
        assert!(HeldNames::default().collect(&attributes, Precision::Fine, part).is_some());
        assert!(HeldNames::default().collect(&attributes, Precision::Fine, Part { after: "", ..part }).is_none());
        assert!(
            HeldNames::default().collect(&attributes, Precision::Coarse, part).is_none(),
            "others may keep its times"
        );
    }

    #[test]
    fn names_too_large_for_memory_and_links_are_not_held() {
        let held = HeldNames::default();
        let root = tempfile::tempdir().unwrap();
        std::thread::sleep(LONG);
        let attributes = Attributes::of_path(root.path()).unwrap();
        let part = Part { prefix: "", after: "0", limit: 10 };
        let mut links = held.collect(&attributes, Precision::Fine, part).unwrap();
        assert!(held.collect(&attributes, Precision::Fine, part).is_none(), "one at a time");
        links.add("1", "");
        links.cannot_be_held();
        held.hold(&attributes, part, links);
        assert!(held.find(&attributes, part).is_none());
        let mut large = held.collect(&attributes, Precision::Fine, part).unwrap();
        (0..MAX_SIZE / 200).for_each(|_| large.add(&"n".repeat(250), ""));
        held.hold(&attributes, part, large);
        assert!(held.find(&attributes, part).is_none());
        let mut small = held.collect(&attributes, Precision::Fine, part).unwrap();
        ["2", "1"].into_iter().for_each(|name| small.add(name, ""));
        held.hold(&attributes, part, small);
        let found = held.find(&attributes, Part { after: "1", ..part }).unwrap();
        assert_eq!((found.names, found.more), (vec!["2".to_owned()], false));
        assert!(held.find(&attributes, Part { after: "", ..part }).is_none(), "names before it are not here");
    }
}
