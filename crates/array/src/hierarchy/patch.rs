//! Updating the metadata of a node.

use std::sync::Arc;

use zarrd_meta::{Dialect, NodePath, documents::NodePatch};
use zarrd_operations::{Depth, NodeRejection};
use zarrd_store::{Precondition, StoreError};

use super::{
    create::commit,
    intents::{Unfinished, Unsettled},
    shrink::{ShrinkIntent, finish, shrinks},
    walk::{mode::WalkOptions, walker::walk},
};
use crate::{
    context::Context,
    error::ArrayError,
    metadata::{
        array_update::plan_array_update,
        change_set::ChangeSet,
        consolidated::{NodeChange, update_consolidated_metadata},
        error::NodeError,
        keys,
        model::{NodeModel, read_model},
        tree::{NodeKind, NodeTree, group_tree},
    },
    node::{read_set::NodeVersions, resolved::ResolvedNode},
};

/// One attempt to update a node; returns its dialect, or `None` if it changed meanwhile.
pub(crate) async fn attempt(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Option<Dialect>,
    changes: &NodePatch,
    condition: &Precondition,
) -> Result<Option<Dialect>, NodeError> {
    let check_precondition = |version| match condition.is_met_by(version) {
        true => Ok(()),
        false => Err(NodeError::Rejected(NodeRejection::PreconditionFailed { path: path.clone(), current: version })),
    };
    let (change_set, dialect) = match context.resolve_node(path, dialect).await? {
        Some(ResolvedNode::Array(resolved)) => {
            check_precondition(Some(resolved.version()))?;
            if let Some(broken) = &resolved.unreadable_attributes {
                return Err(ArrayError::Broken(broken.clone()).into());
            }
            let change_set = plan_array_update(context, path, &resolved, changes).await?;
            let dialect = resolved.array.model().dialect;
            if shrinks(resolved.array.model(), changes) {
                return shrink(context, path, dialect, change_set).await;
            }
            (change_set, dialect)
        }
        _ => {
            let top = walk(context, path, dialect, WalkOptions::new(Depth::Levels(0))).await?.top;
            check_precondition((!top.is_implicit()).then(|| top.own.version()))?;
            (plan_group_update(context, &top, changes).await?, top.dialect)
        }
    };
    if !change_set.changes_anything() {
        return Ok(Some(dialect));
    }
    Ok(commit(context, change_set).await?.map(|_| dialect))
}

/// Shrinks an array; `None` if it changed meanwhile.
async fn shrink(
    context: &Arc<Context>,
    path: &NodePath,
    dialect: Dialect,
    change_set: ChangeSet,
) -> Result<Option<Dialect>, NodeError> {
    let intent = ShrinkIntent { path: path.clone(), dialect };
    let (unfinished, intend) = Unfinished::begin(context, Unsettled::Shrink(intent.clone()))?;
    let mut all = change_set.stage(&**context.writes()?).await?;
    all.push(intend);
    match context.writes()?.commit(all).await {
        Ok(_) => {}
        Err(StoreError::PreconditionFailed { .. }) => {
            unfinished.settled();
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    finish(context, unfinished.id(), &intent).await?;
    unfinished.settled();
    Ok(Some(dialect))
}

async fn plan_group_update(context: &Context, top: &NodeTree, changes: &NodePatch) -> Result<ChangeSet, NodeError> {
    let path = &top.path;
    let mut change_set = ChangeSet::default();
    let mut node_changes = Vec::new();
    update_group_documents(&mut change_set, &mut node_changes, top, changes)?;
    let other = match top.dialect {
        Dialect::V3 => Some(Dialect::V2),
        Dialect::V2 => Some(Dialect::V3),
        Dialect::Draft => None,
    };
    if let Some(other) = other.filter(|_| !top.is_implicit()) {
        match context.resolve_node(path, Some(other)).await {
            // Only a group with a document of its own is a counterpart, so nothing below it is read.
            Ok(Some(ResolvedNode::Group(twin))) if twin.model.is_some() => {
                update_group_documents(&mut change_set, &mut node_changes, &group_tree(path, *twin), changes)?;
            }
            Ok(_) | Err(ArrayError::Document { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    update_consolidated_metadata(context, &mut change_set, path, &[], &node_changes).await?;
    Ok(change_set)
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
