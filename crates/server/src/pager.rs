//! Listings that are read page by page, each with a permit of its prefix.

use std::sync::Arc;

use zarrd_store::{Cursor, DirPage, Key, KeyPage, ListableStore, PageRequest, Prefix, StoreError};

use crate::app::App;

/// The position of a listing in progress.
pub(crate) struct Pager {
    pub(crate) app: App,
    /// The store, or a snapshot of it.
    pub(crate) source: Arc<dyn ListableStore>,
    pub(crate) prefix: Prefix,
    /// The number of entries of a page, at most.
    pub(crate) page_len: usize,
    /// The number of entries left to return; `None` for all.
    pub(crate) remaining: Option<usize>,
    /// The cursor of the next page; outer `None` at the end.
    pub(crate) next: Option<Option<Cursor>>,
}

/// The first key below a prefix.
pub(crate) async fn first_below(app: &App, prefix: &Prefix) -> Result<Option<Key>, StoreError> {
    let permit = app.listing_permit(prefix).await;
    let page = app.store().list_prefix(prefix, PageRequest::first(1)).await?;
    drop(permit);
    Ok(page.keys.into_iter().next().map(|entry| entry.key))
}

impl Pager {
    /// The next page of the keys below the prefix, at any depth.
    pub(crate) async fn keys(&mut self) -> Result<Option<KeyPage>, StoreError> {
        let Some(request) = self.request() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let page = self.source.list_prefix(&self.prefix, request).await?;
        drop(permit);
        self.advance(page.keys.len(), page.cursor.clone());
        Ok(Some(page))
    }

    /// The next page of the children of the prefix.
    pub(crate) async fn children(&mut self) -> Result<Option<DirPage>, StoreError> {
        let Some(request) = self.request() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let page = self.source.list_dir(&self.prefix, request).await?;
        drop(permit);
        self.advance(page.keys.len().saturating_add(page.prefixes.len()), page.cursor.clone());
        Ok(Some(page))
    }

    fn request(&mut self) -> Option<PageRequest> {
        let limit = self.remaining.map_or(self.page_len, |remaining| remaining.min(self.page_len));
        let cursor = self.next.take().filter(|_| limit > 0)?;
        Some(PageRequest { limit, cursor })
    }

    fn advance(&mut self, entries: usize, cursor: Option<Cursor>) {
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(entries));
        self.next = cursor.map(Some);
    }
}
