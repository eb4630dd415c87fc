//! Erasing nodes.

use meta::{Dialect, NodePath};
use store::{ErasedKeys, Outcome, Precondition, count_keys};

use super::{
    Depth, NodeError,
    consolidated::{Told, keep_true},
    declare::commit,
    edits::Edits,
    keys,
    walk::walk_any,
};
use crate::shared::Shared;

/// One attempt to erase a node with all below it, which may be broken; `None` where somebody else changed it.
pub(super) async fn attempt(
    shared: &Shared,
    path: &NodePath,
    dialect: Option<Dialect>,
    condition: &Precondition,
) -> Result<Option<ErasedKeys>, NodeError> {
    let top = walk_any(shared, path, dialect, Depth::Levels(0)).await?.top;
    let version = (!top.is_implicit()).then(|| top.own.version());
    if !condition.holds(version) {
        return Err(NodeError::PreconditionFailed { path: path.clone(), current: version });
    }
    let extent = keys::extent(path, top.dialect, top.root.as_ref())?;
    let mut edits = Edits::default();
    for (key, version) in &top.own.0 {
        edits.saw(key, *version);
    }
    let mut erased = ErasedKeys::exactly(0);
    for prefix in &extent.prefixes {
        erased = erased.plus(count_keys(&*shared.store, prefix).await?);
        edits.erase_prefix(prefix.clone());
    }
    for key in extent.keys {
        edits.erase(key);
    }
    let told: Vec<Told> = match top.dialect {
        Dialect::Draft => Vec::new(),
        Dialect::V2 | Dialect::V3 => {
            [Dialect::V2, Dialect::V3].map(|dialect| Told { path: path.clone(), dialect, node: None }).into()
        }
    };
    keep_true(shared, &mut edits, path, &[], &told).await?;
    let Some(outcomes) = commit(shared, edits).await? else { return Ok(None) };
    let is_gone = |outcome: &&Outcome| matches!(outcome, Outcome::Erased { existed: true });
    let keys = outcomes.iter().filter(is_gone).count() as u64;
    erased = erased.plus(ErasedKeys::exactly(keys));
    Ok(Some(erased))
}
