//! Listings, page by page.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use futures::{Stream, stream};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{ErasedKeys, Info, Key, ListableStore, MAX_COUNTED, Prefix, StoreError};

/// The most entries of a page; a larger limit is capped.
pub const MAX_PAGE: usize = 10_000;

/// A key in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The metadata of its value.
    pub info: Info,
}

/// The page of a listing to return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The number of entries at most: at least 1, at most [`MAX_PAGE`].
    pub limit: usize,
    /// The start of the page: the cursor of the page before, or `None` for the first.
    pub cursor: Option<Cursor>,
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys, sorted by their bytes.
    pub keys: Vec<Entry>,
    /// The start of the next page; `None` for the last.
    pub cursor: Option<Cursor>,
}

/// A page of the children of a prefix. The order of a listing is that of keys and prefixes together, by their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirPage {
    /// The keys directly below the prefix, sorted.
    pub keys: Vec<Entry>,
    /// The prefixes directly below it, sorted.
    pub prefixes: Vec<Prefix>,
    /// The start of the next page; `None` for the last.
    pub cursor: Option<Cursor>,
}

/// The start of a page: an opaque text, valid for the listing that issued it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(String);

/// The kinds of listing, whose cursors are different.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// [`ListableStore::list_prefix`].
    Keys,
    /// [`ListableStore::list_dir`].
    Dir,
}

/// Issues and verifies cursors.
///
/// A cursor contains the last entry of its page and a checksum seeded with the store's secret, so one that was made up,
/// shortened, or issued by another store or for another listing is rejected.
#[derive(Clone, Copy, Debug)]
pub struct CursorSeal(u64);

impl Page {
    /// The first page.
    pub fn first(limit: usize) -> Self {
        Self { limit, cursor: None }
    }

    /// The page after the one that ended with `cursor`.
    pub fn after(limit: usize, cursor: Cursor) -> Self {
        Self { limit, cursor: Some(cursor) }
    }

    /// The limit, within its bounds.
    pub fn limit(&self) -> usize {
        self.limit.clamp(1, MAX_PAGE)
    }
}

impl Cursor {
    /// A cursor from its text, which the store will verify.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CursorSeal {
    /// A signer with the store's secret.
    pub fn new(secret: u64) -> Self {
        Self(secret)
    }

    /// The cursor of a page of `listing` of `prefix` that ended with `last`, a key or prefix.
    pub fn issue(&self, listing: Listing, prefix: &Prefix, last: &str) -> Cursor {
        let mut bytes = self.tag(listing, prefix, last).to_be_bytes().to_vec();
        bytes.extend_from_slice(last.as_bytes());
        Cursor(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The `last` that [`CursorSeal::issue`] was given.
    pub fn open(&self, listing: Listing, prefix: &Prefix, cursor: &Cursor) -> Result<String, StoreError> {
        let bytes = URL_SAFE_NO_PAD.decode(&cursor.0).map_err(|_| StoreError::InvalidCursor)?;
        let (tag, last) = bytes.split_first_chunk::<8>().ok_or(StoreError::InvalidCursor)?;
        let last = std::str::from_utf8(last).map_err(|_| StoreError::InvalidCursor)?;
        if u64::from_be_bytes(*tag) != self.tag(listing, prefix, last) {
            return Err(StoreError::InvalidCursor);
        }
        Ok(last.to_owned())
    }

    fn tag(&self, listing: Listing, prefix: &Prefix, last: &str) -> u64 {
        let kind = match listing {
            Listing::Keys => "keys",
            Listing::Dir => "dir",
        };
        // Prefixes and keys contain no NUL, so the parts cannot be confused.
        xxh3_64_with_seed(format!("{kind}\0{prefix}\0{last}").as_bytes(), self.0)
    }
}

/// All keys below `prefix`, fetched page by page as the stream is polled.
pub fn walk<'s, S>(store: &'s S, prefix: &Prefix) -> impl Stream<Item = Result<Entry, StoreError>> + Send + use<'s, S>
where
    S: ListableStore + ?Sized,
{
    struct Walk {
        ready: std::vec::IntoIter<Entry>,
        next: Option<Page>,
    }
    let prefix = prefix.clone();
    let begin = Walk { ready: Vec::new().into_iter(), next: Some(Page::first(MAX_PAGE)) };
    stream::try_unfold((prefix, begin), move |(prefix, mut walk)| async move {
        loop {
            if let Some(entry) = walk.ready.next() {
                return Ok(Some((entry, (prefix, walk))));
            }
            let Some(page) = walk.next.take() else { return Ok(None) };
            let found = store.list_prefix(&prefix, page).await?;
            walk.ready = found.keys.into_iter();
            walk.next = found.cursor.map(|cursor| Page::after(MAX_PAGE, cursor));
        }
    })
}

/// The number of keys below `prefix`, counted page by page up to [`MAX_COUNTED`]: what
/// [`erase_prefix`](crate::WriteableStore::erase_prefix) answers.
pub async fn count_keys<S: ListableStore + ?Sized>(store: &S, prefix: &Prefix) -> Result<ErasedKeys, StoreError> {
    let (mut count, mut cursor) = (0, None);
    loop {
        let limit = MAX_PAGE.min(MAX_COUNTED.saturating_sub(count));
        let page = store.list_prefix(prefix, Page { limit, cursor }).await?;
        count = count.saturating_add(page.keys.len());
        cursor = page.cursor;
        if cursor.is_none() || count >= MAX_COUNTED {
            return Ok(ErasedKeys { count: count as u64, exact: cursor.is_none() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_listing_only() {
        let (seal, root) = (CursorSeal::new(7), Prefix::root());
        let cursor = seal.issue(Listing::Keys, &root, "a/b");
        assert_eq!(seal.open(Listing::Keys, &root, &cursor).unwrap(), "a/b");
        let other = Prefix::parse("a/").unwrap();
        assert!(seal.open(Listing::Dir, &root, &cursor).is_err());
        assert!(seal.open(Listing::Keys, &other, &cursor).is_err());
        assert!(CursorSeal::new(8).open(Listing::Keys, &root, &cursor).is_err());
        for text in ["", "x", "AAAAAAAAAAA", "AAAAAAAAAAAAAAAA", "ä", "===="] {
            assert!(seal.open(Listing::Keys, &root, &Cursor::from_text(text)).is_err(), "{text}");
        }
    }
}
