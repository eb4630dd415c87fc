//! Whole listings, read page by page.

use futures::{Stream, stream};

use crate::{Entry, KeyCount, ListableStore, MAX_COUNTED_KEYS, MAX_PAGE_ENTRIES, PageRequest, Prefix, StoreError};

/// Streams all keys below `prefix`, reading page by page as the stream is polled.
pub fn list_all<'s, S>(
    store: &'s S,
    prefix: &Prefix,
) -> impl Stream<Item = Result<Entry, StoreError>> + Send + use<'s, S>
where
    S: ListableStore + ?Sized,
{
    struct Pages {
        ready: std::vec::IntoIter<Entry>,
        next: Option<PageRequest>,
    }
    let prefix = prefix.clone();
    let start = Pages { ready: Vec::new().into_iter(), next: Some(PageRequest::first(MAX_PAGE_ENTRIES)) };
    stream::try_unfold((prefix, start), move |(prefix, mut pages)| async move {
        loop {
            if let Some(entry) = pages.ready.next() {
                return Ok(Some((entry, (prefix, pages))));
            }
            let Some(page) = pages.next.take() else { return Ok(None) };
            let found = store.list_prefix(&prefix, page).await?;
            pages.ready = found.keys.into_iter();
            pages.next = found.cursor.map(|cursor| PageRequest::after(MAX_PAGE_ENTRIES, cursor));
        }
    })
}

/// Counts the keys below `prefix`, page by page, up to [`MAX_COUNTED_KEYS`]. Implementations of
/// [`erase_prefix`](crate::WriteableStore::erase_prefix) return this.
pub async fn count_keys<S: ListableStore + ?Sized>(store: &S, prefix: &Prefix) -> Result<KeyCount, StoreError> {
    let (mut count, mut cursor) = (0, None);
    loop {
        let limit = MAX_PAGE_ENTRIES.min(MAX_COUNTED_KEYS.saturating_sub(count));
        let page = store.list_prefix(prefix, PageRequest { limit, cursor }).await?;
        count = count.saturating_add(page.keys.len());
        cursor = page.cursor;
        if cursor.is_none() || count >= MAX_COUNTED_KEYS {
            return Ok(KeyCount { count: count as u64, exact: cursor.is_none() });
        }
    }
}
