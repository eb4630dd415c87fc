//! Listings of the root: what the store there has, and the mounts, in the order of their bytes.

use std::collections::VecDeque;

use super::{Mounts, place::Mount};
use crate::{Cursor, DirPage, Entry, Key, KeyPage, ListingKind, PageRequest, Prefix, SnapshotStore, StoreError};

/// The parts of a cursor are separated by a character that none of them has.
const SEPARATOR: char = '\n';

/// A key or prefix in a listing.
#[derive(Clone)]
enum Child {
    Key(Entry),
    Prefix(Prefix),
}

/// The start of a page.
#[derive(Default)]
struct Start {
    /// The cursors of the pages of the store at the root and of a mount that the last entry was on, or would have been.
    root: Option<Cursor>,
    mounted: Option<Cursor>,
    /// The last entry; empty for none.
    last: String,
}

/// The entries of one store's root from some page on.
struct Pages<'s> {
    store: &'s dyn SnapshotStore,
    kind: ListingKind,
    limit: usize,
    /// The cursor of the page that the entries are on.
    page: Option<Cursor>,
    entries: VecDeque<Child>,
    /// The cursor of the next page, once this one was read; `None` after the last.
    next: Option<Option<Cursor>>,
}

impl Child {
    fn text(&self) -> &str {
        match self {
            Self::Key(entry) => entry.key.as_str(),
            Self::Prefix(prefix) => prefix.as_str(),
        }
    }
}

impl<'s> Pages<'s> {
    fn new(store: &'s dyn SnapshotStore, kind: ListingKind, limit: usize, page: Option<Cursor>) -> Self {
        Self { store, kind, limit, page, entries: VecDeque::new(), next: None }
    }

    /// The next entry, which stays the next one.
    async fn peek(&mut self) -> Result<Option<&Child>, StoreError> {
        while self.entries.is_empty() {
            match self.next.take() {
                Some(None) => {
                    self.next = Some(None);
                    return Ok(None);
                }
                Some(next) => self.page = next,
                None => {}
            }
            let request = PageRequest { limit: self.limit, cursor: self.page.clone() };
            let (entries, cursor) = match self.kind {
                ListingKind::Keys => {
                    let KeyPage { keys, cursor, .. } = self.store.list_prefix(&Prefix::root(), request).await?;
                    (keys.into_iter().map(Child::Key).collect(), cursor)
                }
                ListingKind::Dir => {
                    let DirPage { keys, prefixes, cursor } = self.store.list_dir(&Prefix::root(), request).await?;
                    let mut all: Vec<Child> = keys.into_iter().map(Child::Key).collect();
                    all.extend(prefixes.into_iter().map(Child::Prefix));
                    all.sort_by(|one, other| one.text().cmp(other.text()));
                    (all.into(), cursor)
                }
            };
            (self.entries, self.next) = (entries, Some(cursor));
        }
        Ok(self.entries.front())
    }

    fn pop(&mut self) -> Option<Child> {
        self.entries.pop_front()
    }
}

impl Mounts {
    /// Lists all keys of all stores.
    pub(super) async fn list_all(&self, page: PageRequest) -> Result<KeyPage, StoreError> {
        let (children, cursor) = self.list_root(ListingKind::Keys, page).await?;
        let keys = children.into_iter().filter_map(|child| match child {
            Child::Key(entry) => Some(entry),
            Child::Prefix(_) => None,
        });
        Ok(KeyPage::new(keys.collect(), cursor))
    }

    /// Lists what is directly below the root.
    pub(super) async fn list_top(&self, page: PageRequest) -> Result<DirPage, StoreError> {
        let (children, cursor) = self.list_root(ListingKind::Dir, page).await?;
        let (mut keys, mut prefixes) = (Vec::new(), Vec::new());
        for child in children {
            match child {
                Child::Key(entry) => keys.push(entry),
                Child::Prefix(prefix) => prefixes.push(prefix),
            }
        }
        Ok(DirPage { keys, prefixes, cursor })
    }

    async fn list_root(
        &self,
        kind: ListingKind,
        page: PageRequest,
    ) -> Result<(Vec<Child>, Option<Cursor>), StoreError> {
        let limit = page.limit();
        let Start { root, mounted, last } = self.start(kind, page.cursor.as_ref())?;
        let mut root = Pages::new(&**self.root.reads(), kind, limit, root);
        let mut found: Vec<Child> = Vec::new();
        let mut at = Start::default();
        let mut resumed = mounted;
        for mount in self.mounts.iter().map(Some).chain([None]) {
            // The entries of the store at the root before the mount.
            while let Some(child) = root.peek().await? {
                let text = child.text().to_owned();
                if mount.is_some_and(|mount| *text >= *mount.prefix.as_str()) {
                    break;
                }
                if text <= last || self.hides(&text) {
                    root.pop();
                    continue;
                }
                if found.len() == limit {
                    return Ok((found, Some(self.cursor(kind, &at))));
                }
                at = Start { root: root.page.clone(), mounted: None, last: text };
                found.extend(root.pop());
            }
            let Some(mount) = mount.filter(|mount| !mount.is_before(&last)) else { continue };
            let mut below = mount.pages(kind, limit, resumed.take());
            while let Some(child) = below.peek(mount).await? {
                if child.text() <= last.as_str() {
                    below.pages.pop();
                    continue;
                }
                if found.len() == limit {
                    return Ok((found, Some(self.cursor(kind, &at))));
                }
                at =
                    Start { root: root.page.clone(), mounted: below.pages.page.clone(), last: child.text().to_owned() };
                found.push(child);
                below.pages.pop();
            }
        }
        Ok((found, None))
    }

    /// True if an entry of the store at the root has the name of a mount.
    fn hides(&self, text: &str) -> bool {
        self.mounts.iter().any(|mount| {
            let prefix = mount.prefix.as_str();
            text.starts_with(prefix) || prefix.strip_suffix('/') == Some(text)
        })
    }

    fn cursor(&self, kind: ListingKind, at: &Start) -> Cursor {
        let text =
            |cursor: &Option<Cursor>| cursor.as_ref().map_or_else(String::new, |cursor| cursor.as_str().to_owned());
        let state = [text(&at.root), text(&at.mounted), at.last.clone()].join("\n");
        self.cursors.sign(kind, &Prefix::root(), &state)
    }

    fn start(&self, kind: ListingKind, cursor: Option<&Cursor>) -> Result<Start, StoreError> {
        let Some(cursor) = cursor else { return Ok(Start::default()) };
        let state = self.cursors.verify(kind, &Prefix::root(), cursor)?;
        let parts: Vec<&str> = state.splitn(3, SEPARATOR).collect();
        let [root, mounted, last] = parts.as_slice() else { return Err(StoreError::InvalidCursor) };
        let cursor = |text: &str| (!text.is_empty()).then(|| Cursor::from_text(text));
        Ok(Start { root: cursor(root), mounted: cursor(mounted), last: (*last).to_owned() })
    }
}

/// The entries of a mount, as users of all stores see them.
struct MountedPages<'s> {
    pages: Pages<'s>,
}

impl MountedPages<'_> {
    async fn peek(&mut self, mount: &Mount) -> Result<Option<Child>, StoreError> {
        loop {
            let Some(child) = mount.in_time(self.pages.peek()).await? else { return Ok(None) };
            match mount.child(child) {
                Some(child) => return Ok(Some(child)),
                // With the name of the mount it is too long for a key.
                None => drop(self.pages.pop()),
            }
        }
    }
}

impl Mount {
    pub(super) async fn list_prefix(&self, below: &Prefix, page: PageRequest) -> Result<KeyPage, StoreError> {
        let KeyPage { keys, cursor, state } = self.in_time(self.store.list_prefix(below, page)).await?;
        Ok(KeyPage { keys: keys.into_iter().filter_map(|entry| self.entry(&entry)).collect(), cursor, state })
    }

    pub(super) async fn list_dir(&self, below: &Prefix, page: PageRequest) -> Result<DirPage, StoreError> {
        let found = self.in_time(self.store.list_dir(below, page)).await?;
        let DirPage { keys, prefixes, cursor } = found;
        let keys = keys.into_iter().filter_map(|entry| self.entry(&entry)).collect();
        let prefixes = prefixes.into_iter().filter_map(|prefix| self.outer_prefix(&prefix)).collect();
        Ok(DirPage { keys, prefixes, cursor })
    }

    /// The entries of the mount in a listing of the root: all keys, or the mount itself.
    fn pages(&self, kind: ListingKind, limit: usize, page: Option<Cursor>) -> MountedPages<'_> {
        let mut pages = Pages::new(&*self.store, kind, limit, page);
        if kind == ListingKind::Dir {
            pages.entries = VecDeque::from([Child::Prefix(Prefix::root())]);
            pages.next = Some(None);
        }
        MountedPages { pages }
    }

    /// True if everything in the mount is before an entry.
    fn is_before(&self, last: &str) -> bool {
        !last.starts_with(self.prefix.as_str()) && self.prefix.as_str() < last
    }

    fn child(&self, child: &Child) -> Option<Child> {
        match child {
            Child::Key(entry) => self.entry(entry).map(Child::Key),
            Child::Prefix(prefix) => self.outer_prefix(prefix).map(Child::Prefix),
        }
    }

    fn entry(&self, entry: &Entry) -> Option<Entry> {
        let key: Key = self.prefix.join(entry.key.as_str()).ok()?;
        Some(Entry { key, ..entry.clone() })
    }

    fn outer_prefix(&self, prefix: &Prefix) -> Option<Prefix> {
        Prefix::parse(&format!("{}{prefix}", self.prefix)).ok()
    }
}
