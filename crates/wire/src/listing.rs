//! The JSON of listings.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use zarrd_store::{Cursor, DirPage, Entry, Key, KeyCount, KeyError, KeyPage, Prefix, ValueMeta};

use crate::{etag, time};

/// The metadata of a value in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueInfo {
    /// Its length in bytes.
    pub size: u64,
    /// Its entity tag, with the quotes.
    pub etag: String,
    /// The time it was set, in RFC 3339.
    pub modified: String,
    /// True if the record of the value is damaged, so that the other members say nothing; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub damaged: bool,
}

/// A page of the children of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirListing {
    /// The prefix.
    pub prefix: String,
    /// The keys directly below it, whole.
    pub keys: Vec<String>,
    /// The metadata of their values, in the same order.
    pub values: Vec<ValueInfo>,
    /// The prefixes directly below it, whole and with their `/`.
    pub prefixes: Vec<String>,
    /// The start of the next page; `null` on the last.
    pub cursor: Option<String>,
}

/// A page of the keys below a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyListing {
    /// The prefix.
    pub prefix: String,
    /// The keys below it, whole.
    pub keys: Vec<String>,
    /// The metadata of their values, in the same order.
    pub values: Vec<ValueInfo>,
    /// The start of the next page; `null` on the last.
    pub cursor: Option<String>,
}

/// A line of a listing with one document per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLine {
    /// The key.
    pub key: String,
    /// The metadata of its value.
    #[serde(flatten)]
    pub value: ValueInfo,
}

/// The answer to the erasing of a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Erased {
    /// The number of keys that were counted just before they were erased.
    pub erased: u64,
    /// True where counting stopped before the last of them, so that there were more; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
}

/// The reason why a received listing is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// A key or prefix is not one.
    #[error("{text:?} is not a key or prefix")]
    Key {
        /// The text.
        text: String,
        /// The reason.
        #[source]
        source: KeyError,
    },
    /// An entity tag is not one of ours.
    #[error("{0:?} is not an entity tag of a version")]
    Etag(String),
    /// A time cannot be read.
    #[error("{0:?} is not a time")]
    Modified(String),
    /// A value is not what its metadata says, or its headers are no attributes.
    #[error("the value listed with the key {0:?} is malformed")]
    Content(String),
    /// There are not as many values as keys.
    #[error("{keys} keys come with {values} values")]
    Parallel {
        /// The number of keys.
        keys: usize,
        /// The number of values.
        values: usize,
    },
}

impl From<KeyCount> for Erased {
    fn from(KeyCount { count, exact }: KeyCount) -> Self {
        Self { erased: count, at_least: !exact }
    }
}

impl From<Erased> for KeyCount {
    fn from(Erased { erased, at_least }: Erased) -> Self {
        Self { count: erased, exact: !at_least }
    }
}

impl DirListing {
    /// The JSON form of a page.
    pub fn new(prefix: &Prefix, page: DirPage) -> Self {
        let (keys, values) = columns(page.keys);
        Self {
            prefix: prefix.to_string(),
            keys,
            values,
            prefixes: page.prefixes.iter().map(Prefix::to_string).collect(),
            cursor: page.cursor.map(|cursor| cursor.as_str().to_owned()),
        }
    }

    /// The page.
    pub fn into_page(self) -> Result<DirPage, ListingError> {
        let parse = |text: String| Prefix::parse(&text).map_err(|source| ListingError::Key { text, source });
        Ok(DirPage {
            keys: entries(self.keys, self.values)?,
            prefixes: self.prefixes.into_iter().map(parse).collect::<Result<_, _>>()?,
            cursor: self.cursor.map(Cursor::from_text),
        })
    }
}

impl KeyListing {
    /// The JSON form of a page.
    pub fn new(prefix: &Prefix, page: KeyPage) -> Self {
        let (keys, values) = columns(page.keys);
        let cursor = page.cursor.map(|cursor| cursor.as_str().to_owned());
        Self { prefix: prefix.to_string(), keys, values, cursor }
    }

    /// The page.
    pub fn into_page(self) -> Result<KeyPage, ListingError> {
        Ok(KeyPage::new(entries(self.keys, self.values)?, self.cursor.map(Cursor::from_text)))
    }
}

impl KeyLine {
    /// The line for an entry.
    pub fn new(entry: &Entry) -> Self {
        Self { key: entry.key.to_string(), value: ValueInfo::of(entry) }
    }

    /// The entry.
    pub fn into_entry(self) -> Result<Entry, ListingError> {
        entry(self.key, self.value)
    }
}

impl ValueInfo {
    /// The JSON form of what is known of a value that is not known to be damaged.
    pub fn new(meta: &ValueMeta) -> Self {
        Self { size: meta.size, etag: etag::text(meta.version), modified: time::rfc3339(meta.modified), damaged: false }
    }

    /// The JSON form of an entry without its key.
    pub fn of(entry: &Entry) -> Self {
        Self { damaged: entry.is_damaged, ..Self::new(&entry.meta) }
    }

    fn into_meta(self) -> Result<ValueMeta, ListingError> {
        let version = etag::parse(&self.etag).ok_or(ListingError::Etag(self.etag))?;
        let modified: SystemTime = time::parse_rfc3339(&self.modified).ok_or(ListingError::Modified(self.modified))?;
        Ok(ValueMeta { size: self.size, version, modified, attributes: zarrd_store::Attributes::NONE })
    }
}

fn columns(entries: Vec<Entry>) -> (Vec<String>, Vec<ValueInfo>) {
    entries.into_iter().map(|entry| (entry.key.to_string(), ValueInfo::of(&entry))).unzip()
}

fn entries(keys: Vec<String>, values: Vec<ValueInfo>) -> Result<Vec<Entry>, ListingError> {
    if keys.len() != values.len() {
        return Err(ListingError::Parallel { keys: keys.len(), values: values.len() });
    }
    keys.into_iter().zip(values).map(|(key, value)| entry(key, value)).collect()
}

pub(crate) fn entry(key: String, value: ValueInfo) -> Result<Entry, ListingError> {
    let key = Key::parse(&key).map_err(|source| ListingError::Key { text: key, source })?;
    let is_damaged = value.damaged;
    Ok(Entry { key, meta: value.into_meta()?, is_damaged })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};
    use zarrd_store::Version;

    fn some_entry() -> Entry {
        let modified = UNIX_EPOCH + Duration::from_millis(1_795_242_488_123);
        Entry {
            key: Key::parse("a/b").unwrap(),
            meta: ValueMeta {
                size: 3,
                version: Version::from_u128(1),
                modified,
                attributes: zarrd_store::Attributes::NONE,
            },
            is_damaged: false,
        }
    }

    #[test]
    fn damaged_entries_are_marked() {
        let entry = Entry::damaged(Key::parse("a/b").unwrap(), 7);
        let json = serde_json::to_string(&KeyLine::new(&entry)).unwrap();
        assert_eq!(
            json,
            r#"{"key":"a/b","size":0,"etag":"\"00000000000000070000000000000000\"","modified":"1970-01-01T00:00:00.000Z","damaged":true}"#
        );
        assert_eq!(serde_json::from_str::<KeyLine>(&json).unwrap().into_entry(), Ok(entry));
    }

    #[test]
    fn pages_round_trip() {
        let prefix = Prefix::parse("a/").unwrap();
        let page = DirPage {
            keys: vec![some_entry()],
            prefixes: vec![Prefix::parse("a/c/").unwrap()],
            cursor: Some(Cursor::from_text("x")),
        };
        let json = serde_json::to_string(&DirListing::new(&prefix, page.clone())).unwrap();
        assert_eq!(
            json,
            r#"{"prefix":"a/","keys":["a/b"],"values":[{"size":3,"etag":"\"00000000000000000000000000000001\"","modified":"2026-11-21T06:28:08.123Z"}],"prefixes":["a/c/"],"cursor":"x"}"#
        );
        assert_eq!(serde_json::from_str::<DirListing>(&json).unwrap().into_page(), Ok(page.clone()));
        let keys = KeyPage::new(page.keys, None);
        let json = serde_json::to_string(&KeyListing::new(&prefix, keys.clone())).unwrap();
        assert!(json.ends_with(r#""cursor":null}"#), "{json}");
        assert_eq!(serde_json::from_str::<KeyListing>(&json).unwrap().into_page(), Ok(keys));
        let line = serde_json::to_string(&KeyLine::new(&some_entry())).unwrap();
        assert!(line.starts_with(r#"{"key":"a/b","size":3,"etag":"#), "{line}");
        assert_eq!(serde_json::from_str::<KeyLine>(&line).unwrap().into_entry(), Ok(some_entry()));
    }

    #[test]
    fn erased_counts_round_trip() {
        let (all, more) = (KeyCount::exact(3), KeyCount { count: 100_000, exact: false });
        for (erased, json) in [(all, r#"{"erased":3}"#), (more, r#"{"erased":100000,"at_least":true}"#)] {
            assert_eq!(serde_json::to_string(&Erased::from(erased)).unwrap(), json);
            assert_eq!(KeyCount::from(serde_json::from_str::<Erased>(json).unwrap()), erased);
        }
    }

    #[test]
    fn invalid_listings_are_rejected() {
        let good = KeyListing::new(&Prefix::root(), KeyPage::new(vec![some_entry()], None));
        let mut short = good.clone();
        short.values.clear();
        assert_eq!(short.into_page(), Err(ListingError::Parallel { keys: 1, values: 0 }));
        let mut key = good.clone();
        key.keys[0] = "a//b".into();
        assert!(matches!(key.into_page(), Err(ListingError::Key { .. })));
        let mut tag = good.clone();
        tag.values[0].etag = "1".into();
        assert_eq!(tag.into_page(), Err(ListingError::Etag("1".into())));
        let mut time = good;
        time.values[0].modified = "now".into();
        assert_eq!(time.into_page(), Err(ListingError::Modified("now".into())));
    }
}
