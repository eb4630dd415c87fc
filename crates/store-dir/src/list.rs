//! Listing keys.

use std::{sync::Arc, time::Duration};

use zarrd_store::{DirPage, Entry, KeyPage, ListingKind, PageRequest, Prefix, StoreError};

use crate::{
    attributes::{Kind, Versions},
    directory::{ACTION, CachedNames, CancelOnDrop},
    error::{Failure, file_error},
    inner::Inner,
    names::is_visible,
    root::Wait,
    walk::{Child, Found, Page, Walker},
};

/// The number of times that a listing waits for files that are being written.
const WAITS: u32 = 2;

/// A page of the keys below a prefix.
pub(crate) async fn list_prefix(
    inner: &Arc<Inner>,
    prefix: &Prefix,
    page: &PageRequest,
) -> Result<KeyPage, StoreError> {
    let walk = |walker: &Walker<'_>, prefix: &Prefix, after: &str, limit| walker.values(prefix, after, limit);
    let Page { entries, last, state } = read_page(inner, ListingKind::Keys, prefix, page, walk).await?;
    let cursor = last.map(|last| inner.cursors.sign(ListingKind::Keys, prefix, &last));
    Ok(KeyPage { keys: settle(inner, entries).await?, cursor, state })
}

/// A page of the keys and prefixes directly below a prefix.
pub(crate) async fn list_dir(inner: &Arc<Inner>, prefix: &Prefix, page: &PageRequest) -> Result<DirPage, StoreError> {
    let walk = |walker: &Walker<'_>, prefix: &Prefix, after: &str, limit| walker.children(prefix, after, limit);
    let Page { entries, last, .. } = read_page(inner, ListingKind::Dir, prefix, page, walk).await?;
    let cursor = last.map(|last| inner.cursors.sign(ListingKind::Dir, prefix, &last));
    let (mut found, mut prefixes) = (Vec::new(), Vec::new());
    for child in entries {
        match child {
            Child::Value(value) => found.push(value),
            Child::Prefix(prefix) => prefixes.push(prefix),
        }
    }
    Ok(DirPage { keys: settle(inner, found).await?, prefixes, cursor })
}

/// Reads a page, until nobody waits for it any more.
async fn read_page<T: Send + 'static>(
    inner: &Arc<Inner>,
    kind: ListingKind,
    prefix: &Prefix,
    page: &PageRequest,
    walk: impl FnOnce(&Walker<'_>, &Prefix, &str, usize) -> Result<Page<T>, StoreError> + Send + 'static,
) -> Result<Page<T>, StoreError> {
    let last = page.cursor.as_ref().map(|cursor| inner.cursors.verify(kind, prefix, cursor)).transpose()?;
    let last = last.unwrap_or_else(|| prefix.to_string());
    let after = last.strip_prefix(prefix.as_str()).ok_or(StoreError::InvalidCursor)?.to_owned();
    if !is_visible(prefix.as_str()) {
        return Ok(Page { entries: Vec::new(), last: None, state: None });
    }
    let cancel = CancelOnDrop::default();
    let (cancelled, prefix, limit) = (cancel.0.clone(), prefix.clone(), page.limit());
    let walk = move |inner: &Inner| {
        let failed = |failure| file_error(ACTION, prefix.as_str(), failure);
        let top = inner.root.current(Wait::Allowed).map_err(failed)?;
        let cached = CachedNames { held: &inner.held, small: &inner.small };
        walk(&Walker { root: &inner.root, top, cached, cancelled: &cancelled }, &prefix, &after, limit)
    };
    inner.run(walk).await
}

/// A value in a listing, with the time after which its file has been quiet.
#[derive(Debug)]
struct Listed {
    found: Found,
    wait: Option<Duration>,
}

/// Returns the metadata of values when their files are quiet.
async fn settle(inner: &Arc<Inner>, found: Vec<Found>) -> Result<Vec<Entry>, StoreError> {
    let with_wait = |found: Found| {
        let wait = inner.wait(&found.key, &found.attributes, found.precision);
        Listed { found, wait }
    };
    let mut listed: Vec<Listed> = found.into_iter().map(with_wait).collect();
    for _ in 0..WAITS {
        let Some(wait) = listed.iter().filter_map(|listed| listed.wait).max() else { break };
        tokio::time::sleep(wait).await;
        listed = inner.run(|inner| stat_again(inner, listed)).await?;
    }
    let entry = |Listed { found, wait }| {
        let meta = match wait {
            None => inner.meta(&found.key, &found.attributes),
            Some(_) => Versions::unsettled_meta(&found.attributes),
        };
        Entry::new(found.key, meta)
    };
    Ok(listed.into_iter().map(entry).collect())
}

/// Reads the attributes of files that were not quiet again. Leaves out those that are no values any more.
fn stat_again(inner: &Inner, listed: Vec<Listed>) -> Result<Vec<Listed>, StoreError> {
    let mut current = Vec::with_capacity(listed.len());
    for Listed { found, wait } in listed {
        if wait.is_none() {
            current.push(Listed { found, wait });
            continue;
        }
        let path = found.key.as_str();
        let now = match inner.root.look_up(path, Wait::Allowed) {
            Err(Failure::LinkToNothing | Failure::Special | Failure::Private) => None,
            now => now.map_err(|failure| file_error(ACTION, path, failure))?,
        };
        let Some(now) = now.filter(|now| now.attributes.kind == Kind::Regular) else { continue };
        let wait = if found.attributes == now.attributes {
            None
        } else {
            inner.wait(&found.key, &now.attributes, now.precision)
        };
        current.push(Listed { found: Found { attributes: now.attributes, ..found }, wait });
    }
    Ok(current)
}
