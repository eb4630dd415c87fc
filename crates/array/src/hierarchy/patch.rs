//! Changing what is said of a node.

use std::sync::Arc;

use meta::{Dialect, NodePath, documents::Changes};
use store::{Precondition, StoreError};

use super::{
    Depth, NodeError,
    consolidated::{Told, keep_true},
    declare::commit,
    documents::edits_of_array,
    edits::Edits,
    found::{Model, model_of},
    intents::{Unfinished, Unsettled},
    keys,
    shrink::{ShrinkIntent, finish, shrinks},
    walk::{Branch, Form, Mode, group_branch, walk},
};
use crate::{
    ArrayError,
    find::{Own, Sight},
    shared::Shared,
};

/// One attempt to change a node, and the dialect that it has; `None` where somebody else changed it.
pub(super) async fn attempt(
    shared: &Arc<Shared>,
    path: &NodePath,
    dialect: Option<Dialect>,
    changes: &Changes,
    condition: &Precondition,
) -> Result<Option<Dialect>, NodeError> {
    let judge = |version| match condition.holds(version) {
        true => Ok(()),
        false => Err(NodeError::PreconditionFailed { path: path.clone(), current: version }),
    };
    let (edits, dialect) = match shared.see(path, dialect).await? {
        Some(Sight::Array(sighting)) => {
            judge(Some(sighting.version()))?;
            if let Some(broken) = &sighting.unread {
                return Err(ArrayError::Broken(broken.clone()).into());
            }
            let edits = edits_of_array(shared, path, &sighting, changes).await?;
            let dialect = sighting.array.model().dialect;
            if shrinks(sighting.array.model(), changes) {
                return shrink(shared, path, dialect, edits).await;
            }
            (edits, dialect)
        }
        _ => {
            let top = walk(shared, path, dialect, Depth::Levels(0), Mode::Same).await?.top;
            judge((!top.is_implicit()).then(|| top.own.version()))?;
            (edits_of_group(shared, &top, changes).await?, top.dialect)
        }
    };
    if !edits.changes_anything() {
        return Ok(Some(dialect));
    }
    Ok(commit(shared, edits).await?.map(|_| dialect))
}

/// Makes an array smaller; `None` if somebody else changed it.
async fn shrink(
    shared: &Arc<Shared>,
    path: &NodePath,
    dialect: Dialect,
    edits: Edits,
) -> Result<Option<Dialect>, NodeError> {
    let intent = ShrinkIntent { path: path.clone(), dialect };
    let (unfinished, intend) = Unfinished::begin(shared, Unsettled::Shrink(intent.clone()))?;
    let mut all = edits.stage(&*shared.store).await?;
    all.push(intend);
    match shared.store.commit(all).await {
        Ok(_) => {}
        Err(StoreError::PreconditionFailed { .. }) => {
            unfinished.settled();
            return Ok(None);
        }
        Err(error) => return Err(error.into()),
    }
    finish(shared, unfinished.id(), &intent).await?;
    unfinished.settled();
    Ok(Some(dialect))
}

async fn edits_of_group(shared: &Shared, top: &Branch, changes: &Changes) -> Result<Edits, NodeError> {
    let path = &top.path;
    let mut edits = Edits::default();
    let mut told = Vec::new();
    edit_group(&mut edits, &mut told, top, changes)?;
    let other = match top.dialect {
        Dialect::V3 => Some(Dialect::V2),
        Dialect::V2 => Some(Dialect::V3),
        Dialect::Draft => None,
    };
    if let Some(other) = other.filter(|_| !top.is_implicit()) {
        match shared.see(path, Some(other)).await {
            // A group is a twin by a document of its own only, so nothing below it is looked for.
            Ok(Some(Sight::Group(twin))) if twin.model.is_some() => {
                edit_group(&mut edits, &mut told, &group_branch(path, *twin), changes)?;
            }
            Ok(_) | Err(ArrayError::Document { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    keep_true(shared, &mut edits, path, &[], &told).await?;
    Ok(edits)
}

fn edit_group(edits: &mut Edits, told: &mut Vec<Told>, group: &Branch, changes: &Changes) -> Result<(), NodeError> {
    let Model::Group(model) = model_of(group)? else { return Ok(()) };
    let after = changes.of_group(&model)?;
    let mut own = group.own.clone();
    if group.is_implicit() {
        let keys = keys::documents(&group.path, group.dialect, Form::Group, group.root.as_ref())?;
        own = Own(keys.into_iter().map(|key| (key, None)).collect());
    }
    for (key, version) in &own.0 {
        edits.saw(key, *version);
    }
    let changed = edits.rewrite(&own, Some(&group.stored), &after);
    if changed && group.is_implicit() {
        // A group that had no document gets all of one, not only what differs.
        edits.rewrite(&own, None, &after);
    }
    if changed && group.dialect != Dialect::Draft {
        told.push(Told { path: group.path.clone(), dialect: group.dialect, node: Some(after) });
    }
    Ok(())
}
