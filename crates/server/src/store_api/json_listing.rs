//! JSON listings, written while the store is read.
//!
//! `values` follow after all `keys`, so the metadata of values is retained until then, some 50 bytes each. Names of
//! keys are not retained; names of prefixes are, up to a limit at which the page ends.

use std::{collections::VecDeque, io::Write};

use axum::body::Body;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use serde::Serialize;
use zarrd_array::Permit;
use zarrd_store::{Cursor, DirPage, Entry, KeyPage, Prefix, StoreError, ValueMeta};
use zarrd_wire::{listing::ValueInfo, query::ListKind};

/// The maximum size of retained prefix names, in bytes. The page ends with the batch that exceeds it.
const MAX_PREFIX_NAME_BYTES: usize = 1 << 20;

/// Estimates the memory retained for a listing with `limit` entries, in bytes.
pub(super) const fn retained_bytes(kind: ListKind, limit: usize) -> usize {
    let infos = limit.saturating_mul(size_of::<RetainedInfo>());
    match kind {
        ListKind::Keys => infos,
        // Most prefixes have short names; a listing of long names ends early.
        ListKind::Dir => infos.saturating_add(limit.saturating_mul(64)),
    }
}

/// An entry without its key.
struct RetainedInfo {
    meta: ValueMeta,
    is_damaged: bool,
}

impl RetainedInfo {
    fn of(entry: Entry) -> Self {
        Self { meta: entry.meta, is_damaged: entry.is_damaged }
    }

    fn json(&self) -> ValueInfo {
        ValueInfo { damaged: self.is_damaged, ..ValueInfo::new(&self.meta) }
    }
}

/// Some entries of a listing.
pub(super) struct Batch {
    keys: Vec<Entry>,
    prefixes: Vec<Prefix>,
    /// The start of the next page, if this batch ends one.
    pub(super) cursor: Option<Cursor>,
}

impl From<KeyPage> for Batch {
    fn from(KeyPage { keys, cursor, .. }: KeyPage) -> Self {
        Self { keys, prefixes: Vec::new(), cursor }
    }
}

impl From<DirPage> for Batch {
    fn from(DirPage { keys, prefixes, cursor }: DirPage) -> Self {
        Self { keys, prefixes, cursor }
    }
}

/// Returns the document for a page, which holds `memory` until it is sent. The first batch is read at once; if it
/// completes the page, the length of the document is known.
pub(super) async fn listing_body<S>(
    kind: ListKind,
    prefix: &Prefix,
    batches: S,
    memory: Option<Permit>,
) -> Result<Body, StoreError>
where
    S: Stream<Item = Result<Batch, StoreError>> + Send + Unpin + 'static,
{
    let mut writer = PageWriter::new(kind, prefix, batches, memory);
    let first = writer.next().await?.unwrap_or_default();
    if writer.stage == Stage::Keys {
        let rest = stream::try_unfold(writer, async |mut writer| Ok(writer.next().await?.map(|text| (text, writer))));
        let first = stream::iter([Ok::<_, StoreError>(first)]);
        return Ok(Body::from_stream(first.chain(rest)));
    }
    let mut all = Vec::from(first);
    while let Some(text) = writer.next().await? {
        all.extend_from_slice(&text);
    }
    Ok(Body::from(all))
}

/// Writes a page.
struct PageWriter<S> {
    kind: ListKind,
    batches: S,
    stage: Stage,
    text: JsonText,
    infos: VecDeque<Vec<RetainedInfo>>,
    prefixes: VecDeque<Vec<Prefix>>,
    name_bytes: usize,
    cursor: Option<Cursor>,
    _memory: Option<Permit>,
}

/// The part of the document that is written next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Keys,
    Values,
    Prefixes,
    End,
    Done,
}

/// JSON text, and whether the current array already has elements.
#[derive(Default)]
struct JsonText {
    bytes: Vec<u8>,
    has_elements: bool,
}

impl<S: Stream<Item = Result<Batch, StoreError>> + Unpin> PageWriter<S> {
    fn new(kind: ListKind, prefix: &Prefix, batches: S, memory: Option<Permit>) -> Self {
        let mut text = JsonText::default();
        text.push_bytes(b"{\"prefix\":");
        text.value(prefix.as_str());
        text.array("keys");
        Self {
            kind,
            batches,
            stage: Stage::Keys,
            text,
            infos: VecDeque::new(),
            prefixes: VecDeque::new(),
            name_bytes: 0,
            cursor: None,
            _memory: memory,
        }
    }

    /// Writes the next piece of the document.
    async fn next(&mut self) -> Result<Option<Bytes>, StoreError> {
        match self.stage {
            Stage::Keys => match self.batches.try_next().await? {
                Some(batch) => self.push_batch(batch),
                None => self.end_keys(),
            },
            Stage::Values => match self.infos.pop_front() {
                Some(infos) => infos.iter().for_each(|info| self.text.element(&info.json())),
                None => self.end_values(),
            },
            Stage::Prefixes => match self.prefixes.pop_front() {
                Some(prefixes) => prefixes.iter().for_each(|prefix| self.text.element(prefix.as_str())),
                None => self.stage = Stage::End,
            },
            Stage::End => {
                self.text.push_bytes(b"],\"cursor\":");
                self.text.value(&self.cursor.as_ref().map(Cursor::as_str));
                self.text.push_bytes(b"}");
                self.stage = Stage::Done;
            }
            Stage::Done => return Ok(None),
        }
        Ok(Some(std::mem::take(&mut self.text.bytes).into()))
    }

    fn push_batch(&mut self, Batch { keys, prefixes, cursor }: Batch) {
        for entry in &keys {
            self.text.element(entry.key.as_str());
        }
        self.infos.push_back(keys.into_iter().map(RetainedInfo::of).collect());
        self.name_bytes =
            prefixes.iter().map(|prefix| prefix.as_str().len()).fold(self.name_bytes, usize::saturating_add);
        self.prefixes.push_back(prefixes);
        self.cursor = cursor;
        if self.cursor.is_none() || self.name_bytes > MAX_PREFIX_NAME_BYTES {
            self.end_keys();
        }
    }

    fn end_keys(&mut self) {
        self.stage = Stage::Values;
        self.text.push_bytes(b"]");
        self.text.array("values");
    }

    fn end_values(&mut self) {
        self.stage = match self.kind {
            ListKind::Keys => Stage::End,
            ListKind::Dir => {
                self.text.push_bytes(b"]");
                self.text.array("prefixes");
                Stage::Prefixes
            }
        };
    }
}

impl JsonText {
    fn push_bytes(&mut self, bytes: &[u8]) {
        // Writing to memory cannot fail, here and below.
        let _ = self.bytes.write_all(bytes);
    }

    /// Starts a member whose value is an array.
    fn array(&mut self, name: &str) {
        self.push_bytes(b",");
        self.value(name);
        self.push_bytes(b":[");
        self.has_elements = false;
    }

    fn element<T: Serialize + ?Sized>(&mut self, element: &T) {
        if std::mem::replace(&mut self.has_elements, true) {
            self.push_bytes(b",");
        }
        self.value(element);
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) {
        let _ = serde_json::to_writer(&mut self.bytes, value);
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use http_body_util::BodyExt;
    use zarrd_store::{Key, Version};
    use zarrd_wire::listing::{DirListing, KeyListing};

    use super::*;

    fn entry(name: &str) -> Entry {
        let modified = UNIX_EPOCH + Duration::from_millis(1_795_242_488_123);
        Entry {
            key: Key::parse(name).unwrap(),
            meta: ValueMeta {
                size: 3,
                version: Version::from_u128(1),
                modified,
                attributes: zarrd_store::Attributes::NONE,
            },
            is_damaged: name.ends_with("damaged"),
        }
    }

    fn prefix(name: &str) -> Prefix {
        Prefix::parse(name).unwrap()
    }

    async fn render(kind: ListKind, at: &str, batches: Vec<Batch>) -> Bytes {
        let batches = stream::iter(batches.into_iter().map(Ok));
        listing_body(kind, &prefix(at), batches, None).await.unwrap().collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn text_equals_serialized_listing() {
        let writer = |keys: &[&str], cursor: Option<&str>| {
            KeyPage::new(keys.iter().map(|key| entry(key)).collect(), cursor.map(Cursor::from_text))
        };
        for batches in [
            vec![writer(&[], None)],
            vec![writer(&["a/\"b"], None)],
            vec![writer(&["a/b", "a/damaged"], None)],
            vec![writer(&["a/b", "a/c"], Some("x")), writer(&["a/d"], Some("y"))],
            vec![writer(&["a/b"], Some("x")), writer(&["a/c"], None)],
        ] {
            let keys = batches.iter().flat_map(|batch| batch.keys.clone()).collect();
            let full = KeyPage::new(keys, batches.last().unwrap().cursor.clone());
            let document = serde_json::to_vec(&KeyListing::new(&prefix("a/"), full)).unwrap();
            assert_eq!(render(ListKind::Keys, "a/", batches.into_iter().map(Batch::from).collect()).await, document);
        }
        let batches = || {
            vec![
                DirPage { keys: vec![entry("b")], prefixes: vec![prefix("a/")], cursor: Some(Cursor::from_text("x")) },
                DirPage { keys: vec![entry("d")], prefixes: vec![prefix("c/"), prefix("e/")], cursor: None },
            ]
        };
        let full = DirPage {
            keys: vec![entry("b"), entry("d")],
            prefixes: vec![prefix("a/"), prefix("c/"), prefix("e/")],
            cursor: None,
        };
        let document = serde_json::to_vec(&DirListing::new(&Prefix::root(), full)).unwrap();
        assert_eq!(render(ListKind::Dir, "", batches().into_iter().map(Batch::from).collect()).await, document);
    }

    #[tokio::test]
    async fn long_prefix_names_end_the_page() {
        let batch = |number: usize| DirPage {
            keys: Vec::new(),
            prefixes: (0..256).map(|name| prefix(&format!("{}/{name}/", "x".repeat(900)))).collect(),
            cursor: Some(Cursor::from_text(number.to_string())),
        };
        let text = render(ListKind::Dir, "", (0..40).map(|number| batch(number).into()).collect()).await;
        let listing: DirListing = serde_json::from_slice(&text).unwrap();
        assert_eq!((listing.prefixes.len(), listing.cursor.as_deref()), (5 * 256, Some("4")));
    }
}
