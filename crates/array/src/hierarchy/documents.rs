//! Making the documents of a node say something new.

use std::sync::Arc;

use meta::{
    ArrayModel, Dialect, NodePath,
    documents::{Changes, write::join_v2},
};
use serde_json::{Map, Value};
use store::{Change, Key, Outcome, Version};

use super::{
    NodeError,
    consolidated::{Told, keep_true},
    edits::Edits,
};
use crate::{
    ArrayError,
    find::{Own, Sight, Sighting, key_below, prefix},
    shared::Shared,
};

/// The part of a commit that makes the documents of a node say something new.
#[derive(Debug)]
pub(crate) struct DocumentChanges {
    /// What is set, each with the precondition that it is still what it was, and what is only checked. No key is named twice.
    pub(crate) changes: Vec<Change>,
    /// The node's own documents as they were, each with the place of its change.
    own: Vec<(Key, Option<Version>, Option<usize>)>,
}

impl DocumentChanges {
    /// The changes for an array: of its own documents, of those of a twin (the same array over the same chunks in another dialect), and of the consolidated metadata in the groups above it.
    /// Everything that the sighting depends on is among the preconditions.
    pub(crate) async fn of_array(
        shared: &Shared,
        path: &NodePath,
        sighting: &Sighting,
        changes: &Changes,
    ) -> Result<Self, NodeError> {
        let edits = edits_of_array(shared, path, sighting, changes).await?;
        let changes = edits.stage(&*shared.store).await?;
        let Own(own) = &sighting.own;
        let place = |key: &Key| changes.iter().position(|change| change.key() == key);
        let own = own.iter().map(|(key, version)| (key.clone(), *version, place(key))).collect();
        Ok(Self { changes, own })
    }

    /// The version that the node has when the commit is made, given the outcomes of [`changes`](Self::changes) in their order, which may
    /// have been taken out meanwhile; `None` where an outcome is missing.
    pub(crate) fn version_after(&self, outcomes: &[Outcome]) -> Option<Version> {
        let after = |(key, before, place): &(Key, Option<Version>, Option<usize>)| {
            let version = match place.map(|place| outcomes.get(place)) {
                None | Some(Some(Outcome::Checked)) => *before,
                Some(Some(Outcome::Set(written))) => Some(written.version),
                Some(Some(Outcome::Erased { .. })) => None,
                Some(None) => return None,
            };
            Some((key.clone(), version))
        };
        Some(Own(self.own.iter().map(after).collect::<Option<_>>()?).version())
    }
}

/// What a commit has to change for an array to be changed.
pub(super) async fn edits_of_array(
    shared: &Shared,
    path: &NodePath,
    sighting: &Sighting,
    changes: &Changes,
) -> Result<Edits, NodeError> {
    let mut edits = Edits::default();
    edits.saw_all(&sighting.documents);
    let mut told = Vec::new();
    let model = sighting.array.model();
    let changed = edit_array(&mut edits, &mut told, path, model, &sighting.own, changes)?;
    if (changed || model.dialect != Dialect::V3)
        && let Some(twin) = twin(shared, path, sighting).await?
    {
        edits.saw_all(&twin.documents);
        edit_array(&mut edits, &mut told, path, twin.array.model(), &twin.own, changes)?;
    }
    keep_true(shared, &mut edits, path, &[], &told).await?;
    Ok(edits)
}

/// Whether anything changes.
fn edit_array(
    edits: &mut Edits,
    told: &mut Vec<Told>,
    path: &NodePath,
    model: &ArrayModel,
    own: &Own,
    changes: &Changes,
) -> Result<bool, NodeError> {
    let document = changes.of_array(model)?;
    let changed = edits.rewrite(model.dialect, own, Some(&node_document(model)), &document);
    if changed && model.dialect != Dialect::Draft {
        told.push(Told { path: path.clone(), dialect: model.dialect, node: Some(document) });
    }
    Ok(changed)
}

/// The node document of an array.
pub(super) fn node_document(model: &ArrayModel) -> Map<String, Value> {
    match model.dialect {
        Dialect::V2 => join_v2(&model.document, &model.attributes),
        Dialect::V3 | Dialect::Draft => model.document.clone(),
    }
}

/// The same array over the same chunks in the other of v2 and v3.
async fn twin(shared: &Shared, path: &NodePath, sighting: &Sighting) -> Result<Option<Arc<Sighting>>, NodeError> {
    let model = sighting.array.model();
    let other = match model.dialect {
        Dialect::V3 => Dialect::V2,
        Dialect::V2 => Dialect::V3,
        Dialect::Draft => return Ok(None),
    };
    let zarr_json = key_below(&prefix(path)?, "zarr.json");
    if other == Dialect::V3 && zarr_json.is_some_and(|key| sighting.documents.version_of(&key) == Some(None)) {
        return Ok(None);
    }
    match shared.see(path, Some(other)).await {
        Ok(Some(Sight::Array(twin))) => Ok(are_twins(model, twin.array.model()).then_some(twin)),
        // What cannot be read is nobody's twin.
        Ok(_) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether two arrays at one path have the same elements in the same chunks.
fn are_twins(one: &ArrayModel, other: &ArrayModel) -> bool {
    one.shape == other.shape
        && one.data_type == other.data_type
        && one.grid == other.grid
        && one.chunk_keys == other.chunk_keys
}
