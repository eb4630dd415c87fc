//! Keeping consolidated metadata true: documents of groups that have copies of those of the nodes below.

use std::iter::once;

use bytes::Bytes;
use meta::{
    Dialect, NodePath,
    documents::{
        object,
        write::{CONSOLIDATED, NodeCopy, StoredNode, consolidated},
    },
    json::Json,
};
use store::Key;

use super::{
    NodeError,
    edits::{Edits, Planned},
};
use crate::{
    find::{key_below, prefix, wrong},
    shared::{Shared, off_worker},
};

/// Up to so many bytes of consolidated metadata are changed where the request is.
const LIGHT: usize = 64 << 10;

/// What became of a node in v2 or v3.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) path: NodePath,
    pub(super) dialect: Dialect,
    /// Its documents now; `None` where it is gone with all below it.
    pub(super) node: Option<StoredNode>,
}

/// Adds to a commit what consolidated metadata has to say of changed nodes: that of `top`, of the groups above it, and of these `groups` below. Only what is there is kept true.
pub(super) async fn keep_true(
    shared: &Shared,
    edits: &mut Edits,
    top: &NodePath,
    groups: &[NodePath],
    told: &[Told],
) -> Result<(), NodeError> {
    if told.is_empty() {
        return Ok(());
    }
    let mut copies: Vec<(NodePath, Dialect, Key)> = Vec::new();
    let groups = groups.iter().filter(|group| *group != top).cloned();
    for group in once(top.clone()).chain(top.ancestors()).chain(groups) {
        let Ok(prefix) = prefix(&group) else { continue };
        for (dialect, name) in [(Dialect::V2, ".zmetadata"), (Dialect::V3, "zarr.json")] {
            if told.iter().any(|told| told.dialect == dialect)
                && let Some(key) = key_below(&prefix, name)
            {
                copies.push((group.clone(), dialect, key));
            }
        }
    }
    let keys: Vec<Key> = copies.iter().map(|(_, _, key)| key.clone()).collect();
    let snapshot = shared.store.snapshot(&keys).await?;
    for (group, dialect, key) in copies {
        let stored = match edits.planned(&key) {
            Planned::Erased => continue,
            Planned::Set(value) => value.clone(),
            Planned::Kept => {
                let Some(value) = snapshot.get(&key, None).await? else { continue };
                value.bytes().await?
            }
        };
        let update = || updated(&group, dialect, &key, stored.clone(), told);
        let updated = match stored.len() {
            ..=LIGHT => update()?,
            _ => off_worker(async { update() }).await?,
        };
        if let Some(updated) = updated {
            edits.saw(&key, snapshot.head(&key)?.map(|info| info.version));
            edits.set(key, updated.to_whole());
        }
    }
    Ok(())
}

/// The consolidated metadata of a group with changed nodes; `None` where it has none, or stays the same.
fn updated(
    group: &NodePath,
    dialect: Dialect,
    key: &Key,
    stored: Bytes,
    told: &[Told],
) -> Result<Option<Json>, NodeError> {
    let document = object(stored).map_err(|source| wrong(key, source))?;
    if dialect == Dialect::V3 && !document.get(CONSOLIDATED).is_some_and(|copies| copies.is_object()) {
        return Ok(None);
    }
    let copies = told.iter().filter(|told| told.dialect == dialect).filter_map(|told| {
        let below = told.path.below(group)?;
        Some(NodeCopy { below, node: told.node.as_ref() })
    });
    let updated = consolidated(dialect, &document, copies);
    Ok((updated != document).then_some(updated))
}
