//! Pages of listings, and the cursors between them.

use std::time::UNIX_EPOCH;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

use crate::{Attributes, Key, Prefix, StoreError, ValueMeta, Version};

/// The maximum number of entries in a page; a larger limit is capped.
pub const MAX_PAGE_ENTRIES: usize = 10_000;
/// The maximum number of entries in a page with values; a larger limit is capped.
pub const MAX_VALUE_PAGE_ENTRIES: usize = 256;
/// The maximum size of a value in a listing, in bytes.
pub const MAX_LISTED_VALUE_BYTES: u64 = 4096;

/// A key in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Key,
    /// The metadata of its value. Of a damaged one only the upper half of the version is known.
    pub meta: ValueMeta,
    /// True if the record of the value is damaged: reads of it fail with [`StoreError::Corrupt`], and so do changes that
    /// depend on its version; it can be set and erased.
    pub is_damaged: bool,
}

/// A request for one page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The maximum number of entries, clamped to 1..=[`MAX_PAGE_ENTRIES`].
    pub limit: usize,
    /// The start of the page: the cursor of the previous page, or `None` for the first.
    pub cursor: Option<Cursor>,
}

/// A page of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPage {
    /// The keys, sorted by their bytes.
    pub keys: Vec<Entry>,
    /// The start of the next page; `None` for the last.
    pub cursor: Option<Cursor>,
    /// The state of what the page was read from; `None` if the store has none, or if it could change unnoticed.
    pub state: Option<ListingState>,
}

/// The state of everything that a page of a listing was read from, such as the times of directories.
///
/// No state comes again. If the same request for a page has an equal state later, none of the entries of that page was
/// changed or erased in between, and none was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListingState(u128);

impl KeyPage {
    /// A page of a store whose listings have no states.
    pub fn new(keys: Vec<Entry>, cursor: Option<Cursor>) -> Self {
        Self { keys, cursor, state: None }
    }
}

impl ListingState {
    /// A state with this number.
    pub const fn from_u128(number: u128) -> Self {
        Self(number)
    }

    /// The state of pages that were read one after the other; `None` if one of them has none.
    pub fn of_pages(pages: impl IntoIterator<Item = Option<Self>>) -> Option<Self> {
        let mut hash = Xxh3::new();
        for page in pages {
            hash.update(&page?.0.to_le_bytes());
        }
        Some(Self(hash.digest128()))
    }
}

/// A key in a listing with values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedValue {
    /// The key. Where the value is present, the metadata has its attributes.
    pub entry: Entry,
    /// The whole value; `None` for one that has to be read by its key.
    pub value: Option<Bytes>,
}

/// A page of keys with their small values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValuePage {
    /// The keys, sorted by their bytes.
    pub keys: Vec<ListedValue>,
    /// The start of the next page, of listings with values and without; `None` for the last.
    pub cursor: Option<Cursor>,
}

/// A page of the children of a prefix. Keys and prefixes are ordered together, by their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirPage {
    /// The keys directly below the prefix, sorted.
    pub keys: Vec<Entry>,
    /// The prefixes directly below it, sorted.
    pub prefixes: Vec<Prefix>,
    /// The start of the next page; `None` for the last.
    pub cursor: Option<Cursor>,
}

/// The start of a page: opaque, and valid for the listing that issued it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cursor(String);

/// The kind of a listing. A cursor is valid for one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListingKind {
    /// [`ListableStore::list_prefix`](crate::ListableStore::list_prefix).
    Keys,
    /// [`ListableStore::list_dir`](crate::ListableStore::list_dir).
    Dir,
}

/// Signs and verifies cursors.
///
/// A cursor contains the last entry of its page and a checksum seeded with the store's secret. A cursor that was
/// forged, truncated, or issued by another store or for another listing is rejected.
#[derive(Clone, Copy, Debug)]
pub struct CursorSigner(u64);

impl PageRequest {
    /// The first page.
    pub fn first(limit: usize) -> Self {
        Self { limit, cursor: None }
    }

    /// The page after the one whose cursor is `cursor`.
    pub fn after(limit: usize, cursor: Cursor) -> Self {
        Self { limit, cursor: Some(cursor) }
    }

    /// The limit, clamped to its bounds.
    pub fn limit(&self) -> usize {
        self.limit.clamp(1, MAX_PAGE_ENTRIES)
    }

    /// The request for a page with values, which has fewer entries at most.
    #[must_use]
    pub fn with_values(self) -> Self {
        Self { limit: self.limit.min(MAX_VALUE_PAGE_ENTRIES), ..self }
    }
}

impl Entry {
    /// A key whose value has this metadata.
    pub fn new(key: Key, meta: ValueMeta) -> Self {
        Self { key, meta, is_damaged: false }
    }

    /// A key whose record is damaged, in a store whose versions have this upper half. No value has version 0 of a store.
    pub fn damaged(key: Key, store_id: u64) -> Self {
        let version = Version::from_u128(u128::from(store_id) << 64);
        let meta = ValueMeta { size: 0, version, modified: UNIX_EPOCH, attributes: Attributes::NONE };
        Self { key, meta, is_damaged: true }
    }
}

impl Cursor {
    /// A cursor from untrusted text, which the store verifies.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The cursor as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl CursorSigner {
    /// A signer with the store's secret.
    pub fn new(secret: u64) -> Self {
        Self(secret)
    }

    /// The cursor of a page that ended with `last`, a key or prefix.
    pub fn sign(&self, listing: ListingKind, prefix: &Prefix, last: &str) -> Cursor {
        let mut bytes = self.tag(listing, prefix, last).to_be_bytes().to_vec();
        bytes.extend_from_slice(last.as_bytes());
        Cursor(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Returns the `last` that was passed to [`CursorSigner::sign`].
    pub fn verify(&self, listing: ListingKind, prefix: &Prefix, cursor: &Cursor) -> Result<String, StoreError> {
        let bytes = URL_SAFE_NO_PAD.decode(&cursor.0).map_err(|_| StoreError::InvalidCursor)?;
        let (tag, last) = bytes.split_first_chunk::<8>().ok_or(StoreError::InvalidCursor)?;
        let last = std::str::from_utf8(last).map_err(|_| StoreError::InvalidCursor)?;
        if u64::from_be_bytes(*tag) != self.tag(listing, prefix, last) {
            return Err(StoreError::InvalidCursor);
        }
        Ok(last.to_owned())
    }

    fn tag(&self, listing: ListingKind, prefix: &Prefix, last: &str) -> u64 {
        let kind = match listing {
            ListingKind::Keys => "keys",
            ListingKind::Dir => "dir",
        };
        // Prefixes and keys contain no NUL, so the parts cannot be confused.
        xxh3_64_with_seed(format!("{kind}\0{prefix}\0{last}").as_bytes(), self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_valid_for_one_listing_of_one_store() {
        let (signer, root) = (CursorSigner::new(7), Prefix::root());
        let cursor = signer.sign(ListingKind::Keys, &root, "a/b");
        assert_eq!(signer.verify(ListingKind::Keys, &root, &cursor).unwrap(), "a/b");
        let other = Prefix::parse("a/").unwrap();
        assert!(signer.verify(ListingKind::Dir, &root, &cursor).is_err());
        assert!(signer.verify(ListingKind::Keys, &other, &cursor).is_err());
        assert!(CursorSigner::new(8).verify(ListingKind::Keys, &root, &cursor).is_err());
        for text in ["", "x", "AAAAAAAAAAA", "AAAAAAAAAAAAAAAA", "ä", "===="] {
            assert!(signer.verify(ListingKind::Keys, &root, &Cursor::from_text(text)).is_err(), "{text}");
        }
    }
}
