//! Reading the documents of nodes.

use std::sync::Arc;

use zarrd_executor::{Cost, Work};
use zarrd_meta::NodePath;
use zarrd_store::{Key, Prefix, Version};

use super::{
    documents::{Check, Read, Text, draft_branch},
    mode::Caching,
    snapshot_reader::{SnapshotReader, weight},
};
use crate::{
    metadata::{
        error::NodeError,
        keys::NAMES,
        tree::{NodeKind, NodeTree},
    },
    node::{documents::Documents, keys::join_key, resolved::DraftHierarchy},
};

/// The bits of all [`NAMES`], of those that make a node of v2, and of its attributes.
const ALL: u8 = 0b1111;
const V3: u8 = 0b0001;
const V2: u8 = 0b0110;
const ATTRIBUTES: u8 = 0b1000;

/// The keys of the documents that a node may have, in the order of [`NAMES`]; `None` for one that is known not to exist.
type NodeKeys = [Option<Key>; 4];

impl SnapshotReader<'_> {
    /// The documents at each of some paths.
    pub(crate) async fn documents(&mut self, paths: &[NodePath], check: Check) -> Result<Vec<Documents>, NodeError> {
        let keys: Vec<NodeKeys> = paths.iter().map(|path| self.keys_of(path)).collect();
        let all: Vec<Key> = keys.iter().flatten().flatten().cloned().collect();
        let values = self.read_or_copy(&all).await?;
        drop(all);
        // The texts of other machines are parts of larger buffers.
        let is_cached = check == Check::Model && self.caching == Caching::Documents;
        match is_cached && self.near && self.copies.is_empty() {
            true => self.check_once(paths, keys, values).await,
            false => self.interpret(keys, values, check).await,
        }
    }

    /// The nodes that documents describe: as cached, if the documents have the same versions, else they are checked.
    async fn check_once(
        &self,
        paths: &[NodePath],
        keys: Vec<NodeKeys>,
        values: Vec<Option<Read>>,
    ) -> Result<Vec<Documents>, NodeError> {
        let cache = &self.context.documents;
        let mut values = values.into_iter();
        let mut found = Vec::with_capacity(paths.len());
        let (mut unchecked, mut unchecked_values) = (Vec::new(), Vec::new());
        for (path, keys) in paths.iter().zip(keys) {
            let read = keys.each_ref().map(|key| key.as_ref().and_then(|_| values.next().flatten()));
            let versions = read.each_ref().map(|read| read.as_ref().map(|(_, version, _)| *version));
            let cached = cache.get(path, &versions);
            if cached.is_none() {
                let present = keys.iter().zip(read).filter(|(key, _)| key.is_some());
                unchecked_values.extend(present.map(|(_, read)| read));
                unchecked.push(keys);
            }
            found.push((cached, versions));
        }
        let mut checked = self.interpret(unchecked, unchecked_values, Check::Model).await?.into_iter();
        let found = paths.iter().zip(found).map(|(path, (cached, versions))| {
            cached.unwrap_or_else(|| {
                let documents = checked.next().unwrap_or_default();
                cache.insert(path, &versions, &documents);
                documents
            })
        });
        Ok(found.collect())
    }

    /// The nodes that documents describe, given the values of all keys, in order.
    async fn interpret(
        &self,
        keys: Vec<NodeKeys>,
        values: Vec<Option<Read>>,
        check: Check,
    ) -> Result<Vec<Documents>, NodeError> {
        let weight = weight(values.iter().flatten().map(|(.., text)| text));
        let mut values = values.into_iter();
        let interpret = move || {
            let mut take = |key: &Option<Key>| key.as_ref().and_then(|_| values.next().flatten());
            keys.iter().map(|keys| Documents::interpret(keys, keys.each_ref().map(&mut take), check)).collect()
        };
        Ok(self.context.run(Cost::of(Work::Documents, weight), interpret).await?)
    }

    /// The documents with these keys, from consolidated metadata where these have them.
    async fn read_or_copy(&mut self, keys: &[Key]) -> Result<Vec<Option<Read>>, NodeError> {
        if self.copies.is_empty() {
            return Ok(keys.iter().cloned().zip(self.read(keys).await?).map(with_key).collect());
        }
        let copied: Vec<Option<Option<Read>>> = keys.iter().map(|key| self.copies.document(key)).collect();
        let stored: Vec<Key> =
            keys.iter().zip(&copied).filter(|(_, copied)| copied.is_none()).map(|(key, _)| key.clone()).collect();
        let mut read = self.read(&stored).await?.into_iter();
        let values = keys.iter().zip(copied).map(|(key, copied)| match copied {
            Some(copied) => copied,
            None => with_key((key.clone(), read.next().flatten())),
        });
        Ok(values.collect())
    }

    /// The nodes of a draft hierarchy with these documents.
    pub(crate) async fn draft_branches(
        &self,
        root: &Arc<DraftHierarchy>,
        found: Vec<(NodePath, NodeKind, Key, (Version, Text))>,
    ) -> Result<Vec<NodeTree>, NodeError> {
        let weight = weight(found.iter().map(|(.., (_, document))| document));
        let root = root.clone();
        let read = move || {
            let read =
                |(path, kind, key, (version, document))| draft_branch(path, &root, kind, (key, version, document));
            found.into_iter().map(read).collect()
        };
        Ok(self.context.run(Cost::of(Work::Documents, weight), read).await?)
    }

    /// The keys of the documents that a path may have, in the order of [`NAMES`]: all four if no scan has shown which
    /// exist.
    pub(super) fn keys_of(&self, path: &NodePath) -> NodeKeys {
        if let Some(keys) = self.copies.keys_of(path) {
            return keys;
        }
        let below = path.key_prefix();
        if self.left_out.covers(&below) {
            return Default::default();
        }
        let has = match self.scans.documents(&below) {
            None if self.ahead.needs_only_v3(&below) => V3,
            None => ALL,
            Some(0) => return Default::default(),
            // Missing attributes belong to the node's documents, too.
            Some(has) => has | if has & V2 == 0 { 0 } else { ATTRIBUTES },
        };
        let mut bit = 0;
        let Ok(prefix) = Prefix::parse(&below) else { return Default::default() };
        NAMES.map(|name| {
            let exists = has & (1 << bit) != 0;
            bit += 1;
            join_key(&prefix, name).filter(|_| exists)
        })
    }
}

/// A value with its key.
fn with_key((key, value): (Key, Option<(Version, Text)>)) -> Option<Read> {
    value.map(|(version, text)| (key, version, text))
}
