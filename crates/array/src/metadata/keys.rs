//! Which keys a node has.

use std::{collections::BTreeSet, sync::Arc};

use meta::{Dialect, NodePath, documents::draft, names::NameError};
use store::{Key, Prefix};

use super::{error::NodeError, tree::NodeKind};
use crate::node::resolved::DraftHierarchy;

/// The keys of a node's own documents: what it is, and in v2 its attributes. Fails where a key would be too long.
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
            let below = path.below(&root.path).unwrap_or_default();
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

/// What all keys of a node and of those below it begin with, and the keys that do not.
pub(crate) struct SubtreeKeys {
    pub(crate) prefixes: Vec<Prefix>,
    pub(crate) keys: Vec<Key>,
}

/// Where a node is, with everything below it.
pub(crate) fn subtree_keys(
    path: &NodePath,
    dialect: Dialect,
    root: Option<&Arc<DraftHierarchy>>,
) -> Result<SubtreeKeys, NodeError> {
    let parse = |prefix: &str| Prefix::parse(prefix).map_err(|_| too_long(dialect, path));
    let Some(root) = root.filter(|_| dialect == Dialect::Draft) else {
        return Ok(SubtreeKeys { prefixes: vec![parse(&path.key_prefix())?], keys: Vec::new() });
    };
    let below = path.below(&root.path).unwrap_or_default();
    let own = root.prefix.as_str();
    // A node `/foo2` has none of these keys where the node is `/foo`: they end with the name, or with `/`.
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

/// A node whose keys would be too long has no name that is allowed.
pub(crate) fn too_long(dialect: Dialect, path: &NodePath) -> NodeError {
    let name = path.name().unwrap_or_default().chars().take(64).collect();
    let source = NameError { dialect, name, reason: "the keys of the node would be too long" };
    NodeError::Name { path: path.clone(), source }
}

/// The documents of v2 and v3.
pub(crate) const NAMES: [&str; 4] = ["zarr.json", ".zarray", ".zgroup", ".zattrs"];

/// Whether a node, or one that holds it, is among those that go.
pub(crate) fn is_at_or_below(gone: &BTreeSet<NodePath>, path: &NodePath) -> bool {
    gone.contains(path) || path.ancestors().any(|above| gone.contains(&above))
}
