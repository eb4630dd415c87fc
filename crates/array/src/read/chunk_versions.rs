//! How chunk versions are fetched from a distant store: by listing prefixes, or by one HEAD for each chunk.
//!
//! A page of a listing has the versions of hundreds of chunks and takes as long as one HEAD, so it is requested if many of
//! the chunks below its prefix are wanted.

use futures::{
    FutureExt, StreamExt, TryStreamExt,
    future::{self, BoxFuture},
    stream,
};
use tokio::time::Instant;
use zarrd_meta::chunk_keys::Separator;
use zarrd_store::{Key, PageRequest, Prefix, Snapshot, StoreError};

use crate::{context::Context, node::array::Array};

/// The number of keys of a page. Services list a thousand at a time, and one more shows whether there is another page.
const PAGE: usize = 999;

/// The number of HEADs that a page of a listing has to save.
pub(super) const HEADS_PER_PAGE: usize = 16;

/// The number of HEADs that take as long as one page, since they are concurrent.
const CONCURRENT_HEADS: usize = 64;

/// The number of concurrent listings.
const CONCURRENT_LISTINGS: usize = 16;

/// The maximum number of documents below the prefix of an array.
const DOCUMENTS: u64 = 4;

/// The requests that fetch the versions of chunks.
#[derive(Debug, Default, PartialEq, Eq)]
struct VersionRequests<'k> {
    listings: Vec<Listing<'k>>,
    /// The keys that are requested by HEAD.
    heads: Vec<&'k Key>,
}

/// A listing of a prefix that has the versions of some keys.
#[derive(Debug, PartialEq, Eq)]
struct Listing<'k> {
    prefix: Prefix,
    /// In order.
    keys: &'k [Key],
    /// The maximum number of pages, if all keys are chunks.
    pages: u64,
}

/// The grid of the chunks of an array, as their keys show it.
struct KeyGrid<'a> {
    separator: Separator,
    /// The number of chunks along each dimension.
    lengths: &'a [u64],
}

/// Fetches the versions of chunks of an array into a snapshot of them.
pub(super) fn fetch_versions<'a>(
    context: &'a Context,
    snapshot: &'a dyn Snapshot,
    array: &'a Array,
    mut keys: Vec<Key>,
) -> BoxFuture<'a, Result<(), StoreError>> {
    keys.sort_unstable();
    let Some(prefix) = first_prefix(array).filter(|prefix| context.lists_versions(prefix)) else {
        return async move { snapshot.stat_many(&keys).await }.boxed();
    };
    let model = array.model();
    let dimensions = array.grid().dimensions().iter().zip(&model.shape);
    let lengths: Vec<u64> = dimensions.map(|(dimension, &extent)| dimension.num_chunks(extent)).collect();
    let separator = model.chunk_keys.separator;
    async move {
        let VersionRequests { listings, heads } = KeyGrid { separator, lengths: &lengths }.requests(prefix, &keys);
        let listings: Vec<_> = listings.iter().map(|listing| listing.read_or_stat(context, snapshot).boxed()).collect();
        let listed = stream::iter(listings).buffer_unordered(CONCURRENT_LISTINGS).try_collect::<Vec<()>>();
        future::try_join(listed, snapshot.stat_many(heads)).await.map(drop)
    }
    .boxed()
}

/// The longest prefix of the keys of all chunks; `None` if it is no prefix of its own.
fn first_prefix(array: &Array) -> Option<Prefix> {
    let below = array.model().chunk_keys.prefix(&[], array.grid().dimensions().len()).unwrap_or_default();
    Prefix::parse(&format!("{}{below}", array.key_prefix())).ok()
}

impl KeyGrid<'_> {
    /// The requests for keys, which are sorted and lie below the prefix of all chunks.
    fn requests<'k>(&self, prefix: Prefix, keys: &'k [Key]) -> VersionRequests<'k> {
        let mut requests = VersionRequests::default();
        self.add(prefix, keys, 0, &mut requests);
        requests
    }

    /// Adds the requests for keys below a prefix, which fixes the indices of the first `fixed` dimensions.
    fn add<'k>(&self, prefix: Prefix, keys: &'k [Key], fixed: usize, requests: &mut VersionRequests<'k>) {
        if keys.len() < HEADS_PER_PAGE {
            requests.heads.extend(keys);
            return;
        }
        let below = self.lengths.get(fixed..).unwrap_or_default();
        let chunks = below.iter().copied().fold(1, u64::saturating_mul);
        let pages = chunks.saturating_add(DOCUMENTS).div_ceil(PAGE as u64);
        let saved = (keys.len() / HEADS_PER_PAGE) as u64;
        if pages <= saved && pages <= keys.len().div_ceil(CONCURRENT_HEADS) as u64 {
            requests.listings.push(Listing { prefix, keys, pages });
            return;
        }
        if self.separator == Separator::Dot || below.len() < 2 {
            requests.heads.extend(keys);
            return;
        }
        for keys in keys.chunk_by(|one, other| next_prefix(&prefix, one) == next_prefix(&prefix, other)) {
            let next = keys.first().and_then(|key| Prefix::parse(next_prefix(&prefix, key)?).ok());
            match next {
                Some(prefix) => self.add(prefix, keys, fixed.saturating_add(1), requests),
                None => requests.heads.extend(keys),
            }
        }
    }
}

/// The prefix directly below another one that a key lies below.
fn next_prefix<'k>(prefix: &Prefix, key: &'k Key) -> Option<&'k str> {
    let from = prefix.as_str().len();
    let slash = key.as_str().get(from..)?.find('/')?;
    key.as_str().get(..=from.checked_add(slash)?)
}

impl Listing<'_> {
    /// Reads the listing, or requests the metadata of its keys if that fails, since reads need no listings.
    async fn read_or_stat(&self, context: &Context, snapshot: &dyn Snapshot) -> Result<(), StoreError> {
        let Err(error) = self.read(context, snapshot).await else { return Ok(()) };
        tracing::debug!(prefix = %self.prefix, error = &error as &dyn std::error::Error, "cannot list chunks");
        snapshot.stat_many(self.keys).await
    }

    /// Reads the listing up to the last key that is wanted. The metadata of keys beyond its pages are requested.
    async fn read(&self, context: &Context, snapshot: &dyn Snapshot) -> Result<(), StoreError> {
        let mut wanted = self.keys;
        let mut page = PageRequest::first(PAGE);
        for _ in 0..self.pages {
            let requested = Instant::now();
            let found = context.store.list_prefix(&self.prefix, page).await?;
            let is_last = found.cursor.is_none();
            let listed = match found.keys.last() {
                _ if is_last => wanted.len(),
                Some(last) => wanted.partition_point(|key| *key <= last.key),
                None => 0,
            };
            let (shown, rest) = wanted.split_at_checked(listed).unwrap_or((wanted, &[]));
            for key in shown {
                let entry = found.keys.binary_search_by(|entry| entry.key.cmp(key)).ok();
                let entry = entry.and_then(|at| found.keys.get(at));
                snapshot.insert_listed(key, entry.map(|entry| entry.meta.clone()), requested)?;
            }
            wanted = rest;
            match found.cursor {
                Some(cursor) if !wanted.is_empty() => page = PageRequest::after(PAGE, cursor),
                _ => return Ok(()),
            }
        }
        snapshot.stat_many(wanted).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(names: impl IntoIterator<Item = String>) -> Vec<Key> {
        let mut keys: Vec<Key> = names.into_iter().map(|name| Key::parse(&name).unwrap()).collect();
        keys.sort_unstable();
        keys
    }

    /// The prefixes that are listed, each with the number of keys and of pages, and the number of keys that are
    /// at.
    fn requests(separator: Separator, lengths: &[u64], keys: &[Key]) -> (Vec<(String, usize, u64)>, usize) {
        let grid = KeyGrid { separator, lengths };
        let VersionRequests { listings, heads } = grid.requests(Prefix::parse("a/c/").unwrap(), keys);
        let listed = listings.iter().map(|listing| (listing.prefix.to_string(), listing.keys.len(), listing.pages));
        (listed.collect(), heads.len())
    }

    #[test]
    fn dense_chunks_are_listed_and_others_requested_one_by_one() {
        let line = |count: u64| keys((0..count).map(|index| format!("a/c/{index}")));
        for (length, count, listed) in [(16, 15, None), (995, 16, Some(1)), (996, 16, None), (996, 65, Some(2))] {
            let listing = listed.map(|pages| ("a/c/".to_owned(), count as usize, pages));
            let heads = if listing.is_some() { 0 } else { count as usize };
            let found = requests(Separator::Slash, &[length], &line(count));
            assert_eq!(found, (Vec::from_iter(listing), heads), "{count} of {length}");
        }
        let found = requests(Separator::Slash, &[10_000], &line(10_000));
        assert_eq!(found, (vec![("a/c/".to_owned(), 10_000, 11)], 0));
    }

    #[test]
    fn each_dense_part_of_a_sparse_selection_is_listed() {
        let block = |rows: u64, columns: u64, separator| {
            keys((0..rows).flat_map(|row| (0..columns).map(move |column| format!("a/c/{row}{separator}{column}"))))
        };
        let (listed, heads) = requests(Separator::Slash, &[10_000, 30], &block(12, 20, "/"));
        let expected: Vec<_> =
            keys((0..12).map(|row| format!("a/c/{row}"))).iter().map(|key| (format!("{key}/"), 20, 1)).collect();
        assert_eq!((listed, heads), (expected, 0));
        // A column, and keys without prefixes.
        assert_eq!(requests(Separator::Slash, &[10_000, 30], &block(100, 1, "/")), (Vec::new(), 100));
        assert_eq!(requests(Separator::Dot, &[10_000, 30], &block(12, 20, ".")), (Vec::new(), 240));
        assert_eq!(requests(Separator::Dot, &[12, 30], &block(12, 20, ".")), (vec![("a/c/".to_owned(), 240, 1)], 0));
        assert_eq!(requests(Separator::Slash, &[], &keys(["a/c".to_owned()])), (Vec::new(), 1));
    }
}
