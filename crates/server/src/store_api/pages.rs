//! Listings that are read from the store while they are sent.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use zarrd_store::{Cursor, DirPage, KeyPage, ListableStore, PageRequest, Prefix, StoreError};
use zarrd_wire::{listing::KeyLine, query::ListQuery};

use crate::app::App;

/// The number of entries read at a time; with the longest names they take 256 KiB.
const BATCH_SIZE: usize = 256;

/// The position of a listing in progress.
struct Pager {
    app: App,
    source: Arc<dyn ListableStore>,
    prefix: Prefix,
    /// The number of entries left to return; `None` for all.
    remaining: Option<usize>,
    /// The cursor of the next batch; `None` at the end.
    next: Option<Option<Cursor>>,
}

/// Streams the keys below `prefix` in a store or snapshot from the query's cursor, up to its limit.
///
/// The first batch is read at once, so that errors are found before the response begins.
pub(super) async fn keys(
    app: App,
    source: Arc<dyn ListableStore>,
    prefix: Prefix,
    query: ListQuery,
) -> Result<impl Stream<Item = Result<KeyPage, StoreError>> + Send, StoreError> {
    let mut pager = Pager::new(app, source, prefix, query);
    let first = pager.next_keys().await?.map(Ok);
    let rest = stream::try_unfold(pager, async |mut pager| Ok(pager.next_keys().await?.map(|page| (page, pager))));
    Ok(stream::iter(first).chain(rest))
}

/// Streams the children of `prefix` in the same way.
pub(super) async fn dir(
    app: App,
    source: Arc<dyn ListableStore>,
    prefix: Prefix,
    query: ListQuery,
) -> Result<impl Stream<Item = Result<DirPage, StoreError>> + Send, StoreError> {
    let mut pager = Pager::new(app, source, prefix, query);
    let first = pager.next_dir().await?.map(Ok);
    let rest = stream::try_unfold(pager, async |mut pager| Ok(pager.next_dir().await?.map(|page| (page, pager))));
    Ok(stream::iter(first).chain(rest))
}

/// Encodes the entries of a page as one JSON document per line.
pub(super) fn lines(page: &KeyPage) -> Bytes {
    let mut lines = Vec::new();
    for entry in &page.keys {
        // Writing plain structures to memory cannot fail.
        let _ = serde_json::to_writer(&mut lines, &KeyLine::new(entry));
        lines.push(b'\n');
    }
    lines.into()
}

impl Pager {
    fn new(app: App, source: Arc<dyn ListableStore>, prefix: Prefix, query: ListQuery) -> Self {
        Self { app, source, prefix, remaining: query.limit, next: Some(query.cursor) }
    }

    async fn next_keys(&mut self) -> Result<Option<KeyPage>, StoreError> {
        let Some(page) = self.page() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let batch = self.source.list_prefix(&self.prefix, page).await?;
        drop(permit);
        self.advance(batch.keys.len(), batch.cursor.clone());
        Ok(Some(batch))
    }

    async fn next_dir(&mut self) -> Result<Option<DirPage>, StoreError> {
        let Some(page) = self.page() else { return Ok(None) };
        let permit = self.app.listing_permit(&self.prefix).await;
        let batch = self.source.list_dir(&self.prefix, page).await?;
        drop(permit);
        self.advance(batch.keys.len() + batch.prefixes.len(), batch.cursor.clone());
        Ok(Some(batch))
    }

    fn page(&mut self) -> Option<PageRequest> {
        let limit = self.remaining.map_or(BATCH_SIZE, |remaining| remaining.min(BATCH_SIZE));
        let cursor = self.next.take().filter(|_| limit > 0)?;
        Some(PageRequest { limit, cursor })
    }

    fn advance(&mut self, entries: usize, cursor: Option<Cursor>) {
        self.remaining = self.remaining.map(|remaining| remaining.saturating_sub(entries));
        self.next = cursor.map(Some);
    }
}
