//! Keeping consolidated metadata true: documents of groups that have copies of those of the nodes below.

use std::iter::once;

use meta::{
    Dialect, NodePath,
    documents::{
        draft, object,
        write::{consolidated_v2, consolidated_v3, text},
    },
};
use serde_json::{Map, Value, json};
use store::Key;

use super::{
    NodeError,
    edits::{Edits, Planned},
};
use crate::{
    find::{key_below, prefix, wrong},
    shared::Shared,
};

/// The member of a group of v3 that has consolidated metadata.
pub(super) const V3_MEMBER: &str = "consolidated_metadata";

/// What became of a node in v2 or v3.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) path: NodePath,
    pub(super) dialect: Dialect,
    /// Its node document now; `None` where it is gone with all below it.
    pub(super) node: Option<Map<String, Value>>,
}

/// Adds to a commit what the consolidated metadata of `top` and of the groups above it has to say of changed nodes, all of which are at `top` or below. Only what is there is kept true.
pub(super) async fn keep_true(
    shared: &Shared,
    edits: &mut Edits,
    top: &NodePath,
    told: &[Told],
) -> Result<(), NodeError> {
    if told.is_empty() {
        return Ok(());
    }
    let mut copies: Vec<(NodePath, Dialect, Key)> = Vec::new();
    for group in once(top.clone()).chain(top.ancestors()) {
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
            Planned::Set(value) => value.to_vec(),
            Planned::Kept => {
                let Some(value) = snapshot.get(&key, None).await? else { continue };
                value.bytes().await?.to_vec()
            }
        };
        if dialect == Dialect::V3 && draft::is_entry_point(&stored) {
            continue;
        }
        let document = object(&stored).map_err(|source| wrong(&key, source))?;
        if dialect == Dialect::V3 && !document.get(V3_MEMBER).is_some_and(Value::is_object) {
            continue;
        }
        let told = told.iter().filter(|told| told.dialect == dialect);
        let told = told.filter_map(|told| Some((told.path.below(&group)?, told.node.as_ref())));
        let updated = updated(&document, dialect, told);
        if updated != document {
            edits.saw(&key, snapshot.head(&key)?.map(|info| info.version));
            edits.set(key, text(&updated));
        }
    }
    Ok(())
}

/// A document with consolidated metadata in which these nodes have these documents, or are gone.
fn updated<'a>(
    document: &Map<String, Value>,
    dialect: Dialect,
    told: impl Iterator<Item = (&'a str, Option<&'a Map<String, Value>>)>,
) -> Map<String, Value> {
    let mut document = document.clone();
    for (below, node) in told {
        match (dialect, node) {
            (Dialect::V2, None) => document = consolidated_v2(&document, below, None),
            (_, None) => document = consolidated_v3(&document, below, None),
            // The node's entries are made in an otherwise empty document, since each making goes through the whole of it.
            (Dialect::V2, Some(_)) => {
                let shell = object_of(json!({"metadata": {}}));
                let made = consolidated_v2(&shell, below, node);
                let attributes = match below.is_empty() {
                    true => ".zattrs".to_owned(),
                    false => format!("{below}/.zattrs"),
                };
                if let Some(Value::Object(entries)) = document.get_mut("metadata") {
                    entries.shift_remove(&attributes);
                    extend(entries, made.get("metadata"));
                }
            }
            (_, Some(_)) if below.is_empty() => {}
            (_, Some(_)) => {
                let shell = object_of(json!({V3_MEMBER: {"metadata": {}}}));
                let made = consolidated_v3(&shell, below, node);
                let made = made.get(V3_MEMBER).and_then(|member| member.get("metadata"));
                if let Some(Value::Object(entries)) =
                    document.get_mut(V3_MEMBER).and_then(|member| member.get_mut("metadata"))
                {
                    extend(entries, made);
                }
            }
        }
    }
    document
}

fn extend(entries: &mut Map<String, Value>, made: Option<&Value>) {
    if let Some(Value::Object(made)) = made {
        entries.extend(made.iter().map(|(name, document)| (name.clone(), document.clone())));
    }
}

fn object_of(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}
