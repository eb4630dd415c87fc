//! Erasing nodes.

use zarrd_meta::{Dialect, NodePath};
use zarrd_operations::{Depth, NodeRejection};
use zarrd_store::{ChangeOutcome, KeyCount, Precondition, count_keys};

use super::{
    create::commit,
    walk::{
        mode::{Top, WalkOptions},
        walker::{versions_at, walk},
    },
};
use crate::{
    context::Context,
    metadata::{
        change_set::ChangeSet, consolidated::update_consolidated_metadata, copy_update::NodeChange, error::NodeError,
        keys,
    },
};

/// One attempt to erase a node with everything below it, be it broken; `None` if it changed meanwhile.
pub(crate) async fn attempt(
    context: &Context,
    path: &NodePath,
    dialect: Option<Dialect>,
    condition: &Precondition,
) -> Result<Option<KeyCount>, NodeError> {
    // What else is at the path, or is not, when the node is found: it is erased with the node.
    let around = versions_at(context, path).await?;
    let options = WalkOptions { top: Top::Any, ..WalkOptions::new(Depth::Levels(0)) };
    let top = walk(context, path, dialect, options).await?.top;
    let version = (!top.is_implicit()).then(|| top.own.version());
    if !condition.is_met_by(version) {
        return Err(NodeError::Rejected(NodeRejection::PreconditionFailed { path: path.clone(), current: version }));
    }
    let extent = keys::subtree_keys(path, top.dialect, top.root.as_ref())?;
    let mut change_set = ChangeSet::default();
    for (key, version) in &top.own.0 {
        change_set.record_read(key, *version);
    }
    around.iter().for_each(|(key, version)| change_set.record_read(key, *version));
    if top.dialect == Dialect::Draft && top.is_implicit() {
        extent.keys.iter().filter(|key| key.name() != "zarr.json").for_each(|key| change_set.record_read(key, None));
    }
    let mut erased = KeyCount::exact(0);
    for prefix in &extent.prefixes {
        erased = erased.combine(count_keys(&*context.store, prefix).await?);
        change_set.erase_prefix(prefix.clone());
    }
    for key in extent.keys {
        change_set.erase(key);
    }
    let node_changes: Vec<NodeChange> = match top.dialect {
        Dialect::Draft => Vec::new(),
        Dialect::V2 | Dialect::V3 => {
            [Dialect::V2, Dialect::V3].map(|dialect| NodeChange { path: path.clone(), dialect, node: None }).into()
        }
    };
    update_consolidated_metadata(context, &mut change_set, path, &[], &node_changes).await?;
    let Some(outcomes) = commit(context, change_set).await? else { return Ok(None) };
    let was_erased = |outcome: &&ChangeOutcome| matches!(outcome, ChangeOutcome::Erased { existed: true });
    let keys = outcomes.iter().filter(was_erased).count() as u64;
    erased = erased.combine(KeyCount::exact(keys));
    Ok(Some(erased))
}
