//! Converting hierarchies in place: documents of another dialect over the same chunks.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use serde_json::json;
use zarrd_executor::{Cost, Work};
use zarrd_meta::{
    Dialect, NodePath,
    convert::{ChunkPolicy, Loss, Unconvertible},
    documents::{
        draft, parse_object,
        write::{CONSOLIDATED, ConsolidatedEntry, StoredNode, update_consolidated, with_empty_consolidated},
    },
    json::Json,
};
use zarrd_operations::{
    BrokenNode, ConversionReport, ConvertOptions, Depth, ExistingDocuments, LossPolicy, NodeRejection,
};
use zarrd_store::{Entry, Key, Version};

use super::{
    array_contexts::ArrayContexts,
    conversion::{Conversion, ConvertedNode},
    create::commit,
    shrinking_commit::commit_shrinks,
    siblings,
    walk::{
        mode::WalkOptions,
        walker::{Walk, walk},
    },
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        change_set::ChangeSet,
        consolidated::{has_copies_above, update_consolidated_metadata},
        copy_update::NodeChange,
        error::{NodeError, too_many_nodes},
        intent_record::ShrinkIntent,
        keys,
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree},
    },
    node::{
        broken::Broken,
        keys::{join_key, node_prefix},
        read_set::NodeVersions,
    },
};

/// The number of keys that are looked up at a time.
const LOOKUP_BATCH: usize = 4096;

/// One attempt to write documents of another dialect over the same chunks; `None` if the hierarchy changed meanwhile.
///
/// Documents of that dialect stay, unless they are to be overwritten. An array that becomes smaller than an overwritten
/// document had it is shrunk: the chunks outside are erased before this returns, and by the next start if it does not.
pub(crate) async fn in_place(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Option<Dialect>,
    conversion: &ConvertOptions,
) -> Result<Option<ConversionReport>, NodeError> {
    let to = conversion.dialect;
    let walk = walk(context, path, dialect, WalkOptions::new(Depth::All)).await?;
    check_convertible(&walk.top)?;
    let from = walk.top.dialect;
    let mut report = ConversionReport { nodes: 0, chunks: 0, losses: Vec::new() };
    if from == to {
        return Ok(Some(report));
    }
    if from == Dialect::Draft || to == Dialect::Draft {
        return Err(NodeError::NotInPlace { from, to });
    }
    let Walk { top, memory, .. } = walk;
    let nodes = top.len();
    let mut change_set = ChangeSet::default();
    let shrunk = match conversion.existing {
        ExistingDocuments::Keep => Vec::new(),
        ExistingDocuments::Overwrite => shrunk_arrays(context, &top, to, &mut change_set).await?,
    };
    let edits = in_place_edits(context, top, (to, conversion.existing, change_set), &mut report);
    let change_set = context.run_future(Cost::of(Work::Lookups, nodes as u64), edits).await??;
    check_losses(conversion, &report.losses)?;
    if !change_set.changes_anything() {
        return Ok(Some(report));
    }
    let committed = match shrunk.is_empty() {
        true => commit(context, change_set).await?.is_some(),
        false => commit_shrinks(context, change_set, shrunk).await?,
    };
    drop(memory);
    Ok(committed.then_some(report))
}

/// The arrays that the other dialect has with a larger shape in some dimension, or with a document that cannot be read.
/// The versions of the documents that are smaller join the conditions.
async fn shrunk_arrays(
    context: &Context,
    top: &NodeTree,
    to: Dialect,
    change_set: &mut ChangeSet,
) -> Result<Vec<ShrinkIntent>, NodeError> {
    // The first record of a key counts, and what is resolved now may be newer than the tree.
    for (key, version) in top.all().iter().flat_map(|node| &node.own.0) {
        change_set.record_read(key, *version);
    }
    let mut shrunk = Vec::new();
    for node in top.readable() {
        let NodeModel::Array(model) = read_model(node)? else { continue };
        let is_smaller = match context.resolve_array(&node.path, Some(to)).await {
            Ok(other) => {
                change_set.record_reads(&other.read_set);
                let other = &other.array.model().shape;
                other.len() != model.shape.len() || model.shape.iter().zip(other).any(|(after, before)| after < before)
            }
            Err(ArrayError::NoSuchNode { .. } | ArrayError::NotAnArray { .. }) => false,
            Err(ArrayError::Document { .. } | ArrayError::Broken(_)) => true,
            Err(error) => return Err(error.into()),
        };
        if is_smaller {
            shrunk.push(ShrinkIntent { path: node.path.clone(), dialect: to });
        }
    }
    Ok(shrunk)
}

/// The changes that add documents of another dialect to those of a tree, whose memory is released meanwhile.
async fn in_place_edits(
    context: &Context,
    top: NodeTree,
    (to, policy, mut change_set): (Dialect, ExistingDocuments, ChangeSet),
    report: &mut ConversionReport,
) -> Result<ChangeSet, NodeError> {
    let path = top.path.clone();
    let contexts = Arc::new(ArrayContexts::find(context, &top, to).await?);
    let conversion = || Conversion::new(to, ChunkPolicy::Preserve, contexts.clone(), path.clone());
    let nodes = top.readable();
    let existing = existing_keys(context, &path, nodes.len(), to).await?;
    let (mut converted, mut unread) =
        already_converted(context, &nodes, to, existing.as_ref(), &mut change_set).await?;
    if policy == ExistingDocuments::Overwrite {
        converted.clear();
        unread.clear();
        erase_other_kinds(context, &nodes, to, &mut change_set).await?;
    }
    let attributes = stray_attributes(context, &nodes, (to, &converted), existing.as_ref()).await?;
    report.losses.extend(unread.into_iter().chain(top.broken()).map(broken_as_losses));
    let documents = if to == Dialect::V2 { 2 } else { 1 };
    let read = top.all().iter().map(|node| node.own.0.len()).fold(0, usize::saturating_add);
    change_set.reserve(read.saturating_add(nodes.len().saturating_sub(converted.len()).saturating_mul(documents)));
    let consolidated = copy_consolidated(context, &nodes, &conversion, existing.as_ref(), &mut change_set).await?;
    drop(nodes);
    let conversion = conversion();
    let node_changes = has_copies_above(context, &mut change_set, &path, to).await?.then(Vec::new);
    let mut edits = InPlaceEdits {
        conversion,
        converted,
        attributes,
        consolidated,
        change_set,
        node_changes,
        nodes: 0,
        losses: Vec::new(),
        unconvertible: Vec::new(),
    };
    edits.add(top)?;
    let InPlaceEdits { mut change_set, node_changes, nodes, mut losses, unconvertible, .. } = edits;
    if let Some(error) = NodeError::unconvertible(unconvertible) {
        return Err(error);
    }
    // Parents come first in the report.
    losses.sort_by_key(|(path, _)| path.ancestors().count());
    report.losses.append(&mut losses);
    report.nodes = nodes;
    if let Some(node_changes) = node_changes {
        update_consolidated_metadata(context, &mut change_set, &path, &[], &node_changes).await?;
    }
    Ok(change_set)
}

/// The changes of a conversion in place, node by node.
struct InPlaceEdits {
    conversion: Conversion,
    /// The nodes that have a document of the other dialect.
    converted: HashSet<NodePath>,
    /// The attributes of v2 that are at the paths of other nodes.
    attributes: HashMap<Key, Version>,
    /// The documents of groups that get consolidated metadata.
    consolidated: BTreeMap<NodePath, Json>,
    change_set: ChangeSet,
    /// The changed nodes, if there is consolidated metadata to update.
    node_changes: Option<Vec<NodeChange>>,
    nodes: u64,
    losses: Vec<(NodePath, Loss)>,
    /// The arrays that cannot be converted.
    unconvertible: Vec<(NodePath, Unconvertible)>,
}

impl InPlaceEdits {
    /// Adds the changes of a node and of everything below it.
    fn add(&mut self, node: NodeTree) -> Result<(), NodeError> {
        for (key, version) in &node.own.0 {
            self.change_set.record_read(key, *version);
        }
        if node.broken.is_none() {
            self.convert(&node)?;
        }
        node.members.into_iter().flatten().try_for_each(|(_, member)| self.add(member))
    }

    fn convert(&mut self, node: &NodeTree) -> Result<(), NodeError> {
        let to = self.conversion.to;
        let ConvertedNode { stored, losses } = match self.conversion.convert(node) {
            Ok(converted) => converted,
            // All are named, not only the first.
            Err(NodeError::Unconvertible { path, source, .. }) => {
                self.unconvertible.push((path, source));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.losses.extend(losses.iter().map(|loss| (node.path.clone(), loss.clone())));
        if self.converted.contains(&node.path) {
            return Ok(());
        }
        self.nodes = self.nodes.saturating_add(1);
        let keys = keys::document_keys(&node.path, to, node.kind, None)?;
        let found = |key: Key| {
            let version = self.attributes.get(&key).copied();
            (key, version)
        };
        let own = NodeVersions(keys.into_iter().map(found).collect());
        own.0.iter().for_each(|(key, version)| self.change_set.record_read(key, *version));
        let stored = match self.consolidated.remove(&node.path) {
            Some(document) => Cow::Owned(StoredNode { document, ..stored.clone() }),
            None => Cow::Borrowed(stored),
        };
        self.change_set.rewrite(&own, None, &stored);
        if let Some(node_changes) = &mut self.node_changes {
            let (path, node) = (node.path.clone(), Some(stored.into_owned()));
            node_changes.push(NodeChange { path, dialect: to, node });
        }
        Ok(())
    }
}

/// Fails if something would be lost that must not be.
pub(crate) fn check_losses(conversion: &ConvertOptions, losses: &[(NodePath, Loss)]) -> Result<(), NodeError> {
    if conversion.losses == LossPolicy::Allow || losses.is_empty() {
        return Ok(());
    }
    let (dialect, losses) = (conversion.dialect, losses.to_vec());
    Err(NodeError::Rejected(NodeRejection::LossyConversion { dialect, losses }))
}

/// Fails if there are groups below the maximum depth, which were not read.
pub(crate) fn check_convertible(top: &NodeTree) -> Result<(), NodeError> {
    let unseen = |node: &&NodeTree| node.kind == NodeKind::Group && node.members.is_none();
    match top.readable().iter().any(unseen) {
        true => Err(too_many_nodes()),
        false => Ok(()),
    }
}

/// A broken node that is left out, as a loss of the report.
pub(crate) fn broken_as_losses(node: BrokenNode) -> (NodePath, Loss) {
    let property = format!("the node is left out: {}", Broken::of(&node));
    let path = node.path;
    (path, Loss { pointer: String::new(), property })
}

/// The documents of the other dialect, and of consolidated metadata of v2, below a path; `None` if there are too many
/// keys to look at all.
async fn existing_keys(
    context: &Context,
    path: &NodePath,
    nodes: usize,
    to: Dialect,
) -> Result<Option<HashSet<Key>>, NodeError> {
    let names: &[&str] = match to {
        Dialect::V2 => &[".zarray", ".zgroup", ".zattrs"],
        Dialect::V3 | Dialect::Draft => &["zarr.json", ".zmetadata"],
    };
    let mut existing = HashSet::new();
    let take = |entry: Entry| {
        if names.contains(&entry.key.name()) {
            existing.insert(entry.key);
        }
    };
    let is_complete = siblings::scan_keys(context, &node_prefix(path)?, nodes, take).await?;
    Ok(is_complete.then_some(existing))
}

/// The nodes that already have a document of the other dialect, and those of them whose document cannot be read. The
/// documents are among the conditions of the commit.
async fn already_converted(
    context: &Context,
    nodes: &[&NodeTree],
    to: Dialect,
    existing: Option<&HashSet<Key>>,
    change_set: &mut ChangeSet,
) -> Result<(HashSet<NodePath>, Vec<BrokenNode>), NodeError> {
    let (mut converted, mut unread) = (HashSet::new(), Vec::new());
    for nodes in nodes.chunks(LOOKUP_BATCH) {
        let mut keys = Vec::new();
        for node in nodes {
            let own = keys::document_keys(&node.path, to, node.kind, None)?.into_iter().take(1);
            keys.extend(own.filter(|key| may_exist(key, existing)).map(|key| (&node.path, key)));
        }
        let named: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
        let snapshot = context.store.snapshot(&named).await?;
        for (path, key) in keys {
            let Some(value) = snapshot.get(&key, None).await? else { continue };
            change_set.record_read(&key, Some(value.meta.version));
            let document = parse_object(value.bytes().await?);
            if to == Dialect::V3 && document.as_ref().is_ok_and(draft::has_uri) {
                let (path, dialect) = (path.clone(), Dialect::Draft);
                return Err(NodeError::Rejected(NodeRejection::DialectConflict { path, dialect }));
            }
            if let Err(error) = document {
                unread.push(Broken::new(&key, &error).at(path.clone(), to));
            }
            converted.insert(path.clone());
        }
    }
    Ok((converted, unread))
}

/// Erases the documents of groups of v2 at the paths of arrays, and of arrays at those of groups.
async fn erase_other_kinds(
    context: &Context,
    nodes: &[&NodeTree],
    to: Dialect,
    change_set: &mut ChangeSet,
) -> Result<(), NodeError> {
    if to != Dialect::V2 {
        return Ok(());
    }
    for nodes in nodes.chunks(LOOKUP_BATCH) {
        let mut keys = Vec::new();
        for node in nodes {
            let other = match node.kind {
                NodeKind::Array => NodeKind::Group,
                NodeKind::Group => NodeKind::Array,
            };
            keys.extend(keys::document_keys(&node.path, to, other, None)?.into_iter().take(1));
        }
        let snapshot = context.store.snapshot(&keys).await?;
        for key in keys {
            let version = snapshot.meta(&key).await?.map(|info| info.version);
            change_set.record_read(&key, version);
            if version.is_some() {
                change_set.erase(key);
            }
        }
    }
    Ok(())
}

/// The attributes of v2 at the paths of nodes that have no other document of v2, with their versions.
async fn stray_attributes(
    context: &Context,
    nodes: &[&NodeTree],
    (to, converted): (Dialect, &HashSet<NodePath>),
    existing: Option<&HashSet<Key>>,
) -> Result<HashMap<Key, Version>, NodeError> {
    let mut found = HashMap::new();
    if to != Dialect::V2 {
        return Ok(found);
    }
    for nodes in nodes.chunks(LOOKUP_BATCH) {
        let mut keys = Vec::new();
        for node in nodes.iter().filter(|node| !converted.contains(&node.path)) {
            let attributes = keys::document_keys(&node.path, to, node.kind, None)?.into_iter().skip(1);
            keys.extend(attributes.filter(|key| may_exist(key, existing)));
        }
        let snapshot = context.store.snapshot(&keys).await?;
        for key in keys {
            if let Some(info) = snapshot.meta(&key).await? {
                found.insert(key, info.version);
            }
        }
    }
    Ok(found)
}

fn may_exist(key: &Key, existing: Option<&HashSet<Key>>) -> bool {
    existing.is_none_or(|existing| existing.contains(key))
}

/// Copies consolidated metadata of groups to the other dialect: in v2 as documents of their own, which are added to the
/// change set, in v3 in the documents of the groups, which are returned.
async fn copy_consolidated(
    context: &Context,
    nodes: &[&NodeTree],
    conversion: &impl Fn() -> Conversion,
    existing: Option<&HashSet<Key>>,
    change_set: &mut ChangeSet,
) -> Result<BTreeMap<NodePath, Json>, NodeError> {
    let to = conversion().to;
    let mut documents = BTreeMap::new();
    let groups: Vec<&NodeTree> = nodes.iter().copied().filter(|node| node.kind == NodeKind::Group).collect();
    for groups in groups.chunks(LOOKUP_BATCH) {
        for (group, key) in with_consolidated(context, groups, to, existing, change_set).await? {
            let copies = copies_below(group, conversion())?;
            let entries = copies.iter().map(|(below, stored)| ConsolidatedEntry { path: below, node: Some(stored) });
            match (to, copies.first()) {
                (Dialect::V2 | Dialect::Draft, _) => {
                    let empty = Json::pretty(&json!({"zarr_consolidated_format": 1, "metadata": {}}));
                    change_set.set(key, update_consolidated(Dialect::V2, &empty, entries).to_bytes());
                }
                (Dialect::V3, Some((_, stored))) => {
                    let empty = with_empty_consolidated(&stored.document);
                    documents.insert(group.path.clone(), update_consolidated(Dialect::V3, &empty, entries));
                }
                (Dialect::V3, None) => {}
            }
        }
    }
    Ok(documents)
}

/// The groups that have consolidated metadata, each with the key of that of v2.
async fn with_consolidated<'a>(
    context: &Context,
    groups: &[&'a NodeTree],
    to: Dialect,
    existing: Option<&HashSet<Key>>,
    change_set: &mut ChangeSet,
) -> Result<Vec<(&'a NodeTree, Key)>, NodeError> {
    let mut keys = Vec::new();
    for group in groups {
        if to != Dialect::V3 && group.stored.document.get(CONSOLIDATED).is_none() {
            continue;
        }
        let key = join_key(&node_prefix(&group.path)?, ".zmetadata");
        keys.extend(key.filter(|key| to != Dialect::V3 || may_exist(key, existing)).map(|key| (*group, key)));
    }
    let named: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
    let snapshot = context.store.snapshot(&named).await?;
    let mut found = Vec::new();
    for (group, key) in keys {
        let info = snapshot.meta(&key).await?;
        change_set.record_read(&key, info.as_ref().map(|info| info.version));
        if to != Dialect::V3 || info.is_some() {
            found.push((group, key));
        }
    }
    Ok(found)
}

/// The documents of a group and of the readable nodes below it in another dialect, each with its path below the group.
fn copies_below(group: &NodeTree, mut conversion: Conversion) -> Result<Vec<(&str, StoredNode)>, NodeError> {
    let mut copies = Vec::new();
    for node in group.readable() {
        let below = node.path.relative_to(&group.path).unwrap_or_default();
        copies.push((below, conversion.convert(node)?.stored.clone()));
    }
    Ok(copies)
}
