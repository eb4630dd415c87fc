//! Erasing values.

use std::sync::Arc;

use futures::{StreamExt, stream};
use object_store::path::Path;
use zarrd_store::{Key, KeyCount, MAX_COUNTED_KEYS, MAX_PAGE_ENTRIES, PageRequest, Precondition, Prefix, StoreError};
use zarrd_store_remote::Failed;

use super::put::{Expected, Found, Turns};
use crate::{failure::Failure, inner::Inner, list};

/// The action that fails if a value cannot be erased.
const ACTION: &str = "erase";

/// The documents without which nothing below a node is found. The attributes of v2 follow with the chunks.
const DOCUMENTS: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zmetadata"];

/// The number of documents that are erased together, in the order of their depth: groups before their members.
const MAX_DOCUMENTS: usize = 10_000;

/// Erases the value of a key; returns true if it had one.
///
/// If the answer is lost, the object says what happened: it is gone, or unchanged, and the erase is repeated.
pub(crate) async fn erase(inner: &Inner, key: &Key, precondition: &Precondition) -> Result<bool, StoreError> {
    if *precondition != Precondition::none() {
        return Err(StoreError::Unsupported { what: "conditions of an erase" });
    }
    let Some(path) = inner.path(key) else { return Ok(false) };
    let failed = |failure| inner.error(ACTION, key.as_str(), failure);
    let Some(before) = Found::head(inner, key, &path).await.map_err(failed)? else { return Ok(false) };
    let expected = Expected::of(Some(&before));
    let mut turns = Turns::new(inner.settle);
    loop {
        let failure = match inner.request_once(0, delete(inner, vec![path.clone()])).await {
            Ok(()) => return Ok(true),
            Err(failure) if failure.is_transient() || matches!(failure, Failure::Deadline(_)) => failure,
            Err(failure) => return Err(failed(failure)),
        };
        let unknown = |failure: &Failure| inner.unknown(ACTION, key, failure.clone());
        match turns.until_deadline(Found::head(inner, key, &path)).await {
            Some(Ok(None)) => return Ok(true),
            Some(Ok(found)) if expected.is_met_by(found.as_ref()) => {
                turns.wait(&failure).await.map_err(|()| unknown(&failure))?;
            }
            _ => return Err(unknown(&failure)),
        }
    }
}

/// Erases everything below a prefix: first the documents, so that what is left of an erase that was cut is no node, and
/// then the rest. Returns the number of keys.
pub(crate) async fn erase_prefix(inner: &Arc<Inner>, prefix: &Prefix) -> Result<KeyCount, StoreError> {
    let mut erased = 0_u64;
    erased = erased.saturating_add(erase_documents(inner, prefix).await?);
    let mut page = PageRequest::first(MAX_PAGE_ENTRIES);
    loop {
        let listed = list::list_prefix(inner, prefix, &page).await?;
        let keys: Vec<Key> = listed.keys.into_iter().map(|entry| entry.key).collect();
        erased = erased.saturating_add(erase_keys(inner, prefix, &keys).await?);
        let Some(cursor) = listed.cursor else { break };
        page = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
    }
    let limit = MAX_COUNTED_KEYS as u64;
    Ok(KeyCount { count: erased.min(limit), exact: erased <= limit })
}

/// Erases the documents below a prefix; returns their number.
async fn erase_documents(inner: &Arc<Inner>, prefix: &Prefix) -> Result<u64, StoreError> {
    let (mut documents, mut erased) = (Vec::new(), 0_u64);
    let mut page = PageRequest::first(MAX_PAGE_ENTRIES);
    loop {
        let listed = list::list_prefix(inner, prefix, &page).await?;
        documents.extend(listed.keys.into_iter().map(|entry| entry.key).filter(is_document));
        if documents.len() >= MAX_DOCUMENTS || listed.cursor.is_none() {
            documents.sort_by_key(|key| key.as_str().matches('/').count());
            erased = erased.saturating_add(erase_keys(inner, prefix, &documents).await?);
            documents.clear();
        }
        let Some(cursor) = listed.cursor else { return Ok(erased) };
        page = PageRequest::after(MAX_PAGE_ENTRIES, cursor);
    }
}

fn is_document(key: &Key) -> bool {
    key.as_str().rsplit('/').next().is_some_and(|name| DOCUMENTS.contains(&name))
}

/// Erases keys that were listed, in their order; returns their number.
async fn erase_keys(inner: &Arc<Inner>, prefix: &Prefix, keys: &[Key]) -> Result<u64, StoreError> {
    for keys in keys.chunks(MAX_PAGE_ENTRIES) {
        let paths: Vec<Path> = keys.iter().filter_map(|key| inner.path(key)).collect();
        let mut turns = inner.attempts();
        while let Err(failure) = inner.request_once(0, delete(inner, paths.clone())).await {
            turns.wait(failure).await.map_err(|failure| inner.error(ACTION, prefix.as_str(), failure))?;
        }
    }
    Ok(keys.len() as u64)
}

/// Deletes objects, once. One that does not exist is no failure.
pub(super) async fn delete(inner: &Inner, paths: Vec<Path>) -> Result<(), Failure> {
    let mut deleted = inner.bucket.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
    let mut failed = None;
    while let Some(result) = deleted.next().await {
        let failure = result.err().map(|error| Failure::of(&error));
        failed = failed.or(failure.filter(|failure| failure.status() != Some(404)));
    }
    failed.map_or(Ok(()), Err)
}
