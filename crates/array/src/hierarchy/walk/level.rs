//! Reading a level of a tree ahead from a distant store, in which each request takes a round trip.

use std::ops::Range;

use futures::future::try_join_all;
use zarrd_meta::{Dialect, NodePath};
use zarrd_store::{Key, PageRequest, Prefix};

use super::{
    documents::Check,
    listing,
    mode::DialectMode,
    scan::Purpose,
    snapshot_reader::{CONCURRENT_REQUESTS, SnapshotReader},
    walker::{Walker, paths},
};
use crate::{metadata::error::NodeError, node::documents::Documents};

/// The number of names below one prefix that are listed ahead, and below all of a level.
const MAX_NAMES: usize = 1_000;
const MAX_NAMES_AHEAD: usize = 50_000;

/// A group of v2 or v3 whose members are visited.
struct OpenGroup {
    prefix: Prefix,
    dialect: Dialect,
    reserved: &'static [&'static str],
}

impl Walker<'_> {
    /// Reads the listings of the groups of a level, and the documents of their members, unless the store answers at
    /// once.
    pub(crate) async fn read_ahead(&mut self, level: Range<usize>) -> Result<(), NodeError> {
        if !self.reader.distant || self.window.is_some() {
            return Ok(());
        }
        let purpose = self.items.get(level.start).map_or(Purpose::FirstNode, |item| self.purpose_at(item.level));
        let groups: Vec<OpenGroup> = level.filter_map(|index| self.open_group(index)).collect();
        let groups: Vec<OpenGroup> =
            groups.into_iter().filter(|group| !self.reader.copies.cover(&group.prefix)).collect();
        let prefixes = groups.iter().map(|group| &group.prefix).filter(|prefix| !self.reader.is_unlisted(prefix));
        self.reader.list_ahead(&prefixes.collect::<Vec<_>>(), purpose).await?;
        let mut members = Vec::new();
        for group in &groups {
            let names = self.reader.names(&group.prefix).await;
            let found = paths(group.prefix.as_str(), &names, group.reserved);
            members.extend(found.into_iter().map(|path| (path, group.dialect)));
        }
        self.reader.documents_ahead(&members, self.mode).await
    }

    fn open_group(&self, index: usize) -> Option<OpenGroup> {
        let item = self.items.get(index).filter(|item| item.branch.root.is_none() && self.is_open(index))?;
        let prefix = Prefix::parse(&item.branch.path.key_prefix()).ok()?;
        Some(OpenGroup { prefix, dialect: item.branch.dialect, reserved: item.reserved })
    }
}

impl SnapshotReader<'_> {
    /// Lists prefixes that no scan has finished. A single one is scanned first, as it may be the top of a small tree.
    async fn list_ahead(&mut self, prefixes: &[&Prefix], purpose: Purpose) -> Result<(), NodeError> {
        let mut unknown: Vec<&Prefix> =
            prefixes.iter().copied().filter(|prefix| self.scans.listed(prefix).is_none()).collect();
        if let [only] = unknown.as_slice() {
            self.scan(only, purpose).await?;
            unknown.retain(|prefix| self.scans.listed(prefix).is_none());
        }
        let context = self.context;
        let mut names = 0_usize;
        for batch in unknown.chunks(CONCURRENT_REQUESTS) {
            let page = PageRequest::first(MAX_NAMES);
            let pages = batch.iter().map(|prefix| listing::list(context, prefix, &page));
            for (&prefix, (listed, cursor)) in batch.iter().zip(try_join_all(pages).await?) {
                // A longer listing is read when it is asked for.
                if cursor.is_none() {
                    names = names.saturating_add(listed.prefixes.len()).saturating_add(listed.keys.len());
                    self.ahead.put_listed(prefix.clone(), listed);
                }
            }
            if names >= MAX_NAMES_AHEAD {
                break;
            }
        }
        Ok(())
    }

    /// The names directly below a prefix that was scanned or listed, or that documents name. An error of reading these
    /// documents is that of the visit, which reads them again.
    async fn names(&mut self, prefix: &Prefix) -> Vec<String> {
        if self.is_unlisted(prefix) {
            return self.named_children(prefix).await.map(|named| named.prefixes).unwrap_or_default();
        }
        match self.ahead.listed(prefix) {
            Some(listed) => listed.prefixes.clone(),
            None => self.scans.listed(prefix).map(|listed| listed.prefixes).unwrap_or_default(),
        }
    }

    /// Reads the documents of members, each of a group in a dialect: first those of v3, then the others where these do
    /// not say all that the walk asks for.
    async fn documents_ahead(&mut self, members: &[(NodePath, Dialect)], mode: DialectMode) -> Result<(), NodeError> {
        let named: Vec<_> = members.iter().map(|(path, wanted)| (path, *wanted, self.keys_of(path))).collect();
        self.fetch_ahead(named.iter().filter_map(|(.., [v3, ..])| v3.clone()).collect()).await?;
        let mut others = Vec::new();
        for (path, wanted, [v3, rest @ ..]) in named {
            if v3.is_some_and(|key| self.has_all(path, key, wanted, mode)) {
                self.ahead.put_only_v3(path.key_prefix());
            } else {
                others.extend(rest.into_iter().flatten());
            }
        }
        self.fetch_ahead(others).await
    }

    /// True if a node is the one that the walk takes, whatever other dialects have at its path.
    fn has_all(&self, path: &NodePath, key: Key, wanted: Dialect, mode: DialectMode) -> bool {
        let Some((version, text)) = self.ahead.document(&key) else { return false };
        let Ok(text) = text else { return false };
        let is_of_v3 = |documents: &Documents| documents.readable().any(|dialect| dialect == Dialect::V3);
        let check = match mode {
            DialectMode::Same if wanted != Dialect::V3 => return false,
            DialectMode::Same => Check::Syntax,
            DialectMode::Each => Check::Model,
        };
        let checked = self.context.documents.get(path, &[Some(*version), None, None, None]);
        if checked.as_ref().is_some_and(is_of_v3) {
            return true;
        }
        let keys = [Some(key.clone()), None, None, None];
        let documents = Documents::interpret(&keys, [Some((key, *version, Ok(text.clone()))), None, None, None], check);
        is_of_v3(&documents)
    }

    async fn fetch_ahead(&mut self, keys: Vec<Key>) -> Result<(), NodeError> {
        if keys.is_empty() {
            return Ok(());
        }
        let values = self.fetch(&keys).await?;
        self.ahead.put_documents(keys.into_iter().zip(values));
        Ok(())
    }
}
