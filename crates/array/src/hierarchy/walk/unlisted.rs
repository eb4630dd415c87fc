//! Listings of prefixes that the store cannot list.

use bytes::Bytes;
use zarrd_store::{Key, Listing, PageRequest, Prefix, StoreError};

use super::{
    listing::Listed,
    named::{NAMING, groups_above, named_nodes},
    snapshot_reader::{SnapshotReader, weight},
};
use crate::{metadata::error::NodeError, node::keys::join_key};

/// The largest documents, in bytes, that are searched on the request's own thread.
const INLINE: u64 = 64 << 10;

impl SnapshotReader<'_> {
    /// True if a prefix cannot be listed.
    pub(super) fn is_unlisted(&self, prefix: &Prefix) -> bool {
        self.context.store.guarantees_below(prefix).listing == Listing::None
    }

    /// Fails with [`StoreError::Unsupported`] if the children of a group are neither listed nor named.
    pub(super) async fn check_children(&mut self, prefix: &Prefix) -> Result<(), NodeError> {
        if !self.is_unlisted(prefix) || self.copies.cover(prefix) {
            return Ok(());
        }
        // The root of several stores is listed, even if not all of them are.
        match self.context.store.list_dir(prefix, PageRequest::first(1)).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Unsupported { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        self.search(prefix).await?;
        match self.named.below(prefix) {
            Some(_) => Ok(()),
            None => Err(StoreError::Unsupported { what: "listings" }.into()),
        }
    }

    /// The names directly below a prefix that documents of groups name.
    pub(super) async fn named_children(&mut self, prefix: &Prefix) -> Result<Listed, NodeError> {
        self.search(prefix).await?;
        let names = self.named.below(prefix).unwrap_or_default();
        Ok(Listed { prefixes: names.into_iter().collect(), keys: Vec::new() })
    }

    /// Searches the documents of the groups at and above a prefix for names, unless they were searched before.
    async fn search(&mut self, prefix: &Prefix) -> Result<(), NodeError> {
        for group in groups_above(prefix) {
            if self.named.has_searched(&group) {
                continue;
            }
            let keys: Vec<Key> = NAMING.iter().filter_map(|name| join_key(&group, name)).collect();
            let found = self.read(&keys).await?;
            let weight = weight(found.iter().flatten().map(|(_, text)| text));
            let texts: Vec<(Key, Bytes)> =
                keys.into_iter().zip(found).filter_map(|(key, found)| Some((key, found?.1.ok()?))).collect();
            let search = move || named_nodes(texts);
            let named = match weight {
                ..=INLINE => search(),
                weight => self.context.run_on_documents(weight, search).await?,
            };
            self.named.insert(group, named);
        }
        Ok(())
    }
}
