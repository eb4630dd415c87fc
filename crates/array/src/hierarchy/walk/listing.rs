//! The listings that a walk has read.

use xxhash_rust::xxh3::Xxh3;
use zarrd_meta::zom::MAX_NODES;
use zarrd_store::{Cursor, Entry, PageRequest, Prefix};

use crate::{
    context::Context,
    metadata::error::{NodeError, too_many_nodes},
};

/// The most listing entries that are visited for one answer.
pub(super) const MAX_LISTED: usize = 20 * MAX_NODES;

/// The names directly below a prefix.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) prefixes: Vec<String>,
    pub(crate) keys: Vec<String>,
}

impl Listed {
    /// The names of keys and prefixes of one listing.
    pub(super) fn of(keys: &[Entry], prefixes: &[Prefix]) -> Self {
        let prefixes = prefixes.iter().map(|prefix| prefix.name().to_owned()).collect();
        let keys = keys.iter().map(|entry| entry.key.name().to_owned()).collect();
        Self { prefixes, keys }
    }

    /// A hash of the names, which are sorted.
    pub(crate) fn hash(&self) -> u128 {
        let mut hash = Xxh3::new();
        for (names, end) in [(&self.prefixes, b"/"), (&self.keys, b"\0")] {
            for name in names {
                hash.update(name.as_bytes());
                hash.update(end);
            }
        }
        hash.digest128()
    }
}

/// A page of a listing that was read.
pub(crate) struct PageReads {
    pub(super) prefix: Prefix,
    pub(super) page: PageRequest,
    pub(super) listed: Listed,
}

impl PageReads {
    /// True if the page is still the same.
    pub(crate) async fn validate(&self, context: &Context) -> Result<bool, NodeError> {
        let (now, _) = list(context, &self.prefix, &self.page).await?;
        Ok(now == self.listed)
    }
}

pub(crate) async fn list(
    context: &Context,
    prefix: &Prefix,
    page: &PageRequest,
) -> Result<(Listed, Option<Cursor>), NodeError> {
    let found = context.store.list_dir(prefix, page.clone()).await?;
    Ok((Listed::of(&found.keys, &found.prefixes), found.cursor))
}

/// A hash of the names directly below a prefix.
pub(super) async fn list_hash(context: &Context, prefix: &Prefix) -> Result<u128, NodeError> {
    let (_, hash) = list_whole(context, prefix, MAX_LISTED).await?;
    Ok(hash)
}

/// The names directly below a prefix, with a hash of them. Fails if there are more than `most`.
pub(super) async fn list_whole(context: &Context, prefix: &Prefix, most: usize) -> Result<(Listed, u128), NodeError> {
    let mut listed = Listed { prefixes: Vec::new(), keys: Vec::new() };
    let mut page = PageRequest::first(zarrd_store::MAX_PAGE_ENTRIES);
    loop {
        let (found, cursor) = list(context, prefix, &page).await?;
        listed.prefixes.extend(found.prefixes);
        listed.keys.extend(found.keys);
        if listed.prefixes.len() + listed.keys.len() > most {
            return Err(too_many_nodes());
        }
        match cursor {
            Some(cursor) => page = PageRequest::after(zarrd_store::MAX_PAGE_ENTRIES, cursor),
            None => break,
        }
    }
    let hash = listed.hash();
    Ok((listed, hash))
}
