//! Listings of prefixes that the store cannot list.

use std::collections::BTreeSet;

use bytes::Bytes;
use zarrd_executor::{Cost, Work};
use zarrd_meta::NodePath;
use zarrd_store::{Cursor, CursorSigner, Key, Listing, ListingKind, PageRequest, Prefix, StoreError};

use super::{
    listing::Listed,
    named::{ATTRIBUTES, NAMING, SERIES, groups_above, named_nodes, named_series},
    snapshot_reader::{CONCURRENT_REQUESTS, SnapshotReader, weight},
};
use crate::{
    metadata::error::NodeError,
    node::keys::{join_key, node_prefix},
};

/// The maximum number of images with numbers for names that are read in a group.
const MAX_NUMBERED: usize = 4096;

impl SnapshotReader<'_> {
    /// True if a prefix cannot be listed.
    pub(super) fn is_unlisted(&self, prefix: &Prefix) -> bool {
        self.context.store.guarantees_below(prefix).listing == Listing::None
    }

    /// True if a path is that of a mount whose members are neither listed nor named, in a walk that marks such mounts.
    pub(super) async fn is_unnamed_mount(&mut self, path: &NodePath) -> Result<bool, NodeError> {
        // Almost always: it is asked for every child of a tree.
        if self.mounts.is_empty() {
            return Ok(false);
        }
        let prefix = node_prefix(path)?;
        if !self.mounts.contains(&prefix) || !self.is_unlisted(&prefix) {
            return Ok(false);
        }
        match self.check_children(&prefix).await {
            Ok(()) => Ok(false),
            Err(NodeError::Store(StoreError::Unsupported { .. })) => Ok(true),
            Err(error) => Err(error),
        }
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

    /// A page of the names directly below a prefix that documents of groups name, and where the next one starts.
    ///
    /// Fails with [`StoreError::Unsupported`] if they name none.
    pub(super) async fn named_page(
        &mut self,
        prefix: &Prefix,
        page: &PageRequest,
    ) -> Result<(Listed, Option<Cursor>), NodeError> {
        self.check_children(prefix).await?;
        // A cursor is a name in these documents, so it needs no secret.
        let signer = CursorSigner::new(0);
        let after = page.cursor.as_ref().map(|cursor| signer.verify(ListingKind::Dir, prefix, cursor)).transpose()?;
        let named = self.named_children(prefix).await?.prefixes.into_iter();
        let mut rest = named.filter(|name| after.as_ref().is_none_or(|after| name > after));
        let prefixes: Vec<String> = rest.by_ref().take(page.limit()).collect();
        let last = prefixes.last().filter(|_| rest.next().is_some());
        let cursor = last.map(|last| signer.sign(ListingKind::Dir, prefix, last));
        Ok((Listed { prefixes, keys: Vec::new() }, cursor))
    }

    /// Searches the documents of the groups at and above a prefix for names, unless they were searched before.
    async fn search(&mut self, prefix: &Prefix) -> Result<(), NodeError> {
        for group in groups_above(prefix) {
            if self.named.has_searched(&group) {
                continue;
            }
            let mut found = self.search_documents(&group, &NAMING, named_nodes).await?;
            if found.has_series && !self.copies.cover(&group) {
                let names = ATTRIBUTES.map(|name| format!("{SERIES}/{name}"));
                let series = self.search_documents(&group, &names, named_series).await?;
                found.add(match series {
                    Some(series) => Some(series),
                    None => Some(self.numbered(&group).await?),
                });
            }
            self.named.insert(group, found.paths);
        }
        Ok(())
    }

    /// Reads the documents of these names in a group, and searches them.
    async fn search_documents<T: Send + 'static>(
        &mut self,
        group: &Prefix,
        names: &[impl AsRef<str>],
        search: fn(Vec<(Key, Bytes)>) -> T,
    ) -> Result<T, NodeError> {
        let keys: Vec<Key> = names.iter().filter_map(|name| join_key(group, name.as_ref())).collect();
        let found = self.read(&keys).await?;
        let weight = weight(found.iter().flatten().map(|(_, text)| text));
        let texts: Vec<(Key, Bytes)> =
            keys.into_iter().zip(found).filter_map(|(key, found)| Some((key, found?.1.ok()?))).collect();
        Ok(self.context.run(Cost::of(Work::Documents, weight), move || search(texts)).await?)
    }

    /// The groups that are called 0, 1 and so on, up to the first that does not exist.
    async fn numbered(&mut self, group: &Prefix) -> Result<BTreeSet<String>, NodeError> {
        let mut numbered = BTreeSet::new();
        while numbered.len() < MAX_NUMBERED {
            let numbers = numbered.len()..numbered.len().saturating_add(CONCURRENT_REQUESTS / 2);
            let key = |number: usize, name| join_key(group, &format!("{number}/{name}"));
            let keys: Vec<Key> = numbers
                .clone()
                .flat_map(|number| [key(number, "zarr.json"), key(number, ".zgroup")])
                .flatten()
                .collect();
            let found = self.read(&keys).await?;
            let exist = found.chunks(2).map(|documents| documents.iter().any(Option::is_some));
            numbered.extend(
                numbers.clone().zip(exist).take_while(|(_, exists)| *exists).map(|(number, _)| number.to_string()),
            );
            if numbered.len() < numbers.end {
                break;
            }
        }
        Ok(numbered)
    }
}
