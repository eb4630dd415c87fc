//! Pages of members: some of the children of a group, from a cursor of the store's listing on.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use zarrd_meta::{Dialect, NodePath, documents::draft, names::is_document_name, zom::Members};
use zarrd_operations::Depth;
use zarrd_store::{Cursor, DirPage, Entry, Key, PageRequest, Prefix, Scanned, StoreError};

use super::{
    documents::Check,
    listing::{Listed, PageReads},
    mode::{Caching, DialectMode, FailedMounts, WalkOptions, Window},
    probe::{Batch, is_preferred},
    walker::{BATCH, Walk, Walker, paths},
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        error::NodeError,
        tree::{NodeKind, implicit},
    },
    node::{
        documents::Documents,
        keys::{join_key, node_prefix},
        resolved::DraftHierarchy,
    },
};

/// The number of listed entries for each requested member after which a page ends, even if it is not full.
const ENTRIES_PER_MEMBER: usize = 10;

/// Walks the node at a path and a page of its members, as of one commit; returns where the next page starts.
pub(crate) async fn walk_page(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
    mode: DialectMode,
    window: &Window,
) -> Result<(Walk, Option<Cursor>), NodeError> {
    let options = WalkOptions {
        mode,
        failed_mounts: FailedMounts::Broken,
        caching: Caching::Documents,
        ..WalkOptions::new(Depth::Levels(1))
    };
    let mut walker = Walker::settled(context, path, dialect, options, Some(window)).await?;
    if walker.items.first().is_some_and(|top| top.branch.kind == NodeKind::Array) && window.cursor.is_some() {
        return Err(StoreError::InvalidCursor.into());
    }
    // An array has no members to visit, and no window either then.
    let next = walker.window.as_mut().and_then(|window| window.cursor.take());
    Ok((walker.finish(path).await?, next))
}

impl Walker<'_> {
    /// A page of the entries directly below a prefix, and where the next one starts.
    async fn list_page(&mut self, prefix: &Prefix, page: PageRequest) -> Result<ListedPage, NodeError> {
        let DirPage { keys, prefixes, cursor } = match self.context.store.list_dir(prefix, page.clone()).await {
            Err(StoreError::Unsupported { .. }) if self.reader.is_unlisted(prefix) => {
                let (listed, cursor) = self.reader.named_page(prefix, &page).await?;
                return Ok(ListedPage { listed, keys: Vec::new(), cursor });
            }
            found => found?,
        };
        let listed = Listed::of(&keys, &prefixes);
        self.reader.pages.push(PageReads { prefix: prefix.clone(), page, listed: listed.clone() });
        Ok(ListedPage { listed, keys, cursor })
    }

    /// The dialect of the first node directly below a prefix, which is searched page by page.
    pub(crate) async fn probe_pages(
        &mut self,
        prefix: &Prefix,
        wanted: Option<Dialect>,
        reserved: &[&str],
    ) -> Result<Option<Dialect>, NodeError> {
        let mut page = PageRequest::first(BATCH);
        loop {
            let ListedPage { listed, cursor, .. } = self.list_page(prefix, page).await?;
            let paths = paths(prefix.as_str(), &listed.prefixes, reserved);
            let mut best = None;
            for Batch { paths, .. } in self.batches(&paths) {
                let found = self.reader.documents(paths, Check::Model).await?;
                let dialects = found.iter().flat_map(Documents::readable);
                best =
                    best.into_iter().chain(dialects.filter(|found| wanted.is_none_or(|wanted| wanted == *found))).min();
                if best.is_some_and(|best| is_preferred(best, wanted)) {
                    break;
                }
            }
            match cursor {
                Some(cursor) if best.is_none() => page = PageRequest::after(BATCH, cursor),
                _ => return Ok(best),
            }
        }
    }

    /// Visits the members of the topmost group that are in the window.
    pub(crate) async fn open_window(&mut self, window: Window) -> Result<(), NodeError> {
        let Some(item) = self.items.first_mut() else { return Ok(()) };
        item.branch.members = Some(Members::new());
        let (path, dialect, root) = (item.branch.path.clone(), item.branch.dialect, item.branch.root.clone());
        let reserved = item.reserved;
        let below = match &root {
            None => node_prefix(&path)?,
            Some(root) => {
                let below = draft::children_prefix(path.relative_to(&root.path).unwrap_or_default());
                let children = format!("{}{below}", root.prefix.as_str());
                Prefix::parse(&children).map_err(|_| ArrayError::NoSuchNode { path: path.clone() })?
            }
        };
        let Window { limit, mut cursor, mut files } = window;
        let mut entries = limit.saturating_mul(ENTRIES_PER_MEMBER);
        loop {
            let rest = limit.saturating_sub(self.count_found(files.as_deref()));
            let page = self.list_page(&below, PageRequest { limit: rest, cursor }).await?;
            let ListedPage { listed, keys, cursor: next } = page;
            let listed_count = listed.prefixes.len() + listed.keys.len();
            match &root {
                None => {
                    let paths = paths(below.as_str(), &listed.prefixes, reserved);
                    let nodes_before = (self.items.len(), self.other.len());
                    self.children(0, &paths, dialect, 1).await?;
                    if let Some(files) = &mut files {
                        let prefixes = listed.prefixes.iter().filter(|name| !reserved.contains(&name.as_str()));
                        files.extend(self.files(&below, prefixes, keys, nodes_before));
                    }
                }
                Some(root) => self.draft_members(&path, root, &below, listed).await?,
            }
            entries = entries.saturating_sub(listed_count.max(1));
            cursor = next;
            let found = self.count_found(files.as_deref());
            if cursor.is_none() || entries == 0 || found.saturating_mul(2) >= limit {
                break;
            }
        }
        self.window = Some(Window { limit, cursor, files });
        Ok(())
    }

    /// The number of members and files of a page so far.
    fn count_found(&self, files: Option<&[Scanned]>) -> usize {
        let members = self.items.len().saturating_sub(1).saturating_add(self.other.len());
        members.saturating_add(files.map_or(0, <[_]>::len))
    }

    /// The keys and prefixes directly below a group that belong to no node: no documents, and none of the nodes after
    /// the first ones, which were found at these names.
    fn files<'n>(
        &self,
        below: &Prefix,
        prefixes: impl Iterator<Item = &'n String>,
        keys: Vec<Entry>,
        (items, other): (usize, usize),
    ) -> Vec<Scanned> {
        let members = self.items.get(items..).unwrap_or_default().iter().map(|item| &item.branch.path);
        let others = self.other.get(other..).unwrap_or_default().iter().map(|(path, _)| path);
        let nodes: HashSet<&str> = members.chain(others).filter_map(NodePath::name).collect();
        let prefixes = prefixes.filter(|name| !nodes.contains(name.as_str()));
        let prefixes = prefixes.filter_map(|name| Prefix::parse(&format!("{below}{name}/")).ok()).map(Scanned::Prefix);
        let keys = keys.into_iter().filter(|entry| !is_document_name(entry.key.name())).map(Scanned::Key);
        let mut files: Vec<Scanned> = prefixes.chain(keys).collect();
        files.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        files
    }

    /// The members of a draft group that start on a page: an array, a group and a prefix of one name are one member,
    /// which belongs to the page of the first of them.
    async fn draft_members(
        &mut self,
        path: &NodePath,
        root: &Arc<DraftHierarchy>,
        below: &Prefix,
        listed: Listed,
    ) -> Result<(), NodeError> {
        let suffix = root.entry_point.metadata_key_suffix.clone();
        let mut first: BTreeMap<String, PagePosition> = BTreeMap::new();
        let prefixes = listed.prefixes.into_iter().map(|name| (name, PagePosition::Prefix));
        let keys = listed.keys.iter().filter_map(|name| {
            let stem = name.strip_suffix(suffix.as_str())?;
            let array = stem.strip_suffix(".array").map(|stem| (stem, PagePosition::Array));
            array.or_else(|| stem.strip_suffix(".group").map(|stem| (stem, PagePosition::Group)))
        });
        for (stem, place) in keys.map(|(stem, place)| (stem.to_owned(), place)).chain(prefixes) {
            let position = first.entry(stem).or_insert(place);
            *position = place.min(*position);
        }
        let stems: Vec<(String, PagePosition)> = first.into_iter().collect();
        for batch in stems.chunks(BATCH) {
            let named = |stem: &str, kind: &str| join_key(below, &format!("{stem}.{kind}{suffix}"));
            let keys: Vec<_> = batch.iter().map(|(stem, _)| ["array", "group"].map(|kind| named(stem, kind))).collect();
            let wanted: Vec<_> = keys.iter().flatten().flatten().cloned().collect();
            let mut read: BTreeMap<_, _> = wanted.iter().cloned().zip(self.reader.read(&wanted).await?).collect();
            let mut stored = Vec::new();
            for ((stem, place), [array, group]) in batch.iter().zip(keys) {
                let Ok(path) = NodePath::parse(&format!("{}{stem}", path.key_prefix())) else { continue };
                let mut present = |key: Option<Key>| key.and_then(|key| Some((read.remove(&key)??, key)));
                let (array, group) = (present(array), present(group));
                // Members before this page exist.
                let before =
                    array.is_some() && *place > PagePosition::Array || group.is_some() && *place > PagePosition::Group;
                if before {
                    continue;
                }
                let array = array.map(|found| (NodeKind::Array, found));
                match array.or_else(|| group.map(|found| (NodeKind::Group, found))) {
                    None if *place == PagePosition::Prefix => {
                        self.push(implicit(path, Dialect::Draft, Some(root.clone())), 0, 1, &[])?;
                    }
                    // It was erased after the listing, which the validation will detect.
                    None => {}
                    Some((kind, (value, key))) => stored.push((path, kind, key, value)),
                }
            }
            for branch in self.reader.draft_branches(root, stored).await? {
                self.push(branch, 0, 1, &[])?;
            }
        }
        Ok(())
    }
}

/// A page of the entries directly below a prefix.
struct ListedPage {
    listed: Listed,
    /// The keys with their metadata; none where documents name the children.
    keys: Vec<Entry>,
    /// The start of the next page.
    cursor: Option<Cursor>,
}

/// The entries of a listing that a member of a draft group may have, in order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PagePosition {
    Array,
    Group,
    Prefix,
}
