//! Listing keys.

use zarrd_store::{
    Cursor, DirPage, Entry, Key, KeyPage, ListingKind, PageRequest, Prefix, Scan, ScanPage, Scanned, StoreError,
};

use super::inner::StoreInner;
use crate::view::ViewEntry;

/// A page of the keys below a prefix.
pub(super) fn list_prefix(inner: &StoreInner, prefix: &Prefix, page: &PageRequest) -> Result<KeyPage, StoreError> {
    let from = inner.page_start(ListingKind::Keys, prefix, page)?;
    let (view, _gate) = inner.views.stable()?;
    view.check_names_below(prefix)?;
    let mut entries = view.entries(prefix, &from)?;
    let mut keys: Vec<Entry> = Vec::new();
    let mut more = false;
    while let Some(entry) = entries.next_entry()? {
        if keys.len() == page.limit() {
            more = true;
            break;
        }
        keys.push(inner.listed(entry));
    }
    let last = keys.last().filter(|_| more);
    let cursor = last.map(|last| inner.cursor(ListingKind::Keys, prefix, last.key.as_str()));
    Ok(KeyPage::new(keys, cursor))
}

/// A page of the keys and prefixes directly below a prefix. Skips the keys below each child.
pub(super) fn list_dir(inner: &StoreInner, prefix: &Prefix, page: &PageRequest) -> Result<DirPage, StoreError> {
    let from = inner.page_start(ListingKind::Dir, prefix, page)?;
    let (view, _gate) = inner.views.stable()?;
    view.check_names_below(prefix)?;
    let mut entries = view.entries(prefix, &from)?;
    let mut found = DirPage { keys: Vec::new(), prefixes: Vec::new(), cursor: None };
    let mut last = String::new();
    let mut more = false;
    while let Some((key, record)) = entries.next_entry()? {
        if found.keys.len().saturating_add(found.prefixes.len()) == page.limit() {
            more = true;
            break;
        }
        let name = key.as_str().get(prefix.as_str().len()..).unwrap_or_default();
        let Some((child, _)) = name.split_once('/') else {
            key.as_str().clone_into(&mut last);
            found.keys.push(inner.listed((key, record)));
            continue;
        };
        last = format!("{prefix}{child}/");
        let child = Prefix::parse(&last).map_err(|_| damaged(&key))?;
        let end = child.upper_bound().unwrap_or_default();
        found.prefixes.push(child);
        entries.seek(&end)?;
    }
    found.cursor = more.then(|| inner.cursor(ListingKind::Dir, prefix, &last));
    Ok(found)
}

/// A page of the keys that begin with a text. Skips the keys below each folded prefix.
pub(super) fn scan(inner: &StoreInner, scan: &Scan) -> Result<ScanPage, StoreError> {
    let mut page = ScanPage::default();
    let Some(parent) = scan.parent() else { return Ok(page) };
    let (view, _gate) = inner.views.stable()?;
    view.check_names_below(&parent)?;
    let mut entries = view.entries(&parent, &scan.start())?;
    while let Some((key, record)) = entries.next_entry()?.filter(|(key, _)| scan.contains(key)) {
        if page.entries.len() == scan.limit() {
            page.more = true;
            break;
        }
        let Some(folded) = scan.folded(key.as_str()) else {
            page.entries.push(Scanned::Key(inner.listed((key, record))));
            continue;
        };
        entries.seek(&folded.upper_bound().unwrap_or_default())?;
        page.entries.push(Scanned::Prefix(folded));
    }
    Ok(page)
}

impl StoreInner {
    /// The listed form of an entry.
    pub(super) fn listed(&self, (key, record): ViewEntry) -> Entry {
        match record {
            Ok(record) => Entry::new(key, record.meta(self.store_id())),
            Err(_) => Entry::damaged(key, self.store_id()),
        }
    }

    /// The first key of a page.
    pub(super) fn page_start(
        &self,
        listing: ListingKind,
        prefix: &Prefix,
        page: &PageRequest,
    ) -> Result<String, StoreError> {
        let Some(cursor) = &page.cursor else { return Ok(prefix.as_str().to_owned()) };
        let last = self.cursors.verify(listing, prefix, cursor)?;
        // After a prefix, continue above all keys below it; after a key, at its first possible successor.
        Ok(match last.strip_suffix('/') {
            Some(prefix) => format!("{prefix}0"),
            None => format!("{last}\0"),
        })
    }

    /// The cursor of the page after an entry.
    pub(super) fn cursor(&self, listing: ListingKind, prefix: &Prefix, last: &str) -> Cursor {
        self.cursors.sign(listing, prefix, last)
    }
}

fn damaged(key: &Key) -> StoreError {
    StoreError::corrupt(key.clone(), crate::ValueCorruption::Record)
}
