//! The documents that exist already at the paths of planned nodes.

use std::collections::{BTreeMap, HashMap};

use zarrd_meta::Dialect;
use zarrd_store::{Entry, Key, PageRequest, Prefix, Version};

use super::placement::NodePlacement;
use crate::{
    context::Context,
    metadata::{
        error::NodeError,
        keys::{self, NAMES},
        tree::NodeTree,
    },
    node::keys::{join_key, node_prefix},
};

/// The number of nodes that are looked up in one snapshot.
const BATCH: usize = 4096;

/// The number of keys that are scanned for each node, at most, before all nodes are looked up: about as expensive as
/// one of the four lookups.
const SCANNED_PER_NODE: usize = 8;

/// The versions of the documents of all dialects at the paths of some nodes, except for the main documents of existing
/// nodes, which are known. `top` is the topmost planned node.
pub(crate) async fn find(
    context: &Context,
    top: &NodeTree,
    nodes: &[NodePlacement<'_>],
) -> Result<BTreeMap<Key, Version>, NodeError> {
    // There are often few keys at the place of a large new tree. Documents of the draft have only one key.
    if top.dialect != Dialect::Draft
        && let Some(found) = scan(context, top, nodes).await?
    {
        return Ok(found);
    }
    look_up(context, nodes).await
}

/// The keys of the documents of a planned node.
pub(crate) fn document_keys(node: &NodeTree) -> Result<Vec<Key>, NodeError> {
    keys::document_keys(&node.path, node.dialect, node.kind, node.root.as_ref())
}

/// Scans the keys below a node of v2 or v3 for the documents of nodes; `None` if there are too many keys.
async fn scan(
    context: &Context,
    top: &NodeTree,
    nodes: &[NodePlacement<'_>],
) -> Result<Option<BTreeMap<Key, Version>>, NodeError> {
    // Each node's path, with the main document that is known.
    let nodes: HashMap<&str, Option<&Key>> =
        nodes.iter().map(|NodePlacement { node, before, .. }| (node.path.relative(), before.keys().next())).collect();
    let is_sibling = |key: &Key| {
        let (path, name) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
        NAMES.contains(&name) && nodes.get(path).is_some_and(|known| *known != Some(key))
    };
    let mut found = BTreeMap::new();
    let take = |entry: Entry| {
        if is_sibling(&entry.key) {
            found.insert(entry.key, entry.meta.version);
        }
    };
    let is_complete = scan_keys(context, &node_prefix(&top.path)?, nodes.len(), take).await?;
    Ok(is_complete.then_some(found))
}

/// Visits all keys below a prefix; returns false if there are more than it takes to look up so many nodes.
pub(crate) async fn scan_keys(
    context: &Context,
    prefix: &Prefix,
    nodes: usize,
    mut take: impl FnMut(Entry),
) -> Result<bool, NodeError> {
    let (mut left, mut cursor) = (nodes.saturating_mul(SCANNED_PER_NODE), None);
    loop {
        let page = context.store.list_prefix(prefix, PageRequest { limit: left.saturating_add(1), cursor }).await?;
        if page.keys.len() > left {
            return Ok(false);
        }
        left = left.saturating_sub(page.keys.len());
        page.keys.into_iter().for_each(&mut take);
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(true);
        }
    }
}

/// Looks up the documents of each node.
async fn look_up(context: &Context, nodes: &[NodePlacement<'_>]) -> Result<BTreeMap<Key, Version>, NodeError> {
    let mut found = BTreeMap::new();
    for nodes in nodes.chunks(BATCH) {
        let mut keys = Vec::new();
        for NodePlacement { node, before, .. } in nodes {
            let known = before.keys().next();
            let is_unknown = |key: &Key| Some(key) != known;
            match node.dialect {
                Dialect::Draft => keys.extend(document_keys(node)?.into_iter().filter(is_unknown)),
                Dialect::V2 | Dialect::V3 => {
                    let prefix = node_prefix(&node.path)?;
                    keys.extend(NAMES.iter().filter_map(|name| join_key(&prefix, name)).filter(is_unknown));
                }
            }
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
