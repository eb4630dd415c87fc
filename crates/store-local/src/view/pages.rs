//! All entries, page by page, so that no lock is held in between.

use zarrd_store::{Corruption, Key, Prefix, StoreError};

use super::{View, ViewEntry, Views};
use crate::{ValueCorruption, keyspace::FIRST_HIDDEN, record::Record};

/// The number of keys in a page.
const PAGE: usize = 1000;

impl Views {
    /// The next entries of the visible state after a key, all keys if it is `None`, also hidden ones; none if there are no
    /// more. An entry that look-ups of its key miss is damaged. Blocks.
    pub(crate) fn page_after(&self, after: Option<&Key>) -> Result<Vec<ViewEntry>, StoreError> {
        let (view, _gate) = self.stable()?;
        let from = after.map_or_else(|| FIRST_HIDDEN.to_owned(), |key| format!("{key}\0"));
        let mut entries = view.entries(&Prefix::root(), &from)?;
        let mut page = Vec::new();
        while page.len() < PAGE
            && let Some(entry) = entries.next_entry()?
        {
            page.push(match entry {
                (key, Ok(record)) => {
                    let record = view.found_again(&key, record)?;
                    (key, record)
                }
                damaged => damaged,
            });
        }
        Ok(page)
    }
}

impl View {
    /// The record of a listed key, unless a search for the key misses it or fails because of damage.
    fn found_again(&self, key: &Key, record: Record) -> Result<Result<Record, Corruption>, StoreError> {
        match self.record(key) {
            Ok(Some(found)) if found == record => Ok(Ok(record)),
            Ok(_) => Ok(Err(Corruption::new(ValueCorruption::Misplaced))),
            Err(StoreError::Corrupt { cause, .. }) => Ok(Err(cause)),
            Err(error) => Err(error),
        }
    }
}
