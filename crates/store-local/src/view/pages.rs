//! All entries, page by page, so that no lock is held in between.

use zarrd_store::{Key, Prefix, StoreError};

use super::{ViewEntry, Views};
use crate::keyspace::FIRST_HIDDEN;

/// The number of keys in a page.
const PAGE: usize = 1000;

impl Views {
    /// The next entries of the visible state after a key, all keys if it is `None`, also hidden ones; none if there are no
    /// more. Blocks.
    pub(crate) fn page_after(&self, after: Option<&Key>) -> Result<Vec<ViewEntry>, StoreError> {
        let (view, _gate) = self.stable()?;
        let from = after.map_or_else(|| FIRST_HIDDEN.to_owned(), |key| format!("{key}\0"));
        let mut entries = view.entries(&Prefix::root(), &from)?;
        let mut page = Vec::new();
        while page.len() < PAGE
            && let Some(entry) = entries.next_entry()?
        {
            page.push(entry);
        }
        Ok(page)
    }
}
