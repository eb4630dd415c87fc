//! Stray keys: keys at the place of a new array that belong to no node.
//!
//! They would become elements of the array, or documents of nodes below it, without anyone intending that. So the place
//! of a new array has to be empty when it is created, unless the request says what to do with the keys. Erased and
//! replaced arrays leave none behind; stray keys come from raw writes of single keys.

use std::collections::BTreeSet;

use futures::TryStreamExt;
use zarrd_meta::NodePath;
use zarrd_operations::{IfExists, NodeRejection};
use zarrd_store::{Key, PageRequest, Prefix, list_all};

use super::placement::NodePlacement;
use crate::{
    context::Context,
    metadata::{
        change_set::ChangeSet,
        error::NodeError,
        keys::{self, is_at_or_below},
        tree::{NodeKind, NodeTree},
    },
};

/// The prefixes of a new tree, if all nodes are new and there is no key at its place, which is the common case.
pub(crate) async fn empty_prefixes(
    context: &Context,
    nodes: &[NodePlacement<'_>],
) -> Result<Option<Vec<Prefix>>, NodeError> {
    let Some(NodePlacement { node: top, .. }) = nodes.first() else { return Ok(None) };
    if !nodes.iter().all(|placement| placement.is_new() && placement.node.path.relative_to(&top.path).is_some()) {
        return Ok(None);
    }
    let places = node_prefixes(top)?;
    match first_key(context, &places).await? {
        None => Ok(Some(places)),
        // What a declaration left that was cut: its documents are compared when they are set.
        Some(_) if context.is_keyed_at(&top.path) && has_only_documents(context, nodes, &places).await? => {
            Ok(Some(Vec::new()))
        }
        Some(_) => Ok(None),
    }
}

/// True if all keys below some prefixes are keys of documents of these nodes.
async fn has_only_documents(
    context: &Context,
    nodes: &[NodePlacement<'_>],
    places: &[Prefix],
) -> Result<bool, NodeError> {
    let mut planned = BTreeSet::new();
    for NodePlacement { node, .. } in nodes {
        planned.extend(keys::document_keys(&node.path, node.dialect, node.kind, node.root.as_ref())?);
    }
    for place in places {
        let mut entries = std::pin::pin!(list_all(&*context.store, place));
        while let Some(entry) = entries.try_next().await? {
            if !planned.contains(&entry.key) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Adds the treatment of stray keys to a change set: a check that there are none, or their erasure; returns the arrays
/// at whose places keys are erased. `nodes` get documents, each with the versions of its current ones; `erased` are
/// those that the commit erases with everything below them.
pub(crate) async fn settle<'n>(
    context: &Context,
    change_set: &mut ChangeSet,
    nodes: &[NodePlacement<'n>],
    erased: &BTreeSet<NodePath>,
    existing: IfExists,
) -> Result<Vec<&'n NodeTree>, NodeError> {
    let is_new_array = |placement: &&NodePlacement<'_>| {
        placement.node.kind == NodeKind::Array && placement.is_new() && !is_at_or_below(erased, &placement.node.path)
    };
    let arrays: Vec<&'n NodeTree> = nodes.iter().filter(is_new_array).map(|placement| placement.node).collect();
    if existing == IfExists::Adopt || arrays.is_empty() {
        return Ok(Vec::new());
    }
    let mut cleared = Vec::new();
    for array in arrays {
        let places = node_prefixes(array)?;
        match (first_key(context, &places).await?, existing) {
            (None, _) => places.into_iter().for_each(|place| change_set.check_empty(place)),
            (Some(key), IfExists::Fail) => {
                return Err(NodeError::Rejected(NodeRejection::StrayKeys { path: array.path.clone(), key }));
            }
            (Some(_), IfExists::Replace) => {
                places.into_iter().for_each(|place| change_set.erase_prefix(place));
                cleared.push(array);
            }
            (Some(_), IfExists::Adopt) => {}
        }
    }
    Ok(cleared)
}

/// The prefixes of a node, including everything below it.
fn node_prefixes(node: &NodeTree) -> Result<Vec<Prefix>, NodeError> {
    Ok(keys::subtree_keys(&node.path, node.dialect, node.root.as_ref())?.prefixes)
}

/// The first key below any of some prefixes.
pub(crate) async fn first_key(context: &Context, places: &[Prefix]) -> Result<Option<Key>, NodeError> {
    for place in places {
        let found = context.store.list_prefix(place, PageRequest::first(1)).await?;
        if let Some(entry) = found.keys.into_iter().next() {
            return Ok(Some(entry.key));
        }
    }
    Ok(None)
}
