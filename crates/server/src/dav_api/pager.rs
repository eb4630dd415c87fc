//! Pages of listings, read one at a time.

use std::sync::Arc;

use zarrd_store::{Cursor, DirPage, KeyPage, ListableStore, PageRequest, Prefix, StoreError};

use crate::app::App;

/// A listing in progress.
pub(super) struct Pager {
    pub(super) app: App,
    pub(super) store: Arc<dyn ListableStore>,
    pub(super) prefix: Prefix,
    /// The number of entries of a page.
    pub(super) limit: usize,
    /// The cursor of the next page; outer `None` at the end.
    pub(super) next: Option<Option<Cursor>>,
}

impl Pager {
    /// The next page of the keys below the prefix, at any depth.
    pub(super) async fn keys(&mut self) -> Result<Option<KeyPage>, StoreError> {
        let Some(request) = self.request() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let page = self.store.list_prefix(&self.prefix, request).await?;
        drop(permit);
        self.next = page.cursor.clone().map(Some);
        Ok(Some(page))
    }

    /// The next page of the children of the prefix.
    pub(super) async fn children(&mut self) -> Result<Option<DirPage>, StoreError> {
        let Some(request) = self.request() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let page = self.store.list_dir(&self.prefix, request).await?;
        drop(permit);
        self.next = page.cursor.clone().map(Some);
        Ok(Some(page))
    }

    fn request(&mut self) -> Option<PageRequest> {
        self.next.take().map(|cursor| PageRequest { limit: self.limit, cursor })
    }
}
