//! Updating consolidated metadata: the copies, in the documents of groups, of the documents below them.

use std::{
    borrow::Cow,
    iter::once,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use tokio::time::Instant;
use zarrd_executor::{Cost, Work, run_in_place};
use zarrd_meta::{
    Dialect, NodePath,
    documents::{
        parse_object, parse_oversized,
        write::{CONSOLIDATED, ConsolidatedEntry, StoredNode, strip_consolidated, update_consolidated},
    },
    json::{Json, MAX_DOCUMENT_DEPTH},
    limits::{MAX_CONSOLIDATED_SIZE, MAX_DOCUMENT_SIZE, MAX_OVERSIZED_DOCUMENT},
};
use zarrd_store::{Batch, Change, Key, Precondition, StoreError, not_before, stage_put};

use super::{
    change_set::{ChangeSet, PendingState},
    copy_update::{ConsolidatedCopy, ConsolidatedUpdate, NodeChange},
    error::NodeError,
};
use crate::{
    context::Context,
    error::ArrayError,
    node::{
        broken::MAX_REASON,
        keys::{join_key, node_prefix},
    },
};

/// The number of changed nodes up to which an update of consolidated metadata is kept to be repeated.
const MAX_SHARED_NODES: usize = 64;

/// The number of keys that are looked up in one snapshot.
const BATCH: usize = 4096;

/// Changes of nodes, which are collected only if there is consolidated metadata to update.
pub(crate) trait NodeChanges: Sync {
    /// True if a node of a dialect changes.
    fn concern(&self, dialect: Dialect) -> bool;

    /// The changes of nodes of v2 and v3.
    fn all(&self) -> Cow<'_, [NodeChange]>;
}

impl NodeChanges for Vec<NodeChange> {
    fn concern(&self, dialect: Dialect) -> bool {
        self.iter().any(|change| change.dialect == dialect)
    }

    fn all(&self) -> Cow<'_, [NodeChange]> {
        Cow::Borrowed(self)
    }
}

/// What becomes of consolidated metadata.
enum CopyChange {
    /// It has another document.
    Updated(Json),
    /// It is removed from this document.
    Cut(Json),
    /// It is erased.
    Erased,
}

/// The copies that some changes update and remove.
#[derive(Debug, Default)]
struct ChangedCopies {
    updated: Vec<ConsolidatedCopy>,
    removed: Vec<Key>,
}

/// Adds the update of consolidated metadata for changed nodes to a change set: in `top`, in the groups above it, and in
/// these `groups` below. Existing consolidated metadata that can be read is kept up to date; none is created, and it is
/// removed where it would exceed [`MAX_CONSOLIDATED_SIZE`]. Each document that may have it is among the conditions of the
/// commit, its absence too.
pub(crate) async fn update_consolidated_metadata(
    context: &Context,
    change_set: &mut ChangeSet,
    top: &NodePath,
    groups: &[&NodePath],
    node_changes: &impl NodeChanges,
) -> Result<(), NodeError> {
    let dialects = [Dialect::V2, Dialect::V3].map(|dialect| node_changes.concern(dialect));
    if dialects == [false, false] {
        return Ok(());
    }
    change_set.sort();
    let all = OnceLock::new();
    let all = || &**all.get_or_init(|| node_changes.all());
    let groups = groups.iter().copied().filter(|group| *group != top).cloned();
    let mut copies =
        once(top.clone()).chain(top.ancestors()).chain(groups).flat_map(|group| copies_of(&group, dialects));
    if context.is_keyed_at(top) {
        return follow_later(context, change_set, copies, all).await;
    }
    let mut changed = ChangedCopies::default();
    loop {
        let batch: Vec<_> = copies.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        update_copies(context, change_set, batch, all, &mut changed).await?;
        change_set.sort();
    }
    let ChangedCopies { updated: mut copies, removed } = changed;
    if copies.is_empty() && removed.is_empty() {
        return Ok(());
    }
    let mut node_changes = Vec::new();
    match all().len() <= MAX_SHARED_NODES {
        true => node_changes.extend_from_slice(all()),
        false => copies.clear(),
    }
    let unread = node_changes.iter().filter_map(attributes_key).filter(|key| change_set.stays_unchanged(key)).collect();
    change_set.update_consolidated(Arc::new(ConsolidatedUpdate { copies, removed, node_changes, unread }));
    Ok(())
}

/// Records the consolidated metadata that follow a change of a store that is written key by key: of those in
/// documents that the change set does not change. The others are updated in it.
async fn follow_later<'c>(
    context: &Context,
    change_set: &mut ChangeSet,
    copies: impl Iterator<Item = ConsolidatedCopy>,
    node_changes: impl Fn() -> &'c [NodeChange],
) -> Result<(), NodeError> {
    let (mut later, mut now) = (Vec::new(), Vec::new());
    for copy in copies {
        match change_set.pending(&copy.key) {
            PendingState::Kept => later.push(copy),
            PendingState::Set(_) => now.push(copy),
            PendingState::Erased => {}
        }
    }
    let mut changed = ChangedCopies::default();
    update_copies(context, change_set, now, &node_changes, &mut changed).await?;
    change_set.sort();
    let node_changes = node_changes().to_vec();
    let unread = node_changes.iter().filter_map(attributes_key).filter(|key| change_set.stays_unchanged(key)).collect();
    let update = ConsolidatedUpdate { copies: later, removed: changed.removed, node_changes, unread };
    change_set.update_consolidated(Arc::new(update));
    Ok(())
}

/// The changes of consolidated metadata that several updates of the same copies make together, as it is now: one for
/// each copy. `None` if one of them can no longer be updated.
pub(crate) async fn update_together(
    context: &Context,
    copies: &[ConsolidatedCopy],
    updates: &[&ConsolidatedUpdate],
) -> Result<Option<Vec<Change>>, StoreError> {
    let keys: Vec<Key> = copies.iter().map(|copy| copy.key.clone()).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    let node_changes: Vec<NodeChange> = updates.iter().flat_map(|update| &update.node_changes).cloned().collect();
    let is_unread = |key: &Key| updates.iter().any(|update| update.unread.contains(key));
    let mut changes = Vec::with_capacity(copies.len());
    for ConsolidatedCopy { group, dialect, key } in copies {
        let Some(value) = snapshot.get(key, None).await? else { return Ok(None) };
        let precondition = Precondition::unchanged(Some(value.meta.version));
        if value.meta.size > MAX_CONSOLIDATED_SIZE as u64 {
            return Ok(None);
        }
        let stored = value.bytes().await?;
        let update = || update_document(is_unread, group, *dialect, key, stored.clone(), || &node_changes);
        // Others wait for this commit, so it never holds up a worker.
        let updated = run_in_place(Cost::of(Work::ConsolidatedMetadata, u64::MAX), update).await;
        let Some(CopyChange::Updated(document)) = updated else { return Ok(None) };
        let mut change = Change::Put { key: key.clone(), value: document.to_padded_bytes(), precondition };
        stage_put(&**context.writes()?, &mut change).await?;
        changes.push(change);
    }
    Ok(Some(changes))
}

/// The state of consolidated metadata that follow a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyState {
    /// There are none, or they are up to date.
    Current,
    /// They would have been too large.
    Removed,
    /// They could not be written.
    Stale,
}

/// Brings the consolidated metadata of a group up to date, on condition that they are unchanged since they were read.
pub(crate) async fn bring_up_to_date(
    context: &Context,
    ConsolidatedCopy { group, dialect, key }: &ConsolidatedCopy,
    update: &ConsolidatedUpdate,
) -> Result<CopyState, StoreError> {
    let Some(value) = not_before(Some(Instant::now()), context.store.get(key, None)).await? else {
        return Ok(CopyState::Current);
    };
    let (size, version) = (value.meta.size, value.meta.version);
    if size > MAX_OVERSIZED_DOCUMENT as u64 {
        return Ok(CopyState::Current);
    }
    let _memory = match size > MAX_CONSOLIDATED_SIZE as u64 {
        true => Some(context.try_reserve_memory(size).ok_or(StoreError::Busy { retry_after: None })?),
        false => None,
    };
    let stored = value.bytes().await?;
    let is_unread = |key: &Key| update.unread.contains(key);
    let updated = || update_document(is_unread, group, *dialect, key, stored.clone(), || &update.node_changes);
    let updated = run_in_place(Cost::of(Work::ConsolidatedMetadata, size), updated).await;
    let (document, state) = match updated {
        None => return Ok(CopyState::Current),
        Some(CopyChange::Updated(document)) => (Some(document), CopyState::Current),
        Some(CopyChange::Cut(document)) => (Some(document), CopyState::Removed),
        Some(CopyChange::Erased) => (None, CopyState::Removed),
    };
    let precondition = Precondition::at(version);
    let change = match document {
        Some(document) => Change::Put { key: key.clone(), value: document.to_padded_bytes(), precondition },
        None => Change::Erase { key: key.clone(), precondition },
    };
    match context.writes()?.apply(Batch::of_documents(vec![change])).await {
        Ok(_) => Ok(state),
        Err(StoreError::PreconditionFailed { .. }) => Ok(CopyState::Stale),
        Err(error) => Err(error),
    }
}

/// True if a group, or one above it, may have consolidated metadata of a dialect. The documents that show it are among
/// the conditions of the commit.
pub(crate) async fn has_copies_above(
    context: &Context,
    change_set: &mut ChangeSet,
    top: &NodePath,
    dialect: Dialect,
) -> Result<bool, NodeError> {
    let dialects = [Dialect::V2, Dialect::V3].map(|candidate| candidate == dialect);
    let groups = once(top.clone()).chain(top.ancestors());
    let keys: Vec<Key> = groups.flat_map(|group| copies_of(&group, dialects)).map(|copy| copy.key).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    for key in &keys {
        let value = snapshot.get(key, None).await?;
        change_set.record_read(key, value.as_ref().map(|value| value.meta.version));
        let Some(value) = value else { continue };
        let is_copy = |document: Json| dialect == Dialect::V2 || document.get(CONSOLIDATED).is_some();
        if parse_object(value.bytes().await?).is_ok_and(is_copy) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The keys of the consolidated metadata that a group may have, of v2, of v3, or both.
fn copies_of(group: &NodePath, dialects: [bool; 2]) -> Vec<ConsolidatedCopy> {
    let names = [(Dialect::V2, ".zmetadata"), (Dialect::V3, "zarr.json")];
    let names = names.into_iter().zip(dialects).filter(|(_, concerned)| *concerned);
    let Ok(prefix) = node_prefix(group) else { return Vec::new() };
    let copy = |dialect, name| Some(ConsolidatedCopy { group: group.clone(), dialect, key: join_key(&prefix, name)? });
    names.filter_map(|((dialect, name), _)| copy(dialect, name)).collect()
}

/// Updates some copies, and adds those that change. Of copies that are updated only those count that the change set
/// changes in no other way.
async fn update_copies<'c>(
    context: &Context,
    change_set: &mut ChangeSet,
    copies: Vec<ConsolidatedCopy>,
    node_changes: impl Fn() -> &'c [NodeChange],
    changed: &mut ChangedCopies,
) -> Result<(), NodeError> {
    let keys: Vec<Key> = copies.iter().map(|copy| copy.key.clone()).collect();
    let snapshot = context.store.snapshot(&keys).await?;
    let mut read = Vec::with_capacity(keys.len());
    for ConsolidatedCopy { group, dialect, key } in copies {
        let mut is_kept = false;
        let mut memory = None;
        let stored = match change_set.pending(&key) {
            PendingState::Erased => continue,
            PendingState::Set(value) => value.clone(),
            PendingState::Kept => {
                let value = snapshot.get(&key, None).await?;
                read.push((key.clone(), value.as_ref().map(|value| value.meta.version)));
                let Some(value) = value else { continue };
                match value.meta.size {
                    size if size > MAX_OVERSIZED_DOCUMENT as u64 => {
                        skipped(&key, "it is too large to be read");
                        continue;
                    }
                    size if size > MAX_CONSOLIDATED_SIZE as u64 => {
                        memory = Some(context.try_reserve_memory(size).ok_or(ArrayError::Busy)?);
                    }
                    _ => {}
                }
                is_kept = true;
                value.bytes().await?
            }
        };
        let is_unread = |key: &Key| change_set.stays_unchanged(key);
        let update = || update_document(is_unread, &group, dialect, &key, stored.clone(), &node_changes);
        let updated = run_in_place(Cost::of(Work::ConsolidatedMetadata, stored.len() as u64), update).await;
        drop(memory);
        match updated {
            None => {}
            Some(CopyChange::Updated(document)) => {
                change_set.set(key.clone(), document.to_padded_bytes());
                if is_kept {
                    changed.updated.push(ConsolidatedCopy { group, dialect, key });
                }
            }
            Some(CopyChange::Cut(document)) => {
                change_set.set(key.clone(), document.to_padded_bytes());
                changed.removed.push(key);
            }
            Some(CopyChange::Erased) => {
                change_set.erase(key.clone());
                changed.removed.push(key);
            }
        }
    }
    read.iter().for_each(|(key, version)| change_set.record_read(key, *version));
    Ok(())
}

/// The change of the consolidated metadata of a group; `None` if it has none, it cannot be read, or it does not change.
fn update_document<'c>(
    is_unread: impl Fn(&Key) -> bool,
    group: &NodePath,
    dialect: Dialect,
    key: &Key,
    stored: Bytes,
    node_changes: impl FnOnce() -> &'c [NodeChange],
) -> Option<CopyChange> {
    let is_readable = stored.len() <= MAX_DOCUMENT_SIZE;
    let document = match parse_oversized(stored) {
        Ok(document) => document,
        Err(error) => {
            skipped(key, &error.to_string());
            return None;
        }
    };
    if !has_copies(dialect, key, &document) {
        return None;
    }
    if !is_readable {
        return without_copies(dialect, key, &document);
    }
    let nodes: Vec<_> = node_changes()
        .iter()
        .filter(|node_changes| node_changes.dialect == dialect)
        .filter_map(|node_changes| {
            let below = node_changes.path.relative_to(group)?;
            Some((
                below,
                node_changes
                    .node
                    .as_ref()
                    .map(|node| with_unread_attributes(&is_unread, &document, node_changes, below, node)),
            ))
        })
        .collect();
    let copies = nodes.iter().map(|(below, node)| ConsolidatedEntry { path: below, node: node.as_deref() });
    let updated = update_consolidated(dialect, &document, copies);
    if updated.depth() > MAX_DOCUMENT_DEPTH {
        skipped(key, "with the changed nodes it would be nested too deep to be read");
        return None;
    }
    if updated == document {
        return None;
    }
    match updated.to_padded_bytes().len() {
        ..=MAX_CONSOLIDATED_SIZE => Some(CopyChange::Updated(updated)),
        _ => without_copies(dialect, key, &document),
    }
}

/// The change that removes the consolidated metadata of a group, since it would be too large; `None` if the rest of the
/// document is too large to be read.
fn without_copies(dialect: Dialect, key: &Key, document: &Json) -> Option<CopyChange> {
    tracing::warn!(%key, limit = MAX_CONSOLIDATED_SIZE, "consolidated metadata would be too large, and is removed");
    if dialect == Dialect::V2 {
        return Some(CopyChange::Erased);
    }
    let rest = strip_consolidated(document);
    if rest.to_padded_bytes().len() > MAX_DOCUMENT_SIZE {
        skipped(key, "the rest of the document is too large to be read");
        return None;
    }
    Some(CopyChange::Cut(rest))
}

/// True if a document has consolidated metadata that can be updated; anything else stays as it is.
fn has_copies(dialect: Dialect, key: &Key, document: &Json) -> bool {
    let copies = match dialect {
        Dialect::V3 => match document.get(CONSOLIDATED).filter(|copies| !copies.is_null()) {
            Some(copies) => copies.get("metadata"),
            None => return false,
        },
        Dialect::V2 | Dialect::Draft => document.get("metadata"),
    };
    let has_copies = copies.is_some_and(|copies| copies.is_object());
    if !has_copies {
        skipped(key, "there is no object of documents");
    }
    has_copies
}

fn skipped(key: &Key, reason: &str) {
    let reason: String = reason.chars().take(MAX_REASON).collect();
    tracing::warn!(%key, reason, "consolidated metadata cannot be read, and is not brought up to date");
}

/// The documents of a node of v2 with the attributes of its copy, if its `.zattrs` was not read and stays as it is.
fn with_unread_attributes<'n>(
    is_unread: impl Fn(&Key) -> bool,
    document: &Json,
    node_changes: &NodeChange,
    below: &str,
    node: &'n StoredNode,
) -> Cow<'n, StoredNode> {
    if node.attributes.is_some() || !attributes_key(node_changes).is_some_and(|key| is_unread(&key)) {
        return Cow::Borrowed(node);
    }
    let name = if below.is_empty() { ".zattrs".to_owned() } else { format!("{below}/.zattrs") };
    let attributes = document.get("metadata").and_then(|copies| copies.get(&name));
    Cow::Owned(StoredNode { attributes, ..node.clone() })
}

/// The key of the attributes of a node of v2.
fn attributes_key(change: &NodeChange) -> Option<Key> {
    let prefix = (change.dialect == Dialect::V2).then(|| node_prefix(&change.path).ok()).flatten()?;
    join_key(&prefix, ".zattrs")
}
