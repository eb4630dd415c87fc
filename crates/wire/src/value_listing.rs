//! The JSON of listings with small values, which snapshots have.
//!
//! ```json
//! {"prefix":"lab/","keys":["lab/x"],"values":[{"size":3,"etag":"\"…\"","modified":"…","content":"MSwy"}],"cursor":null}
//! ```

use std::collections::BTreeMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use zarrd_store::{Attributes, Cursor, ListedValue, Prefix, ValuePage};

use crate::{
    attributes,
    listing::{ListingError, ValueInfo, entry},
};

/// A page of the keys below a prefix with their small values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueListing {
    /// The prefix.
    pub prefix: String,
    /// The keys below it, whole.
    pub keys: Vec<String>,
    /// Their values, in the same order.
    pub values: Vec<ValueContent>,
    /// The start of the next page; `null` on the last.
    pub cursor: Option<String>,
}

/// A value in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValueContent {
    /// Its metadata.
    #[serde(flatten)]
    pub info: ValueInfo,
    /// All of it, in base64; left out for one that has to be read by its key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The headers with which the value is served (see [`attributes`]), if its content is there; left out if it has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl ValueListing {
    /// The JSON form of a page.
    pub fn new(prefix: &Prefix, page: ValuePage) -> Self {
        let (keys, values) =
            page.keys.iter().map(|listed| (listed.entry.key.to_string(), ValueContent::new(listed))).unzip();
        let cursor = page.cursor.map(|cursor| cursor.as_str().to_owned());
        Self { prefix: prefix.to_string(), keys, values, cursor }
    }

    /// The page.
    pub fn into_page(self) -> Result<ValuePage, ListingError> {
        if self.keys.len() != self.values.len() {
            return Err(ListingError::Parallel { keys: self.keys.len(), values: self.values.len() });
        }
        let keys = self.keys.into_iter().zip(self.values).map(|(key, value)| value.into_listed(key));
        Ok(ValuePage { keys: keys.collect::<Result<_, _>>()?, cursor: self.cursor.map(Cursor::from_text) })
    }
}

impl ValueContent {
    fn new(listed: &ListedValue) -> Self {
        let headers = match &listed.value {
            Some(_) => attributes::to_headers(&listed.entry.meta.attributes).filter_map(text_header).collect(),
            None => BTreeMap::new(),
        };
        let content = listed.value.as_ref().map(|value| BASE64_STANDARD.encode(value));
        Self { info: ValueInfo::of(&listed.entry), content, headers }
    }

    fn into_listed(self, key: String) -> Result<ListedValue, ListingError> {
        let mut entry = entry(key, self.info)?;
        let Some(content) = self.content else { return Ok(ListedValue { entry, value: None }) };
        let invalid = || ListingError::Content(entry.key.to_string());
        let value = BASE64_STANDARD.decode(&content).map_err(|_| invalid())?;
        if value.len() as u64 != entry.meta.size {
            return Err(invalid());
        }
        let attributes = parse_attributes(&self.headers).ok_or_else(invalid)?;
        entry.meta.attributes = attributes;
        Ok(ListedValue { entry, value: Some(value.into()) })
    }
}

/// A header as text; attributes have no others.
fn text_header((name, value): (HeaderName, HeaderValue)) -> Option<(String, String)> {
    Some((name.as_str().to_owned(), String::from_utf8(value.as_bytes().to_vec()).ok()?))
}

fn parse_attributes(texts: &BTreeMap<String, String>) -> Option<Attributes> {
    let mut headers = HeaderMap::new();
    for (name, value) in texts {
        headers.insert(HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    attributes::from_headers(&headers).ok()
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use zarrd_store::{AttributeFields, ContentField, Entry, Key, ValueMeta, Version};

    use super::*;

    fn page() -> ValuePage {
        let fields = AttributeFields {
            content: [(ContentField::Type, "text/csv".to_owned())].into(),
            metadata: [("unit".to_owned(), "µm".to_owned())].into(),
            checksum: None,
        };
        let listed = |name: &str, size, attributes, value| {
            let meta = ValueMeta { size, version: Version::from_u128(1), modified: UNIX_EPOCH, attributes };
            ListedValue { entry: Entry::new(Key::parse(name).unwrap(), meta), value }
        };
        let keys = vec![
            listed("a/csv", 3, Attributes::new(fields).unwrap(), Some("1,2".into())),
            listed("a/empty", 0, Attributes::NONE, Some("".into())),
            listed("a/large", 1 << 20, Attributes::NONE, None),
            ListedValue { entry: Entry::damaged(Key::parse("a/torn").unwrap(), 7), value: None },
        ];
        ValuePage { keys, cursor: Some(Cursor::from_text("x")) }
    }

    #[test]
    fn pages_with_values_round_trip() {
        let listing = ValueListing::new(&Prefix::parse("a/").unwrap(), page());
        let json = serde_json::to_string(&listing).unwrap();
        let start = r#"{"prefix":"a/","keys":["a/csv","a/empty","a/large","a/torn"],"values":[{"size":3,"etag":"\"00000000000000000000000000000001\"","modified":"1970-01-01T00:00:00.000Z","content":"MSwy","headers":{"zarr-content-type":"text/csv","zarr-meta-unit":"µm"}},{"size":0,"#;
        assert!(json.starts_with(start), "{json}");
        assert_eq!(serde_json::from_str::<ValueListing>(&json).unwrap().into_page(), Ok(page()));
    }

    #[test]
    fn listings_without_values_are_pages_whose_values_are_read_by_key() {
        let json = r#"{"prefix":"","keys":["a"],"values":[{"size":3,"etag":"\"00000000000000000000000000000001\"","modified":"1970-01-01T00:00:00.000Z"}],"cursor":null}"#;
        let page = serde_json::from_str::<ValueListing>(json).unwrap().into_page().unwrap();
        assert_eq!((page.keys.len(), page.keys[0].value.clone(), page.keys[0].entry.meta.size), (1, None, 3));
    }

    #[test]
    fn contents_that_do_not_match_are_rejected() {
        let good = ValueListing::new(&Prefix::root(), page());
        let mut other_size = good.clone();
        other_size.values[0].info.size = 4;
        let mut text = good.clone();
        text.values[0].content = Some("MSw".into());
        let mut header = good.clone();
        header.values[0].headers.insert("zarr-checksum".into(), "md5".into());
        for bad in [other_size, text, header] {
            assert_eq!(bad.into_page(), Err(ListingError::Content("a/csv".into())));
        }
        let mut short = good;
        short.values.pop();
        assert_eq!(short.into_page(), Err(ListingError::Parallel { keys: 4, values: 3 }));
    }
}
