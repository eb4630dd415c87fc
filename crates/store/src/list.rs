//! Whole listings, read page by page.

use futures::{Stream, TryStreamExt, stream};

use crate::{
    Cursor, Entry, KeyCount, ListableStore, ListedValue, MAX_COUNTED_KEYS, MAX_PAGE_ENTRIES, MAX_VALUE_PAGE_ENTRIES,
    PageRequest, Prefix, PrefixSnapshot, StoreError,
};

/// Streams all keys below `prefix`, reading page by page as the stream is polled.
pub fn list_all<'s, S>(
    store: &'s S,
    prefix: &Prefix,
) -> impl Stream<Item = Result<Entry, StoreError>> + Send + use<'s, S>
where
    S: ListableStore + ?Sized,
{
    let prefix = prefix.clone();
    all_pages(MAX_PAGE_ENTRIES, move |page| {
        let prefix = prefix.clone();
        async move {
            let page = store.list_prefix(&prefix, page).await?;
            Ok((page.keys, page.cursor))
        }
    })
}

/// Streams all keys below `prefix` in a snapshot with their small values, as [`list_all`] does.
pub fn list_all_values<'s, S>(
    snapshot: &'s S,
    prefix: &Prefix,
) -> impl Stream<Item = Result<ListedValue, StoreError>> + Send + use<'s, S>
where
    S: PrefixSnapshot + ?Sized,
{
    let prefix = prefix.clone();
    all_pages(MAX_VALUE_PAGE_ENTRIES, move |page| {
        let prefix = prefix.clone();
        async move {
            let page = snapshot.list_values(&prefix, page).await?;
            Ok((page.keys, page.cursor))
        }
    })
}

/// Streams the entries of one page after the other.
fn all_pages<T, R>(
    limit: usize,
    read: impl Fn(PageRequest) -> R + Send,
) -> impl Stream<Item = Result<T, StoreError>> + Send
where
    T: Send,
    R: Future<Output = Result<(Vec<T>, Option<Cursor>), StoreError>> + Send,
{
    let pages = stream::try_unfold((Some(PageRequest::first(limit)), read), move |(next, read)| async move {
        let Some(page) = next else { return Ok::<_, StoreError>(None) };
        let (entries, cursor) = read(page).await?;
        let next = cursor.map(|cursor| PageRequest::after(limit, cursor));
        Ok(Some((stream::iter(entries.into_iter().map(Ok)), (next, read))))
    });
    pages.try_flatten()
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
