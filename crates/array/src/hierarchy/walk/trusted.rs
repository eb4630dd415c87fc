//! Finding the consolidated metadata that a walk takes nodes from.

use std::ops::Range;

use bytes::Bytes;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{Dialect, documents::write::CONSOLIDATED, zom::MAX_NODES};
use zarrd_store::{Consolidated, Key, Listing, Prefix, Version};

use super::{
    copies::{Copies, documents, entries, extent},
    mode::Below,
    named::groups_above,
    snapshot_reader::SnapshotReader,
    walker::Walker,
};
use crate::{
    metadata::error::{NodeError, too_many_nodes},
    node::keys::{join_key, node_prefix},
};

/// The most documents in one group's metadata: of the nodes of a tree, three each in v2.
const MAX_DOCUMENTS: usize = 3 * MAX_NODES;

/// Consolidated metadata that were not read yet.
struct Unread {
    group: Prefix,
    dialect: Dialect,
    key: Key,
    version: Version,
    text: Bytes,
}

impl Walker<'_> {
    /// Finds the consolidated metadata of the groups of a level, where these are trusted.
    pub(crate) async fn find_copies(&mut self, level: Range<usize>) -> Result<(), NodeError> {
        if self.below == Below::Documents || self.window.is_some() {
            return Ok(());
        }
        let (mut unread, mut in_v2) = (Vec::new(), Vec::new());
        for index in level.clone() {
            let Some((group, dialect)) = self.trusting_group(index) else { continue };
            match dialect {
                Dialect::V3 => unread.extend(self.own_copies(index, group)),
                Dialect::V2 => in_v2.extend(join_key(&group, ".zmetadata").map(|key| (group, key))),
                Dialect::Draft => {}
            }
        }
        let keys: Vec<Key> = in_v2.iter().map(|(_, key)| key.clone()).collect();
        let found = self.reader.read(&keys).await?;
        unread.extend(in_v2.into_iter().zip(found).filter_map(|((group, key), found)| {
            let (version, text) = found?;
            Some(Unread { group, dialect: Dialect::V2, key, version, text: text.ok()? })
        }));
        for metadata in unread {
            self.reader.take_copies(metadata).await?;
        }
        match level.start {
            0 => self.find_copies_above().await,
            _ => Ok(()),
        }
    }

    /// A group whose members are visited, and are taken from its consolidated metadata if it has some.
    fn trusting_group(&self, index: usize) -> Option<(Prefix, Dialect)> {
        let item = self.items.get(index).filter(|_| self.is_open(index))?;
        let group = node_prefix(&item.branch.path).ok()?;
        let is_trusted = self.context.store.guarantees_below(&group).consolidated == Consolidated::Trusted;
        let takes = is_trusted && !item.branch.is_implicit() && !self.reader.copies.cover(&group);
        takes.then_some((group, item.branch.dialect))
    }

    /// The consolidated metadata in the own document of a group of v3.
    fn own_copies(&self, index: usize, group: Prefix) -> Option<Unread> {
        let branch = &self.items.get(index)?.branch;
        let document = &branch.stored.document;
        document.get(CONSOLIDATED)?;
        let [(key, Some(version))] = branch.own.0.as_slice() else { return None };
        Some(Unread { group, dialect: Dialect::V3, key: key.clone(), version: *version, text: document.to_bytes() })
    }

    /// Finds the consolidated metadata of the nearest group above the topmost one, if it has none and is not listed.
    async fn find_copies_above(&mut self) -> Result<(), NodeError> {
        let Some((top, dialect)) = self.trusting_group(0) else { return Ok(()) };
        if self.context.store.guarantees_below(&top).listing != Listing::None {
            return Ok(());
        }
        let name = match dialect {
            Dialect::V3 => "zarr.json",
            Dialect::V2 => ".zmetadata",
            Dialect::Draft => return Ok(()),
        };
        let above: Vec<(Prefix, Key)> = groups_above(&top)
            .filter(|group| *group != top && self.reader.is_unlisted(group))
            .filter_map(|group| Some((group.clone(), join_key(&group, name)?)))
            .collect();
        let keys: Vec<Key> = above.iter().map(|(_, key)| key.clone()).collect();
        let found = self.reader.read(&keys).await?;
        for ((group, key), found) in above.into_iter().zip(found).rev() {
            let Some((version, Ok(text))) = found else { continue };
            self.reader.take_copies(Unread { group: group.clone(), dialect, key, version, text }).await?;
            // Nothing is known of a group that they do not name.
            match self.reader.copies.names(&top) {
                Some(names) if !names.is_empty() => return Ok(()),
                _ => self.reader.copies.remove(&group),
            }
        }
        Ok(())
    }
}

impl SnapshotReader<'_> {
    /// Takes the nodes below a group from its consolidated metadata from now on, unless they cannot be read.
    async fn take_copies(&mut self, metadata: Unread) -> Result<(), NodeError> {
        let Unread { group, dialect, key, version, text } = metadata;
        let size = text.len() as u64;
        let cost = Cost::of(Work::Documents, size);
        let entries = self.context.run(cost, move || entries(dialect, text)).await?;
        let Some(entries) = entries else { return Ok(()) };
        let counting = entries.clone();
        let (count, largest) = self.context.run(cost, move || extent(&counting, 0)).await?;
        if count > MAX_DOCUMENTS {
            return Err(too_many_nodes());
        }
        self.reserve_for_copies(size, count as u64, largest).await?;
        let documents = self.context.run(cost, move || documents(dialect, &entries)).await?;
        self.copies.insert(group, Copies { key, version, documents });
        Ok(())
    }
}
