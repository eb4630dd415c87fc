//! Updating the metadata of a node.

use std::sync::Arc;

use zarrd_meta::{
    Dialect, NodePath,
    documents::{NodePatch, write::StoredNode},
};
use zarrd_operations::{Depth, NodeRejection, PatchMode};
use zarrd_store::{Key, Precondition, until_unchanged};

use super::{
    create::commit,
    reshape_by_key,
    shrink::shrinks,
    shrinking_commit::commit_shrinks,
    walk::{
        mode::WalkOptions,
        walker::{ancestors, walk},
    },
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        array_update::plan_array_update,
        change_set::ChangeSet,
        consolidated::update_consolidated_metadata,
        copy_update::NodeChange,
        error::NodeError,
        intent_record::ShrinkIntent,
        keyed_commit::{self, Documents},
        keys,
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree, from_document},
    },
    node::{
        counterpart::{Counterpart, CounterpartNode},
        read_set::NodeVersions,
        resolved::{ResolvedArray, ResolvedNode},
    },
};

/// One attempt to update a node; returns its dialect, or `None` if it changed meanwhile.
pub(crate) async fn attempt(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Option<Dialect>,
    changes: &NodePatch,
    (condition, mode): (&Precondition, PatchMode),
) -> Result<Option<Dialect>, NodeError> {
    let check_precondition = |version| match condition.is_met_by(version) {
        true => Ok(()),
        false => Err(NodeError::Rejected(NodeRejection::PreconditionFailed { path: path.clone(), current: version })),
    };
    let (change_set, dialect) = match until_unchanged(|| context.resolve_node(path, dialect)).await? {
        Some(ResolvedNode::Array(resolved)) => {
            check_precondition(Some(resolved.version()))?;
            let counterpart = resolved.counterpart.as_deref().filter(|counterpart| counterpart.array().is_some());
            let broken = counterpart.and_then(|counterpart| counterpart.unreadable_attributes.as_ref());
            if let Some(broken) = resolved.unreadable_attributes.as_ref().or(broken) {
                return Err(ArrayError::Broken(broken.clone()).into());
            }
            let resolved = resolved.for_change()?;
            let mut change_set = plan_array_update(context, path, &resolved, changes).await?;
            let dialect = resolved.array.model().dialect;
            if context.is_keyed_at(path) {
                change_set.sort();
                let documents = documents(mode, || larger_first(&resolved));
                let apply = reshape_by_key::apply(context, path, &resolved, changes, (change_set, documents));
                let is_done = Box::pin(apply).await?;
                return Ok(is_done.then_some(dialect));
            }
            if shrinks(resolved.array.model(), changes) {
                let shrink = ShrinkIntent { path: path.clone(), dialect };
                return Ok(commit_shrinks(context, change_set, vec![shrink]).await?.then_some(dialect));
            }
            (change_set, dialect)
        }
        resolved => {
            let mut change_set = ChangeSet::default();
            let mut counterpart = None;
            match &resolved {
                Some(ResolvedNode::Group(group)) => {
                    change_set.record_reads(&group.read_set);
                    counterpart = group.counterpart.clone();
                }
                // That a group is implicit rests on the absence of documents at its path and of arrays above it.
                _ => {
                    let (_, versions) = ancestors(context, path).await?;
                    versions.iter().for_each(|(key, version)| change_set.record_read(key, *version));
                }
            }
            let walked = until_unchanged(|| walk(context, path, dialect, WalkOptions::new(Depth::Levels(0)))).await?;
            let top = walked.top;
            check_precondition((!top.is_implicit()).then(|| top.own.version()))?;
            if resolved.is_none() && !top.is_implicit() {
                return Ok(None);
            }
            plan_group_update(context, &mut change_set, &top, counterpart.as_deref(), changes).await?;
            (change_set, top.dialect)
        }
    };
    if !change_set.changes_anything() {
        return Ok(Some(dialect));
    }
    let committed = match context.is_keyed_at(path) {
        true => Box::pin(keyed_commit::apply_documents(context, change_set, documents(mode, Vec::new))).await?,
        false => commit(context, change_set).await?,
    };
    Ok(committed.map(|_| dialect))
}

/// The documents that an update may change, in a store that is written key by key.
fn documents(mode: PatchMode, order: impl FnOnce() -> Vec<Key>) -> Documents {
    match mode {
        PatchMode::Whole => Documents::One,
        PatchMode::Piecewise => Documents::Pieces(order()),
    }
}

/// The documents of an array, the larger shape first, which counts until the other one follows.
fn larger_first(resolved: &ResolvedArray) -> Vec<Key> {
    let own = resolved.versions.keys();
    let other = resolved.counterpart.iter().flat_map(|counterpart| counterpart.versions.keys());
    match resolved.document_shape {
        Some(_) => other.chain(own).cloned().collect(),
        None => own.chain(other).cloned().collect(),
    }
}

/// Plans the update of a group, and of the group that the other one of v2 and v3 has at its path.
async fn plan_group_update(
    context: &Context,
    change_set: &mut ChangeSet,
    top: &NodeTree,
    counterpart: Option<&Counterpart>,
    changes: &NodePatch,
) -> Result<(), NodeError> {
    let path = &top.path;
    let mut node_changes = Vec::new();
    if let Some(rejection) = counterpart.filter(|counterpart| !counterpart.allows_changes(None))
        && let Some(differ) = rejection.rejection(path, &top.own)
    {
        return Err(ArrayError::DialectsDiffer(differ).into());
    }
    update_group_documents(change_set, &mut node_changes, top, changes)?;
    if let Some(Counterpart { node: CounterpartNode::Group(model), versions, .. }) = counterpart {
        let stored = StoredNode::new(model.dialect, &model.document, &model.attributes);
        let other = from_document(path.clone(), model.dialect, NodeKind::Group, stored, versions.clone());
        update_group_documents(change_set, &mut node_changes, &other, changes)?;
    }
    update_consolidated_metadata(context, change_set, path, &[], &node_changes).await
}

fn update_group_documents(
    change_set: &mut ChangeSet,
    node_changes: &mut Vec<NodeChange>,
    group: &NodeTree,
    changes: &NodePatch,
) -> Result<(), NodeError> {
    let NodeModel::Group(model) = read_model(group)? else { return Ok(()) };
    let after = changes.apply_to_group(&model)?;
    let mut own = group.own.clone();
    if group.is_implicit() {
        let keys = keys::document_keys(&group.path, group.dialect, NodeKind::Group, group.root.as_ref())?;
        if group.dialect == Dialect::Draft {
            let arrays = keys::document_keys(&group.path, group.dialect, NodeKind::Array, group.root.as_ref())?;
            arrays.iter().for_each(|key| change_set.record_read(key, None));
        }
        own = NodeVersions(keys.into_iter().map(|key| (key, None)).collect());
    }
    for (key, version) in &own.0 {
        change_set.record_read(key, *version);
    }
    let changed = change_set.rewrite(&own, Some(&group.stored), &after);
    if changed && group.is_implicit() {
        // A group without a document gets a complete one, not only the differences.
        change_set.rewrite(&own, None, &after);
    }
    if changed && group.dialect != Dialect::Draft {
        node_changes.push(NodeChange { path: group.path.clone(), dialect: group.dialect, node: Some(after) });
    }
    Ok(())
}
