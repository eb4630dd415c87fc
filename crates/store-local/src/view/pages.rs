//! All entries, page by page, so that no lock is held in between.

use zarrd_store::{Corruption, Key, Prefix, StoreError};

use super::Views;
use crate::{keyspace::FIRST_HIDDEN, record::Record};

/// The number of keys in a page.
const PAGE: usize = 1000;

/// A key with its record, or with the damage of the record.
pub(crate) type PageEntry = (Key, Result<Record, Corruption>);

impl Views {
    /// The next entries of the visible state after a key, all keys if it is `None`, also hidden ones; none if there are no
    /// more. Blocks.
    pub(crate) fn page_after(&self, after: Option<&Key>) -> Result<Vec<PageEntry>, StoreError> {
        let (view, _gate) = self.stable()?;
        let from = after.map_or_else(|| FIRST_HIDDEN.to_owned(), |key| format!("{key}\0"));
        let mut entries = view.entries(&Prefix::root(), &from)?;
        let mut page = Vec::new();
        while page.len() < PAGE {
            match entries.next() {
                Ok(Some((key, record))) => page.push((key, Ok(record))),
                Ok(None) => break,
                Err(StoreError::Corrupt { key, cause }) => page.push((key, Err(cause))),
                Err(error) => return Err(error),
            }
        }
        Ok(page)
    }
}
