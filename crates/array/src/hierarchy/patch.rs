//! Changing what is said of a node.

use futures::TryStreamExt;
use meta::{ArrayModel, Dialect, NodePath, documents::Changes};
use store::{MAX_COMMIT_CHANGES, Precondition, Prefix};

use super::{
    Depth, NodeError,
    consolidated::{Told, keep_true},
    declare::commit,
    documents::edits_of_array,
    edits::Edits,
    found::{Model, model_of},
    keys,
    walk::{Branch, Form, Mode, group_branch, walk},
};
use crate::{
    ArrayError,
    find::{Own, Sight, Sighting},
    shared::Shared,
};

/// One attempt to change a node, and the dialect that it has; `None` where somebody else changed it.
pub(super) async fn attempt(
    shared: &Shared,
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
            let mut edits = edits_of_array(shared, path, &sighting, changes).await?;
            erase_outside(shared, path, &sighting, changes, &mut edits).await?;
            (edits, sighting.array.model().dialect)
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

/// Erases the chunks that a smaller shape leaves outside. They are found among the keys that there are, since a grid may have any number of chunks.
async fn erase_outside(
    shared: &Shared,
    path: &NodePath,
    sighting: &Sighting,
    changes: &Changes,
    edits: &mut Edits,
) -> Result<(), NodeError> {
    let before = sighting.array.model();
    if changes.shape.is_none() {
        return Ok(());
    }
    let Model::Array(after) = changed(path, sighting, changes)? else { return Ok(()) };
    if after.shape.iter().zip(&before.shape).all(|(after, before)| after >= before) {
        return Ok(());
    }
    let pieces: Vec<u64> =
        after.grid.dimensions().iter().zip(&after.shape).map(|(grid, extent)| grid.pieces(*extent)).collect();
    let prefix = chunk_prefix(path, before, sighting.root.as_ref().map(|root| &root.prefix))?;
    let mut outside = 0_usize;
    let mut entries = std::pin::pin!(store::walk(&*shared.store, &prefix));
    while let Some(entry) = entries.try_next().await? {
        let name = prefix.strip(&entry.key).unwrap_or_default();
        let Some(position) = before.chunk_keys.parse(name, before.shape.len()) else { continue };
        if position.iter().zip(&pieces).any(|(index, pieces)| index >= pieces) {
            outside += 1;
            if edits.len() <= MAX_COMMIT_CHANGES {
                edits.erase(entry.key);
            }
        }
    }
    match edits.len() > MAX_COMMIT_CHANGES {
        true => Err(NodeError::TooManyChanges { changes: outside as u64, limit: MAX_COMMIT_CHANGES }),
        false => Ok(()),
    }
}

/// The model that the array has afterwards.
fn changed(path: &NodePath, sighting: &Sighting, changes: &Changes) -> Result<Model, NodeError> {
    let model = sighting.array.model();
    let stored = changes.of_array(model)?;
    model_of(&Branch {
        path: path.clone(),
        dialect: model.dialect,
        form: Form::Array,
        stored,
        own: sighting.own.clone(),
        root: sighting.root.clone().filter(|_| model.dialect == Dialect::Draft),
        members: None,
        broken: None,
    })
}

/// What the keys of the chunks of an array begin with; `hierarchy` is the prefix of its hierarchy of the draft.
pub(super) fn chunk_prefix(
    path: &NodePath,
    model: &ArrayModel,
    hierarchy: Option<&Prefix>,
) -> Result<Prefix, NodeError> {
    let text = match (model.dialect, hierarchy) {
        (Dialect::Draft, Some(hierarchy)) => format!("{}{}", hierarchy.as_str(), model.chunk_prefix),
        _ => format!("{}{}", path.key_prefix(), model.chunk_prefix),
    };
    Prefix::parse(&text).map_err(|_| keys::too_long(model.dialect, path))
}
