//! Updating the documents of an array.

use std::sync::Arc;

use zarrd_meta::{
    ArrayModel, Dialect, NodePath,
    documents::{NodePatch, write::StoredNode},
};
use zarrd_store::{Change, ChangeOutcome, Key, Version};

use super::{
    change_set::ChangeSet,
    consolidated::{NodeChange, update_consolidated_metadata},
    error::NodeError,
};
use crate::{
    context::Context,
    error::ArrayError,
    node::{
        keys::{join_key, node_prefix},
        read_set::NodeVersions,
        resolved::{ResolvedArray, ResolvedNode},
    },
};

/// The changes of a commit that update an array's metadata.
#[derive(Debug)]
pub(crate) struct ArrayMetadataUpdate {
    /// Changes, each with the precondition that its document is unchanged, and checks. No key occurs twice.
    pub(crate) changes: Vec<Change>,
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
        let changes = change_set.stage(&**context.writes()?).await?;
        let NodeVersions(own) = &resolved.versions;
        let place = |key: &Key| changes.iter().position(|change| change.key() == Some(key));
        let own = own.iter().map(|(key, version)| (key.clone(), *version, place(key))).collect();
        Ok(Self { changes, own })
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

/// Plans the update of an array.
pub(crate) async fn plan_array_update(
    context: &Context,
    path: &NodePath,
    resolved: &ResolvedArray,
    changes: &NodePatch,
) -> Result<ChangeSet, NodeError> {
    let mut change_set = ChangeSet::default();
    change_set.record_reads(&resolved.read_set);
    let mut node_changes = Vec::new();
    let model = resolved.array.model();
    let changed = update_array_document(&mut change_set, &mut node_changes, path, model, &resolved.versions, changes)?;
    if (changed || model.dialect != Dialect::V3)
        && let Some(twin) = counterpart_document(context, path, resolved).await?
    {
        change_set.record_reads(&twin.read_set);
        update_array_document(&mut change_set, &mut node_changes, path, twin.array.model(), &twin.versions, changes)?;
    }
    update_consolidated_metadata(context, &mut change_set, path, &[], &node_changes).await?;
    Ok(change_set)
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

/// The same array over the same chunks in the other of v2 and v3.
async fn counterpart_document(
    context: &Context,
    path: &NodePath,
    resolved: &ResolvedArray,
) -> Result<Option<Arc<ResolvedArray>>, NodeError> {
    let model = resolved.array.model();
    let other = match model.dialect {
        Dialect::V3 => Dialect::V2,
        Dialect::V2 => Dialect::V3,
        Dialect::Draft => return Ok(None),
    };
    let zarr_json = join_key(&node_prefix(path)?, "zarr.json");
    if other == Dialect::V3 && zarr_json.is_some_and(|key| resolved.read_set.version_of(&key) == Some(None)) {
        return Ok(None);
    }
    match context.resolve_node(path, Some(other)).await {
        Ok(Some(ResolvedNode::Array(twin))) => Ok(are_counterparts(model, twin.array.model()).then_some(twin)),
        // A node that cannot be read is no counterpart.
        Ok(_) | Err(ArrayError::Document { .. } | ArrayError::Chain { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// True if two arrays at one path have the same elements in the same chunks.
fn are_counterparts(one: &ArrayModel, other: &ArrayModel) -> bool {
    one.shape == other.shape
        && one.data_type == other.data_type
        && one.grid == other.grid
        && one.chunk_keys == other.chunk_keys
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
