//! Listings that are read from the store while they are sent.

use std::sync::Arc;

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use zarrd_store::{DirPage, KeyPage, ListableStore, Prefix, StoreError};
use zarrd_wire::{listing::KeyLine, query::ListQuery};

use crate::{app::App, pager::Pager};

/// The number of entries read at a time; with the longest names they take 256 KiB.
const BATCH_SIZE: usize = 256;

/// Streams the keys below `prefix` in a store or snapshot from the query's cursor, up to its limit.
///
/// The first batch is read at once, so that errors are found before the response begins.
pub(super) async fn keys(
    app: App,
    source: Arc<dyn ListableStore>,
    prefix: Prefix,
    query: ListQuery,
) -> Result<impl Stream<Item = Result<KeyPage, StoreError>> + Send, StoreError> {
    let mut pager = pager(app, source, prefix, query);
    let first = pager.keys().await?.map(Ok);
    let rest = stream::try_unfold(pager, async |mut pager| Ok(pager.keys().await?.map(|page| (page, pager))));
    Ok(stream::iter(first).chain(rest))
}

/// Streams the children of `prefix` in the same way.
pub(super) async fn dir(
    app: App,
    source: Arc<dyn ListableStore>,
    prefix: Prefix,
    query: ListQuery,
) -> Result<impl Stream<Item = Result<DirPage, StoreError>> + Send, StoreError> {
    let mut pager = pager(app, source, prefix, query);
    let first = pager.children().await?.map(Ok);
    let rest = stream::try_unfold(pager, async |mut pager| Ok(pager.children().await?.map(|page| (page, pager))));
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

/// A listing from the query's cursor, up to its limit.
fn pager(app: App, source: Arc<dyn ListableStore>, prefix: Prefix, query: ListQuery) -> Pager {
    Pager { app, source, prefix, page_len: BATCH_SIZE, remaining: query.limit, next: Some(query.cursor) }
}
