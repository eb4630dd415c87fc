//! The keys of nodes.

use std::{collections::BTreeSet, sync::Arc};

use zarrd_meta::{Dialect, NodePath, documents::draft, names::NameError};
use zarrd_store::{Key, Prefix};

use super::{error::NodeError, tree::NodeKind};
use crate::node::resolved::DraftHierarchy;

/// The keys of a node's own documents. Fails if one would be too long.
pub(crate) fn document_keys(
    path: &NodePath,
    dialect: Dialect,
    kind: NodeKind,
    root: Option<&Arc<DraftHierarchy>>,
) -> Result<Vec<Key>, NodeError> {
    let own = path.key_prefix();
    let names = match (dialect, kind, root) {
        (Dialect::V3, ..) => vec![format!("{own}zarr.json")],
        (Dialect::V2, NodeKind::Array, _) => vec![format!("{own}.zarray"), format!("{own}.zattrs")],
        (Dialect::V2, NodeKind::Group, _) => vec![format!("{own}.zgroup"), format!("{own}.zattrs")],
        (Dialect::Draft, kind, Some(root)) => {
            let below = path.relative_to(&root.path).unwrap_or_default();
            let key = match kind {
                NodeKind::Array => root.entry_point.array_key(below),
                NodeKind::Group => root.entry_point.group_key(below),
            };
            vec![format!("{}{key}", root.prefix.as_str())]
        }
        (Dialect::Draft, _, None) => Vec::new(),
    };
    names.iter().map(|name| Key::parse(name).map_err(|_| too_long(dialect, path))).collect()
}

/// The keys of a node and everything below it: prefixes, and single keys outside of these.
pub(crate) struct SubtreeKeys {
    pub(crate) prefixes: Vec<Prefix>,
    pub(crate) keys: Vec<Key>,
}

/// The keys of a node and everything below it.
pub(crate) fn subtree_keys(
    path: &NodePath,
    dialect: Dialect,
    root: Option<&Arc<DraftHierarchy>>,
) -> Result<SubtreeKeys, NodeError> {
    let parse = |prefix: &str| Prefix::parse(prefix).map_err(|_| too_long(dialect, path));
    let Some(root) = root.filter(|_| dialect == Dialect::Draft) else {
        return Ok(SubtreeKeys { prefixes: vec![parse(&path.key_prefix())?], keys: Vec::new() });
    };
    let below = path.relative_to(&root.path).unwrap_or_default();
    let own = root.prefix.as_str();
    // No key of the node `/foo2` has these prefixes of `/foo`, which end with the whole name or with `/`.
    let prefixes = vec![
        parse(&format!("{own}{}", draft::children_prefix(below)))?,
        parse(&format!("{own}{}", draft::chunk_prefix(below)))?,
    ];
    let mut keys = document_keys(path, dialect, NodeKind::Array, Some(root))?;
    keys.extend(document_keys(path, dialect, NodeKind::Group, Some(root))?);
    if below.is_empty() {
        keys.extend(Key::parse(&format!("{own}zarr.json")));
    }
    Ok(SubtreeKeys { prefixes, keys })
}

/// The error of a node whose keys would be too long: its name is not allowed.
pub(crate) fn too_long(dialect: Dialect, path: &NodePath) -> NodeError {
    let name = path.name().unwrap_or_default().chars().take(64).collect();
    let source =
        NameError { dialect, name, reason: "the keys of the node would be longer than the limit of 1024 bytes" };
    NodeError::Name { path: path.clone(), source }
}

/// The names of the documents of v2 and v3.
pub(crate) const NAMES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// True if a node, or one above it, is among those that are erased.
pub(crate) fn is_at_or_below(erased: &BTreeSet<NodePath>, path: &NodePath) -> bool {
    !erased.is_empty() && (erased.contains(path) || path.ancestors().any(|ancestor| erased.contains(&ancestor)))
}
