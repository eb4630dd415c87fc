//! Listings of another zarrd, the only web server whose listings are known.

use percent_encoding::percent_decode_str;
use reqwest::{
    Method, Response,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue},
};
use serde::de::DeserializeOwned;
use zarrd_store::{Cursor, DirPage, Entry, Key, KeyPage, MAX_KEY_LEN, PageRequest, Prefix, StoreError};
use zarrd_wire::{
    etag, headers,
    listing::{DirListing, KeyListing},
    query::{ListKind, ListQuery},
    routes,
};

use crate::{answer::Pin, failure::Failure, inner::Inner};

/// The maximum size of one entry of a listing, in bytes: a key whose every byte is escaped, and its metadata.
const MAX_ENTRY: usize = 6 * MAX_KEY_LEN + 256;

/// The maximum size of the rest of a listing, in entries.
const ENVELOPE: usize = 4;

/// The error of every listing of a server that is no zarrd.
const UNLISTED: StoreError = StoreError::Unsupported { what: "listings" };

/// Returns the prefix that the server has at the URL if it is another zarrd: it answers a request for a listing with one,
/// whose prefix is the end of the URL, and whose keys have the validators of a zarrd. `None` for any other server.
pub(crate) async fn recognize(inner: &Inner) -> Result<Option<Prefix>, Failure> {
    let first = PageRequest::first(1);
    let listing = match request::<DirListing>(inner, ListKind::Dir, &Prefix::root(), &first).await {
        Ok(listing) => listing,
        // It may be one that is busy, or behind a proxy that does not reach it.
        Err(failure) if matches!(failure.status(), Some(429 | 502..=504)) => return Err(failure),
        Err(failure @ (Failure::Connection(_) | Failure::Deadline(_))) => return Err(failure),
        Err(_) => return Ok(None),
    };
    let Ok(prefix) = Prefix::parse(&listing.prefix) else { return Ok(None) };
    let is_valid = listing.into_page().is_ok_and(|page| check(&dir_names(&page), &prefix, &first).is_ok());
    let path = percent_decode_str(inner.url.path()).decode_utf8_lossy();
    let is_at_the_url = path.strip_suffix(prefix.as_str()).is_some_and(|above| above.ends_with(routes::STORE_ROOT));
    Ok((is_valid && is_at_the_url).then_some(prefix))
}

/// A page of the keys below a prefix.
pub(crate) async fn list_prefix(inner: &Inner, prefix: &Prefix, page: &PageRequest) -> Result<KeyPage, StoreError> {
    let above = served_prefix(inner, prefix).await?;
    let listed = async {
        let listing: KeyListing = request(inner, ListKind::Keys, prefix, page).await?;
        let found = listing.into_page().map_err(|_| Failure::Listing)?;
        check(&[keys(&found.keys)], &joined(&above, prefix)?, page)?;
        let KeyPage { keys, cursor, .. } = found;
        Ok(KeyPage::new(entries(inner, &above, keys)?, advanced(cursor, page)?))
    };
    listed.await.map_err(|failure| inner.unlisted(prefix, failure))
}

/// A page of the keys and prefixes directly below a prefix.
pub(crate) async fn list_dir(inner: &Inner, prefix: &Prefix, page: &PageRequest) -> Result<DirPage, StoreError> {
    let above = served_prefix(inner, prefix).await?;
    let listed = async {
        let listing: DirListing = request(inner, ListKind::Dir, prefix, page).await?;
        let found = listing.into_page().map_err(|_| Failure::Listing)?;
        check(&dir_names(&found), &joined(&above, prefix)?, page)?;
        let below = |found: Prefix| {
            found
                .as_str()
                .strip_prefix(above.as_str())
                .and_then(|below| Prefix::parse(below).ok())
                .ok_or(Failure::Listing)
        };
        let prefixes = found.prefixes.into_iter().map(below).collect::<Result<_, _>>()?;
        let keys = entries(inner, &above, found.keys)?;
        Ok(DirPage { keys, prefixes, cursor: advanced(found.cursor, page)? })
    };
    listed.await.map_err(|failure| inner.unlisted(prefix, failure))
}

/// The prefix that the other zarrd has at the URL. Fails with [`StoreError::Unsupported`] if the server is none.
async fn served_prefix(inner: &Inner, prefix: &Prefix) -> Result<Prefix, StoreError> {
    let known = inner.zarrd.get_or_try_init(|| recognize(inner)).await;
    known.map_err(|failure| inner.unlisted(prefix, failure))?.clone().ok_or(UNLISTED)
}

/// Requests a page of a listing.
async fn request<J: DeserializeOwned>(
    inner: &Inner,
    kind: ListKind,
    prefix: &Prefix,
    page: &PageRequest,
) -> Result<J, Failure> {
    let (limit, cursor) = (Some(page.limit()), page.cursor.clone());
    let query = ListQuery { kind, limit, cursor, ..ListQuery::default() };
    let mut url = inner.url.below(prefix.as_str()).ok_or(Failure::Listing)?;
    url.set_query(Some(&query.render()));
    let headers = HeaderMap::from_iter([(ACCEPT, headers::JSON)]);
    let max = page.limit().saturating_add(ENVELOPE).saturating_mul(MAX_ENTRY);
    let attempt = || async {
        let response = inner.attempt(&Method::GET, url.clone(), &headers).await?;
        let is_json = |value: &HeaderValue| value.as_bytes().starts_with(headers::JSON.as_bytes());
        if !response.headers().get(CONTENT_TYPE).is_some_and(is_json) {
            return Err(Failure::Listing);
        }
        serde_json::from_slice(&receive(response, max).await?).map_err(|_| Failure::Listing)
    };
    inner.requests.make(attempt).await
}

/// Receives a body of at most `max` bytes.
async fn receive(mut response: Response, max: usize) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await? {
        if bytes.len() > max.saturating_sub(body.len()) {
            return Err(Failure::Long);
        }
        body.extend_from_slice(&bytes);
    }
    Ok(body)
}

/// Fails if a page has more names than requested, or names that are not sorted or not below the prefix.
fn check(names: &[Vec<&str>], prefix: &Prefix, page: &PageRequest) -> Result<(), Failure> {
    let is_listing_of = |names: &Vec<&str>| {
        names.iter().all(|name| name.starts_with(prefix.as_str())) && names.is_sorted_by(|one, next| one < next)
    };
    let count: usize = names.iter().map(Vec::len).sum();
    match count <= page.limit() && names.iter().all(is_listing_of) {
        true => Ok(()),
        false => Err(Failure::Listing),
    }
}

/// The cursor of the next page, if it is another one.
fn advanced(next: Option<Cursor>, page: &PageRequest) -> Result<Option<Cursor>, Failure> {
    match next.is_some() && next == page.cursor {
        true => Err(Failure::Listing),
        false => Ok(next),
    }
}

/// The listed entries of the other server as entries of this store, with the versions that reads of them have.
fn entries(inner: &Inner, above: &Prefix, listed: Vec<Entry>) -> Result<Vec<Entry>, Failure> {
    let entry = |Entry { key, mut meta, is_damaged }: Entry| {
        let below = key.as_str().strip_prefix(above.as_str()).and_then(|below| Key::parse(below).ok());
        let key = below.ok_or(Failure::Listing)?;
        let validator = etag::text(meta.version);
        meta.version = inner.pins.version(&key, "etag", &validator, meta.size);
        inner.pins.insert(meta.version, Pin::ETag(validator.into()));
        Ok(Entry { key, meta, is_damaged })
    };
    listed.into_iter().map(entry).collect()
}

fn joined(above: &Prefix, prefix: &Prefix) -> Result<Prefix, Failure> {
    Prefix::parse(&format!("{above}{prefix}")).map_err(|_| Failure::Listing)
}

fn dir_names(page: &DirPage) -> [Vec<&str>; 2] {
    [keys(&page.keys), page.prefixes.iter().map(Prefix::as_str).collect()]
}

fn keys(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.key.as_str()).collect()
}
