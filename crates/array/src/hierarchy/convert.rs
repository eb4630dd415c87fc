//! Converting hierarchies in place: documents of another dialect over the same chunks.

use std::collections::{BTreeMap, BTreeSet};

use meta::{
    Dialect, NodePath,
    convert::{ChunkKeyPolicy, Converted, Loss},
    documents::{
        draft, parse_object,
        write::{CONSOLIDATED, ConsolidatedEntry, StoredNode, update_consolidated, with_empty_consolidated},
    },
    json::Json,
    zom::MAX_NODES,
};
use operations::{BrokenNode, ConversionReport, ConvertOptions, Depth, NodeRejection};
use serde_json::json;
use store::Key;

use super::{
    create::commit,
    walk::{mode::DialectMode, walker::walk},
};
use crate::{
    context::Context,
    metadata::{
        change_set::ChangeSet,
        consolidated::{NodeChange, update_consolidated_metadata},
        error::NodeError,
        keys,
        model::read_model,
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
pub(crate) async fn in_place(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
    conversion: &ConvertOptions,
) -> Result<Option<ConversionReport>, NodeError> {
    let to = conversion.dialect;
    let walk = walk(context, path, dialect, Depth::All, DialectMode::Same).await?;
    check_convertible(&walk.top)?;
    let from = walk.top.dialect;
    let mut report = ConversionReport { nodes: 0, chunks: 0, losses: Vec::new() };
    if from == to {
        return Ok(Some(report));
    }
    if from == Dialect::Draft || to == Dialect::Draft {
        return Err(NodeError::NotInPlace { from, to });
    }
    let change_set =
        context.run_lookups(walk.top.all().len(), in_place_edits(context, &walk.top, to, &mut report)).await??;
    if !change_set.changes_anything() {
        return Ok(Some(report));
    }
    Ok(commit(context, change_set).await?.map(|_| report))
}

/// The changes that add documents of another dialect to those of a tree.
async fn in_place_edits(
    context: &Context,
    top: &NodeTree,
    to: Dialect,
    report: &mut ConversionReport,
) -> Result<ChangeSet, NodeError> {
    let mut change_set = ChangeSet::default();
    let mut documents = BTreeMap::new();
    let (converted, unread) = already_converted(context, top, to).await?;
    report.losses.extend(unread.into_iter().chain(top.broken()).map(broken_as_losses));
    for node in top.all() {
        for (key, version) in &node.own.0 {
            change_set.record_read(key, *version);
        }
    }
    for node in top.readable() {
        let Converted { document, losses } = read_model(node)?.convert(&node.path, to, ChunkKeyPolicy::Preserve)?;
        report.losses.extend(losses.into_iter().map(|loss| (node.path.clone(), loss)));
        documents.insert(node.path.clone(), (node.kind, StoredNode::from_node_document(to, &document).formatted()));
    }
    copy_attributes(context, top, to, &mut documents, &mut change_set).await?;
    let mut node_changes = Vec::new();
    for (path, (kind, stored)) in documents {
        // A node with such a document was converted before.
        if converted.contains(&path) {
            continue;
        }
        report.nodes += 1;
        let keys = keys::document_keys(&path, to, kind, None)?;
        let own = NodeVersions(keys.into_iter().map(|key| (key, None)).collect());
        if let Some((key, _)) = own.0.first() {
            change_set.record_read(key, None);
        }
        change_set.rewrite(&own, None, &stored);
        node_changes.push(NodeChange { path, dialect: to, node: Some(stored) });
    }
    update_consolidated_metadata(context, &mut change_set, &top.path, &[], &node_changes).await?;
    Ok(change_set)
}

/// Fails if there are groups below the maximum depth, which were not read.
pub(crate) fn check_convertible(top: &NodeTree) -> Result<(), NodeError> {
    let unseen = |node: &&NodeTree| node.kind == NodeKind::Group && node.members.is_none();
    match top.readable().iter().any(unseen) {
        true => Err(NodeError::Rejected(NodeRejection::TooManyNodes { limit: MAX_NODES as u64 })),
        false => Ok(()),
    }
}

/// A broken node that is left out, as a loss of the report.
pub(crate) fn broken_as_losses(node: BrokenNode) -> (NodePath, Loss) {
    let property = format!("the node is left out: {}", Broken::of(&node));
    let path = node.path;
    (path, Loss { pointer: String::new(), property })
}

/// The nodes that already have a document of the other dialect, and those of them whose document cannot be read.
async fn already_converted(
    context: &Context,
    top: &NodeTree,
    to: Dialect,
) -> Result<(BTreeSet<NodePath>, Vec<BrokenNode>), NodeError> {
    let mut keys = Vec::new();
    for node in top.readable() {
        let own = keys::document_keys(&node.path, to, node.kind, None)?;
        keys.extend(own.into_iter().take(1).map(|key| (node.path.clone(), key)));
    }
    let named: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
    let snapshot = context.store.snapshot(&named).await?;
    let (mut converted, mut unread) = (BTreeSet::new(), Vec::new());
    for (path, key) in keys {
        let Some(value) = snapshot.get(&key, None).await? else { continue };
        let document = parse_object(value.bytes().await?);
        if to == Dialect::V3 && document.as_ref().is_ok_and(draft::has_uri) {
            return Err(NodeError::Rejected(NodeRejection::DialectConflict { path, dialect: Dialect::Draft }));
        }
        if let Err(error) = document {
            unread.push(Broken::new(&key, &error).at(path.clone(), to));
        }
        converted.insert(path);
    }
    Ok((converted, unread))
}

/// Copies consolidated metadata of groups to the other dialect.
async fn copy_attributes(
    context: &Context,
    top: &NodeTree,
    to: Dialect,
    documents: &mut BTreeMap<NodePath, (NodeKind, StoredNode)>,
    change_set: &mut ChangeSet,
) -> Result<(), NodeError> {
    let groups: Vec<&NodeTree> = top.readable().into_iter().filter(|node| node.kind == NodeKind::Group).collect();
    let mut copies = Vec::new();
    for groups in groups.chunks(LOOKUP_BATCH) {
        let mut keys = Vec::with_capacity(groups.len());
        for group in groups {
            keys.extend(join_key(&node_prefix(&group.path)?, ".zmetadata").map(|key| (*group, key)));
        }
        let converted: Vec<bool> = match to {
            Dialect::V3 => {
                let keys: Vec<Key> = keys.iter().map(|(_, key)| key.clone()).collect();
                let snapshot = context.store.snapshot(&keys).await?;
                let mut converted = Vec::with_capacity(keys.len());
                for key in &keys {
                    converted.push(snapshot.meta(key).await?.is_some());
                }
                converted
            }
            Dialect::V2 | Dialect::Draft => {
                keys.iter().map(|(group, _)| group.stored.document.get(CONSOLIDATED).is_some()).collect()
            }
        };
        let with_copies = keys.into_iter().zip(converted).filter(|(_, converted)| *converted);
        copies.extend(with_copies.map(|((group, key), _)| (group.path.clone(), key)));
    }
    for (group, key) in copies {
        let copies = documents.iter().filter_map(|(path, (_, stored))| {
            Some(ConsolidatedEntry { path: path.relative_to(&group)?, node: Some(stored) })
        });
        match to {
            Dialect::V2 | Dialect::Draft => {
                let empty = Json::pretty(&json!({"zarr_consolidated_format": 1, "metadata": {}}));
                change_set.set(key, update_consolidated(Dialect::V2, &empty, copies).to_bytes());
            }
            Dialect::V3 => {
                let Some((_, stored)) = documents.get(&group) else { continue };
                let document = update_consolidated(Dialect::V3, &with_empty_consolidated(&stored.document), copies);
                if let Some((_, stored)) = documents.get_mut(&group) {
                    stored.document = document;
                }
            }
        }
    }
    Ok(())
}
