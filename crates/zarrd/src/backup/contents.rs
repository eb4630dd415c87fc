//! The keys of a snapshot with what a backup has of their values without reading each.

use std::collections::HashMap;

use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use zarrd_store::{
    Entry, Key, ListedValue, MAX_LISTED_VALUE_BYTES, MAX_VALUE_PAGE_ENTRIES, PageRequest, Prefix, PrefixSnapshot,
    StoreError, list_all_values,
};

use super::{
    BackupError,
    records::{BackedUp, RecordsReader},
};

/// The number of entries that are listed at a time after a backup before.
const PAGE_ENTRIES: usize = 2048;
/// Small values come with their keys where at least one of this many is new: all of a page are sent.
const KEYS_PER_NEW_VALUE: usize = 8;

/// A key of a snapshot.
pub(super) struct Content {
    /// The entry. Where the value is present, its metadata has the attributes.
    pub(super) entry: Entry,
    /// The record of the same version in the backup before.
    pub(super) known: Option<BackedUp>,
    /// The value, if it is small.
    pub(super) value: Option<Bytes>,
}

/// The pages of a snapshot after a backup before.
struct Pages<'s> {
    snapshot: &'s dyn PrefixSnapshot,
    /// The records of the backup before, which are read along.
    earlier: RecordsReader,
    next: Option<PageRequest>,
}

/// Streams all keys of a snapshot in their order.
pub(super) fn contents(
    snapshot: &dyn PrefixSnapshot,
    earlier: Option<RecordsReader>,
) -> impl Stream<Item = Result<Content, BackupError>> + Send {
    let Some(earlier) = earlier else {
        let new = |ListedValue { entry, value }| Content { entry, known: None, value };
        return list_all_values(snapshot, &Prefix::root()).map_ok(new).map_err(BackupError::from).left_stream();
    };
    let pages = Pages { snapshot, earlier, next: Some(PageRequest::first(PAGE_ENTRIES)) };
    let pages = stream::try_unfold(pages, async |mut pages| {
        let page = pages.next().await?;
        Ok::<_, BackupError>(page.map(|page| (page, pages)))
    });
    pages.map_ok(|page| stream::iter(page.into_iter().map(Ok))).try_flatten().right_stream()
}

impl Pages<'_> {
    async fn next(&mut self) -> Result<Option<Vec<Content>>, BackupError> {
        let Some(request) = self.next.take() else { return Ok(None) };
        let page = self.snapshot.list_prefix(&Prefix::root(), request.clone()).await?;
        let mut contents = Vec::with_capacity(page.keys.len());
        for entry in page.keys {
            let known = find_earlier(&mut self.earlier, &entry)?;
            contents.push(Content { entry, known, value: None });
        }
        self.add_new_values(&mut contents, &request).await?;
        self.next = page.cursor.map(|cursor| PageRequest::after(PAGE_ENTRIES, cursor));
        Ok(Some(contents))
    }

    /// Adds the small values of a page of which many are new.
    async fn add_new_values(&self, contents: &mut [Content], request: &PageRequest) -> Result<(), StoreError> {
        let is_new = |content: &Content| content.known.is_none() && content.entry.meta.size <= MAX_LISTED_VALUE_BYTES;
        let new = contents.iter().filter(|content| is_new(content)).count();
        let last = contents.last().map(|content| content.entry.key.clone());
        let Some(last) = last.filter(|_| new.saturating_mul(KEYS_PER_NEW_VALUE) >= contents.len()) else {
            return Ok(());
        };
        let mut listed = self.values_up_to(&last, request.clone()).await?;
        for content in contents.iter_mut().filter(|content| is_new(content)) {
            if let Some((entry, value)) = listed.remove(&content.entry.key) {
                *content = Content { entry, known: None, value: Some(value) };
            }
        }
        Ok(())
    }

    /// The small values from the start of a page to a key.
    async fn values_up_to(
        &self,
        last: &Key,
        mut request: PageRequest,
    ) -> Result<HashMap<Key, (Entry, Bytes)>, StoreError> {
        let mut listed = HashMap::new();
        loop {
            let page = self.snapshot.list_values(&Prefix::root(), request.with_values()).await?;
            let is_last = page.keys.last().is_none_or(|value| value.entry.key >= *last);
            let values = page.keys.into_iter().filter_map(|ListedValue { entry, value }| Some((entry, value?)));
            listed.extend(values.map(|(entry, value)| (entry.key.clone(), (entry, value))));
            match page.cursor {
                Some(cursor) if !is_last => request = PageRequest::after(MAX_VALUE_PAGE_ENTRIES, cursor),
                _ => return Ok(listed),
            }
        }
    }
}

/// The record of the same version in the backup before, which is read along.
fn find_earlier(reader: &mut RecordsReader, entry: &Entry) -> Result<Option<BackedUp>, BackupError> {
    while reader.peek().is_some_and(|record| record.key.as_str() < entry.key.as_str()) {
        reader.next()?;
    }
    let same = reader.peek().is_some_and(|record| {
        record.key == entry.key.as_str()
            && record.version == entry.meta.version.to_string()
            && record.size == entry.meta.size
    });
    if same { reader.next() } else { Ok(None) }
}
