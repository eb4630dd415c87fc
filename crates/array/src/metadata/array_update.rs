//! Updating the documents of an array.

use std::{borrow::Cow, sync::Arc};

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    documents::{NodePatch, write::StoredNode},
};
use zarrd_store::{Change, ChangeOutcome, Key, Version};

use super::{
    change_set::ChangeSet,
    consolidated::update_consolidated_metadata,
    copy_update::{ConsolidatedUpdate, NodeChange},
    error::NodeError,
    intent_record::Excluded,
};
use crate::{
    context::Context,
    node::{read_set::NodeVersions, resolved::ResolvedArray},
};

/// The changes of a commit that update an array's metadata.
#[derive(Debug)]
pub(crate) struct ArrayMetadataUpdate {
    /// Changes, each with the precondition that its document is unchanged, and checks. No key occurs twice.
    pub(crate) changes: Vec<Change>,
    /// The update of consolidated metadata that some of them make.
    pub(crate) consolidated: Option<Arc<ConsolidatedUpdate>>,
    /// The versions of the node's own documents, each with the index of its change.
    own: Vec<(Key, Option<Version>, Option<usize>)>,
}

impl ArrayMetadataUpdate {
    /// The update of an array: of its own documents, of its counterpart (the same array over the same chunks in another
    /// dialect), and of the consolidated metadata in the groups above it. The whole read set is among the
    /// preconditions.
    pub(crate) async fn of_array(
        context: &Context,
        path: &NodePath,
        resolved: &ResolvedArray,
        changes: &NodePatch,
    ) -> Result<Self, NodeError> {
        let change_set = plan_array_update(context, path, resolved, changes).await?;
        let consolidated = change_set.consolidated();
        let changes = change_set.stage(&**context.writes()?).await?;
        let NodeVersions(own) = &resolved.versions;
        let place = |key: &Key| changes.iter().position(|change| change.key() == Some(key));
        let own = own.iter().map(|(key, version)| (key.clone(), *version, place(key))).collect();
        Ok(Self { changes, consolidated, own })
    }

    /// The version of the node after the commit, given the outcomes of [`changes`](Self::changes) in order; `None` if
    /// an outcome is missing.
    pub(crate) fn version_after(&self, outcomes: &[ChangeOutcome]) -> Option<Version> {
        let after = |(key, before, place): &(Key, Option<Version>, Option<usize>)| {
            let version = match place.map(|place| outcomes.get(place)) {
                Some(Some(ChangeOutcome::Set(written))) => Some(written.version),
                Some(Some(ChangeOutcome::Erased { .. })) => None,
                None | Some(Some(_)) => *before,
                Some(None) => return None,
            };
            Some((key.clone(), version))
        };
        Some(NodeVersions(self.own.iter().map(after).collect::<Option<_>>()?).version())
    }
}

/// Plans the update of an array, which was resolved [for a change](ResolvedArray::for_change).
///
/// All documents of v2 and v3 at the path, or their absence, are among the preconditions. Documents of different shapes
/// get the same one: that of the update, or else the larger one.
pub(crate) async fn plan_array_update(
    context: &Context,
    path: &NodePath,
    resolved: &ResolvedArray,
    changes: &NodePatch,
) -> Result<ChangeSet, NodeError> {
    let mut change_set = ChangeSet::default();
    let mut node_changes = Vec::new();
    add_array_update(&mut change_set, &mut node_changes, (path, resolved), changes)?;
    update_consolidated_metadata(context, &mut change_set, path, &[], &node_changes).await?;
    Ok(change_set)
}

/// Plans the update of several arrays of a group in one commit, like [`plan_array_update`].
pub(crate) async fn plan_array_updates(
    context: &Context,
    group: &NodePath,
    arrays: &[(&NodePath, &ResolvedArray, NodePatch)],
) -> Result<ChangeSet, NodeError> {
    let mut change_set = ChangeSet::default();
    let mut node_changes = Vec::new();
    for (path, resolved, changes) in arrays {
        add_array_update(&mut change_set, &mut node_changes, (path, resolved), changes)?;
    }
    update_consolidated_metadata(context, &mut change_set, group, &[], &node_changes).await?;
    Ok(change_set)
}

/// Adds the update of an array's documents to a change set, with what has to be unchanged for it.
fn add_array_update(
    change_set: &mut ChangeSet,
    node_changes: &mut Vec<NodeChange>,
    (path, resolved): (&NodePath, &ResolvedArray),
    changes: &NodePatch,
) -> Result<(), NodeError> {
    change_set.record_reads(&resolved.read_set);
    let model = resolved.document_model();
    let mut changes = Cow::Borrowed(changes);
    if changes.shape.is_none() && resolved.has_two_shapes() {
        changes.to_mut().shape = Some(resolved.array.model().view_shape());
    }
    if changes.shape.is_some() {
        change_set.check_not_excluded(Excluded::NewShape((*path).clone()));
    }
    update_array_document(change_set, node_changes, path, &model, &resolved.versions, &changes)?;
    if let Some(counterpart) = &resolved.counterpart
        && let Some(other) = counterpart.array()
    {
        // A view of the counterpart may start elsewhere.
        let stored = changes.shape.iter().flatten().zip(&model.view_offset);
        let view = stored.map(|(extent, origin)| extent.saturating_add(*origin)).zip(&other.view_offset);
        let shape: Vec<u64> = view.map(|(extent, origin)| extent.saturating_sub(*origin)).collect();
        let shape = changes.shape.is_some().then_some(shape);
        let changes = NodePatch { shape, ..NodePatch::clone(&changes) };
        update_array_document(change_set, node_changes, path, other, &counterpart.versions, &changes)?;
    }
    Ok(())
}

/// Updates a document; returns whether it changed.
fn update_array_document(
    change_set: &mut ChangeSet,
    node_changes: &mut Vec<NodeChange>,
    path: &NodePath,
    model: &ArrayModel,
    own: &NodeVersions,
    changes: &NodePatch,
) -> Result<bool, NodeError> {
    let after = changes.apply_to_array(model)?;
    let changed = change_set.rewrite(own, Some(&stored_array(model)), &after);
    if changed && model.dialect != Dialect::Draft {
        node_changes.push(NodeChange { path: path.clone(), dialect: model.dialect, node: Some(after) });
    }
    Ok(changed)
}

/// The documents of an array.
pub(crate) fn stored_array(model: &ArrayModel) -> StoredNode {
    StoredNode::new(model.dialect, &model.document, &model.attributes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use zarrd_meta::documents::ElementImpact;
    use zarrd_store::{MemoryStore, Precondition, StoreError, TransactionalStore, WriteableStore};

    use super::*;
    use crate::Options;

    async fn json(store: &MemoryStore, key: &str, document: &Value) {
        let content = document.to_string().into_bytes().into();
        store.set(&Key::parse(key).unwrap(), content, Precondition::none()).await.unwrap();
    }

    #[tokio::test]
    async fn version_after_commit_equals_the_resolved_version() {
        let store = MemoryStore::new();
        let context = Context::new(Arc::new(store.clone()).into(), Options::default());
        let v2 = json!({"zarr_format": 2, "shape": [3], "chunks": [2], "dtype": "|u1", "fill_value": 0, "order": "C",
            "filters": null, "compressor": null});
        let v3 = json!({"zarr_format": 3, "node_type": "array", "shape": [3], "data_type": "uint8", "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
            "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "bytes"}]});
        json(&store, "two/.zarray", &v2).await;
        json(&store, "three/zarr.json", &v3).await;
        for at in ["/two", "/three"] {
            let path = NodePath::parse(at).unwrap();
            for patch in [r#"{"attributes": {"n": 1}}"#, r#"{"shape": [5]}"#, r#"{"attributes": {"n": null}}"#, "{}"] {
                let resolved = context.resolve_array(&path, None).await.unwrap();
                let changes = NodePatch::parse(patch.as_bytes()).unwrap();
                let mut update = ArrayMetadataUpdate::of_array(&context, &path, &resolved, &changes).await.unwrap();
                let outcomes = store.commit(std::mem::take(&mut update.changes)).await.unwrap();
                let found = context.resolve_array(&path, None).await.unwrap().version();
                assert_eq!(update.version_after(&outcomes), Some(found), "{at} {patch}");
                assert_eq!(found == resolved.version(), patch == "{}", "{at} {patch}");
            }
        }
    }

    /// A write that changes no document still depends on all of them.
    #[tokio::test]
    async fn unchanged_documents_are_checked_on_commit() {
        let store = MemoryStore::new();
        let context = Context::new(Arc::new(store.clone()).into(), Options::default());
        let path = NodePath::parse("/a").unwrap();
        let array = json!({"zarr_format": 2, "shape": [3], "chunks": [2], "dtype": "|u1", "fill_value": 0, "order": "C",
            "filters": null, "compressor": null});
        json(&store, "a/.zarray", &array).await;
        for (key, document) in [
            ("a/.zarray", array.clone()),
            ("a/.zattrs", json!({})),
            ("a/zarr.json", json!({"zarr_format": 3, "node_type": "group"})),
        ] {
            let resolved = context.resolve_array(&path, None).await.unwrap();
            let changes = NodePatch { element_impact: ElementImpact::Changed, ..NodePatch::default() };
            let update = ArrayMetadataUpdate::of_array(&context, &path, &resolved, &changes).await.unwrap();
            assert!(update.changes.iter().all(|change| matches!(change, Change::Check { .. })));
            json(&store, key, &document).await;
            let refused = store.commit(update.changes).await;
            assert!(matches!(refused, Err(StoreError::PreconditionFailed { key: found, .. }) if found.as_str() == key));
        }
    }
}
