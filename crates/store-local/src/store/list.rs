//! Listing keys.

use bytes::Bytes;
use store::{DirPage, Entry, Key, KeyPage, Listing, Page, Prefix, StoreError};

use super::Core;
use crate::index::Step;

/// A page of the keys below a prefix.
pub(super) fn list_prefix(core: &Core, prefix: &Prefix, page: &Page) -> Result<KeyPage, StoreError> {
    let (from, limit) = (core.begin_of(Listing::Keys, prefix, page)?, page.limit());
    let mut keys: Vec<Entry> = Vec::new();
    let mut more = false;
    core.scan(prefix, &from, |key, bytes| {
        if keys.len() == limit {
            more = true;
            return Ok(Step::Stop);
        }
        keys.push(core.entry(key, bytes)?);
        Ok(Step::Next)
    })?;
    let last = keys.last().filter(|_| more);
    let cursor = last.map(|last| core.cursors.issue(Listing::Keys, prefix, last.key.as_str()));
    Ok(KeyPage { keys, cursor })
}

/// A page of the keys and prefixes directly below a prefix. Passes over what lies below each child.
pub(super) fn list_dir(core: &Core, prefix: &Prefix, page: &Page) -> Result<DirPage, StoreError> {
    let (from, limit) = (core.begin_of(Listing::Dir, prefix, page)?, page.limit());
    let mut found = DirPage { keys: Vec::new(), prefixes: Vec::new(), cursor: None };
    let mut last = String::new();
    let mut more = false;
    core.scan(prefix, &from, |key, bytes| {
        if found.keys.len().saturating_add(found.prefixes.len()) == limit {
            more = true;
            return Ok(Step::Stop);
        }
        let name = key.as_str().get(prefix.as_str().len()..).unwrap_or_default();
        let Some((child, _)) = name.split_once('/') else {
            last = key.as_str().to_owned();
            found.keys.push(core.entry(key, bytes)?);
            return Ok(Step::Next);
        };
        last = format!("{prefix}{child}/");
        let child = Prefix::parse(&last).map_err(|_| damaged(&key))?;
        let end = child.end().unwrap_or_default();
        found.prefixes.push(child);
        Ok(Step::Seek(end.into_bytes()))
    })?;
    found.cursor = more.then(|| core.cursors.issue(Listing::Dir, prefix, &last));
    Ok(found)
}

impl Core {
    /// Where a page begins.
    fn begin_of(&self, listing: Listing, prefix: &Prefix, page: &Page) -> Result<Vec<u8>, StoreError> {
        let Some(cursor) = &page.cursor else { return Ok(prefix.as_bytes().to_vec()) };
        let last = self.cursors.open(listing, prefix, cursor)?;
        // After a prefix comes what follows all keys below it; after a key, its first possible successor.
        Ok(match last.strip_suffix('/') {
            Some(prefix) => format!("{prefix}0").into_bytes(),
            None => format!("{last}\0").into_bytes(),
        })
    }

    /// Visits the keys below `prefix` from `from` on.
    fn scan(
        &self,
        prefix: &Prefix,
        from: &[u8],
        mut visit: impl FnMut(Key, Bytes) -> Result<Step, StoreError>,
    ) -> Result<(), StoreError> {
        let mut result = Ok(());
        self.with_index(|index| {
            index.scan(from, &mut |key, bytes| {
                if !key.starts_with(prefix.as_bytes()) {
                    return Step::Stop;
                }
                // The index's entries were made of keys, and read back with their checksums.
                let Ok(key) = Key::from_bytes(key) else { return Step::Next };
                visit(key, bytes).unwrap_or_else(|error| {
                    result = Err(error);
                    Step::Stop
                })
            })
        })?;
        result
    }

    fn entry(&self, key: Key, bytes: Bytes) -> Result<Entry, StoreError> {
        let info = self.decode(&key, bytes)?.info(self.identity.id);
        Ok(Entry { key, info })
    }
}

fn damaged(key: &Key) -> StoreError {
    StoreError::Corrupt { key: key.clone(), cause: store::Corruption::Record }
}
